//! The objects of CrownLabs by state, and their problems.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::parse::text;
use crate::api::condition::{Condition, READY, STALE};
use crate::api::why;
use crate::explain::obstacle::About;

/// The objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindCount {
    /// The kind.
    pub kind: String,
    /// The number of objects in each state.
    pub states: BTreeMap<String, usize>,
}

impl KindCount {
    /// The number of objects.
    pub fn total(&self) -> usize {
        self.states.values().sum()
    }
}

/// A condition that keeps an object from its desired state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problem {
    /// The kind of the object.
    pub kind: String,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The condition.
    pub condition: Condition,
}

impl Problem {
    /// The object.
    pub fn about(&self) -> About<'_> {
        About { kind: &self.kind, namespace: &self.namespace, name: &self.name }
    }
}

/// Counts an object of a kind, and returns its problem.
pub fn add(count: &mut KindCount, mut object: Value, now: Timestamp) -> Option<Problem> {
    let conditions = object.pointer_mut("/status/conditions").map(Value::take).unwrap_or_default();
    let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
    *count.states.entry(state(&object, &conditions)).or_default() += 1;
    let condition = why::problem(&conditions, now)?;
    Some(Problem {
        kind: count.kind.clone(),
        namespace: text(&object, "/metadata/namespace"),
        name: text(&object, "/metadata/name"),
        condition,
    })
}

/// The state of an object as one word: that it is being deleted, its phase, or whether it is ready. An `ImageList` has no
/// condition `Ready`.
fn state(object: &Value, conditions: &[Condition]) -> String {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return "Terminating".to_owned();
    }
    let phase = text(object, "/status/phase");
    if !phase.is_empty() {
        return phase;
    }
    let find = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    let state = match (find(READY.as_str()), find(STALE.as_str())) {
        (Some(ready), _) if ready.status == "True" => "Ready",
        (Some(ready), _) if ready.status == "False" => "NotReady",
        (None, Some(old)) if old.status == "True" => "Stale",
        (None, Some(old)) if old.status == "False" => "Ready",
        _ => "Unknown",
    };
    state.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::time;

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn an_object_counts_by_its_deletion_its_phase_or_its_condition() {
        let mut count = KindCount { kind: "Instance".to_owned(), ..KindCount::default() };
        let deleted =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Off"}});
        let only = |one: Value| json!({"status": {"conditions": [one]}});
        for (object, state) in [
            (deleted, "Terminating"),
            (json!({"status": {"phase": "Off", "conditions": [condition("Ready", "True", "Off")]}}), "Off"),
            (only(condition("Ready", "True", "Ready")), "Ready"),
            (only(condition("Ready", "False", "Made up")), "NotReady"),
            (only(condition("Ready", "Unknown", "Made up")), "Unknown"),
            (only(condition("Stale", "True", "Made up")), "Stale"),
            (only(condition("Stale", "False", "Made up")), "Ready"),
            (json!({"status": {"conditions": "no list"}}), "Unknown"),
            (json!({}), "Unknown"),
        ] {
            let before = count.states.get(state).copied().unwrap_or_default();
            add(&mut count, object.clone(), time("2026-01-01T00:00:00Z"));
            assert_eq!(count.states[state], before + 1, "{object}");
        }
        assert_eq!(count.total(), 9);
    }

    #[test]
    fn a_problem_that_solves_itself_counts_after_ten_minutes() {
        let problem = |type_: &str, status: &str, reason: &str, now: &str| {
            let mut count = KindCount { kind: "Tenant".to_owned(), ..KindCount::default() };
            let object = json!({"metadata": {"name": "ada"}, "status": {"conditions": [condition(type_, status, reason)]}});
            add(&mut count, object, time(now))
                .map(|problem| (problem.about().place(), problem.condition.reason.to_string()))
        };
        let (soon, late) = ("2026-01-01T00:09:59Z", "2026-01-01T00:10:00Z");
        let found = |reason: &str| Some(("ada".to_owned(), reason.to_owned()));
        assert_eq!(problem("Ready", "False", "Starting", soon), None);
        assert_eq!(problem("Ready", "False", "Starting", late), found("Starting"));
        assert_eq!(problem("Ready", "False", "TemplateNotFound", soon), found("TemplateNotFound"));
        assert_eq!(problem("Ready", "False", "Made up", soon), found("Made up"));
        assert_eq!(problem("NameConflict", "True", "NameConflict", soon), found("NameConflict"));
        assert_eq!(problem("Ready", "True", "Ready", late), None);
        assert_eq!(problem("Inactive", "True", "Overdue", late), None);
    }
}
