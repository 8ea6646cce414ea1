//! Status conditions (Kubernetes API conventions, "Typical status properties").

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::condition::{Condition, ConditionType};
use crate::api::reason::Reason;
use crate::api::shown;
use crate::api::text::Text;

/// A condition to write. [`merge`] adds the time of its last transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Its type, for example `Ready`.
    pub type_: ConditionType,
    /// Its status: `True`, `False`, or `None` for `Unknown`.
    pub holds: Option<bool>,
    /// Its reason.
    pub reason: Reason,
    /// Its message, a sentence for users.
    pub message: String,
}

impl Observation {
    /// Creates a condition with status `True` or `False`.
    pub fn new(type_: ConditionType, holds: bool, reason: Reason, message: impl Into<String>) -> Self {
        Self { type_, holds: Some(holds), reason, message: shown::message(&message.into()) }
    }
}

/// Returns the new list of conditions: those in `observed` are added or updated, those with a type in `retired` are
/// removed, and all others are kept, because other loops write them.
pub fn merge(
    old: &[Condition],
    observed: &[Observation],
    retired: &[ConditionType],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut list: Vec<Condition> =
        old.iter().filter(|old| !retired.iter().any(|type_| old.type_ == *type_)).cloned().collect();
    for observation in observed {
        #[cfg(test)]
        assert!(
            crate::api::reason::Row::declares(observation.reason, &observation.type_),
            "{observation:?}: the reason is not declared for this condition"
        );
        let status = match observation.holds {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let before = list.iter_mut().find(|condition| condition.type_ == observation.type_);
        let since = before
            .as_deref()
            .filter(|condition| condition.status == status)
            .map_or_else(|| Time(whole_seconds(now)), |condition| condition.last_transition_time.clone());
        let condition = Condition {
            type_: Text::interned(&observation.type_),
            status: Text::interned(status),
            reason: Text::interned(&observation.reason),
            message: shown::message(&observation.message).into(),
            last_transition_time: since,
            observed_generation: generation,
        };
        match before {
            Some(before) => *before = condition,
            None => list.push(condition),
        }
    }
    list
}

/// Truncates a time to whole seconds, as stored by the API server. With a fraction, the value would differ when it is
/// read back.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::condition::RECONCILED;
    use crate::api::reason::INVALID_SPEC;

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        let message = format!("image \u{1b}[2J\n{}: write one", "x".repeat(100_000));
        for holds in [None, Some(false)] {
            let message = message.clone();
            let observation = Observation { type_: RECONCILED, holds, reason: INVALID_SPEC, message };
            let [condition] = &merge(&[], &[observation], &[], None, Timestamp::UNIX_EPOCH)[..] else {
                panic!("one condition");
            };
            let written = condition.message.as_str();
            assert!(!written.contains(shown::is_control) && written.chars().count() <= 1_000, "{written:?}");
            assert!(
                written.starts_with("image \\u{1b}[2J\\n") && written.ends_with(": write one"),
                "{written}"
            );
        }
    }
}
