//! The errors of calls to Keycloak, as messages for administrators. They never repeat any part of a request body,
//! because it may contain a secret or personal data.

use http::StatusCode;
use serde::Deserialize;

use super::operation::Operation;
use super::settings::Account;
use crate::api::labels::ADOPT_ACCOUNT;
use crate::api::reason::{self, Reason};
use crate::api::shown::one_line;
use crate::clients::http::{Answer, HttpError};
use crate::config::file::FileError;

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeycloakError {
    /// The server does not respond.
    #[error("Keycloak cannot be reached at {url}: {problem}")]
    Unreachable {
        /// The configured URL.
        url: String,
        /// The error of the connection.
        problem: HttpError,
    },
    /// The server is temporarily unavailable (408, 429, 5xx).
    #[error("Keycloak cannot {} now: {said}", operation.words())]
    Unavailable {
        /// The operation.
        operation: Operation,
        /// The status of the answer.
        status: StatusCode,
        /// The message of the response.
        said: String,
    },
    /// The credentials or the token of the account are rejected.
    #[error("Keycloak does not accept {account}: {said}; check {}", account.to_check())]
    Unauthorized {
        /// The account.
        account: Account,
        /// The message of the response.
        said: String,
    },
    /// The account lacks a role.
    #[error("Keycloak forbids {account} to {}: {}", operation.words(), account.lacks(operation.role()))]
    Forbidden {
        /// The account.
        account: Account,
        /// The operation.
        operation: Operation,
    },
    /// The realm, the client with the roles, the user or the role does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Another account has this name or e-mail address, or another role has this name.
    #[error("Keycloak cannot {}: {said}", operation.words())]
    Conflict {
        /// The operation.
        operation: Operation,
        /// The message of the response.
        said: String,
    },
    /// Keycloak rejects the request. A retry would fail, too.
    #[error("Keycloak rejected the request to {}: {said}", operation.words())]
    Rejected {
        /// The operation.
        operation: Operation,
        /// The message of the response.
        said: String,
    },
    /// The mail server did not accept the mail.
    #[error("Keycloak could not send the mail: check the e-mail settings of the realm and the mail server")]
    MailNotSent,
    /// The response does not come from Keycloak, or has an unknown form.
    #[error("the answer to \"{}\" is not Keycloak's: {problem}; check url and compatibilityMode", operation.words())]
    BadAnswer {
        /// The operation.
        operation: Operation,
        /// The error in the response.
        problem: String,
    },
    /// The file with the client secret or the password of the user cannot be used.
    #[error("integrations.keycloak.{key}: {path} cannot be used: {problem}")]
    SecretUnreadable {
        /// The key of the configuration that names the file.
        key: &'static str,
        /// The file.
        path: String,
        /// The problem of the file.
        problem: FileError,
    },
    /// An account with this name belongs to another user.
    #[error(
        "Keycloak has an account {0} with another e-mail address than the Tenant's, so it is not changed: rename or \
         delete one of them; or, if it belongs to the Tenant, an administrator can set the annotation {ADOPT_ACCOUNT}: \
         \"true\" on the Tenant"
    )]
    AccountExists(String),
    /// The lease is not held, or no longer held. Nothing was sent.
    #[error("not the leader: nothing was sent")]
    NotLeader,
}

