//! Accounts: their observed and wanted state, and the requests.
//!
//! The user of a new account has to confirm the e-mail address and to choose a password. The account requests both in
//! two ways: by required actions, which apply at every login, and by a mail. The mail is sent after the account was
//! created, so a crash or a rejection by the mail server can come between. This needs no stored state: while the
//! address is not confirmed, the required actions show that the mail is owed ([`User::owed_mail`]). The caller
//! records in the Tenant's status which [`ActionMail`] was accepted. A crash between the acceptance and the status
//! update sends the mail twice, but it is never lost. An attribute of the account cannot store this, because a realm
//! silently drops attributes that are not in its user profile.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ::keycloak::types::UserRepresentation;
use serde::Deserialize;

use super::{Admin, Keycloak, KeycloakError, Operation};

/// The lifetime of the link in an action mail: 30 days, in seconds.
const LINK_LIFESPAN: i32 = 30 * 24 * 3_600;
/// The prefix of the names of service accounts (Keycloak's `ServiceAccountConstants`).
const SERVICE_ACCOUNT: &str = "service-account-";

/// An action that Keycloak requires of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAction {
    /// Choose a password.
    UpdatePassword,
    /// Confirm the e-mail address.
    VerifyEmail,
}

impl RequiredAction {
    /// The required actions of a new account, in the order of the mail.
    const ALL: [Self; 2] = [Self::UpdatePassword, Self::VerifyEmail];

    /// Keycloak's name of the action.
    fn alias(self) -> &'static str {
        match self {
            Self::UpdatePassword => "UPDATE_PASSWORD",
            Self::VerifyEmail => "VERIFY_EMAIL",
        }
    }
}

/// The fields of an account that are read.
#[derive(Clone, PartialEq, Eq, Deserialize, derive_more::Debug)]
#[serde(rename_all = "camelCase")]
#[debug("User({username}, {id})")] // leaves out personal data
pub struct User {
    /// Keycloak's identifier.
    pub id: String,
    /// The login name, in lower case.
    pub username: String,
    /// The e-mail address, in lower case; empty if there is no address.
    #[serde(default)]
    pub email: String,
    /// The first name; may be empty.
    #[serde(default)]
    pub first_name: String,
    /// The last name; may be empty.
    #[serde(default)]
    pub last_name: String,
    /// Whether the user has confirmed the address.
    #[serde(default)]
    pub email_verified: bool,
    /// Whether the user may log in.
    #[serde(default)]
    pub enabled: bool,
    /// The actions that the user has to take at the next login.
    #[serde(default)]
    pub required_actions: BTreeSet<String>,
    /// Creation time of the account in milliseconds since 1970; 0 if it is not known.
    #[serde(default)]
    pub created_timestamp: i64,
}

impl User {
    /// The mail that the user needs to confirm the address; `None` if the address is confirmed or no confirmation is
    /// required.
    pub fn owed_mail(&self) -> Option<ActionMail> {
        let pending = |action: &RequiredAction| self.required_actions.contains(action.alias());
        let owed = self.enabled
            && !self.email_verified
            && !self.email.is_empty()
            && pending(&RequiredAction::VerifyEmail);
        owed.then(|| ActionMail {
            user_id: self.id.clone(),
            address: self.email.clone(),
            actions: RequiredAction::ALL.into_iter().filter(pending).collect(),
        })
    }
}

/// A mail with a link to the required actions of a user. The caller records which mail was accepted. A mail to
/// another address, or for another account, is a different mail.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("ActionMail({user_id}, {actions:?})")] // leaves out personal data
pub struct ActionMail {
    /// The account.
    pub user_id: String,
    /// The current address of the account. Keycloak sends the mail to the address at the time of sending.
    pub address: String,
    /// The actions behind the link.
    pub actions: Vec<RequiredAction>,
}

/// The wanted state of the account of a Tenant.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("WantedUser({username})")] // leaves out personal data
pub struct WantedUser {
    /// The login name.
    pub username: String,
    /// The e-mail address.
    pub email: String,
    /// The first name.
    pub first_name: String,
    /// The last name.
    pub last_name: String,
}

/// A change of an account. Keycloak does not change fields that are absent.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("UserUpdate(new address: {})", _0.email_verified.is_some())] // leaves out personal data
pub struct UserUpdate(UserRepresentation);

