//! Accounts and roles in Keycloak, brought to where Tenants and Workspaces want them (05 §10).
//!
//! Each function reads first and changes only what differs, so a pass that finds everything in place
//! makes no changing request, and one that dies is continued by the next.

use std::collections::BTreeMap;

use crate::api::tenant::{ActionMailStatus, Tenant};
use crate::clients::keycloak::{self, ActionMail, Keycloak, KeycloakError, Role, User, Wanted};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::EffectError;

/// The beginning of the names of all roles that are ours.
const ROLE_PREFIX: &str = "workspace-";
/// The roles of a Workspace, and how they are described.
const ROLES: [(&str, &str); 2] = [("manager", "Manager Role"), ("user", "User Role")];

/// The way to accounts and roles.
#[derive(Debug, Clone)]
pub struct Accounts {
    keycloak: Keycloak,
}

/// What came of the synchronization of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synchronized {
    /// The account, as far as it could be synchronized.
    pub user: Option<Known>,
    /// What could not be done.
    pub error: Option<KeycloakError>,
}

/// What is known of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its identifier.
    pub id: String,
    /// Whether the address is confirmed.
    pub confirmed: bool,
    /// The mail that was accepted last.
    pub mail: Option<ActionMailStatus>,
}

impl Accounts {
    /// Accounts and roles in that realm.
    #[must_use]
    pub fn new(keycloak: Keycloak) -> Self {
        Self { keycloak }
    }

    /// Makes the roles of a Workspace exist.
    pub async fn ensure_workspace(&self, workspace: &str, pretty_name: &str) -> Result<(), KeycloakError> {
        for (role, title) in ROLES {
            let name = role_name(workspace, role);
            let text = format!("{pretty_name} {title}");
            match self.keycloak.role(&name).await? {
                None => self.keycloak.create_role(&name, &text).await?,
                Some(found) if found.description != keycloak::description(&text) => {
                    self.keycloak.update_role_description(&name, &text).await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Removes the roles of a Workspace, and with them what everybody has by them. Both are tried.
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
        }
        result
    }

    /// Brings the account of a Tenant to where it should be: its data, the mail that it needs, and
    /// exactly these of our roles. Steps that do not depend on each other are all tried.
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

    /// The account of a Tenant, made or updated if need be; and why it could not be updated.
    async fn user(&self, tenant: &Tenant) -> Result<(User, Option<KeycloakError>), KeycloakError> {
        let wanted = Wanted {
            username: tenant.name().to_owned(),
            email: tenant.spec.email.clone(),
            first_name: tenant.spec.first_name.clone(),
            last_name: tenant.spec.last_name.clone(),
        };
        let Some(user) = self.keycloak.find_user(tenant.name()).await? else {
            self.keycloak.create_user(&wanted).await?;
            return Ok((self.found(tenant.name()).await?, None));
        };
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

    /// Gives a user exactly these of our roles; others are not touched. A role that does not exist
    /// yet keeps no other from being given or taken away.
    async fn roles(&self, id: &str, wanted: &[String]) -> Result<(), KeycloakError> {
        let current: BTreeMap<String, Role> = self
            .keycloak
            .user_roles(id)
            .await?
            .into_iter()
            .filter(|role| role.name.starts_with(ROLE_PREFIX))
            .map(|role| (role.name.clone(), role))
            .collect();
        let (mut missing, mut result) = (Vec::new(), Ok(()));
        for name in wanted.iter().filter(|name| !current.contains_key(*name)) {
            match self.keycloak.role(name).await {
                Ok(Some(role)) => missing.push(role),
                Ok(None) => {
                    let text = format!("there is no Keycloak role {name} yet; its Workspace makes it");
                    result = result.and(Err(KeycloakError::NotFound(text)));
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        let surplus: Vec<Role> = current.into_values().filter(|role| !wanted.contains(&role.name)).collect();
        // First away: nobody has more than both.
        if !surplus.is_empty() {
            result = result.and(self.keycloak.remove_roles(id, &surplus).await);
        }
        if !missing.is_empty() {
            result = result.and(self.keycloak.add_roles(id, &missing).await);
        }
        result
    }

    /// Deletes the account of a Tenant: the one that its status names; if it names none, because a pass
    /// died before it was written, the one with its name and address.
    pub async fn remove_user(&self, tenant: &Tenant) -> Result<(), KeycloakError> {
        let created = &tenant.status.keycloak.user_created;
        if created.created && !created.name.is_empty() {
            return self.keycloak.delete_user(&created.name).await;
        }
        match self.keycloak.find_user(tenant.name()).await? {
            Some(user) if user.email.eq_ignore_ascii_case(&tenant.spec.email) => {
                self.keycloak.delete_user(&user.id).await
            }
            _ => Ok(()),
        }
    }
}

/// The component of a plan that concerns Keycloak.
pub const KEYCLOAK: &str = "keycloak";

/// What kept Keycloak from being brought to where it should be, as the driver takes it.
pub fn effect_error(error: KeycloakError) -> EffectError {
    match error {
        KeycloakError::NotLeader => EffectError::NotLeader,
        error => EffectError::Failed(Problem::fault(KEYCLOAK, error.reason(), error.to_string())),
    }
}

/// `workspace-<name>:<role>`.
pub fn role_name(workspace: &str, role: &str) -> String {
    format!("{ROLE_PREFIX}{workspace}:{role}")
}

/// What is remembered of a mail that was accepted.
fn remembered(mail: &ActionMail) -> ActionMailStatus {
    ActionMailStatus { user: mail.user_id.clone(), address: mail.address.clone() }
}