impl KeycloakError {
    /// The reason for conditions and events.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Unreachable { .. } => reason::KEYCLOAK_UNREACHABLE,
            Self::Unavailable { .. } => reason::KEYCLOAK_UNAVAILABLE,
            Self::Unauthorized { .. } => reason::KEYCLOAK_UNAUTHORIZED,
            Self::Forbidden { .. } => reason::KEYCLOAK_FORBIDDEN,
            Self::NotFound(_) => reason::KEYCLOAK_NOT_FOUND,
            Self::Conflict { .. } => reason::KEYCLOAK_CONFLICT,
            Self::Rejected { .. } => reason::KEYCLOAK_REJECTED,
            Self::MailNotSent => reason::KEYCLOAK_MAIL_NOT_SENT,
            Self::BadAnswer { .. } => reason::KEYCLOAK_BAD_ANSWER,
            Self::SecretUnreadable { .. } => reason::KEYCLOAK_SECRET_UNREADABLE,
            Self::AccountExists(_) => reason::ACCOUNT_EXISTS,
            Self::NotLeader => reason::KEYCLOAK_NOT_LEADER,
        }
    }

    /// Whether the same call may succeed later without any change to the configuration or the object.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Unavailable { .. }
                | Self::NotFound(_)
                | Self::MailNotSent
                | Self::NotLeader
        )
    }

    /// Whether other calls would fail, too: there is no response, or it comes from a proxy or a server that is starting
    /// (502, 503, 504), or the credentials are missing or rejected.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unauthorized { .. } | Self::SecretUnreadable { .. } => true,
            Self::Unavailable { status, .. } => matches!(status.as_u16(), 502..=504),
            _ => false,
        }
    }

    /// Whether the same operation would fail for other objects, too, and other operations may succeed: the
    /// account lacks a role, or Keycloak has an internal error.
    pub(super) fn is_of_the_operation(&self) -> bool {
        match self {
            Self::Forbidden { .. } => true,
            Self::Unavailable { status, .. } => status.is_server_error() && !self.is_outage(),
            _ => false,
        }
    }

    /// Maps a response without success to an error.
    pub(super) fn from_answer(answer: &Answer, operation: Operation, account: &Account) -> Self {
        let refusal = Refusal::of(answer);
        let said = refusal.said(answer.status);
        match answer.status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized { account: account.clone(), said },
            StatusCode::FORBIDDEN => Self::Forbidden { account: account.clone(), operation },
            StatusCode::NOT_FOUND if refusal.is_keycloaks() => {
                Self::NotFound(format!("Keycloak cannot {}: {said}", operation.words()))
            }
            StatusCode::CONFLICT => Self::Conflict { operation, said },
            StatusCode::INTERNAL_SERVER_ERROR if operation == Operation::SendMail => Self::MailNotSent,
            status if answer.is_unavailable() => Self::Unavailable { operation, status, said },
            status
                if status.is_redirection()
                    && let Some(to) = &answer.location =>
            {
                // The part after the question mark may be a token.
                let to = to.split(['?', '#']).next().unwrap_or_default();
                Self::BadAnswer { operation, problem: format!("it redirects to {to:?}") }
            }
            _ if refusal.is_keycloaks() => Self::Rejected { operation, said },
            status => Self::BadAnswer { operation, problem: format!("HTTP {status}") },
        }
    }
}

/// The body of an error response of Keycloak. It has one of the first three fields, or a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Refusal {
    error: Option<String>,
    #[serde(rename = "error_description")]
    description: Option<String>,
    error_message: Option<String>,
    field: Option<String>,
    errors: Vec<Refusal>,
}

