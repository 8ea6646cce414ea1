//! The problems of machines by cause: pure functions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::reason::Reason;
use crate::api::{Condition, Instance, why};
use crate::runtime::ObjectKey;

/// The maximum number of causes on the page, the most frequent ones.
const MOST_CAUSES: usize = 20;
/// The number of machines that are named for a cause, those with the latest problems.
const MOST_NAMED: usize = 5;

/// A cause of problems.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// The reason of the conditions.
    pub reason: String,
    /// The number of machines.
    pub count: usize,
    /// The roles that can act; empty if no one has to act, or if the reason is not known.
    pub roles: Vec<String>,
    /// The machines with the latest problems, each with its condition.
    pub latest: Vec<(ObjectKey, Condition)>,
}

/// The problems of machines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems {
    by_reason: BTreeMap<String, Vec<(ObjectKey, Condition)>>,
    counts: BTreeMap<String, usize>,
    /// The number of machines that were read.
    pub read: usize,
    /// Whether all machines were read.
    pub is_whole: bool,
}

impl Problems {
    /// Adds a machine. It has a problem if a condition keeps it from its desired state, and someone has to act on it, or
    /// it has lasted for ten minutes.
    pub fn add(&mut self, instance: &Instance, now: Timestamp) {
        self.read += 1;
        let Some(condition) = why::problem(&instance.status.conditions, now) else { return };
        let reason = condition.reason.to_string();
        *self.counts.entry(reason.clone()).or_default() += 1;
        let latest = self.by_reason.entry(reason).or_default();
        latest.push((ObjectKey::of(instance), condition));
        latest.sort_by_key(|(key, condition)| (Reverse(condition.last_transition_time.0), key.clone()));
        latest.truncate(MOST_NAMED);
    }

    /// Returns the number of machines with a problem.
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// Returns the most frequent causes.
    pub fn causes(&self) -> Vec<Cause> {
        let cause = |(reason, latest): (&String, &Vec<(ObjectKey, Condition)>)| Cause {
            reason: reason.clone(),
            count: self.counts.get(reason).copied().unwrap_or_default(),
            roles: Reason::actors(reason).unwrap_or_default(),
            latest: latest.clone(),
        };
        let mut causes: Vec<Cause> = self.by_reason.iter().map(cause).collect();
        causes.sort_by_key(|cause| (Reverse(cause.count), cause.reason.clone()));
        causes.truncate(MOST_CAUSES);
        causes
    }
}

#[cfg(test)]
mod unit_tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::time;

    fn instance(name: &str, reason: &str, since: &str) -> Instance {
        let condition = json!({"type": "Ready", "status": "False", "reason": reason, "message": "m",
            "lastTransitionTime": since});
        let object = json!({"metadata": {"namespace": "tenant-ada", "name": name}, "status": {"conditions": [condition]}});
        serde_json::from_value(object).expect("an Instance")
    }

    #[test]
    fn problems_are_counted_by_cause_and_the_latest_machines_are_named() {
        let now = time("2026-01-01T01:00:00Z");
        let mut problems = Problems::default();
        for number in 0..7 {
            problems.add(
                &instance(
                    &format!("vm-{number}"),
                    "ImagePullFailed",
                    &format!("2026-01-01T00:0{number}:00Z"),
                ),
                now,
            );
        }
        problems.add(&instance("lost", "TemplateNotFound", "2026-01-01T00:59:00Z"), now);
        // It solves itself.
        problems.add(&instance("new", "Starting", "2026-01-01T00:59:00Z"), now);
        problems.add(&instance("odd", "MadeUp", "2026-01-01T00:59:00Z"), now);
        assert_eq!((problems.read, problems.total()), (10, 9));
        let causes = problems.causes();
        let found: Vec<_> = causes.iter().map(|cause| (cause.reason.as_str(), cause.count)).collect();
        assert_eq!(found, [("ImagePullFailed", 7), ("MadeUp", 1), ("TemplateNotFound", 1)]);
        let named: Vec<_> = causes[0].latest.iter().map(|(key, _)| key.name.to_string()).collect();
        assert_eq!(named, ["vm-6", "vm-5", "vm-4", "vm-3", "vm-2"]);
        assert!(causes[1].roles.is_empty() && !causes[2].roles.is_empty());
    }
}