/// The change that brings an account into the wanted state; `None` if it needs no change. Keycloak stores addresses
/// in lower case and drops blanks around a name, so such differences are ignored. A new address has to be confirmed
/// again.
pub fn difference(user: &User, wanted: &WantedUser) -> Option<UserUpdate> {
    let (first_name, last_name) = (wanted.first_name.trim(), wanted.last_name.trim());
    let new_address = !user.email.eq_ignore_ascii_case(&wanted.email);
    if !new_address && user.first_name == first_name && user.last_name == last_name {
        return None;
    }
    let mut update = names_and_address(wanted);
    if new_address {
        let mut actions = user.required_actions.clone();
        actions.insert(RequiredAction::VerifyEmail.alias().to_owned());
        update.required_actions = Some(actions.into_iter().collect());
        update.email_verified = Some(false);
    }
    Some(UserUpdate(update))
}

/// The fields that every change of an account has.
fn names_and_address(wanted: &WantedUser) -> UserRepresentation {
    UserRepresentation {
        email: Some(wanted.email.clone()),
        first_name: Some(wanted.first_name.trim().to_owned()),
        last_name: Some(wanted.last_name.trim().to_owned()),
        ..UserRepresentation::default()
    }
}

/// Keycloak's names of these actions.
fn aliases(actions: &[RequiredAction]) -> Vec<String> {
    actions.iter().map(|action| action.alias().to_owned()).collect()
}

/// Whether the name is reserved for service accounts.
pub fn is_reserved(username: &str) -> bool {
    username.to_lowercase().starts_with(SERVICE_ACCOUNT)
}

impl Keycloak {
    /// The account with this name, if it exists. Returns [`Rejected`](KeycloakError::Rejected) if the name is
    /// reserved for service accounts. Otherwise a Tenant with such a name would take over our own account, which
    /// would be deleted with the Tenant.
    pub async fn find_user(&self, username: &str) -> Result<Option<User>, KeycloakError> {
        let username = username.to_lowercase();
        if is_reserved(&username) {
            return Err(KeycloakError::Rejected {
                operation: Operation::FindUser,
                said: format!("names that begin with {SERVICE_ACCOUNT} are reserved for service accounts"),
            });
        }
        let query = [("username", &*username), ("exact", "true"), ("briefRepresentation", "false")];
        let found: Option<Vec<User>> = self.read(Operation::FindUser, "users", &query).await?;
        Ok(found.into_iter().flatten().find(|user| user.username == username))
    }

    /// Creates an account whose user has to confirm the address and to choose a password. Returns its identifier, or
    /// [`Conflict`](KeycloakError::Conflict) if another account has the name or the address.
    pub async fn create_user(&self, wanted: &WantedUser) -> Result<String, KeycloakError> {
        let (realm, operation) = (self.realm(), Operation::CreateUser);
        let body = &UserRepresentation {
            username: Some(wanted.username.clone()),
            enabled: Some(true),
            email_verified: Some(false),
            required_actions: Some(aliases(&RequiredAction::ALL)),
            ..names_and_address(wanted)
        };
        let create = |admin: Admin| async move { admin.realm_users_post(realm, body.clone()).await };
        let answer = self.write(operation, create).await?;
        let location = answer.and_then(|answer| answer.location).unwrap_or_default();
        let problem = "it has no location of the new user".to_owned();
        match location.rsplit('/').next() {
            Some(id) if !id.is_empty() => Ok(id.to_owned()),
            _ => Err(KeycloakError::BadAnswer { operation, problem }),
        }
    }

    /// Changes an account; see [`difference`].
    pub async fn update_user(&self, id: &str, update: &UserUpdate) -> Result<(), KeycloakError> {
        let (realm, body) = (self.realm(), &update.0);
        let put =
            |admin: Admin| async move { admin.realm_users_with_user_id_put(realm, id, body.clone()).await };
        self.write(Operation::UpdateUser, put).await.map(drop)
    }

    /// Sends a mail with a link that works for 30 days. Success means that the mail server of the realm has accepted
    /// it. If it has not, the error is [`MailNotSent`](KeycloakError::MailNotSent).
    pub async fn send_action_mail(&self, mail: &ActionMail) -> Result<(), KeycloakError> {
        let (realm, id, actions) = (self.realm(), &mail.user_id, &aliases(&mail.actions));
        let send = |admin: Admin| async move {
            let (lifespan, actions) = (Some(LINK_LIFESPAN), actions.clone());
            admin
                .realm_users_with_user_id_execute_actions_email_put(realm, id, None, lifespan, None, actions)
                .await
        };
        self.write(Operation::SendMail, send).await.map(drop)
    }

    /// Deletes an account. Succeeds if no account has this identifier.
    pub async fn delete_user(&self, id: &str) -> Result<(), KeycloakError> {
        let realm = self.realm();
        let delete = |admin: Admin| async move { admin.realm_users_with_user_id_delete(realm, id).await };
        self.write(Operation::DeleteUser, delete).await.map(drop)
    }
}
