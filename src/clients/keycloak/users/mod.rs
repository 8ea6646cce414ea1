//! Accounts: what is read of them, what they should be, and the requests.
//!
//! A new account has to confirm its e-mail address and to choose a password. Both are asked for twice:
//! as required actions of the account, which count at every login, and by mail. The mail is sent after
//! the account was made, and a crash or a mail server that refuses can come between. Nothing has to be
//! remembered beforehand: as long as the account has not confirmed its address, the required actions tell
//! that the mail is owed ([`User::owed_mail`]), and the caller remembers in the Tenant's status for which
//! [`ActionMail`] the mail was accepted. A crash between acceptance and status sends it twice, never not
//! at all. An attribute of the account cannot hold this, because a realm drops attributes that its user
//! profile does not know, without an error.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ::keycloak::types::UserRepresentation;
use serde::Deserialize;

use super::{Admin, Keycloak, KeycloakError, Operation};

/// How long the link in an action mail works: 30 days, in seconds.
const LINK_LIFESPAN: i32 = 30 * 24 * 3_600;
/// The beginning of the names of service accounts (Keycloak's `ServiceAccountConstants`).
const SERVICE_ACCOUNT: &str = "service-account-";

/// Something that a user has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredAction {
    /// Choose a password.
    UpdatePassword,
    /// Confirm the e-mail address.
    VerifyEmail,
}

impl RequiredAction {
    /// Those of a new account, in the order in which the mail names them.
    const ALL: [Self; 2] = [Self::UpdatePassword, Self::VerifyEmail];

    /// Keycloak's name for it.
    fn alias(self) -> &'static str {
        match self {
            Self::UpdatePassword => "UPDATE_PASSWORD",
            Self::VerifyEmail => "VERIFY_EMAIL",
        }
    }
}

/// The members of an account that we read.
#[derive(Clone, PartialEq, Eq, Deserialize, derive_more::Debug)]
#[serde(rename_all = "camelCase")]
#[debug("User({username}, {id})")] // leaves out what is personal
pub struct User {
    /// Keycloak's identifier.
    pub id: String,
    /// The name to log in with, in lower case.
    pub username: String,
    /// The e-mail address, in lower case; empty for none.
    #[serde(default)]
    pub email: String,
    /// The first name; empty for none.
    #[serde(default)]
    pub first_name: String,
    /// The last name; empty for none.
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
    /// When the account was made, in milliseconds since 1970; 0 if that is not known.
    #[serde(default)]
    pub created_timestamp: i64,
}

impl User {
    /// The mail that the user needs to confirm the address; `None` when that is done or not asked for.
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

/// A mail with a link under which a user does what is required. The caller remembers which one was
/// accepted: a mail to another address, or for another account, is another mail.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("ActionMail({user_id}, {actions:?})")] // leaves out what is personal
pub struct ActionMail {
    /// The account.
    pub user_id: String,
    /// The address that the account has now; Keycloak sends the mail to the one that it has then.
    pub address: String,
    /// The actions that the link leads to.
    pub actions: Vec<RequiredAction>,
}

/// The account that a Tenant should have.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("WantedUser({username})")] // leaves out what is personal
pub struct WantedUser {
    /// The name to log in with.
    pub username: String,
    /// The e-mail address.
    pub email: String,
    /// The first name.
    pub first_name: String,
    /// The last name.
    pub last_name: String,
}

/// A change of an account. Keycloak leaves the members alone that are not in it.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("UserUpdate(new address: {})", self.changes_address())] // leaves out what is personal
pub struct UserUpdate(UserRepresentation);

impl UserUpdate {
    /// Whether the e-mail address changes, so that it has to be confirmed again.
    pub fn changes_address(&self) -> bool {
        self.0.email_verified.is_some()
    }
}

/// The change by which an account becomes as wanted; `None` if nothing. Keycloak keeps addresses in lower
/// case and drops blanks around a name, so such differences do not count. Another address has to be
/// confirmed again.
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

/// The members that every change of an account has.
fn names_and_address(wanted: &WantedUser) -> UserRepresentation {
    UserRepresentation {
        email: Some(wanted.email.clone()),
        first_name: Some(wanted.first_name.trim().to_owned()),
        last_name: Some(wanted.last_name.trim().to_owned()),
        ..UserRepresentation::default()
    }
}

/// Keycloak's names for these actions.
fn aliases(actions: &[RequiredAction]) -> Vec<String> {
    actions.iter().map(|action| action.alias().to_owned()).collect()
}

/// Whether only a service can have that name: no account of a person does.
pub fn is_reserved(username: &str) -> bool {
    username.to_lowercase().starts_with(SERVICE_ACCOUNT)
}

impl Keycloak {
    /// The account of that name, if there is one. [`Rejected`](KeycloakError::Rejected) if only a service
    /// can have the name: a Tenant of that name would be given our own account, which would be deleted
    /// with the Tenant.
    pub async fn find_user(&self, username: &str) -> Result<Option<User>, KeycloakError> {
        let username = username.to_lowercase();
        if is_reserved(&username) {
            return Err(KeycloakError::Rejected {
                operation: Operation::FindUser,
                said: format!("names that begin with {SERVICE_ACCOUNT} are those of service accounts"),
            });
        }
        let query = [("username", &*username), ("exact", "true"), ("briefRepresentation", "false")];
        let found: Option<Vec<User>> = self.read(Operation::FindUser, "users", &query).await?;
        Ok(found.into_iter().flatten().find(|user| user.username == username))
    }

    /// Makes an account that has to confirm its address and to choose a password; returns its identifier.
    /// [`Conflict`](KeycloakError::Conflict) where name or address is another account's.
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
        let id = answer
            .as_ref()
            .and_then(|answer| answer.location.as_deref())
            .and_then(|location| location.rsplit('/').next());
        id.filter(|id| !id.is_empty()).map(str::to_owned).ok_or_else(|| KeycloakError::BadAnswer {
            operation,
            problem: "it does not say where the new user is".to_owned(),
        })
    }

    /// Changes an account; see [`difference`].
    pub async fn update_user(&self, id: &str, update: &UserUpdate) -> Result<(), KeycloakError> {
        let (realm, body) = (self.realm(), &update.0);
        let put =
            |admin: Admin| async move { admin.realm_users_with_user_id_put(realm, id, body.clone()).await };
        self.write(Operation::UpdateUser, put).await.map(drop)
    }

    /// Sends a mail with a link that works for 30 days. Success means that the realm's mail server has
    /// accepted it; [`MailNotSent`](KeycloakError::MailNotSent) that it has not.
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

    /// Deletes an account; success also if there is none of that identifier.
    pub async fn delete_user(&self, id: &str) -> Result<(), KeycloakError> {
        let realm = self.realm();
        let delete = |admin: Admin| async move { admin.realm_users_with_user_id_delete(realm, id).await };
        self.write(Operation::DeleteUser, delete).await.map(drop)
    }
}
