//! What can go wrong with a mail, in words for an administrator. Neither the password nor the address of a
//! Tenant is ever in them.

use std::path::PathBuf;
use std::time::Duration;

use super::template::TemplateError;
use crate::api::reason::{self, Reason};

/// A mail that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The lease is not held (any more): nothing was sent.
    #[error("not the leader: nothing was sent")]
    NotLeader,
    /// The address of the Tenant cannot be used. Other mails are not affected.
    #[error("the address of Tenant {tenant} cannot be used: {problem}; correct spec.email")]
    BadRecipient {
        /// The name of the Tenant.
        tenant: String,
        /// What is wrong with its address.
        problem: String,
    },
    /// The template of this mail cannot be used. Other mails are not affected.
    #[error("the mail has no usable template: {0}")]
    Template(#[from] TemplateError),
    /// A file with settings of the mail server, with its password or its authorities, cannot be used.
    #[error("the settings of the mail server cannot be used: {0}")]
    Settings(String),
    /// There is no connection to the server, or it broke.
    #[error("the mail server {server} cannot be reached: {problem}")]
    Unreachable {
        /// Host and port.
        server: String,
        /// What happened instead.
        problem: String,
    },
    /// The server has not accepted the mail in time. It may have it all the same.
    #[error("the mail server {server} has not accepted the mail within {limit:?}")]
    Timeout {
        /// Host and port.
        server: String,
        /// The time limit.
        limit: Duration,
    },
    /// The certificate of the server is not accepted.
    #[error(
        "the certificate of the mail server {server} is not accepted: {problem}; check host and caFile, and that \
         the certificate is valid"
    )]
    Certificate {
        /// Host and port.
        server: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server refuses the login.
    #[error(
        "the mail server {server} does not accept the login: {said}; check username and the content of \
         passwordFile, or smtp-config.yaml"
    )]
    Login {
        /// Host and port.
        server: String,
        /// What it says.
        said: String,
    },
    /// The server answers that it cannot now (4xx).
    #[error("the mail server {server} cannot take the mail now: {said}")]
    Unavailable {
        /// Host and port.
        server: String,
        /// What it says.
        said: String,
    },
    /// The server refuses something, and will again (5xx).
    #[error("the mail server {server} refuses {}: {said}", what.words())]
    Refused {
        /// Host and port.
        server: String,
        /// What is refused.
        what: Refused,
        /// What it says.
        said: String,
    },
    /// A mail cannot be written into the Maildir folder.
    #[error("the mail cannot be written to {}: {problem}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// What a mail server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The connection, before anything is said of a mail.
    Connection,
    /// The address of the sender.
    Sender,
    /// The address of the Tenant.
    Recipient,
    /// The mail as a whole.
    Mail,
}

impl Refused {
    fn words(self) -> &'static str {
        match self {
            Self::Connection => "the connection",
            Self::Sender => "the sender",
            Self::Recipient => "the recipient",
            Self::Mail => "the mail",
        }
    }
}

impl MailError {
    /// All values of [`MailError::reason`].
    pub const REASONS: [Reason; 14] = [
        reason::MAIL_NOT_LEADER,
        reason::MAIL_RECIPIENT_INVALID,
        reason::MAIL_TEMPLATE_INVALID,
        reason::MAIL_SETTINGS_INVALID,
        reason::MAIL_SERVER_UNREACHABLE,
        reason::MAIL_TIMEOUT,
        reason::MAIL_CERTIFICATE_REFUSED,
        reason::MAIL_LOGIN_REFUSED,
        reason::MAIL_SERVER_UNAVAILABLE,
        reason::MAIL_CONNECTION_REFUSED,
        reason::MAIL_SENDER_REFUSED,
        reason::MAIL_RECIPIENT_REFUSED,
        reason::MAIL_REFUSED,
        reason::MAIL_FOLDER_UNUSABLE,
    ];

    /// The reason for metrics, conditions and events.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NotLeader => reason::MAIL_NOT_LEADER,
            Self::BadRecipient { .. } => reason::MAIL_RECIPIENT_INVALID,
            Self::Template(_) => reason::MAIL_TEMPLATE_INVALID,
            Self::Settings(_) => reason::MAIL_SETTINGS_INVALID,
            Self::Unreachable { .. } => reason::MAIL_SERVER_UNREACHABLE,
            Self::Timeout { .. } => reason::MAIL_TIMEOUT,
            Self::Certificate { .. } => reason::MAIL_CERTIFICATE_REFUSED,
            Self::Login { .. } => reason::MAIL_LOGIN_REFUSED,
            Self::Unavailable { .. } => reason::MAIL_SERVER_UNAVAILABLE,
            Self::Refused { what: Refused::Connection, .. } => reason::MAIL_CONNECTION_REFUSED,
            Self::Refused { what: Refused::Sender, .. } => reason::MAIL_SENDER_REFUSED,
            Self::Refused { what: Refused::Recipient, .. } => reason::MAIL_RECIPIENT_REFUSED,
            Self::Refused { what: Refused::Mail, .. } => reason::MAIL_REFUSED,
            Self::Folder { .. } => reason::MAIL_FOLDER_UNUSABLE,
        }
    }

    /// Whether it is this mail, or its recipient, that is refused for good. Other mails are not affected.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::BadRecipient { .. } | Self::Refused { what: Refused::Recipient | Refused::Mail, .. }
        )
    }

    /// Whether the same mail may be accepted later although nobody has changed anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NotLeader | Self::Unreachable { .. } | Self::Timeout { .. } | Self::Unavailable { .. }
        )
    }
}
