//! Accounts of Tenants and roles of Workspaces in Keycloak.
//!
//! Each function reads first and changes only what differs. If the process dies in between, the next reconcile
//! continues.
//!
//! | module | contents |
//! |---|---|
//! | [`work`] | the work of a loop in Keycloak, which does not block its workers |
//! | [`outage`] | the circuit breaker in front of Keycloak |
//! | [`internal_errors`] | a metric of the loops of Tenants and Workspaces |

#[cfg(test)]
mod faults;
pub mod internal_errors;
pub mod outage;
pub mod telemetry;
pub mod work;

use crate::api::labels;
use crate::api::tenant::{ActionMailStatus, Tenant};
use crate::clients::keycloak::{self, ActionMail, Keycloak, KeycloakError, Role, User, WantedUser};
use crate::controllers::accounts::outage::Outage;
use crate::runtime::component::Component;
use crate::runtime::outages::Outages;
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::EffectError;

/// The prefix of the names of all managed roles.
const ROLE_PREFIX: &str = "workspace-";
/// The roles of a Workspace, and their descriptions.
const ROLES: [(&str, &str); 2] = [("manager", "Manager Role"), ("user", "User Role")];

/// Reads and changes accounts and roles in Keycloak. Clones share the connection and the outage.
#[derive(Debug, Clone)]
pub struct Accounts {
    keycloak: Keycloak,
    /// The state of Keycloak: available, or in an outage.
    pub outage: Outage,
    outages: Outages,
}

/// The outcome of the synchronization of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synchronized {
    /// The account after the synchronization; `None` if it could not be read or created.
    pub user: Option<Known>,
    /// The first error. Later steps are tried anyway.
    pub error: Option<KeycloakError>,
}

/// The account data in the status of a Tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The identifier of the account in Keycloak.
    pub id: String,
    /// Whether the user has confirmed the e-mail address.
    pub confirmed: bool,
    /// The last mail that Keycloak has accepted for sending.
    pub mail: Option<ActionMailStatus>,
}

impl Accounts {
    /// Accounts and roles in the realm of this client.
    pub fn new(keycloak: Keycloak) -> Self {
        Self { keycloak, outage: Outage::default(), outages: Outages::default() }
    }

    /// The same accounts, with outages reported to `outages`.
    #[must_use]
    pub fn reporting_to(self, outages: &Outages) -> Self {
        Self { keycloak: self.keycloak.reporting_to(outages), outages: outages.clone(), ..self }
    }

    /// The URL of Keycloak.
    pub fn url(&self) -> &str {
        self.keycloak.url()
    }

    /// Sends Keycloak a request that changes nothing. During an outage nothing is sent.
    ///
    /// # Errors
    /// If Keycloak does not answer or rejects the request.
    pub async fn ask(&self) -> Result<(), KeycloakError> {
        let known = self.outage.reason();
        let result = if let Some(error) = known { Err(error) } else { self.keycloak.ask().await };
        if let Err(error) = &result
            && error.is_outage()
        {
            self.outage.begin(error);
        }
        result
    }

    /// Checks during an outage whether Keycloak is available again. Never returns.
    pub async fn watch_outage(self) {
        let ask = || async {
            match self.keycloak.ask().await {
                Err(error) if error.is_outage() => Err(error),
                answered => Ok(answered),
            }
        };
        self.outage.watch(ask, (&self.outages, self.url())).await;
    }

    /// Creates the roles of a Workspace, or updates their descriptions. If one fails, the other is tried anyway.
    pub async fn ensure_workspace(&self, workspace: &str, pretty_name: &str) -> Result<(), KeycloakError> {
        let mut result = Ok(());
        for (role, title) in ROLES {
            let name = role_name(workspace, role);
            result = result.and(self.ensure_role(&name, &format!("{pretty_name} {title}")).await);
            if result.as_ref().is_err_and(KeycloakError::is_outage) {
                break;
            }
        }
        result
    }

    async fn ensure_role(&self, name: &str, text: &str) -> Result<(), KeycloakError> {
        match self.keycloak.role(name).await? {
            None => self.keycloak.create_role(name, text).await,
            Some(found) if found.description != keycloak::description(text) => {
                self.keycloak.update_role_description(name, text).await
            }
            Some(_) => Ok(()),
        }
    }

