//! The open connections of people to the machines of others: the entries of the `ConfigMap` [`NAME`] in the namespace of
//! the installation. Web SSH, the login of machines and the dashboard's consoles write them, and the dashboard shows them to
//! the owners.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use super::openings::Way;

/// The name of the `ConfigMap`.
pub const NAME: &str = "crownlabs-peers";
/// The maximum number of entries.
pub const MOST: usize = 500;
/// The time after which a connection counts as closed, unless its entry is renewed.
pub const LASTS: SignedDuration = SignedDuration::from_mins(3);
/// The maximum length of an entry, in bytes: each of the names has at most 253.
const MOST_BYTES: usize = 2_048;

/// Why a person may be connected to the machine of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// The owner shares the machine with the person.
    Peer,
    /// The person manages the course of the machine.
    Manager,
    /// The person has the right of administrators.
    Administrator,
}

/// A connection of a person to a machine of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The namespace of the Instance.
    pub namespace: String,
    /// The name of the Instance.
    pub name: String,
    /// The environment.
    pub environment: String,
    /// The name of the person.
    pub user: String,
    /// Why the person may be connected.
    #[serde(rename = "as")]
    pub relation: Relation,
    /// The way in which the person has opened the environment.
    pub way: Way,
    /// The time when it was opened.
    pub since: Time,
    /// The time when the entry was last renewed.
    pub seen: Time,
}

impl Connection {
    /// Reads an entry; `None` if it is not one.
    pub fn read(entry: &str) -> Option<Self> {
        if entry.len() > MOST_BYTES { None } else { serde_json::from_str(entry).ok() }
    }

    /// Returns the entry; empty if it cannot be written, which does not happen.
    pub fn written(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether the connection is open at this time, as far as its entry tells.
    pub fn is_open(&self, now: Timestamp) -> bool {
        now.duration_since(self.seen.0) <= LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::time;

    const ENTRY: &str = r#"{"namespace":"tenant-ada","name":"vm","environment":"main","user":"kim","as":"peer","way":"terminal","since":"2026-03-04T05:00:00Z","seen":"2026-03-04T05:05:00Z"}"#;

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        let connection = Connection::read(ENTRY).expect("an entry");
        assert_eq!((connection.relation, connection.way), (Relation::Peer, Way::Terminal));
        assert_eq!(connection.written(), ENTRY);
        let long = ENTRY.replace("kim", &"k".repeat(MOST_BYTES));
        for text in ["", "{}", "5", &ENTRY.replace("peer", "friend"), &long] {
            assert_eq!(Connection::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_connection_counts_as_closed_three_minutes_after_the_last_renewal() {
        let connection = Connection::read(ENTRY).expect("an entry");
        for (now, is_open) in
            [("2026-03-04T05:04:59Z", true), ("2026-03-04T05:08:00Z", true), ("2026-03-04T05:08:01Z", false)]
        {
            assert_eq!(connection.is_open(time(now)), is_open, "{now}");
        }
    }
}
