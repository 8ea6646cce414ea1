//! The input of the plan and the report of an Instance.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};
use jiff::Timestamp;

use crate::api::condition::{Condition, STATUS_CHECKED};
use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::reason::TERMINATING;
use crate::api::template::Template;
use crate::clients::status_check::Verdict;

/// Everything that plan and report depend on, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The Instance.
    #[as_ref(Instance)]
    #[as_mut]
    pub instance: Arc<Instance>,
    /// Its Template, if it exists.
    pub template: Option<Arc<Template>>,
    /// The last query of its status URL by this process.
    pub check: Option<Check>,
}

/// A query of a status URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The uid of the Instance.
    pub uid: String,
    /// The URL.
    pub url: String,
    /// The generation of the Instance when the query began.
    pub generation: Option<i64>,
    /// How many queries in a row have failed, with this one.
    pub failures: u32,
    /// Time and result; `None` while it is under way.
    pub result: Option<(Timestamp, Verdict)>,
}

impl Observed {
    /// The last query, if it is one of the present URL.
    pub fn current_check(&self) -> Option<&Check> {
        let url = self.instance.spec.effective_status_check_url();
        self.check.as_ref().filter(|check| check.uid == self.instance.uid() && check.url == url)
    }
}

/// Whether the status URL of an Instance is queried.
pub fn is_watched(instance: &Instance) -> bool {
    instance.label(labels::WATCH_FOR_TERMINATION) == Some("true")
}

/// The condition [`STATUS_CHECKED`] of an Instance.
pub fn stored_condition(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == STATUS_CHECKED)
}

/// Whether the status says that the exam is over, whatever has changed since.
pub fn is_ending(instance: &Instance) -> bool {
    stored_condition(instance).is_some_and(|condition| condition.reason == TERMINATING)
}
