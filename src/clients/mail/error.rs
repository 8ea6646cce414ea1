//! The errors of mails, as messages for administrators. They never contain the password or the address of a Tenant.

use std::path::PathBuf;
use std::time::Duration;

use super::template::TemplateError;
use crate::api::reason::{self, Reason};

/// A mail that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The lease is not held, or no longer held. Nothing was sent.
    #[error("not the leader: nothing was sent")]
    NotLeader,
    /// The address of the Tenant is invalid. Other mails are not affected.
    #[error("the address of Tenant {tenant} cannot be used: {problem}; correct spec.email")]
    BadRecipient {
        /// The name of the Tenant.
        tenant: String,
        /// The error in the address.
        problem: String,
    },
    /// The template of this mail is invalid. Other mails are not affected.
    #[error("the mail has no usable template: {0}")]
    Template(#[from] TemplateError),
    /// A file with settings of the mail server, with its password or its certificate authorities, cannot be used.
    #[error("the settings of the mail server cannot be used: {0}")]
    Settings(String),
    /// The connection to the server failed or was interrupted.
    #[error("the mail server {server} cannot be reached: {problem}")]
    Unreachable {
        /// Host and port.
        server: String,
        /// The error.
        problem: String,
    },
    /// The server did not accept the mail in time. It may have received the mail.
    #[error("the mail server {server} has not accepted the mail within {limit:?}")]
    Timeout {
        /// Host and port.
        server: String,
        /// The time limit.
        limit: Duration,
    },
    /// The certificate of the server is rejected.
    #[error(
        "the certificate of the mail server {server} is not accepted: {problem}; check host and caFile, and that \
         the certificate is valid"
    )]
    Certificate {
        /// Host and port.
        server: String,
        /// The error in the certificate.
        problem: String,
    },
    /// The server is temporarily unable to accept the mail (4xx).
    #[error("the mail server {server} cannot take the mail now: {said}")]
    Unavailable {
        /// Host and port.
        server: String,
        /// The subject of its response.
        subject: Subject,
        /// The text of the response.
        said: String,
    },
    /// The server permanently rejects the mail (5xx).
    #[error("the mail server {server} {}: {said}{}", subject.refused(), subject.advice())]
    Refused {
        /// Host and port.
        server: String,
        /// The subject of its response.
        subject: Subject,
        /// The text of the response.
        said: String,
    },
    /// The mail cannot be written to the Maildir folder.
    #[error("the mail cannot be written to {}: {problem}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        problem: String,
    },
}

/// The subject of a negative response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// This installation: its network, its name in EHLO, the rate of its connections, or a policy of the server.
    Client,
    /// The login.
    Login,
    /// The address of the sender.
    Sender,
    /// The address of the Tenant, or the mailbox.
    Recipient,
    /// The mail: its content or its size.
    Mail,
}

impl Subject {
    /// The phrase for a rejection of the subject.
    fn refused(self) -> &'static str {
        match self {
            Self::Client => "rejects mail from this installation",
            Self::Login => "does not accept the login",
            Self::Sender => "rejects the sender",
            Self::Recipient => "rejects the recipient",
            Self::Mail => "rejects the mail",
        }
    }

    /// The advice, as the end of a message.
    fn advice(self) -> &'static str {
        match self {
            Self::Client => "; allow the addresses of the pods there, or check ehloName, username and tls",
            Self::Login => "; check username and the content of passwordFile, or smtp-config.yaml",
            Self::Sender => "; check from, or allow it for the login",
            Self::Recipient | Self::Mail => "",
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
            Self::Unavailable { .. } => reason::MAIL_SERVER_UNAVAILABLE,
            Self::Refused { subject: Subject::Login, .. } => reason::MAIL_LOGIN_REFUSED,
            Self::Refused { subject: Subject::Client, .. } => reason::MAIL_CONNECTION_REFUSED,
            Self::Refused { subject: Subject::Sender, .. } => reason::MAIL_SENDER_REFUSED,
            Self::Refused { subject: Subject::Recipient, .. } => reason::MAIL_RECIPIENT_REFUSED,
            Self::Refused { subject: Subject::Mail, .. } => reason::MAIL_REFUSED,
            Self::Folder { .. } => reason::MAIL_FOLDER_UNUSABLE,
        }
    }

    /// Whether no mail can be delivered to the recipient: the address is invalid, or the server permanently rejects
    /// the mailbox. Other mails are not affected.
    pub fn is_undeliverable(&self) -> bool {
        matches!(self, Self::BadRecipient { .. } | Self::Refused { subject: Subject::Recipient, .. })
    }

    /// Whether the server permanently rejects this mail, so that a mail with different content may be accepted.
    pub fn is_about_the_mail(&self) -> bool {
        matches!(self, Self::Refused { subject: Subject::Recipient | Subject::Mail, .. })
    }

    /// Whether the same mail may be accepted later without any change to the configuration.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NotLeader | Self::Unreachable { .. } | Self::Timeout { .. } | Self::Unavailable { .. }
        )
    }
}
