//! Problems of the objects of an Instance, from the events about them. These problems are in no status: for example,
//! a volume that cannot be mounted, or a claim that no volume can be provisioned for.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::api::wire::Optional;

/// The limit for warnings. The latest ones are kept.
const MOST: usize = 5;

/// The parameter of a request for events that restricts it to warnings.
pub const WARNINGS: &str = "&fieldSelector=type%3DWarning";

/// The fields that are read of an Event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// The object that it is about.
    pub involved_object: About,
    /// The event as one word.
    pub reason: Optional<String>,
    /// The event as a sentence.
    pub message: Optional<String>,
    /// The number of occurrences.
    pub count: Option<i64>,
    /// Time of the last occurrence, from programs that set it.
    pub last_timestamp: Option<Time>,
    /// Time of the first occurrence, from programs that use the newer form.
    #[serde(rename = "eventTime")]
    pub first_time: Option<Time>,
    /// Number and time of the occurrences, in the newer form.
    pub series: Option<Series>,
}

/// The object that an Event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct About {
    /// Its kind.
    pub kind: Optional<String>,
    /// Its name.
    pub name: Optional<String>,
}

/// A series of the same event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Series {
    /// The number of occurrences.
    pub count: Option<i64>,
    /// Time of the last occurrence.
    pub last_observed_time: Option<Time>,
}

/// A warning about an object of an Instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The object.
    pub about: About,
    /// The event as one word.
    pub reason: String,
    /// The event as a sentence.
    pub message: String,
    /// The number of occurrences.
    pub times: i64,
    /// Time of the last occurrence, if it is known.
    pub last: Option<Time>,
}

impl From<Event> for Warning {
    fn from(event: Event) -> Self {
        let Event { involved_object, reason, message, count, last_timestamp, first_time, series } = event;
        let (counted, seen) = series.map_or((None, None), |series| (series.count, series.last_observed_time));
        Self {
            about: involved_object,
            reason,
            message,
            times: counted.or(count).unwrap_or(1),
            last: seen.or(last_timestamp).or(first_time),
        }
    }
}

/// The parameter of a request for pods that restricts it to the pods of an Instance.
pub fn pods_of(instance: &Instance) -> String {
    format!("&labelSelector={}%3D{}", labels::INSTANCE.replace('/', "%2F"), instance.name())
}

/// The latest events of a namespace about the objects of an Instance and about these pods of it. Messages that its
/// conditions already contain are left out.
pub fn warnings<'a>(
    instance: &Instance,
    pods: impl IntoIterator<Item = &'a str>,
    events: Vec<Event>,
) -> Vec<Warning> {
    let status = &instance.status;
    let canonical = CanonicalName::of(instance.name());
    let environments =
        status.environments.iter().map(|status| canonical.environment(&status.name).to_string());
    let others = [canonical.to_string()].into_iter().chain(environments);
    let names = pods.into_iter().map(str::to_owned).chain(others).collect();
    let told: String = status.conditions.iter().map(|condition| condition.message.as_str()).collect();
    latest(events, &names, &told)
}

/// The latest events about objects with these names. Messages that `told` already contains are left out.
pub(super) fn latest(mut events: Vec<Event>, names: &BTreeSet<String>, told: &str) -> Vec<Warning> {
    events.retain(|event| {
        let is_new = event.message.is_empty() || !told.contains(event.message.as_str());
        is_new && names.contains(event.involved_object.name.as_str())
    });
    let mut warnings: Vec<Warning> = events.into_iter().map(Warning::from).collect();
    warnings.sort_by_key(|warning| std::cmp::Reverse(warning.last.clone()));
    warnings.truncate(MOST);
    warnings
}
