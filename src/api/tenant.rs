//! Tenants: users, the courses that they are enrolled in, and what was set up for them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};
use super::custom::{AGE, Column, CustomResource};
use super::object::{Kind, Object};
use super::quantity::RawQuantity;
use super::wire::{self, wire_enum};
use super::workspace::{NameCreated, SubscriptionStatus};

/// The kind of [`Tenant`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantKind;

/// A user.
pub type Tenant = Object<TenantKind>;

impl Kind for TenantKind {
    const GROUP: &'static str = super::GROUP;
    const VERSION: &'static str = "v1alpha2";
    const KIND: &'static str = "Tenant";
    const PLURAL: &'static str = "tenants";
    const NAMESPACED: bool = false;
    type Spec = TenantSpec;
    type Status = TenantStatus;
}

impl CustomResource for TenantKind {
    const COLUMNS: &'static [Column] = &[
        Column::text("First Name", ".spec.firstName"),
        Column::text("Last Name", ".spec.lastName"),
        Column::wide("Email", ".spec.email"),
        Column::wide("Namespace", ".status.personalNamespace.name"),
        Column::text("Ready", ".status.ready"),
        AGE,
    ];
    const DESCRIPTION: &'static str = "A user and the workspaces that he or she is enrolled in.";
}

wire_enum!(
    /// What a tenant may do in a workspace.
    Role, default "", {
        /// Maintain its templates and its users.
        Manager = "manager",
        /// Use its templates.
        User = "user",
        /// Nothing yet: enrolment waits for a manager's approval.
        Candidate = "candidate",
    }
);

/// The pattern of an e-mail address, that of HTML forms: a domain without a dot and upper case
/// are fine.
const EMAIL_PATTERN: &str = r"^[a-zA-Z0-9.!#$%&'*+\/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$";

/// What a tenant is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct TenantSpec {
    /// The first name.
    pub first_name: String,
    /// The last name.
    pub last_name: String,
    /// The e-mail address, also the name to log in with.
    #[schemars(extend("pattern" = EMAIL_PATTERN))]
    pub email: String,
    /// When the tenant last logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "wire::date_time")]
    pub last_login: Option<Time>,
    /// The workspaces that the tenant is enrolled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workspaces: Vec<TenantWorkspace>,
    /// The SSH public keys that open the tenant's instances.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub public_keys: Vec<String>,
    /// Whether the tenant gets a namespace to try Kubernetes in.
    #[schemars(default)]
    pub create_sandbox: bool,
    /// What the tenant may use, instead of the sum over the workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub quota: Option<TenantQuota>,
    /// What the tenant may use beside the workspaces; its presence gives the tenant a workspace of
    /// his or her own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub personal_workspace: Option<PersonalWorkspace>,
}

impl TenantSpec {
    /// The role in a workspace, if the tenant is enrolled there.
    #[must_use]
    pub fn role_in(&self, workspace: &str) -> Option<&Role> {
        self.workspaces.iter().find(|entry| entry.name == workspace).map(|entry| &entry.role)
    }
}

/// The enrolment in a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct TenantWorkspace {
    /// The name of the workspace.
    pub name: String,
    /// What the tenant may do there.
    pub role: Role,
}

/// What a tenant may use at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct TenantQuota {
    /// Processor time.
    pub cpu: RawQuantity,
    /// Memory.
    pub memory: RawQuantity,
    /// Instances.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 0))]
    pub instances: i64,
}

/// The share of a tenant's own workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PersonalWorkspace {
    /// Processor time.
    pub cpu: RawQuantity,
    /// Memory.
    pub memory: RawQuantity,
    /// Instances that may exist at the same time.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 1))]
    pub instances: i64,
    /// Storage that may be requested in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub disk: Option<RawQuantity>,
    /// Extended resources, such as graphics cards, as they appear in a resource quota.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub other_resources: BTreeMap<String, RawQuantity>,
}

/// What was set up for a tenant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct TenantStatus {
    /// The namespace of the tenant's instances.
    pub personal_namespace: NameCreated,
    /// The namespace to try Kubernetes in.
    pub sandbox_namespace: NameCreated,
    /// The workspaces that the tenant cannot be enrolled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub failing_workspaces: Vec<String>,
    /// The state of each subscription to an external service.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub subscriptions: BTreeMap<String, SubscriptionStatus>,
    /// The state of the tenant's account in Keycloak.
    pub keycloak: KeycloakStatus,
    /// Whether everything that belongs to the tenant is in place.
    pub ready: bool,
    /// What the tenant may use in total.
    #[schemars(default, skip_serializing_if = "wire::no_default")]
    pub quota: TenantQuota,
    /// Whether the tenant's own workspace is in place; absent if there never was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub personal_workspace_created: Option<bool>,
    /// The state of the tenant in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// The state of an account in Keycloak.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KeycloakStatus {
    /// Whether the account exists; its name is the account's identifier.
    pub user_created: NameCreated,
    /// Whether the tenant has confirmed the e-mail address.
    pub user_confirmed: bool,
    /// Whether names, address and roles of the account are up to date.
    pub user_synchronized: bool,
    /// The mail with the link to confirm the address, once the mail server has accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    pub action_mail: Option<ActionMailStatus>,
}

/// A mail that the mail server has accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ActionMailStatus {
    /// The identifier of the account in Keycloak.
    pub user: String,
    /// The address that it went to.
    pub address: String,
}
