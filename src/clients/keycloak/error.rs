//! The errors of a call to Keycloak, in words for an administrator. Nothing of a request's body
//! is ever repeated, because it may hold a secret or the data of a person.

use std::path::PathBuf;

use http::StatusCode;
use serde::Deserialize;

use super::operation::Operation;
use super::settings::Account;
use crate::api::labels::ADOPT_ACCOUNT;
use crate::api::reason::{self, Reason};
use crate::api::shown::one_line;
use crate::clients::http::{Answer, HttpError};

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeycloakError {
    /// The server gives no answer.
    #[error("Keycloak cannot be reached at {url}: {problem}")]
    Unreachable {
        /// The configured URL.
        url: String,
        /// The error of the connection.
        problem: HttpError,
    },
    /// The server answers that it cannot now (408, 429, 5xx).
    #[error("Keycloak cannot {} now: {said}", operation.words())]
    Unavailable {
        /// The operation.
        operation: Operation,
        /// The status of the answer.
        status: StatusCode,
        /// The words of the answer.
        said: String,
    },
    /// The credentials of the account, or its token, are not accepted.
    #[error("Keycloak does not accept {account}: {said}; check {}", account.to_check())]
    Unauthorized {
        /// The account.
        account: Account,
        /// The words of the answer.
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
    /// Another account has this name or e-mail address, or another role this name.
    #[error("Keycloak cannot {}: {said}", operation.words())]
    Conflict {
        /// The operation.
        operation: Operation,
        /// The words of the answer.
        said: String,
    },
    /// Keycloak refuses what it was asked for, and will again.
    #[error("Keycloak refuses to {}: {said}", operation.words())]
    Rejected {
        /// The operation.
        operation: Operation,
        /// The words of the answer.
        said: String,
    },
    /// The mail server did not take the mail.
    #[error("Keycloak could not send the mail: check the e-mail settings of the realm and the mail server")]
    MailNotSent,
    /// The answer is not one of Keycloak, or not as we know it.
    #[error("the answer to \"{}\" is not Keycloak's: {problem}; check url and compatibilityMode", operation.words())]
    BadAnswer {
        /// The operation.
        operation: Operation,
        /// The fault of the answer.
        problem: String,
    },
    /// The file with the client's secret, or the user's password, cannot be used.
    #[error("{key} {} cannot be used: {problem}", path.display())]
    SecretUnreadable {
        /// The key of the configuration that names the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The fault of the file.
        problem: String,
    },
    /// Somebody else has an account of that name.
    #[error(
        "Keycloak has an account {0} with another e-mail address than the Tenant's, so it is left alone: rename or \
         delete one of them; or, if it is the Tenant's, an administrator can set the annotation {ADOPT_ACCOUNT}: \
         \"true\" on the Tenant"
    )]
    AccountExists(String),
    /// The lease is not held (any more): nothing was sent.
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

    /// Whether the same call may succeed later although nobody has changed anything.
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

    /// Whether Keycloak itself has not answered, so that other calls would not be answered either: there is no answer, or it
    /// is that of a proxy or a server that is just starting (502, 503, 504).
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Unavailable { status, .. } => matches!(status.as_u16(), 502..=504),
            _ => false,
        }
    }

    /// The error that an answer without success means.
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
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Self::Unavailable { operation, status: answer.status, said }
            }
            StatusCode::INTERNAL_SERVER_ERROR if operation == Operation::SendMail => Self::MailNotSent,
            status if status.is_server_error() => {
                Self::Unavailable { operation, status: answer.status, said }
            }
            status
                if status.is_redirection()
                    && let Some(to) = &answer.location =>
            {
                // What is behind the question mark may be a token.
                let to = to.split(['?', '#']).next().unwrap_or_default();
                Self::BadAnswer { operation, problem: format!("it sends us to {to:?}") }
            }
            _ if refusal.is_keycloaks() => Self::Rejected { operation, said },
            status => Self::BadAnswer { operation, problem: format!("HTTP {status}") },
        }
    }
}

/// The body of a refusal of Keycloak: one of the first three, or a list.
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

    /// Whether it has the form that Keycloak gives to its refusals; a server in front of it does not.
    fn is_keycloaks(&self) -> bool {
        self.error.is_some() || self.error_message.is_some() || !self.errors.is_empty()
    }

    /// Whether its short name is this one.
    pub(super) fn is(&self, error: &str) -> bool {
        self.error.as_deref() == Some(error)
    }

    /// Its words on one line; the status where it has none.
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
        match &self.field {
            Some(field) => one_line(&format!("{field}: {text}")),
            None => one_line(&text),
        }
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
    fn statuses_have_their_reasons() {
        let keycloaks = r#"{"error": "x"}"#;
        let table = [
            (400, keycloaks, "KeycloakRejected", false),
            (401, "", "KeycloakUnauthorized", false),
            (403, "", "KeycloakForbidden", false),
            (404, keycloaks, "KeycloakNotFound", true),
            // Of something in front of Keycloak.
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
            [(500, false), (502, true), (503, true), (504, true), (429, false), (403, false)]
        {
            assert_eq!(error(status, "", Operation::FindUser).is_outage(), expected, "{status}");
        }
        assert!(KeycloakError::MailNotSent.is_transient());
    }

    #[test]
    fn sentences_say_what_to_check() {
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
            "Keycloak refuses to update a user: lastName: error-a"
        );
        let two = "{\"errors\":[{\"field\":\"email\",\"errorMessage\":\"a\"},{\"field\":\"lastName\",\"errorMessage\":\"b\"}]}";
        assert_eq!(
            said(400, two, Operation::UpdateUser),
            "Keycloak refuses to update a user: email: a; lastName: b"
        );
        assert_eq!(
            said(503, "", Operation::FindUser),
            "Keycloak cannot find a user now: HTTP 503 Service Unavailable"
        );
    }

    #[test]
    fn a_redirect_is_named_without_its_query() {
        let mut answer = answer(302, "");
        answer.location = Some("https://auth.example.com/login?token=hunter2".to_owned());
        let error = KeycloakError::from_answer(&answer, Operation::Token, &client());
        assert_eq!(
            error.to_string(),
            "the answer to \"get a token\" is not Keycloak's: it sends us to \"https://auth.example.com/login\"; \
             check url and compatibilityMode"
        );
    }

    #[test]
    fn long_texts_are_cut() {
        let body = format!("{{\"error\":\"{}\"}}", "x\\n".repeat(1_000));
        let text = error(400, &body, Operation::CreateUser).to_string();
        assert!(text.len() < 400 && !text.contains('\n'), "{text}");
    }
}
