//! The model of a history: pure, from the metadata of the object, its conditions, and the events about it.

#![expect(clippy::zero_sized_map_values, reason = "serde reads an object as a map; only its keys are needed")]

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::why::{Event, Warning};
use crate::api::{Condition, Kind, Object, labels};
use crate::class::model::ActionId;
use crate::controllers::dashboard::texts::template::table_key;

/// The maximum number of entries. The latest ones are kept.
pub const MOST: usize = 50;
/// The maximum number of fields that an entry names.
const MOST_FIELDS: usize = 8;
/// The maximum difference of clocks. Users can write later times into annotations, and these are not history.
const LATE: SignedDuration = SignedDuration::from_mins(1);

table_key! {
    /// An act that a time in the object shows.
    pub enum Did {
        /// The object was created.
        Created,
        /// Its deletion was requested.
        Deleted,
        /// A request to keep the machine, which counts as a use.
        Kept,
        /// A request to restart the machine.
        Restarted,
        /// The machine was stopped.
        Stopped,
        /// An action on the class changed the machine.
        ClassAction,
        /// The user was warned about the machine.
        Warned,
        /// An email about the machine was sent.
        Mailed,
        /// The user logged in.
        LoggedIn,
        /// A session of the user was ended by a logout.
        LoggedOut,
    }
}

/// The annotations whose value is the time of an act.
const ACTS: [(&str, Did); 5] = [
    (labels::KEPT_AT, Did::Kept),
    (labels::RESTARTED_AT, Did::Restarted),
    (labels::LAST_POWERED_OFF, Did::Stopped),
    (labels::LAST_NOTIFICATION, Did::Warned),
    (labels::EXPIRY_WARNED_AT, Did::Warned),
];
/// The prefixes of such annotations.
const PREFIXES: [(&str, Did); 2] =
    [(labels::MAILED_PREFIX, Did::Mailed), (labels::ENDED_SESSION_PREFIX, Did::LoggedOut)];

/// An object, with the fields that tell its history, from one response.
pub struct Told<T: Kind> {
    /// The object.
    pub object: Object<T>,
    /// The fields.
    pub recorded: Recorded,
}

impl<'de, T: Kind> Deserialize<'de> for Told<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Whole {
            metadata: Recorded,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let object = Object::from_json(text.get().as_bytes()).map_err(D::Error::custom)?;
        let Whole { metadata: recorded } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { object, recorded })
    }
}

/// The fields of the metadata that tell the history of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Recorded {
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    annotations: BTreeMap<String, String>,
    managed_fields: Vec<Written>,
}

/// The last write of a program, with the fields that it has written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    manager: String,
    subresource: String,
    time: Option<Time>,
    #[serde(rename = "fieldsV1")]
    fields: Fields,
}

/// Written fields, such as `f:spec` with `f:running`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
struct Fields(BTreeMap<String, BTreeMap<String, IgnoredAny>>);

impl Fields {
    /// Returns the paths of the fields: `spec.running`.
    fn paths(&self) -> Vec<String> {
        let name = |key: &str| key.strip_prefix("f:").map(str::to_owned);
        let inside = |(key, fields): (&String, &BTreeMap<String, IgnoredAny>)| {
            let Some(of) = name(key) else { return Vec::new() };
            let paths: Vec<String> =
                fields.keys().filter_map(|key| name(key)).map(|field| format!("{of}.{field}")).collect();
            if paths.is_empty() { vec![of] } else { paths }
        };
        self.0.iter().flat_map(inside).take(MOST_FIELDS).collect()
    }
}

/// The history of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The entries, the latest one first.
    pub entries: Vec<Entry>,
    /// Why the events are not known.
    pub unknown: Option<String>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time.
    pub at: Timestamp,
    /// The program, as it calls itself; `None` if it is not known.
    pub by: Option<String>,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// An act.
    Did(Did),
    /// A program wrote these fields. It may have written some of them earlier.
    Wrote(Vec<String>),
    /// The status of a condition changed.
    Became {
        /// The type of the condition.
        type_: String,
        /// Its status.
        status: String,
        /// Its reason.
        reason: String,
    },
    /// An event.
    Event(Warning),
}

impl History {
    /// Returns the history of an object. `others` are acts whose times are in its spec.
    pub fn of(
        recorded: &Recorded,
        conditions: &[Condition],
        others: &[(Timestamp, Did)],
        events: Result<Vec<Event>, String>,
        now: Timestamp,
    ) -> Self {
        let (events, unknown) = match events {
            Ok(events) => (events, None),
            Err(unknown) => (Vec::new(), Some(unknown)),
        };
        let entry = |at, what| Entry { at, by: None, what };
        let others = others.iter().map(|(at, did)| entry(*at, What::Did(*did)));
        let of_conditions = conditions.iter().map(|of| {
            let [type_, status, reason] = [&of.type_, &of.status, &of.reason].map(ToString::to_string);
            entry(of.last_transition_time.0, What::Became { type_, status, reason })
        });
        let of_events = events.into_iter().map(Warning::from).filter_map(|event| {
            let at = event.last.as_ref()?.0;
            Some(entry(at, What::Event(event)))
        });
        let mut entries: Vec<Entry> = recorded.writes().into_iter().chain(recorded.acts()).collect();
        entries.extend(others.chain(of_conditions).chain(of_events));
        entries.retain(|entry| entry.at <= now + LATE);
        entries.sort_by_key(|entry| Reverse(entry.at));
        entries.truncate(MOST);
        Self { entries, unknown }
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.unknown.is_none()
    }
}

impl Recorded {
    /// Returns the creation, and the last write of each program. Writes of the status are left out: the conditions
    /// tell them.
    fn writes(&self) -> Vec<Entry> {
        let created = self.creation_timestamp.as_ref().map(|time| time.0);
        let creation = created.map(|at| Entry { at, by: None, what: What::Did(Did::Created) });
        let mut entries: Vec<Entry> = creation.into_iter().collect();
        for written in self.managed_fields.iter().filter(|written| written.subresource != "status") {
            let Some(at) = written.time.as_ref().map(|time| time.0) else { continue };
            let by = Some(written.manager.clone()).filter(|name| !name.is_empty());
            match entries
                .first_mut()
                .filter(|first| first.at == at && created == Some(at) && first.by.is_none())
            {
                Some(creation) => creation.by = by,
                None => entries.push(Entry { at, by, what: What::Wrote(written.fields.paths()) }),
            }
        }
        entries
    }

    /// Returns the acts whose times are in the metadata.
    fn acts(&self) -> Vec<Entry> {
        let deleted = self.deletion_timestamp.as_ref().map(|time| (time.0, Did::Deleted));
        let noted = self.annotations.iter().filter_map(|(key, value)| {
            if key == labels::CLASS_ACTION {
                return Some((ActionId::parse(value)?.time(), Did::ClassAction));
            }
            let exact = ACTS.iter().find(|(known, _)| known == key);
            let did = exact.or_else(|| PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix)))?.1;
            Some((value.parse().ok()?, did))
        });
        let entry = |(at, did)| Entry { at, by: None, what: What::Did(did) };
        deleted.into_iter().chain(noted).map(entry).collect()
    }
}
