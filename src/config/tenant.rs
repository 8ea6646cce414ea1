//! The keys of the loops over Tenants and Workspaces: the flags of 05 §1, and those that its tables
//! of required behaviour add.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;
use crate::api::labels;
use crate::api::quantity::Quantity;

/// The loop over Tenants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TenantConfig {
    /// Whether the loop runs; one that is off costs nothing and needs no rights.
    pub enabled: bool,
    /// How many Tenants are worked on at the same time, 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// Whether a Tenant gets nothing before the e-mail address is confirmed in Keycloak.
    pub wait_user_verification: bool,
    /// How often Keycloak is asked whether a Tenant has confirmed the address meanwhile.
    pub verification_poll: ConfigDuration,
    /// How long after the last login a personal namespace without Instances is kept.
    pub keep_alive: ConfigDuration,
    /// The Workspaces that every Tenant belongs to; they do not count as enrolment.
    #[schemars(extend("items" = {"type": "string", "format": formats::OBJECT_NAME.name}))]
    pub base_workspaces: Vec<String>,
    /// The labels that every personal namespace carries beside those of this loop.
    #[schemars(extend(
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub namespace_labels: BTreeMap<String, String>,
    /// The personal volumes.
    pub my_drive: MyDrive,
    /// The `ClusterRole` that a Tenant has in the namespace to try Kubernetes in.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub sandbox_cluster_role: String,
    /// What the sum over all Workspaces of a Tenant may not exceed.
    pub quota_caps: QuotaCaps,
    /// Workspaces of the Tenants' own.
    pub personal_workspace: PersonalWorkspaceConfig,
}

/// The personal volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MyDrive {
    /// The namespace of the claims; it must exist.
    #[schemars(extend("format" = formats::DNS_LABEL.name))]
    pub namespace: String,
    /// The size of a volume; a larger one is never made smaller.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub size: Quantity,
    /// The storage class of new volumes.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub storage_class_name: String,
    /// Whether the volume of a deleted Tenant is kept (`retain`) or deleted (`delete`). A kept one is
    /// given back to a Tenant of the same name and e-mail address.
    pub on_tenant_deletion: OnTenantDeletion,
    /// The image of the Job that gives a new volume to the user of the machines; it has `chown`.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub provisioning_image: String,
}

/// What becomes of the volume of a deleted Tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnTenantDeletion {
    /// It is kept.
    #[default]
    Retain,
    /// It is deleted.
    Delete,
}

/// What a sum of shares may not exceed; 0 is no cap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct QuotaCaps {
    /// Processor cores.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cpu: usize,
    /// Memory.
    #[schemars(with = "String", extend("format" = formats::QUANTITY.name))]
    pub memory: Quantity,
    /// Instances.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub instances: usize,
}

/// Workspaces of the Tenants' own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PersonalWorkspaceConfig {
    /// Whether a Tenant with `spec.personalWorkspace` may have Templates in the personal namespace.
    pub enabled: bool,
}

/// The loop over Workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkspaceConfig {
    /// Whether the loop runs; one that is off costs nothing and needs no rights.
    pub enabled: bool,
    /// How many Workspaces are worked on at the same time, 1 to 256.
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
            quota_caps: QuotaCaps::default(),
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

/// A quantity that is written in this file.
fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_default()
}
