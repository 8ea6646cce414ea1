//! Accounts: what is read of them, what is wanted of them, and the requests.
//!
//! A new account has to confirm its e-mail address and to choose a password. Both are asked for twice:
//! as required actions of the account, which hold at every login, and by mail. The mail is sent after
//! the account is made, so a crash or a mail server that refuses can come between. Nothing has to be
//! remembered of that beforehand: as long as the account has not confirmed its address, the required
//! actions tell that the mail is owed ([`User::owed_mail`]), and the caller remembers in the Tenant's
//! status for which [`ActionMail`] the mail was accepted. A crash between acceptance and status sends it
//! twice, never not at all. An attribute of the account would not do: a realm drops attributes that
//! its user profile does not know, without an error.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};

use super::{Keycloak, KeycloakError, Operation};

/// How long the link in an action mail works: 30 days (05 §10).
const LINK_LIFESPAN: Duration = Duration::from_hours(30 * 24);
/// What Keycloak answers where there is no user of an identifier.
const NO_SUCH_USER: &str = "User not found";
/// What the names of service accounts begin with (Keycloak's `ServiceAccountConstants`).
const SERVICE_ACCOUNT: &str = "service-account-";

/// Something that a user has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum RequiredAction {
    /// Choose a password.
    #[serde(rename = "UPDATE_PASSWORD")]
    UpdatePassword,
    /// Confirm the e-mail address.
    #[serde(rename = "VERIFY_EMAIL")]
    VerifyEmail,
}

impl RequiredAction {
    /// Those of a new account, in the order in which the mail names them.
    const ALL: [Self; 2] = [Self::UpdatePassword, Self::VerifyEmail];

    fn alias(self) -> &'static str {
        match self {
            Self::UpdatePassword => "UPDATE_PASSWORD",
            Self::VerifyEmail => "VERIFY_EMAIL",
        }
    }
}

/// An account, as far as it is read.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// What the user has to do at the next login.
    #[serde(default)]
    pub required_actions: BTreeSet<String>,
}

/// Without what is personal.
impl fmt::Debug for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "User({}, {})", self.username, self.id)
    }
}

impl User {
    /// The mail that the user needs to confirm the address; `None` when that is done or not asked for.
    #[must_use]
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

/// A mail with a link under which a user does what is required. The caller remembers for which it was
/// accepted: a mail to another address, or of another account, is another mail.
#[derive(Clone, PartialEq, Eq)]
pub struct ActionMail {
    /// The account.
    pub user_id: String,
    /// Where it goes; Keycloak sends it to the address that the account has then.
    pub address: String,
    /// What the link leads to.
    pub actions: Vec<RequiredAction>,
}

/// Without what is personal.
impl fmt::Debug for ActionMail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ActionMail({}, {:?})", self.user_id, self.actions)
    }
}

/// What an account shall be.
#[derive(Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name to log in with.
    pub username: String,
    /// The e-mail address.
    pub email: String,
    /// The first name.
    pub first_name: String,
    /// The last name.
    pub last_name: String,
}

/// Without what is personal.
impl fmt::Debug for Wanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Wanted({})", self.username)
    }
}

/// A change of an account; what it does not name stays as it is.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserUpdate {
    email: String,
    first_name: String,
    last_name: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    new_address: Option<NewAddress>,
}

/// What another e-mail address brings with it: it has to be confirmed again.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct NewAddress {
    email_verified: bool,
    required_actions: BTreeSet<String>,
}

/// Without what is personal.
impl fmt::Debug for UserUpdate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserUpdate(new address: {})", self.changes_address())
    }
}

impl UserUpdate {
    /// Whether the e-mail address changes, so that it has to be confirmed again.
    #[must_use]
    pub fn changes_address(&self) -> bool {
        self.new_address.is_some()
    }
}

/// What has to change for an account to be as wanted; `None` if it is. Keycloak keeps addresses in lower
/// case, and blanks around a name are no part of it: such differences are none.
#[must_use]
pub fn difference(user: &User, wanted: &Wanted) -> Option<UserUpdate> {
    let (first_name, last_name) = (wanted.first_name.trim(), wanted.last_name.trim());
    let new_address = (!user.email.eq_ignore_ascii_case(&wanted.email)).then(|| {
        let mut required_actions = user.required_actions.clone();
        required_actions.insert(RequiredAction::VerifyEmail.alias().to_owned());
        NewAddress { email_verified: false, required_actions }
    });
    let differs = new_address.is_some() || user.first_name != first_name || user.last_name != last_name;
    differs.then(|| UserUpdate {
        email: wanted.email.clone(),
        first_name: first_name.to_owned(),
        last_name: last_name.to_owned(),
        new_address,
    })
}

/// The body that makes an account.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewUser<'a> {
    username: &'a str,
    email: &'a str,
    first_name: &'a str,
    last_name: &'a str,
    enabled: bool,
    email_verified: bool,
    required_actions: [RequiredAction; 2],
}

impl Keycloak {
    /// The account of that name, if there is one. [`Rejected`](KeycloakError::Rejected) if it can only be
    /// a service's: a Tenant of that name would be given our own account, and take it along at its end.
    pub async fn find_user(&self, username: &str) -> Result<Option<User>, KeycloakError> {
        let username = username.to_lowercase();
        if username.starts_with(SERVICE_ACCOUNT) {
            return Err(KeycloakError::Rejected {
                operation: Operation::FindUser,
                said: format!("names that begin with {SERVICE_ACCOUNT} are those of service accounts"),
            });
        }
        let url = self.endpoints().users_named(&username);
        let found: Vec<User> = self.read(Operation::FindUser, &url).await?;
        Ok(found.into_iter().find(|user| user.username == username))
    }

    /// Makes an account that has to confirm its address and to choose a password; its identifier.
    /// [`Conflict`](KeycloakError::Conflict) where name or address is another account's.
    pub async fn create_user(&self, wanted: &Wanted) -> Result<String, KeycloakError> {
        let operation = Operation::CreateUser;
        let body = NewUser {
            username: &wanted.username,
            email: &wanted.email,
            first_name: wanted.first_name.trim(),
            last_name: wanted.last_name.trim(),
            enabled: true,
            email_verified: false,
            required_actions: RequiredAction::ALL,
        };
        let answer = self.write(operation, Method::POST, &self.endpoints().users(), &body).await?;
        let id = answer.location.as_deref().and_then(|location| location.rsplit('/').next());
        id.filter(|id| !id.is_empty()).map(str::to_owned).ok_or_else(|| KeycloakError::BadAnswer {
            operation,
            problem: "it does not say where the new user is".to_owned(),
        })
    }

    /// Changes an account; see [`difference`].
    pub async fn update_user(&self, id: &str, update: &UserUpdate) -> Result<(), KeycloakError> {
        self.write(Operation::UpdateUser, Method::PUT, &self.endpoints().user(id), update).await.map(drop)
    }

    /// Sends a mail with a link that works for 30 days. Success means that the realm's mail server has
    /// accepted it; [`MailNotSent`](KeycloakError::MailNotSent) that it has not.
    pub async fn send_action_mail(&self, mail: &ActionMail) -> Result<(), KeycloakError> {
        let url = self.endpoints().action_mail(&mail.user_id, LINK_LIFESPAN);
        self.write(Operation::SendMail, Method::PUT, &url, &mail.actions).await.map(drop)
    }

    /// Deletes an account; success also if there is none of that identifier.
    pub async fn delete_user(&self, id: &str) -> Result<(), KeycloakError> {
        self.remove(Operation::DeleteUser, &self.endpoints().user(id), NO_SUCH_USER).await
    }
}
