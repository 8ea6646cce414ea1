//! The record of the open connections of people who do not own the machine ([`connection`](crate::api::connection)): peers,
//! managers and administrators. Every replica of web SSH, of the login and of the dashboard writes its connections to the same
//! `ConfigMap`, which the chart creates.
//!
//! Each connection has an entry of its own, which is renewed every minute, so that the entries of a replica that is gone
//! become stale. A failure delays the record, and never ends a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams};
use parking_lot::Mutex;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::api::connection::{Connection, MOST, NAME, Relation};
use crate::api::openings::Way;
use crate::runtime::ObjectKey;
use crate::runtime::clock;
use crate::runtime::error::with_sources;

/// The age at which an entry is renewed.
const RENEWED_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// The time between two checks whether an entry has to be renewed.
const PERIOD: Duration = Duration::from_secs(20);
/// The shortest time between two requests of a replica. Connections that begin or end in between are written together.
const PAUSE: Duration = Duration::from_secs(1);
/// The time limit of a request.
const REQUEST: Duration = Duration::from_secs(5);

/// The time limit of the last request of a process.
const FINISH: Duration = Duration::from_secs(2);

/// The content of the `ConfigMap`.
type Entries = BTreeMap<String, String>;

/// Whether an entry has this age.
fn is_older(connection: &Connection, age: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(connection.seen.0) >= age
}

/// The open connections of this replica.
#[derive(Default)]
pub struct Connections {
    open: Mutex<BTreeMap<String, Connection>>,
    changed: Notify,
}

impl Connections {
    /// Records a connection of a user to an environment until the result is dropped. Without random numbers, it is not
    /// recorded, and neither is one with names that are too long: users can write the names in the status of an Instance,
    /// and the `ConfigMap` has a maximum size.
    pub fn begin(
        self: &Arc<Self>,
        instance: &ObjectKey,
        environment: &str,
        user: &str,
        (relation, way): (Relation, Way),
    ) -> Recorded {
        let mut random = [0; 12];
        let now = Time(clock::now());
        let connection = Connection {
            namespace: instance.namespace.to_string(),
            name: instance.name.to_string(),
            environment: environment.to_owned(),
            user: user.to_owned(),
            relation,
            way,
            since: now.clone(),
            seen: now,
        };
        let random = SystemRandom::new().fill(&mut random).ok().map(|()| URL_SAFE_NO_PAD.encode(random));
        let key = random.filter(|_| Connection::read(&connection.written()).is_some());
        if let Some(key) = &key {
            self.open.lock().insert(key.clone(), connection);
            self.changed.notify_one();
        }
        Recorded { connections: Arc::clone(self), key }
    }
}

/// A recorded connection. It ends when this is dropped.
pub struct Recorded {
    connections: Arc<Connections>,
    key: Option<String>,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.connections.open.lock().remove(key);
            self.connections.changed.notify_one();
        }
    }
}

/// Writes the open connections of this replica.
pub struct Recorder {
    connections: Arc<Connections>,
    api: Api<ConfigMap>,
    /// The content after the last request, and its time.
    known: Option<(Entries, Timestamp)>,
    /// The keys that this replica has written and not removed.
    written: BTreeSet<String>,
    is_failing: bool,
}

impl Recorder {
    /// Creates a recorder from a client for the namespace of the release.
    pub fn new(connections: Arc<Connections>, api: Api<ConfigMap>) -> Self {
        Self { connections, api, known: None, written: BTreeSet::new(), is_failing: false }
    }

    /// Records changes, and renews entries. It never ends.
    pub async fn run(&mut self) {
        loop {
            // A timeout is the time to renew entries.
            let _ = timeout(PERIOD, self.connections.changed.notified()).await;
            self.write(clock::now()).await;
            sleep(PAUSE).await;
        }
    }

    /// Records the last changes before the process ends.
    pub async fn finish(&mut self) {
        // Entries that are left become stale.
        let _ = timeout(FINISH, self.write(clock::now())).await;
    }

    /// Records the changes since the last request.
    async fn write(&mut self, now: Timestamp) {
        let open = self.connections.open.lock().clone();
        let changes = changes(&open, &self.written, self.known.as_ref(), now);
        if changes.is_empty() {
            return;
        }
        let patch = Patch::Merge(json!({"data": &changes}));
        let parameters = PatchParams::default();
        let result = match timeout(REQUEST, self.api.patch(NAME, &parameters, &patch)).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(error)) => Err(with_sources(&error)),
            Err(_) => Err(format!("the API server did not respond within {} s", REQUEST.as_secs())),
        };
        match result {
            Ok(object) => {
                self.known = Some((object.data.unwrap_or_default(), now));
                for (key, value) in &changes {
                    if value.is_null() {
                        self.written.remove(key);
                    } else {
                        self.written.insert(key.clone());
                    }
                }
                self.is_failing = false;
            }
            Err(why) if !self.is_failing => {
                self.is_failing = true;
                warn!("owners do not see who uses their machines: cannot write ConfigMap {NAME}: {why}");
            }
            Err(_) => {}
        }
    }
}

