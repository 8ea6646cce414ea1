//! Events of other controllers, and the selection of the one that explains why an object waits.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use crate::api::reason::{CauseRow, Source};
use crate::api::text::Text;
use crate::api::wire::Optional;

/// The maximum length of a stored message in bytes.
const LONGEST: usize = 500;
/// The maximum number of stored events about the objects of one wait.
const MOST: usize = 8;

/// The fields of an event that are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// The object that the event is about.
    pub involved_object: Involved,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub type_: Optional<String>,
    /// The reason, as one word.
    pub reason: Optional<String>,
    /// The explanation, as a sentence.
    pub message: Optional<String>,
    /// The time of the last occurrence, set by clients of the old API.
    pub last_timestamp: Option<Time>,
    /// The time of the first occurrence, set by clients of the new API.
    #[serde(rename = "eventTime")]
    pub first_time: Option<Time>,
    /// The time of the last occurrence in the new API.
    pub series: Option<Series>,
}

/// The object that an event is about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Involved {
    /// The kind of the object.
    pub kind: Optional<String>,
    /// The name of the object.
    pub name: Optional<String>,
    /// The uid of the object.
    pub uid: Optional<String>,
}

/// The repetitions of an event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Series {
    /// The time of the last occurrence.
    pub last_observed_time: Option<Time>,
}

impl Event {
    /// The time of the last occurrence; the minimum if the event has no time.
    pub fn at(&self) -> Timestamp {
        let seen = self.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
        let times = seen.or(self.last_timestamp.as_ref()).or(self.first_time.as_ref());
        times.map_or(Timestamp::MIN, |time| time.0)
    }
}

/// An event that explains why an object waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its reason: one of the words in [`Source::Event`], or the reason of any warning.
    pub word: Text,
    /// The kind of the object.
    pub kind: Text,
    /// The name of the object.
    pub name: Text,
    /// The uid of the object.
    pub uid: Text,
    /// Its message.
    pub message: Text,
}

impl Told {
    fn of(event: &Event) -> Self {
        let message = event.message.trim();
        let cut = message.get(..message.floor_char_boundary(LONGEST)).unwrap_or_default();
        Self {
            word: Text::interned(&event.reason),
            kind: Text::interned(&event.involved_object.kind),
            name: Text::from(&*event.involved_object.name),
            uid: Text::from(&*event.involved_object.uid),
            message: Text::from(cut),
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { word, kind, name, message, .. } = self;
        write!(formatter, "{kind} {name}: {word}: {message}")
    }
}

/// The significance of an event for an object that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// The object has made progress, so earlier events no longer count.
    Progress,
    /// The object waits for a provisioner. Other events may be more specific.
    Waits,
    /// The cause.
    Cause,
}

/// Events that are not a cause: a condition of the pod has the same content, a failure has another event, or the event
/// is about something else.
const SILENT: [&str; 6] = [
    "FailedScheduling",
    "Provisioning",
    "WaitForFirstConsumer",
    "WaitForPodScheduled",
    "DNSConfigForming",
    "MissingClusterDNS",
];

/// The event that the volume controller repeats every few seconds while it waits for a provisioner.
const WAITS: &str = "ExternalProvisioning";

fn weight(event: &Event) -> Option<Weight> {
    let word = event.reason.as_str();
    if SILENT.contains(&word) {
        return None;
    }
    let is_known = !CauseRow::of(Source::Event, word).word.is_empty();
    Some(match word {
        WAITS => Weight::Waits,
        _ if is_known || event.type_ == "Warning" => Weight::Cause,
        _ => Weight::Progress,
    })
}

/// The newest event of each object, collected while a list arrives.
#[derive(Debug, Default)]
pub struct Newest(HashMap<String, Last>);

/// The last events of an object.
#[derive(Debug, Default)]
struct Last {
    /// The newest cause, or the newest progress.
    decisive: Option<(Timestamp, Option<Told>)>,
    /// The newest wait for a provisioner.
    waits: Option<(Timestamp, Told)>,
}

impl Newest {
    /// Takes an event into account.
    pub fn take(&mut self, event: &Event) {
        let Some(weight) = weight(event) else { return };
        let (at, object) = (event.at(), &event.involved_object);
        let last = self.0.entry(format!("{} {}", object.kind, object.name)).or_default();
        if weight == Weight::Waits {
            if last.waits.as_ref().is_none_or(|(known, _)| *known <= at) {
                last.waits = Some((at, Told::of(event)));
            }
        } else if last.decisive.as_ref().is_none_or(|(known, _)| *known <= at) {
            let told = (weight == Weight::Cause).then(|| Told::of(event));
            last.decisive = Some((at, told));
        }
    }

