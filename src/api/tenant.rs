//! Tenants: users, the Workspaces that they are enrolled in, and the state of their namespaces and accounts.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;

use super::condition::Condition;
use super::custom::{AGE, Column, CustomResource, MESSAGE, REASON};
use super::names::check_dns_label;
use super::object::kind;
use super::quantity::RawQuantity;
use super::wire::{self, Optional, resource_part, wire_enum};
use super::workspace::{NameCreated, SubscriptionStatus, WorkspaceQuota};

kind!(
    /// A Tenant as it is stored in the API server.
    TenantKind, Tenant, super::GROUP, "v1alpha2", "Tenant", "tenants", namespaced: false,
    TenantSpec, TenantStatus, largest: 2 << 20
);

impl CustomResource for TenantKind {
    const SHORT_NAMES: &'static [&'static str] = &["tnt"];
    const COLUMNS: &'static [Column] = &[
        Column::text("First Name", ".spec.firstName"),
        Column::text("Last Name", ".spec.lastName"),
        Column::wide("Email", ".spec.email"),
        Column::wide("Namespace", ".status.personalNamespace.name"),
        Column::text("Ready", ".status.ready"),
        REASON,
        MESSAGE,
        AGE,
    ];
    const DESCRIPTION: &'static str = "A user, and the workspaces that the user is enrolled in.";
}

wire_enum!(
    /// The role of a Tenant in a Workspace.
    Role, default "", {
        /// Manages the templates, shared volumes and users of the Workspace.
        Manager = "manager",
        /// Uses the templates of the Workspace.
        User = "user",
        /// Has asked to be enrolled, and waits for the approval of a manager.
        Candidate = "candidate",
    }
);

/// The pattern of an e-mail address, as the HTML standard defines it for forms: upper case is valid, and
/// so is a domain without a dot.
const EMAIL_PATTERN: &str = r"^[a-zA-Z0-9.!#$%&'*+\/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$";

/// The maximum length of an e-mail address, in characters: 64 before the `@`, and 255 after it (RFC 5321).
const MOST_OF_EMAIL: usize = 320;

/// Whether a text is an e-mail address that the schema and the webhook accept: it matches `EMAIL_PATTERN`, and is not too
/// long.
pub fn is_email(text: &str) -> bool {
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    let is_label = |label: &str| check_dns_label(&label.to_ascii_lowercase()).is_ok();
    text.len() <= MOST_OF_EMAIL
        && text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty() && local.bytes().all(is_local) && domain.split('.').all(is_label)
        })
}

/// Desired state of the tenant.
#[apply(resource_part)]
pub struct TenantSpec {
    /// First name of the user. Required.
    pub first_name: String,
    /// Last name of the user. Required.
    pub last_name: String,
    /// E-mail address of the user, for example `ada.rossi@example.org`. Required. The user has to confirm a new
    /// address.
    #[schemars(extend("pattern" = EMAIL_PATTERN))]
    pub email: String,
    /// Time of the last login, in RFC 3339. If the last login is too long ago and the personal namespace is empty,
    /// the namespace is removed. Default: absent, never logged in.
    pub last_login: Option<Time>,
    /// Workspaces that the tenant is enrolled in or has asked to join, each with a role, for example
    /// `[{name: netlab, role: user}]`. Default: none.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workspaces: Optional<Vec<TenantWorkspace>>,
    /// SSH public keys that can log in to the virtual machines of the tenant, one key in each entry, in the format of
    /// OpenSSH: `ssh-ed25519 AAAA… name`. Default: none.
    pub public_keys: Optional<Vec<String>>,
    /// Whether the tenant gets a sandbox: a namespace for trying out Kubernetes. Defaults to false.
    #[schemars(default)]
    pub create_sandbox: bool,
    /// Quota of the tenant. It replaces the sum of the quotas of the workspaces and `personalWorkspace`, and is not
    /// limited by the caps of the configuration. Default: absent, the sum is used.
    pub quota: Option<TenantQuota>,
    /// Quota of the personal workspace, where the tenant can create templates. It is added to the quota of the
    /// workspaces. Default: absent, no personal workspace. Only used if the configuration enables personal
    /// workspaces.
    pub personal_workspace: Option<WorkspaceQuota>,
    /// Whether the tenant has a personal workspace without a separate quota. This is the older form of
    /// `personalWorkspace`; dashboards from 2025-11 to 2026-02 read and write it. Default: absent, only if
    /// `personalWorkspace` is present.
    pub create_personal_workspace: Optional<bool>,
}