/// Returns the changes of the content: entries of new connections and of those that have to be renewed, and `null` for those
/// that have ended, here or with another replica. `written` has the keys of this replica in the content, `known` the last
/// known content with its time.
fn changes(
    open: &BTreeMap<String, Connection>,
    written: &BTreeSet<String>,
    known: Option<&(Entries, Timestamp)>,
    now: Timestamp,
) -> Map<String, Value> {
    let mut changes = Map::new();
    let ended = written.iter().filter(|key| !open.contains_key(*key));
    changes.extend(ended.map(|key| (key.clone(), Value::Null)));
    let nothing = Entries::new();
    let entries = known.map_or(&nothing, |(entries, _)| entries);
    if let Some((entries, read_at)) = known {
        // An entry that has become stale since may have been renewed.
        let is_gone = |entry: &String| Connection::read(entry).is_none_or(|entry| !entry.is_open(*read_at));
        let gone = entries.iter().filter(|(key, entry)| !open.contains_key(*key) && is_gone(entry));
        changes.extend(gone.map(|(key, _)| (key.clone(), Value::Null)));
    }
    let mut count = entries.len().saturating_sub(changes.len());
    for (key, connection) in open {
        let entry = entries.get(key);
        let is_fresh = entry
            .and_then(|entry| Connection::read(entry))
            .is_some_and(|entry| !is_older(&entry, RENEWED_AFTER, now));
        if is_fresh || entry.is_none() && count >= MOST {
            continue;
        }
        count += usize::from(entry.is_none());
        let connection = Connection { seen: Time(now), ..connection.clone() };
        changes.insert(key.clone(), connection.written().into());
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::at;

    fn connection(user: &str, since: i64, seen: i64) -> Connection {
        Connection {
            namespace: "tenant-ada".to_owned(),
            name: "vm".to_owned(),
            environment: "main".to_owned(),
            user: user.to_owned(),
            relation: Relation::Peer,
            way: Way::Terminal,
            since: Time(at(since)),
            seen: Time(at(seen)),
        }
    }

    fn entries(of: &[(&str, &Connection)]) -> Entries {
        of.iter().map(|(key, connection)| ((*key).to_owned(), connection.written())).collect()
    }

    fn open(of: &[(&str, &Connection)]) -> BTreeMap<String, Connection> {
        of.iter().map(|(key, connection)| ((*key).to_owned(), (*connection).clone())).collect()
    }

    fn keys(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn a_connection_is_added_renewed_after_a_minute_and_removed() {
        let kim = connection("kim", 1_000, 1_000);
        let added = changes(&open(&[("k", &kim)]), &keys(&[]), None, at(1_000));
        assert_eq!(Value::Object(added), json!({"k": kim.written()}));
        let known = (entries(&[("k", &kim)]), at(1_000));
        let later = |now| changes(&open(&[("k", &kim)]), &keys(&["k"]), Some(&known), at(now));
        assert!(later(1_059).is_empty());
        assert_eq!(Value::Object(later(1_060)), json!({"k": connection("kim", 1_000, 1_060).written()}));
        let ended = changes(&open(&[]), &keys(&["k"]), Some(&known), at(1_010));
        assert_eq!(Value::Object(ended), json!({"k": null}));
        let lost = (Entries::new(), at(1_010));
        let again = changes(&open(&[("k", &kim)]), &keys(&["k"]), Some(&lost), at(1_010));
        assert_eq!(again.len(), 1, "another program has removed it");
    }

    #[test]
    fn entries_of_replicas_that_are_gone_are_removed_and_others_stay() {
        let [gone, other] = [connection("kim", 1, 819), connection("lee", 1, 820)];
        let mut content = entries(&[("gone", &gone), ("other", &other)]);
        content.insert("nonsense".to_owned(), "x".to_owned());
        let known = (content, at(1_000));
        for now in [1_000, 9_000] {
            let removed = changes(&open(&[]), &keys(&[]), Some(&known), at(now));
            assert_eq!(Value::Object(removed), json!({"gone": null, "nonsense": null}), "{now}");
        }
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let fresh = connection("kim", 1, 1_000);
        let full = |number: usize| -> Entries {
            (0..number).map(|number| (number.to_string(), fresh.written())).collect()
        };
        let new = open(&[("x", &fresh), ("y", &fresh)]);
        for (number, added) in [(MOST - 2, 2), (MOST - 1, 1), (MOST, 0)] {
            let known = (full(number), at(1_000));
            assert_eq!(changes(&new, &keys(&[]), Some(&known), at(1_000)).len(), added, "{number}");
        }
    }

    #[test]
    fn a_connection_is_open_until_its_record_is_dropped() {
        let connections = Arc::new(Connections::default());
        let vm = ObjectKey::new("tenant-ada", "vm");
        let recorded = connections.begin(&vm, "main", "kim", (Relation::Peer, Way::Terminal));
        let open = connections.open.lock().clone();
        let kept: Vec<Connection> = open.into_values().collect();
        let begin = kept.iter().map(|kept| kept.since.0).max().expect("an entry");
        let expected = Connection { since: Time(begin), seen: Time(begin), ..connection("kim", 0, 0) };
        assert_eq!(kept, [expected]);
        drop(recorded);
        assert!(connections.open.lock().is_empty());
    }

    #[test]
    fn a_connection_with_a_name_that_is_too_long_is_not_recorded() {
        let connections = Arc::new(Connections::default());
        let vm = ObjectKey::new("tenant-ada", "vm");
        let long = "x".repeat(1 << 20);
        let _recorded = connections.begin(&vm, &long, "kim", (Relation::Manager, Way::Terminal));
        assert!(connections.open.lock().is_empty());
    }
}
