//! What goes wrong with the objects of an Instance, by the events about them: what is on no object, such as a volume that cannot
//! be mounted, or a claim for which no volume can be made.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use super::span::span;
use crate::api::wire::Optional;

/// How many events are shown, the latest of them.
const MOST: usize = 5;

/// The fields that are read of an Event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// The object that it is about.
    pub involved_object: About,
    /// What has happened, as one word.
    pub reason: Optional<String>,
    /// What has happened, as a sentence.
    pub message: Optional<String>,
    /// How often it has happened.
    pub count: Option<i64>,
    /// When it happened last, by programs that count it so.
    pub last_timestamp: Option<Time>,
    /// When it happened first, by programs that use the newer form.
    #[serde(rename = "eventTime")]
    pub first_time: Option<Time>,
    /// How often and when it happened, in the newer form.
    pub series: Option<Series>,
}

/// The object that an Event is about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct About {
    /// Its kind.
    pub kind: Optional<String>,
    /// Its name.
    pub name: Optional<String>,
}

/// What has happened several times.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Series {
    /// How often.
    pub count: Option<i64>,
    /// When it was seen last.
    pub last_observed_time: Option<Time>,
}

impl Event {
    /// When it happened last.
    fn time(&self) -> Option<&Time> {
        let series = self.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
        series.or(self.last_timestamp.as_ref()).or(self.first_time.as_ref())
    }

    fn line(&self, now: Timestamp) -> String {
        let count = self.series.as_ref().and_then(|series| series.count).or(self.count).unwrap_or(1);
        let times = if count > 1 { format!(", {count} times") } else { String::new() };
        let ago = self.time().map_or_else(String::new, |time| format!(", {} ago", span(time, now)));
        let About { kind, name } = &self.involved_object;
        format!("{kind} {name}: {} ({}{times}{ago})", self.message, self.reason)
    }
}

/// The lines about the latest of the events about objects of these names. What `told` has already is left out.
pub fn lines(mut events: Vec<Event>, names: &BTreeSet<String>, told: &str, now: Timestamp) -> Vec<String> {
    events.retain(|event| {
        let is_new = event.message.is_empty() || !told.contains(event.message.as_str());
        is_new && names.contains(event.involved_object.name.as_str())
    });
    events.sort_by_key(|event| std::cmp::Reverse(event.time().cloned()));
    events.iter().take(MOST).map(|event| event.line(now)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_events_of_its_objects_are_told() {
        let event = |name: &str, message: &str, more: serde_json::Value| -> Event {
            let mut event = json!({"involvedObject": {"kind": "Pod", "name": name}, "reason": "FailedMount",
                "message": message});
            crate::runtime::merge::apply(&mut event, &more);
            serde_json::from_value(event).expect("an Event")
        };
        let mut events = vec![
            event("lab-1", "mount failed", json!({"count": 3, "lastTimestamp": "2026-01-01T00:01:00Z"})),
            event(
                "lab-1",
                "not yet",
                json!({"eventTime": "2026-01-01T00:02:00.5Z",
                "series": {"count": 7, "lastObservedTime": "2026-01-01T00:04:00.000000Z"}}),
            ),
            event("lab-1", "known", json!({"lastTimestamp": "2026-01-01T00:04:30Z"})),
            event("other", "mount failed", json!({"lastTimestamp": "2026-01-01T00:04:40Z"})),
        ];
        let (now, names) =
            ("2026-01-01T00:05:00Z".parse().expect("a time"), BTreeSet::from(["lab-1".to_owned()]));
        let told = lines(events.clone(), &names, "what is known", now);
        let expected = [
            "Pod lab-1: not yet (FailedMount, 7 times, 1 min ago)",
            "Pod lab-1: mount failed (FailedMount, 3 times, 4 min ago)",
        ];
        assert_eq!(told, expected);
        events.extend((0..9).map(|number| event("lab-1", &format!("no {number}"), json!({}))));
        assert_eq!(lines(events, &names, "", now).len(), MOST);
    }
}
