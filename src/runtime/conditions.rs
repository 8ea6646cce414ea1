//! Conditions: what an object's owner reports of it, one line a subject (Kubernetes API
//! conventions, "Typical status properties").

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::condition::Condition;

/// A condition as it is known before it is written: the time of its last change is found by
/// [`merge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Its type, for example `Ready`.
    pub type_: &'static str,
    /// Whether it holds; `None` for unknown.
    pub holds: Option<bool>,
    /// A stable word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// The longest message that Kubernetes' own conditions allow, in characters.
const MESSAGE_LIMIT: usize = 32_768;

/// The new list of conditions: those in `observed` brought up to date, those of the types in
/// `retired` removed, all others as they are (another loop writes them).
#[must_use]
pub fn merge(
    old: &[Condition],
    observed: &[Observation],
    retired: &[&str],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut list: Vec<Condition> =
        old.iter().filter(|condition| !retired.contains(&condition.type_.as_str())).cloned().collect();
    for observation in observed {
        let status = match observation.holds {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let before = list.iter().position(|condition| condition.type_ == observation.type_);
        let since = before
            .and_then(|at| list.get(at))
            .filter(|condition| condition.status == status)
            .map_or_else(|| Time(whole_seconds(now)), |condition| condition.last_transition_time.clone());
        let condition = Condition {
            type_: observation.type_.to_owned(),
            status: status.to_owned(),
            reason: observation.reason.clone(),
            message: observation.message.chars().take(MESSAGE_LIMIT).collect(),
            last_transition_time: since,
            observed_generation: generation,
        };
        match before {
            Some(at) => list[at] = condition,
            None => list.push(condition),
        }
    }
    list
}

/// Stored times have whole seconds: a finer one would differ from itself after being read back.
#[must_use]
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
