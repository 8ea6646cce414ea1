//! The promise of an automation to a tenant before it stops or deletes an instance: it sends warnings and does
//! nothing before a deadline. Also the phrases that describe the action at the deadline.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;

use super::wire::{self, Optional, resource_part};

/// Warnings that the mail server has accepted, and the deadline that they contain.
#[apply(resource_part)]
pub struct Promise {
    /// Start of the period that the template defines: the last use, the creation, or the stop of the instance. While
    /// the instance is in use, the time of the last use is up to a day late.
    pub since: Option<Time>,
    /// Source of `since`: `start` (the instance was started or changed), `kept` (a user asked to keep it),
    /// `annotation` (another operator wrote it), or the source of metrics that recorded the use: `ingress`, `ssh`,
    /// `webSsh` or `open`.
    pub witness: Optional<String>,
    /// Generation of the instance when `since` was set. A change of the spec counts as a use.
    #[serde(deserialize_with = "wire::integer")]
    pub generation: Optional<i64>,
    /// Number of warnings that the mail server has accepted since then.
    #[serde(deserialize_with = "wire::integer")]
    pub warnings: Optional<i64>,
    /// Time when the mail server accepted the last warning.
    pub last_warning: Option<Time>,
    /// Deadline in the warning that is being sent; absent once the mail server has accepted the warning. After the
    /// deadline: the time until which sending the last mail is retried.
    pub sending: Option<Time>,
    /// Time of the last permanent rejection of the warning by the mail server, including the version without any text
    /// of the user; absent once a mail to the tenant was accepted. The warning is sent again an hour later.
    pub undeliverable: Option<Time>,
    /// Time when the next warning is due unless a use withdraws it; absent once all warnings were accepted, and if no
    /// warnings are sent.
    pub next_warning: Option<Time>,
    /// Earliest time when the instance is stopped or deleted; absent until a warning was accepted.
    pub deadline: Option<Time>,
    /// Time when the mail server accepted the last mail, which says that the deadline has passed. The instance is
    /// stopped or deleted after that.
    pub final_mail: Option<Time>,
}

/// The action on an Instance at its deadline. Mails, conditions, events and `crownlabs why` describe it with the same
/// phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The Instance is stopped, and can be started again.
    Stopped,
    /// The Instance is deleted.
    Deleted,
}

impl End {
    /// Returns the action on a running Instance that is not used. Without a persistent environment, stopping it would
    /// lose everything, so it is deleted.
    pub fn of_unused(is_persistent: bool) -> Self {
        if is_persistent { Self::Stopped } else { Self::Deleted }
    }

    /// The action as a participle.
    pub fn action(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Deleted => "deleted",
        }
    }

    /// The effect on the data, as the end of a sentence.
    pub fn data(self) -> &'static str {
        match self {
            Self::Stopped => "and its disk is kept, so that it can be started again",
            Self::Deleted => "with all data in it",
        }
    }

    /// The action as a sentence. `when` begins with a blank, or is empty.
    pub fn sentence(self, when: &str) -> String {
        format!("the Instance is {}{when}, {}", self.action(), self.data())
    }
}
