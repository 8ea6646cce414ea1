//! The input of the plan and the report of an Instance.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};
use jiff::Timestamp;

use crate::api::condition::{Condition, STATUS_CHECKED};
use crate::api::instance::{Instance, InstancePhase};
use crate::api::labels;
use crate::api::reason::TERMINATING;
use crate::api::template::Template;
use crate::clients::status_check::Verdict;
use crate::controllers::shared::queries::LastQuery;

/// The complete input of plan and report, except the configuration and the time.
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
    /// The start of this process's last query for an Instance with this name, of any URL; `None` if it was long ago.
    pub begun: Option<Timestamp>,
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
    /// Whether the machine had been ready when the query began.
    pub was_ready: bool,
    /// The number of consecutive queries without a decision, including this one: they failed, or came before the
    /// machine was ready.
    pub failures: u32,
    /// The time of the first of the consecutive answers, including this one, that the Instance is no longer needed.
    /// Answers before the machine was ready do not count. Only this process knows the time, so after a restart two
    /// answers are needed again.
    pub gone_since: Option<Timestamp>,
    /// The time and the result; `None` while the query is running.
    pub result: Option<(Timestamp, Verdict)>,
}

impl LastQuery for Check {
    type Answer = Verdict;

    fn end(&mut self, at: Timestamp, verdict: Verdict) {
        let is_gone = matches!(verdict, Verdict::Gone { .. });
        self.gone_since = self.gone_since.or(Some(at)).filter(|_| is_gone && self.was_ready);
        let decides = matches!(verdict, Verdict::Keep { .. }) || self.gone_since.is_some();
        self.failures = if decides { 0 } else { self.failures.saturating_add(1) };
        self.result = Some((at, verdict));
    }
}

impl Observed {
    /// The last query, if it was for the current URL.
    pub fn current_check(&self) -> Option<&Check> {
        let url = self.instance.spec.effective_status_check_url();
        self.check.as_ref().filter(|check| check.uid == self.instance.uid() && check.url == url)
    }
}

/// Whether the status URL of an Instance is queried.
pub fn is_watched(instance: &Instance) -> bool {
    instance.label(labels::WATCH_FOR_TERMINATION) == Some("true")
}

/// Whether the machine is ready or has been ready. Before that, an answer does not show whether the exam is over.
pub fn was_ready(instance: &Instance) -> bool {
    let status = &instance.status;
    status.phase == InstancePhase::Ready || !status.initial_ready_time.is_empty()
}

/// The condition [`STATUS_CHECKED`] of an Instance.
pub fn stored_condition(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == STATUS_CHECKED)
}

/// Whether the status states that the exam is over, whatever has changed since.
pub fn is_ending(instance: &Instance) -> bool {
    stored_condition(instance).is_some_and(|condition| condition.reason == TERMINATING)
}