    /// Deletes the roles of a Workspace, which also removes them from all users. If one deletion fails, the other is
    /// tried anyway.
    pub async fn remove_workspace(&self, workspace: &str) -> Result<(), KeycloakError> {
        let mut result = Ok(());
        for (role, _) in ROLES {
            let name = role_name(workspace, role);
            let removed = match self.keycloak.role(&name).await {
                Ok(Some(_)) => self.keycloak.delete_role(&name).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            result = result.and(removed);
            if result.as_ref().is_err_and(KeycloakError::is_outage) {
                break;
            }
        }
        result
    }

    /// Synchronizes the account of a Tenant: its data, the mail that it needs, and its managed roles, which become
    /// exactly `roles`. Independent steps are all tried.
    pub async fn synchronize(&self, tenant: &Tenant, roles: &[String]) -> Synchronized {
        let (user, mut error) = match self.user(tenant).await {
            Ok((user, error)) => (user, error),
            Err(error) => return Synchronized { user: None, error: Some(error) },
        };
        let mut mail = tenant.status.keycloak.action_mail.clone();
        if let Some(owed) = user.owed_mail().filter(|owed| mail.as_ref() != Some(&remembered(owed))) {
            match self.keycloak.send_action_mail(&owed).await {
                Ok(()) => mail = Some(remembered(&owed)),
                Err(failed) => error = error.or(Some(failed)),
            }
        }
        if let Err(failed) = self.roles(&user.id, roles).await {
            error = error.or(Some(failed));
        }
        let known = Known { id: user.id, confirmed: user.email_verified, mail };
        Synchronized { user: Some(known), error }
    }

    /// The account of a Tenant, created or updated if necessary, and the error of a failed update. Returns an error if
    /// the account belongs to another user.
    async fn user(&self, tenant: &Tenant) -> Result<(User, Option<KeycloakError>), KeycloakError> {
        let wanted = WantedUser {
            username: tenant.name().to_owned(),
            email: tenant.spec.email.clone(),
            first_name: tenant.spec.first_name.clone(),
            last_name: tenant.spec.last_name.clone(),
        };
        let Some(user) = self.keycloak.find_user(tenant.name()).await? else {
            self.keycloak.create_user(&wanted).await?;
            return Ok((self.found(tenant.name()).await?, None));
        };
        if !is_own(tenant, &user) {
            return Err(KeycloakError::AccountExists(user.username));
        }
        let Some(update) = keycloak::difference(&user, &wanted) else { return Ok((user, None)) };
        match self.keycloak.update_user(&user.id, &update).await {
            Ok(()) => Ok((self.found(tenant.name()).await?, None)),
            Err(error) => Ok((user, Some(error))),
        }
    }

    async fn found(&self, username: &str) -> Result<User, KeycloakError> {
        let user = self.keycloak.find_user(username).await?;
        user.ok_or_else(|| {
            KeycloakError::NotFound(format!("the user {username} was deleted in Keycloak while it was read"))
        })
    }

    /// Assigns exactly these managed roles to a user. Other roles are not changed. A missing role is reported, and the
    /// others are assigned and removed anyway.
    async fn roles(&self, id: &str, wanted: &[String]) -> Result<(), KeycloakError> {
        let mut current = self.keycloak.user_roles(id).await?;
        current.retain(|role| role.name.starts_with(ROLE_PREFIX));
        let (mut missing, mut result) = (Vec::new(), Ok(()));
        for name in wanted.iter().filter(|name| !current.iter().any(|role| role.name == **name)) {
            match self.keycloak.role(name).await {
                Ok(Some(role)) => missing.push(role),
                Ok(None) => {
                    let text = format!("Keycloak role {name} does not exist yet; its Workspace creates it");
                    result = result.and(Err(KeycloakError::NotFound(text)));
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        let surplus: Vec<Role> = current.into_iter().filter(|role| !wanted.contains(&role.name)).collect();
        // Roles are removed first, so that a user never has the old and the new ones together.
        if !surplus.is_empty() {
            result = result.and(self.keycloak.remove_roles(id, &surplus).await);
        }
        if !missing.is_empty() {
            result = result.and(self.keycloak.add_roles(id, &missing).await);
        }
        result
    }

    /// Deletes the account of a Tenant. If the status names no account, because the process died before the status was
    /// written, it deletes the account that was created for the Tenant.
    pub async fn remove_user(&self, tenant: &Tenant) -> Result<(), KeycloakError> {
        let created = &tenant.status.keycloak.user_created;
        if created.created && !created.name.is_empty() {
            return self.keycloak.delete_user(&created.name).await;
        }
        if keycloak::is_reserved(tenant.name()) {
            return Ok(());
        }
        match self.keycloak.find_user(tenant.name()).await? {
            Some(user) if was_made_for(tenant, &user) => self.keycloak.delete_user(&user.id).await,
            _ => Ok(()),
        }
    }
}

/// Whether the account with the name of a Tenant belongs to the Tenant: the status names it, it has the same e-mail
/// address, or an administrator has confirmed it.
fn is_own(tenant: &Tenant, user: &User) -> bool {
    let created = &tenant.status.keycloak.user_created;
    created.created && created.name == user.id
        || has_same_address(tenant, user)
        || tenant.annotation(labels::ADOPT_ACCOUNT) == Some("true")
}

fn has_same_address(tenant: &Tenant, user: &User) -> bool {
    !user.email.is_empty() && user.email.eq_ignore_ascii_case(&tenant.spec.email)
}

/// Whether an account that is missing in the status of a Tenant was created for the Tenant: it has the Tenant's e-mail
/// address and is not older than the Tenant. An older account existed before and was never adopted.
fn was_made_for(tenant: &Tenant, user: &User) -> bool {
    let since = tenant.metadata.creation_timestamp.as_ref().map(|time| time.0.as_millisecond());
    has_same_address(tenant, user) && since.is_some_and(|since| user.created_timestamp >= since)
}

/// The component of a plan for Keycloak.
pub const KEYCLOAK: &str = "keycloak";

/// Maps the error of a Keycloak request to the error of an effect.
pub fn effect_error(error: KeycloakError) -> EffectError {
    match error {
        KeycloakError::NotLeader => EffectError::NotLeader,
        error => EffectError::Failed(problem(&error)),
    }
}

/// Maps the error of a Keycloak request to a problem of the object.
pub fn problem(error: &KeycloakError) -> Problem {
    Problem::elsewhere(Component::Part(KEYCLOAK), error.reason(), error.to_string())
}

/// `workspace-<name>:<role>`.
pub fn role_name(workspace: &str, role: &str) -> String {
    format!("{ROLE_PREFIX}{workspace}:{role}")
}

/// The entry in the status of a Tenant for an accepted mail.
fn remembered(mail: &ActionMail) -> ActionMailStatus {
    ActionMailStatus { user: mail.user_id.clone(), address: mail.address.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ada(more: &Value) -> Tenant {
        let mut tenant = json!({
            "metadata": {"name": "ada", "creationTimestamp": "2026-11-20T10:00:00Z"},
            "spec": {"email": "ada@example.org"},
        });
        json_patch::merge(&mut tenant, more);
        serde_json::from_value(tenant).expect("a Tenant")
    }

    fn account(email: &str, created: &str) -> User {
        let created: jiff::Timestamp = created.parse().expect("a time");
        let account = json!({
            "id": "k1", "username": "ada", "email": email, "createdTimestamp": created.as_millisecond(),
        });
        serde_json::from_value(account).expect("an account")
    }

    #[test]
    fn an_account_is_adopted_only_for_a_reason() {
        let status = |id: &str, created: bool| json!({"status": {"keycloak": {"userCreated": {"name": id, "created": created}}}});
        let annotated = |value: &str| json!({"metadata": {"annotations": {labels::ADOPT_ACCOUNT: value}}});
        for (more, email, expected) in [
            (json!({}), "ada@example.org", true),
            (json!({}), "ADA@Example.org", true),
            (json!({}), "eve@example.org", false),
            (json!({}), "", false),
            (json!({"spec": {"email": ""}}), "", false),
            (status("k1", true), "eve@example.org", true),
            (status("k1", false), "eve@example.org", false),
            (status("k2", true), "eve@example.org", false),
            (annotated("true"), "eve@example.org", true),
            (annotated("false"), "eve@example.org", false),
            (annotated("yes"), "eve@example.org", false),
        ] {
            let account = account(email, "2020-01-01T00:00:00Z");
            assert_eq!(is_own(&ada(&more), &account), expected, "{more} {email}");
        }
    }

    #[test]
    fn only_an_account_that_was_made_for_a_tenant_is_deleted_without_a_status() {
        for (email, created, expected) in [
            ("ada@example.org", "2026-11-20T10:00:00Z", true),
            ("ada@example.org", "2026-11-20T10:00:01.250Z", true),
            ("ada@example.org", "2026-11-20T09:59:59.999Z", false),
            ("eve@example.org", "2026-11-20T10:00:01Z", false),
        ] {
            assert_eq!(
                was_made_for(&ada(&json!({})), &account(email, created)),
                expected,
                "{email} {created}"
            );
        }
        let unborn = ada(&json!({"metadata": {"creationTimestamp": null}}));
        assert!(!was_made_for(&unborn, &account("ada@example.org", "2026-11-20T10:00:00Z")));
    }
}