impl Refusal {
    pub(super) fn of(answer: &Answer) -> Self {
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Whether the body has the form of Keycloak's error responses. Responses of a server in front of Keycloak do
    /// not.
    fn is_keycloaks(&self) -> bool {
        self.error.is_some() || self.error_message.is_some() || !self.errors.is_empty()
    }

    /// Whether it has this short name.
    pub(super) fn is(&self, error: &str) -> bool {
        self.error.as_deref() == Some(error)
    }

    /// Its message on one line, or the status if it has no message.
    pub(super) fn said(&self, status: StatusCode) -> String {
        if !self.errors.is_empty() {
            let all: Vec<String> = self.errors.iter().map(|error| error.said(status)).collect();
            return one_line(&all.join("; "));
        }
        let text = match (&self.error_message, &self.error, &self.description) {
            (Some(message), ..) => message.clone(),
            (None, Some(error), Some(description)) => format!("{error}: {description}"),
            (None, Some(error), None) => error.clone(),
            (None, None, _) => format!("HTTP {status}"),
        };
        let begin = self.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        one_line(&(begin + &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        let status = StatusCode::from_u16(status).unwrap();
        Answer { status, location: None, body: body.to_owned().into() }
    }

    fn client() -> Account {
        Account::Client("client-operator".to_owned())
    }

    fn error(status: u16, body: &str, operation: Operation) -> KeycloakError {
        KeycloakError::from_answer(&answer(status, body), operation, &client())
    }

    #[test]
    fn each_status_has_its_reason() {
        let keycloaks = r#"{"error": "x"}"#;
        let table = [
            (400, keycloaks, "KeycloakRejected", false),
            (401, "", "KeycloakUnauthorized", false),
            (403, "", "KeycloakForbidden", false),
            (404, keycloaks, "KeycloakNotFound", true),
            // The response of a server in front of Keycloak.
            (404, "<html>no such page</html>", "KeycloakBadAnswer", false),
            (405, "", "KeycloakBadAnswer", false),
            (408, "", "KeycloakUnavailable", true),
            (409, keycloaks, "KeycloakConflict", false),
            (429, "", "KeycloakUnavailable", true),
            (500, "", "KeycloakUnavailable", true),
            (503, "<html>", "KeycloakUnavailable", true),
            (302, "", "KeycloakBadAnswer", false),
        ];
        for (status, body, reason, transient) in table {
            let error = error(status, body, Operation::CreateUser);
            assert_eq!(
                (error.reason().as_str(), error.is_transient()),
                (reason, transient),
                "{status} {body}"
            );
        }
        assert_eq!(error(500, keycloaks, Operation::SendMail), KeycloakError::MailNotSent);
        for (status, expected) in
            [(500, false), (502, true), (503, true), (504, true), (429, false), (401, true), (403, false)]
        {
            assert_eq!(error(status, "", Operation::FindUser).is_outage(), expected, "{status}");
        }
        for (status, expected) in
            [(401, false), (403, true), (409, false), (429, false), (500, true), (503, false)]
        {
            assert_eq!(error(status, "", Operation::FindUser).is_of_the_operation(), expected, "{status}");
        }
        assert!(KeycloakError::MailNotSent.is_transient());
    }

    #[test]
    fn messages_name_the_setting_to_check() {
        let said = |status, body, operation| error(status, body, operation).to_string();
        assert_eq!(
            said(403, "{\"error\":\"HTTP 403 Forbidden\"}", Operation::CreateRole),
            "Keycloak forbids the client client-operator to create a role: give its service account the role \
             manage-clients of the client realm-management"
        );
        assert_eq!(
            said(409, "{\"errorMessage\":\"User exists with same email\"}", Operation::CreateUser),
            "Keycloak cannot create a user: User exists with same email"
        );
        assert_eq!(
            said(
                400,
                "{\"field\":\"lastName\",\"errorMessage\":\"error-a\",\"params\":[\"ada\"]}",
                Operation::UpdateUser
            ),
            "Keycloak rejected the request to update a user: lastName: error-a"
        );
        let two = "{\"errors\":[{\"field\":\"email\",\"errorMessage\":\"a\"},{\"field\":\"lastName\",\"errorMessage\":\"b\"}]}";
        assert_eq!(
            said(400, two, Operation::UpdateUser),
            "Keycloak rejected the request to update a user: email: a; lastName: b"
        );
        assert_eq!(
            said(503, "", Operation::FindUser),
            "Keycloak cannot find a user now: HTTP 503 Service Unavailable"
        );
    }

    #[test]
    fn the_error_of_a_redirect_omits_the_query() {
        let mut answer = answer(302, "");
        answer.location = Some("https://auth.example.com/login?token=hunter2".to_owned());
        let error = KeycloakError::from_answer(&answer, Operation::Token, &client());
        assert_eq!(
            error.to_string(),
            "the answer to \"get a token\" is not Keycloak's: it redirects to \"https://auth.example.com/login\"; \
             check url and compatibilityMode"
        );
    }

    #[test]
    fn long_messages_of_keycloak_are_cut() {
        let body = format!("{{\"error\":\"{}\"}}", "x\\n".repeat(1_000));
        let text = error(400, &body, Operation::CreateUser).to_string();
        assert!(text.len() < 400 && !text.contains('\n'), "{text}");
    }
}
