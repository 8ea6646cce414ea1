//! The kinds of mails, and their content.

use std::time::Duration;

use jiff::Timestamp;
use lettre::Address;

use super::error::MailError;
use crate::api::instance::Receipt;
pub use crate::api::promise::End;

/// A mail to a Tenant about an Instance.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("Mail({key})")] // leaves out personal data
pub struct Mail {
    /// The kind of the mail.
    pub kind: MailKind,
    /// The action on the Instance; `None` for a receipt.
    pub end: Option<End>,
    /// The number of this warning and the number of all warnings; `None` for a mail after the action.
    pub warning: Option<(u32, u32)>,
    /// The unique key of the mail: `<uid of the Instance>/<kind>/<deadline>`. It is the same in each attempt, and the
    /// Message-ID is derived from it.
    pub key: String,
    /// The name of the Tenant.
    pub tenant_name: String,
    /// First and last name of the Tenant; may be empty.
    pub full_name: String,
    /// The address of the Tenant, which is the recipient.
    pub tenant_email: String,
    /// The display name of the Instance.
    pub pretty_name: String,
    /// The name of the Instance.
    pub instance_name: String,
    /// The namespace of the Instance.
    pub namespace: String,
    /// The remaining time; zero in a mail after the action.
    pub remaining: Duration,
    /// The time of the action, or of the upload.
    pub deadline: Timestamp,
    /// The uploaded files, in a receipt.
    pub files: Vec<Receipt>,
    /// The URL of the Instance for the Tenant.
    pub link: String,
    /// When the Instance was created.
    pub created: Timestamp,
    /// The author of the text, and the recipient.
    pub wording: Wording,
}

/// The author of the text of a mail, and the recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wording {
    /// To the Tenant, with the text of the templates and names that the user chose.
    Templates,
    /// To the Tenant, with a built-in text that contains no text of users or administrators. It is sent after a mail
    /// was rejected.
    Plain,
    /// To a manager of the course, with a built-in text: the mail cannot be delivered to the Tenant.
    Manager {
        /// The name of the manager's Tenant. [`Mail::tenant_email`] has the address, and [`Mail::full_name`] the name
        /// of the manager.
        name: String,
        /// The name of the Workspace.
        course: String,
        /// Whether the Instance is kept. If not, its deadline counts from this mail.
        is_kept: bool,
    },
}

/// The value of the metric label `kind` for mails to managers.
pub(super) const TO_MANAGERS: &str = "undeliverable";

/// A manager of a course.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("{name}")] // leaves out the address
pub struct Manager {
    /// The name of the manager's Tenant.
    pub name: String,
    /// First and last name; may be empty.
    pub full_name: String,
    /// The e-mail address.
    pub email: String,
}

impl Mail {
    /// Returns the same mail with the built-in text.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self { wording: Wording::Plain, ..self.clone() }
    }

    /// Returns the mail that informs a manager of a course that this mail cannot be delivered.
    #[must_use]
    pub fn to_manager(&self, manager: &Manager, course: &str, is_kept: bool) -> Self {
        let Manager { name, full_name, email } = manager.clone();
        let key = format!("{}/{name}", self.key);
        let wording = Wording::Manager { name, course: course.to_owned(), is_kept };
        Self { key, tenant_email: email, full_name, wording, ..self.clone() }
    }

    /// The greeting of the mail.
    pub(super) fn greeting(&self) -> String {
        let name = match self.wording {
            Wording::Templates | Wording::Manager { .. } => &self.full_name,
            Wording::Plain => &self.tenant_name,
        };
        if name.trim().is_empty() { "Hello,".to_owned() } else { format!("Hello {},", name.trim()) }
    }

    /// The value of the metric label `kind`.
    pub(super) fn label(&self) -> &'static str {
        match self.wording {
            Wording::Templates | Wording::Plain => self.kind.label(),
            Wording::Manager { .. } => TO_MANAGERS,
        }
    }

    /// The address of the recipient.
    pub(super) fn recipient(&self) -> Result<Address, MailError> {
        let unusable = |problem: &str| MailError::BadRecipient {
            tenant: match &self.wording {
                Wording::Manager { name, .. } => name.clone(),
                Wording::Templates | Wording::Plain => self.tenant_name.clone(),
            },
            problem: problem.to_owned(),
        };
        match self.tenant_email.as_str() {
            "" => Err(unusable("it is empty")),
            text => text.parse().map_err(|_| unusable("it is not an e-mail address")),
        }
    }
}

/// The kind of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MailKind {
    /// An Instance is not used and will be stopped or deleted.
    InactivityWarning,
    /// An Instance was not used and has been stopped or deleted.
    InactivityStopped,
    /// An Instance has been stopped for a long time and will be deleted.
    DestructionWarning,
    /// An Instance had been stopped for a long time and has been deleted.
    Destroyed,
    /// The lifetime of an Instance is over, and it will be deleted.
    ExpirationWarning,
    /// The lifetime of an Instance was over, and it has been deleted.
    Expired,
    /// The content of an Instance was uploaded.
    SubmissionReceipt,
}

impl MailKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::InactivityWarning,
        Self::InactivityStopped,
        Self::DestructionWarning,
        Self::Destroyed,
        Self::ExpirationWarning,
        Self::Expired,
        Self::SubmissionReceipt,
    ];

    /// Whether the mail announces an action. Otherwise it reports a completed action.
    pub fn is_warning(self) -> bool {
        matches!(self, Self::InactivityWarning | Self::DestructionWarning | Self::ExpirationWarning)
    }

    /// The value of the metric label `kind`, and the template file of the content.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::InactivityWarning => ("inactivity_warning", "instautoctrl_inactivity_notification.yaml"),
            Self::InactivityStopped => {
                ("inactivity_stopped", "instautoctrl_inactivity_stopped_notification.yaml")
            }
            Self::DestructionWarning => {
                ("destruction_warning", "instautoctrl_destruction_warning_notification.yaml")
            }
            Self::Destroyed => ("destroyed", "instautoctrl_destruction_notification.yaml"),
            Self::ExpirationWarning => {
                ("expiration_warning", "instautoctrl_expiration_warning_notification.yaml")
            }
            Self::Expired => ("expired", "instautoctrl_expiration_notification.yaml"),
            Self::SubmissionReceipt => {
                ("submission_receipt", "instautoctrl_submission_receipt_notification.yaml")
            }
        }
    }

    /// The value of the metric label `kind`.
    pub fn label(self) -> &'static str {
        self.row().0
    }

    /// The template file of the content.
    pub fn file(self) -> &'static str {
        self.row().1
    }
}
