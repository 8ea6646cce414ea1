//! The keys of the tenant and workspace loops.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;
use crate::api::labels;
use crate::api::quantity::Quantity;

keys! {
    /// The tenant loop.
    pub struct TenantConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Tenants that are reconciled at the same time, from 1 to 256.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 8,
        /// Whether a Tenant only gets an account until its e-mail address is confirmed in Keycloak.
        pub wait_user_verification: bool = true,
        /// The time between two queries whether a Tenant has confirmed its e-mail address, at least `10s`.
        pub verification_poll: ConfigDuration = ConfigDuration::from_secs(300),
        /// The time after the last login for which a personal namespace without Instances is kept.
        pub keep_alive: ConfigDuration = ConfigDuration::from_secs(24 * 3600),
        /// The Workspaces in which every Tenant is enrolled; they do not count for the label `no-workspaces`.
        #[schemars(extend("items" = {"type": "string", "format": formats::OBJECT_NAME.name}))]
        pub base_workspaces: Vec<String>,
        /// The labels of every personal namespace, in addition to those that the loop sets.
        #[schemars(transform = formats::labels)]
        pub namespace_labels: BTreeMap<String, String> = BTreeMap::from([(labels::RESOURCES_REPLICATION.to_owned(), "true".to_owned())]),
        /// The personal volumes of Tenants (MyDrive).
        pub my_drive: MyDrive,
        /// The `ClusterRole` that a Tenant has in its sandbox namespace.
        pub sandbox_cluster_role: String as formats::OBJECT_NAME = "crownlabs-sandbox".to_owned(),
        /// The labels of every sandbox namespace, in addition to those that the loop sets. The default keeps pods from
        /// the rights of a node (Pod Security Standards).
        #[schemars(transform = formats::labels)]
        pub sandbox_labels: BTreeMap<String, String> = BTreeMap::from([(labels::POD_SECURITY.to_owned(), "baseline".to_owned())]),
        /// The upper limits of a Tenant's quota, which is the sum over its Workspaces; 0 for no limit.
        pub quota_caps: QuotaCaps,
        /// How many objects of each kind there may be in the namespaces of a Tenant.
        pub count_quotas: CountQuotas,
        /// Personal workspaces, in which Tenants have Templates of their own.
        pub personal_workspace: PersonalWorkspaceConfig,
    }

    /// How many objects of each kind there may be in the namespaces of a Tenant, as limits `count/…` in its
    /// `ResourceQuota`s.
    pub struct CountQuotas {
        /// Whether there are such limits. The values of the chart turn them on; the Go operators had none.
        pub enabled: bool,
        /// The limits in a sandbox, where a Tenant makes any objects that its role allows; 0 for no limit.
        pub sandbox: ObjectCounts = ObjectCounts {
            config_maps: 30,
            secrets: 30,
            services: 20,
            persistent_volume_claims: 10,
            instances: 10,
            instance_snapshots: 10,
            templates: 10,
        },
        /// The limits in a personal namespace, where what the daemon makes for Instances counts, too; 0 for no limit.
        /// The number of Instances is limited by the quota of the Tenant in any case.
        pub personal: ObjectCounts = ObjectCounts {
            config_maps: 100,
            secrets: 300,
            services: 300,
            persistent_volume_claims: 300,
            instances: 0,
            instance_snapshots: 100,
            templates: 100,
        },
    }

    /// How many objects of each kind there may be in a namespace; 0 for no limit.
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
    pub struct MyDrive {
        /// The namespace of the claims, which must exist.
        pub namespace: String as formats::DNS_LABEL = "mydrive-pvcs".to_owned(),
        /// The size of a volume; existing volumes are enlarged to it, but never reduced.
        pub size: Quantity as formats::QUANTITY = formats::quantity("1Gi"),
        /// The storage class of new volumes, which must provide NFS.
        pub storage_class_name: String as formats::OBJECT_NAME = "rook-nfs".to_owned(),
        /// Whether the volume of a deleted Tenant is kept (`retain`) or deleted (`delete`); a new Tenant with the
        /// same name and e-mail address gets the kept volume.
        pub on_tenant_deletion: OnTenantDeletion,
        /// The image of the Job that sets the owner of a new volume; it must contain `chown`.
        pub provisioning_image: String as formats::IMAGE = "busybox".to_owned(),
    }

    /// The upper limits of a Tenant's quota; 0 for no limit.
    pub struct QuotaCaps {
        /// The number of processor cores; 0 for no limit.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub cpu: usize = 25,
        /// The memory; 0 for no limit.
        pub memory: Quantity as formats::QUANTITY = formats::quantity("50G"),
        /// The number of Instances; 0 for no limit.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub instances: usize = 10,
    }

    /// Personal workspaces, in which Tenants have Templates of their own.
    pub struct PersonalWorkspaceConfig {
        /// Whether a Tenant with `spec.personalWorkspace` may create Templates in its personal namespace.
        pub enabled: bool,
    }

    /// The workspace loop.
    pub struct WorkspaceConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool = true,
        /// The number of Workspaces that are reconciled at the same time, from 1 to 256.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 4,
    }
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
