//! The mails that there are, and what is said in them.

use std::time::Duration;

use jiff::Timestamp;
use lettre::Address;

use super::error::MailError;
pub use crate::api::promise::End;

/// A mail to a Tenant about an Instance.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("Mail({key})")] // leaves out what is personal
pub struct Mail {
    /// What it says.
    pub kind: MailKind,
    /// What is done with the Instance, or was.
    pub end: End,
    /// Which warning it is, and how many there are; `None` for a mail about what has been done.
    pub warning: Option<(u32, u32)>,
    /// What tells it from all other mails: `<uid of the Instance>/<kind>/<deadline>`. The same mail has the same
    /// key in each attempt, and the Message-ID is made from it.
    pub key: String,
    /// The name of the Tenant.
    pub tenant_name: String,
    /// First and last name of the Tenant; may be empty.
    pub full_name: String,
    /// The address of the Tenant, to which the mail goes.
    pub tenant_email: String,
    /// The name of the Instance for people.
    pub pretty_name: String,
    /// The name of the Instance.
    pub instance_name: String,
    /// The namespace of the Instance.
    pub namespace: String,
    /// The time that is left; zero in a mail about what has been done.
    pub remaining: Duration,
    /// When it is done, or was.
    pub deadline: Timestamp,
    /// Where the Tenant finds the Instance.
    pub link: String,
    /// When the Instance was created.
    pub created: Timestamp,
    /// In whose words it is said.
    pub wording: Wording,
}

/// In whose words something is said, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wording {
    /// To the Tenant, in those of the templates, with the names that its user chose.
    Templates,
    /// To the Tenant, in ours, without any text that a user or an administrator wrote: for a mail that was refused.
    Plain,
    /// To a manager of the course, in ours: that the mail cannot be delivered to the Tenant.
    Manager {
        /// The name of the manager's Tenant. The address is in [`Mail::tenant_email`], the name of the person in
        /// [`Mail::full_name`].
        name: String,
        /// The name of the Workspace.
        course: String,
        /// Whether the Instance is kept; else its deadline counts from this mail.
        is_kept: bool,
    },
}

impl Wording {
    /// The value of the label `kind` of metrics for mails to managers.
    pub(super) const TO_MANAGERS: &str = "undeliverable";
}

/// A manager of a course.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("{name}")] // leaves out the address
pub struct Manager {
    /// The name of its Tenant.
    pub name: String,
    /// First and last name; may be empty.
    pub full_name: String,
    /// Its address.
    pub email: String,
}

impl Mail {
    /// The same mail in our words.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self { wording: Wording::Plain, ..self.clone() }
    }

    /// The mail that tells a manager of a course that this one cannot be delivered.
    #[must_use]
    pub fn to_manager(&self, manager: &Manager, course: &str, is_kept: bool) -> Self {
        let Manager { name, full_name, email } = manager.clone();
        Self {
            key: format!("{}/{name}", self.key),
            tenant_email: email,
            full_name,
            wording: Wording::Manager { name, course: course.to_owned(), is_kept },
            ..self.clone()
        }
    }

    /// The line that greets whoever gets the mail.
    pub(super) fn greeting(&self) -> String {
        let name = match self.wording {
            Wording::Templates | Wording::Manager { .. } => &self.full_name,
            Wording::Plain => &self.tenant_name,
        };
        if name.trim().is_empty() { "Hello,".to_owned() } else { format!("Hello {},", name.trim()) }
    }

    /// The value of the label `kind` of metrics.
    pub(super) fn label(&self) -> &'static str {
        match self.wording {
            Wording::Templates | Wording::Plain => self.kind.label(),
            Wording::Manager { .. } => Wording::TO_MANAGERS,
        }
    }

    /// The address to which the mail goes.
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
            text => text.parse().map_err(|_| unusable("it is no e-mail address")),
        }
    }
}

/// What a mail says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MailKind {
    /// An Instance is not used and will be stopped or deleted.
    InactivityWarning,
    /// An Instance was not used and has been stopped or deleted.
    InactivityStopped,
    /// An Instance has been stopped for long and will be deleted.
    DestructionWarning,
    /// An Instance had been stopped for long and has been deleted.
    Destroyed,
    /// The lifetime of an Instance is over, and it will be deleted.
    ExpirationWarning,
    /// The lifetime of an Instance was over, and it has been deleted.
    Expired,
}

impl MailKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::InactivityWarning,
        Self::InactivityStopped,
        Self::DestructionWarning,
        Self::Destroyed,
        Self::ExpirationWarning,
        Self::Expired,
    ];

    /// Whether it says what will be done, rather than what was.
    pub fn is_warning(self) -> bool {
        matches!(self, Self::InactivityWarning | Self::DestructionWarning | Self::ExpirationWarning)
    }

    /// The value of the label `kind` of metrics, and the template file of its content.
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
        }
    }

    /// The value of the label `kind` of metrics.
    pub fn label(self) -> &'static str {
        self.row().0
    }

    /// The template file of its content.
    pub fn file(self) -> &'static str {
        self.row().1
    }
}
