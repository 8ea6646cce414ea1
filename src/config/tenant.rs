//! The keys of the tenant and workspace loops.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;
use crate::api::labels;
use crate::api::quantity::Quantity;

/// The tenant loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TenantConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of Tenants that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// Whether a Tenant only gets an account until its e-mail address is confirmed in Keycloak.
    pub wait_user_verification: bool,
    /// The time between two queries whether a Tenant has confirmed its e-mail address, at least `10s`.
    pub verification_poll: ConfigDuration,
    /// The time after the last login for which a personal namespace without Instances is kept.
    pub keep_alive: ConfigDuration,
    /// The Workspaces in which every Tenant is enrolled; they do not count for the label `no-workspaces`.
    #[schemars(extend("items" = {"type": "string", "format": formats::OBJECT_NAME.name}))]
    pub base_workspaces: Vec<String>,
    /// The labels of every personal namespace, in addition to those that the loop sets.
    #[schemars(extend(
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub namespace_labels: BTreeMap<String, String>,
    /// The personal volumes of Tenants (MyDrive).
    pub my_drive: MyDrive,
    /// The `ClusterRole` that a Tenant has in its sandbox namespace.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub sandbox_cluster_role: String,
    /// The labels of every sandbox namespace, in addition to those that the loop sets. The default keeps pods from the
    /// rights of a node (Pod Security Standards).
    #[schemars(extend(
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub sandbox_labels: BTreeMap<String, String>,
    /// The upper limits of a Tenant's quota, which is the sum over its Workspaces; 0 for no limit.
    pub quota_caps: QuotaCaps,
    /// How many objects of each kind there may be in the namespaces of a Tenant.
    pub count_quotas: CountQuotas,
    /// Personal workspaces, in which Tenants have Templates of their own.
    pub personal_workspace: PersonalWorkspaceConfig,
}

/// How many objects of each kind there may be in the namespaces of a Tenant, as limits `count/…` in its `ResourceQuota`s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CountQuotas {
    /// Whether there are such limits. The values of the chart turn them on; the Go operators had none.
    pub enabled: bool,
    /// The limits in a sandbox, where a Tenant makes any objects that its role allows; 0 for no limit.
    pub sandbox: ObjectCounts,
    /// The limits in a personal namespace, where what the daemon makes for Instances counts, too; 0 for no limit. The number
    /// of Instances is limited by the quota of the Tenant in any case.
    pub personal: ObjectCounts,
}

/// How many objects of each kind there may be in a namespace; 0 for no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ObjectCounts {
    /// The number of `ConfigMap`s; Kubernetes itself makes one in each namespace.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub config_maps: u32,
    /// The number of Secrets.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub secrets: u32,
    /// The number of Services.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub services: u32,
    /// The number of claims.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub persistent_volume_claims: u32,
    /// The number of Instances.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub instances: u32,
    /// The number of snapshots.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub instance_snapshots: u32,
    /// The number of Templates.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub templates: u32,
}

/// The personal volumes of Tenants (MyDrive).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MyDrive {
    /// The namespace of the claims, which must exist.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub namespace: String,
    /// The size of a volume; existing volumes are enlarged to it, but never reduced.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub size: Quantity,
    /// The storage class of new volumes, which must provide NFS.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub storage_class_name: String,
    /// Whether the volume of a deleted Tenant is kept (`retain`) or deleted (`delete`); a new Tenant with the
    /// same name and e-mail address gets the kept volume.
    pub on_tenant_deletion: OnTenantDeletion,
    /// The image of the Job that sets the owner of a new volume; it must contain `chown`.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub provisioning_image: String,
}

/// What happens to the volume of a deleted Tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnTenantDeletion {
    /// The volume is kept.
    #[default]
    Retain,
    /// The volume is deleted.
    Delete,
}

/// The upper limits of a Tenant's quota; 0 for no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct QuotaCaps {
    /// The number of processor cores; 0 for no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cpu: usize,
    /// The memory; 0 for no limit.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub memory: Quantity,
    /// The number of Instances; 0 for no limit.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub instances: usize,
}

/// Personal workspaces, in which Tenants have Templates of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PersonalWorkspaceConfig {
    /// Whether a Tenant with `spec.personalWorkspace` may create Templates in its personal namespace.
    pub enabled: bool,
}

/// The workspace loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkspaceConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of Workspaces that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
}

impl Default for TenantConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            concurrency: 8,
            wait_user_verification: true,
            verification_poll: ConfigDuration::from_secs(300),
            keep_alive: ConfigDuration::from_secs(24 * 3600),
            base_workspaces: Vec::new(),
            namespace_labels: BTreeMap::from([(labels::RESOURCES_REPLICATION.to_owned(), "true".to_owned())]),
            my_drive: MyDrive::default(),
            sandbox_cluster_role: "crownlabs-sandbox".to_owned(),
            sandbox_labels: BTreeMap::from([(labels::POD_SECURITY.to_owned(), "baseline".to_owned())]),
            quota_caps: QuotaCaps::default(),
            count_quotas: CountQuotas::default(),
            personal_workspace: PersonalWorkspaceConfig::default(),
        }
    }
}

impl Default for MyDrive {
    fn default() -> Self {
        Self {
            namespace: "mydrive-pvcs".to_owned(),
            size: quantity("1Gi"),
            storage_class_name: "rook-nfs".to_owned(),
            on_tenant_deletion: OnTenantDeletion::default(),
            provisioning_image: "busybox".to_owned(),
        }
    }
}

impl Default for CountQuotas {
    fn default() -> Self {
        Self {
            enabled: false,
            sandbox: ObjectCounts {
                config_maps: 30,
                secrets: 30,
                services: 20,
                persistent_volume_claims: 10,
                instances: 10,
                instance_snapshots: 10,
                templates: 10,
            },
            personal: ObjectCounts {
                config_maps: 100,
                secrets: 300,
                services: 300,
                persistent_volume_claims: 300,
                instances: 0,
                instance_snapshots: 100,
                templates: 100,
            },
        }
    }
}

impl CountQuotas {
    /// The limits as a `ResourceQuota` names them; none where they are off.
    pub fn hard(&self, limits: &ObjectCounts) -> BTreeMap<String, Quantity> {
        let limits = [
            ("configmaps", limits.config_maps),
            ("secrets", limits.secrets),
            ("services", limits.services),
            ("persistentvolumeclaims", limits.persistent_volume_claims),
            ("instances.crownlabs.polito.it", limits.instances),
            ("instancesnapshots.crownlabs.polito.it", limits.instance_snapshots),
            ("templates.crownlabs.polito.it", limits.templates),
        ];
        let limits = limits.into_iter().filter(|(_, limit)| self.enabled && *limit > 0);
        limits.map(|(name, limit)| (format!("{COUNT}{name}"), Quantity::from_int(limit.into()))).collect()
    }
}

/// What the name of the number of objects of a kind begins with in a `ResourceQuota`.
pub const COUNT: &str = "count/";

impl Default for QuotaCaps {
    fn default() -> Self {
        Self { cpu: 25, memory: quantity("50G"), instances: 10 }
    }
}

impl Default for WorkspaceConfig {
    fn default() -> Self {
        Self { enabled: true, concurrency: 4 }
    }
}

/// Parses a quantity that is a constant of this file.
fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_default()
}