    /// The causes, then the waits, each from the newest to the oldest, at most [`MOST`].
    pub fn told(self) -> Vec<Told> {
        let (mut causes, mut waits) = (Vec::new(), Vec::new());
        for Last { decisive, waits: waiting } in self.0.into_values() {
            match decisive {
                Some((at, Some(told))) => causes.push((at, told)),
                // A claim that has made progress is bound.
                Some((at, None)) => waits.extend(waiting.filter(|(waited, _)| *waited > at)),
                None => waits.extend(waiting),
            }
        }
        for found in [&mut causes, &mut waits] {
            found.sort_unstable_by(|a, b| (b.0, &b.1.name).cmp(&(a.0, &a.1.name)));
        }
        causes.into_iter().chain(waits).map(|(_, told)| told).take(MOST).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An event in the given second of the first minute, about the object.
    fn event(second: u32, object: &str, type_: &str, reason: &str) -> Value {
        let (kind, name) = object.split_once(' ').expect("a kind and a name");
        json!({
            "involvedObject": {"kind": kind, "name": name, "uid": name}, "type": type_, "reason": reason,
            "message": format!("{reason} at {second}"),
            "lastTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        })
    }

    fn told(events: &[Value]) -> Option<String> {
        let mut newest = Newest::default();
        for event in events {
            newest.take(&serde_json::from_value(event.clone()).expect("an event"));
        }
        newest.told().first().map(Told::to_string)
    }

    #[test]
    fn the_newest_cause_counts_until_its_object_makes_progress() {
        let failed = event(1, "Pod a", "Warning", "FailedMount");
        let again = event(9, "Pod a", "Warning", "FailedMount");
        assert_eq!(told(&[again, failed.clone()]).as_deref(), Some("Pod a: FailedMount: FailedMount at 9"));
        let started = event(2, "Pod a", "Normal", "Started");
        assert_eq!(told(&[failed.clone(), started.clone()]), None);
        let other = event(3, "Pod b", "Normal", "Started");
        assert!(told(&[failed.clone(), other]).is_some(), "the start of another pod does not matter");
        let unheard = event(4, "Pod a", "Warning", "Unheard");
        let found = told(&[failed, started, unheard]);
        assert_eq!(found.as_deref(), Some("Pod a: Unheard: Unheard at 4"), "any warning");
    }

    #[test]
    fn the_decision_of_an_autoscaler_counts_while_the_scheduler_retries() {
        let scaled = event(2, "Pod a", "Normal", "TriggeredScaleUp");
        let waits = event(5, "Pod a", "Warning", "FailedScheduling");
        let found = told(&[scaled.clone(), waits.clone()]);
        assert_eq!(found.as_deref(), Some("Pod a: TriggeredScaleUp: TriggeredScaleUp at 2"));
        let not = event(4, "Pod a", "Normal", "NotTriggerScaleUp");
        let found = told(&[scaled, waits.clone(), not]);
        assert_eq!(found.as_deref(), Some("Pod a: NotTriggerScaleUp: NotTriggerScaleUp at 4"));
        assert_eq!(told(&[waits]), None, "its condition says so");
    }

    #[test]
    fn a_failure_of_a_claim_takes_precedence_over_its_wait() {
        let waits = |second| event(second, "PersistentVolumeClaim a", "Normal", "ExternalProvisioning");
        let failed = event(2, "PersistentVolumeClaim a", "Warning", "ProvisioningFailed");
        let tries = event(7, "PersistentVolumeClaim a", "Normal", "Provisioning");
        let found = told(&[waits(8), failed, tries]);
        let wanted = "PersistentVolumeClaim a: ProvisioningFailed: ProvisioningFailed at 2";
        assert_eq!(found.as_deref(), Some(wanted));
        let wanted = "PersistentVolumeClaim a: ExternalProvisioning: ExternalProvisioning at 8";
        assert_eq!(told(&[waits(8)]).as_deref(), Some(wanted));
        let done = event(9, "PersistentVolumeClaim a", "Normal", "ProvisioningSucceeded");
        assert_eq!(told(&[waits(8), done]), None);
    }

    #[test]
    fn a_message_has_a_bound_and_an_event_without_fields_is_read() {
        let mut long = event(1, "Pod a", "Warning", "FailedMount");
        long["message"] = "é".repeat(1000).into();
        let found = told(&[long]).expect("told");
        assert!(found.len() <= LONGEST + 20, "{}", found.len());
        let bare = json!({"involvedObject": {"kind": "Pod", "name": "a"}, "type": "Warning",
            "lastTimestamp": null, "eventTime": "2026-01-01T00:00:00.000000Z"});
        assert_eq!(told(&[bare]).as_deref(), Some("Pod a: : "));
    }
}
