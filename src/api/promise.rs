//! What an automation has promised to a tenant before it stops or deletes an instance: warnings, and a deadline
//! before which nothing happens; and the words for what is done then.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use macro_rules_attribute::apply;

use super::wire::{self, Optional, resource_part};

/// Warnings that were accepted by the mail server, and the deadline that they name.
#[apply(resource_part)]
pub struct Promise {
    /// Time from which the time of the template counts: that of the last use, of the creation, or of the stop.
    /// The time of the last use is up to a day late while the instance is used.
    pub since: Option<Time>,
    /// What `since` is known from: `start` (the instance was started or changed), `kept` (somebody asked to keep it),
    /// `annotation` (another operator wrote it), or the source of metrics that saw the use: `ingress`, `ssh`, `webSsh`
    /// or `open`.
    pub witness: Optional<String>,
    /// Generation of the instance that `since` belongs to: a change of the spec counts as a use.
    #[serde(deserialize_with = "wire::integer")]
    pub generation: Optional<i64>,
    /// Number of warnings that the mail server has accepted since then.
    #[serde(deserialize_with = "wire::integer")]
    pub warnings: Optional<i64>,
    /// Time at which the mail server accepted the last warning.
    pub last_warning: Option<Time>,
    /// Deadline in the warning that is being sent; absent once the mail server has accepted it. After the deadline:
    /// the time until which the last mail is tried.
    pub sending: Option<Time>,
    /// Time at which the mail server last refused the warning for good, also without any text of the user; absent once a
    /// mail to the tenant was accepted. It is sent again an hour later.
    pub undeliverable: Option<Time>,
    /// Time from which the next warning is due, if nothing withdraws it before; absent once all warnings were accepted,
    /// and where nobody is warned.
    pub next_warning: Option<Time>,
    /// Time before which the instance is not stopped or deleted; absent until a warning was accepted.
    pub deadline: Option<Time>,
    /// Time at which the mail server accepted the mail that the deadline has passed; the instance is stopped or
    /// deleted after it.
    pub final_mail: Option<Time>,
}

/// What is done with an Instance at its deadline. Mails, conditions, events and `crownlabs why` have the same words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is stopped, and can be started again.
    Stopped,
    /// It is deleted.
    Deleted,
}

impl End {
    /// The end of a running Instance that nobody uses: without a persistent environment, nothing of it would be left.
    pub fn of_unused(is_persistent: bool) -> Self {
        if is_persistent { Self::Stopped } else { Self::Deleted }
    }

    /// What is done with it, as a participle.
    pub fn action(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Deleted => "deleted",
        }
    }

    /// What becomes of its data, as the end of a sentence.
    pub fn data(self) -> &'static str {
        match self {
            Self::Stopped => "and its disk is kept, so that it can be started again",
            Self::Deleted => "with all data in it",
        }
    }

    /// What is done with it, as a sentence; `when` begins with a blank, or is empty.
    pub fn sentence(self, when: &str) -> String {
        format!("the Instance is {}{when}, {}", self.action(), self.data())
    }
}