impl TenantSpec {
    /// Whether the tenant is to have a personal workspace if the configuration enables personal workspaces.
    pub fn has_personal_workspace(&self) -> bool {
        self.personal_workspace.is_some() || self.create_personal_workspace
    }

    /// The role of the Tenant in a Workspace; `None` if the Tenant does not name the Workspace.
    pub fn role_in(&self, workspace: &str) -> Option<&Role> {
        self.workspaces.iter().find(|entry| entry.name == workspace).map(|entry| &entry.role)
    }
}

/// Enrolment in a workspace.
#[apply(resource_part)]
pub struct TenantWorkspace {
    /// Name of the workspace, for example `netlab`.
    pub name: String,
    /// Role in the workspace. `user`: uses its templates. `manager`: manages its templates, shared volumes
    /// and users. `candidate`: waits for the approval of a manager.
    pub role: Role,
}

/// Resources that a tenant may use at the same time.
#[apply(resource_part)]
pub struct TenantQuota {
    /// Processor cores, for example `8` or `500m`.
    pub cpu: RawQuantity,
    /// Memory, for example `16Gi`.
    pub memory: RawQuantity,
    /// Number of instances, running or stopped.
    #[serde(deserialize_with = "wire::integer")]
    #[schemars(range(min = 0))]
    pub instances: i64,
}

/// Observed state of the tenant.
#[apply(resource_part)]
pub struct TenantStatus {
    /// Generation of the spec that the status describes. If it is less than `metadata.generation`, the last change
    /// has not been processed yet.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Personal namespace, which holds the instances of the tenant.
    pub personal_namespace: NameCreated,
    /// Sandbox namespace, for trying out Kubernetes.
    pub sandbox_namespace: NameCreated,
    /// Names of the workspaces that the tenant cannot be enrolled in: they do not exist, or do not accept
    /// the role.
    pub failing_workspaces: Optional<Vec<String>>,
    /// State of the subscriptions to external services, by the name of the service: `Ok` or `Failed`.
    pub subscriptions: Optional<BTreeMap<String, SubscriptionStatus>>,
    /// State of the account in Keycloak.
    pub keycloak: KeycloakStatus,
    /// Whether all objects of the tenant are up to date; if not, the condition `Reconciled` contains the reason.
    pub ready: bool,
    /// Effective quota of the tenant.
    #[schemars(default, skip_serializing_if = "wire::no_default")]
    pub quota: TenantQuota,
    /// Whether the personal workspace exists; absent if it never existed.
    pub personal_workspace_created: Option<bool>,
    /// Conditions of the tenant: `Ready`, `Reconciled` and `Enrolled`.
    pub conditions: Optional<Vec<Condition>>,
}

/// Observed state of an account in Keycloak.
#[apply(resource_part)]
pub struct KeycloakStatus {
    /// Whether the account exists; `name` is the identifier of the account.
    pub user_created: NameCreated,
    /// Whether the user has confirmed the e-mail address.
    pub user_confirmed: bool,
    /// Whether names, e-mail address and roles of the account are up to date. True if Keycloak is not
    /// configured.
    pub user_synchronized: bool,
    /// Last mail with the link to set a password and confirm the address; absent until the mail server has accepted
    /// such a mail.
    pub action_mail: Option<ActionMailStatus>,
}

/// Mail that the mail server has accepted.
#[apply(resource_part)]
pub struct ActionMailStatus {
    /// Identifier of the account in Keycloak.
    pub user: String,
    /// E-mail address of the recipient.
    pub address: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_address_follows_the_pattern_of_the_schema() {
        let long = format!("{}@example.org", "a".repeat(309));
        for address in
            ["ada.rossi@example.org", "A+b/c@Lab-1.EXAMPLE.org", "!@x", "ada@localhost", &long[1..]]
        {
            assert!(is_email(address), "{address}");
        }
        let label = format!("ada@{}.org", "a".repeat(64));
        for text in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@example..org",
            "ada@example.org.",
            "ada@-example.org",
            "ada@example-.org",
            "ada@exa_mple.org",
            "ada@b@example.org",
            "ada rossi@example.org",
            "ad\u{e0}@example.org",
            "ada@ex\u{e0}mple.org",
            "ada@example.org\n",
            &label,
            &long,
        ] {
            assert!(!is_email(text), "{text}");
        }
    }
}
