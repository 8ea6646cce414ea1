//! The sessions that users have ended. A logout writes an annotation into the Tenant of the user, with the user's token.
//! Every replica watches the metadata of Tenants, so it knows the logout without a request, and rejects the session
//! although it may still have a token.

use std::sync::Arc;

use hashlink::LruCache;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::api::labels::{ENDED_SESSION_PREFIX, FIRST_NAME, LAST_NAME};
use crate::controllers::dashboard::live::watches::{SignalledTenant, TenantSignal};
use crate::controllers::shared::ended_session::annotation as key;
use crate::runtime::clock;
use crate::runtime::store::Store;

/// The maximum number of sessions that a Tenant names. A further one replaces the oldest.
const MOST: usize = 16;
/// How long a Tenant names a session. If Keycloak does not respond to a logout, it knows the session for ten hours by
/// default (*SSO Session Max*).
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// The maximum number of sessions that ended at this replica and are remembered.
const MOST_OWN: usize = 20_000;

/// The sessions that have ended.
pub struct EndedSessions {
    /// The sessions that ended at this replica, and whether their Tenant names them.
    own: Mutex<LruCache<String, bool>>,
    /// The Tenants as the watch shows them.
    tenants: Arc<Store<TenantSignal>>,
}

impl EndedSessions {
    /// Creates them from the Tenants of a watch.
    pub fn new(tenants: Arc<Store<TenantSignal>>) -> Self {
        Self { own: Mutex::new(LruCache::new(MOST_OWN)), tenants }
    }

    /// Records that a session ended at this replica, and whether its Tenant names it.
    pub fn add(&self, session: &str, is_named: bool) {
        self.own.lock().insert(session.to_owned(), is_named);
    }

    /// Returns whether the Tenant of a session that ended at this replica names it; `None` if it did not end here.
    pub fn own(&self, session: &str) -> Option<bool> {
        self.own.lock().peek(session).copied()
    }

    /// Whether a Tenant names a session.
    pub fn names(&self, tenant: &str, session: &str) -> bool {
        self.tenants.get("", tenant).is_some_and(|tenant| tenant.annotation(&key(session)).is_some())
    }

    /// Returns the names of the Tenants in which each word of a text occurs: in the user name, or in the labels with the
    /// first and the last name. The watch shows no more of a Tenant.
    pub fn names_like(&self, text: &str) -> Vec<String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let is_found = |tenant: &SignalledTenant| {
            let names = [Some(tenant.name()), tenant.label(FIRST_NAME), tenant.label(LAST_NAME)];
            let names = names.into_iter().flatten().map(str::to_lowercase).collect::<Vec<_>>();
            words.iter().all(|word| names.iter().any(|name| name.contains(word)))
        };
        let found = self.tenants.objects().filter(|tenant| !words.is_empty() && is_found(tenant));
        let mut names: Vec<String> = found.map(|tenant| tenant.name().to_owned()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the merge patch of a Tenant that names a session, and removes old entries.
    pub fn patch(&self, tenant: &str, session: &str, now: Timestamp) -> Value {
        let tenant = self.tenants.get("", tenant);
        let annotations = tenant.iter().flat_map(|tenant| tenant.metadata.annotations.iter());
        let ours = annotations.filter(|(key, _)| key.starts_with(ENDED_SESSION_PREFIX));
        // An entry without a time is older than the others.
        let dated = ours.map(|(key, time)| (time.parse().unwrap_or(Timestamp::MIN), key));
        let mut known: Vec<(Timestamp, &str)> = dated.collect();
        known.sort_unstable();
        known.reverse();
        let is_old = |(place, (since, _)): &(usize, &(Timestamp, &str))| {
            *place >= MOST - 1 || now.duration_since(*since) > KEPT
        };
        let old =
            known.iter().enumerate().filter(is_old).map(|(_, (_, key))| ((*key).to_owned(), Value::Null));
        let mut changes: Map<String, Value> = old.collect();
        changes.insert(key(session), clock::rfc3339(now).into());
        json!({"metadata": {"annotations": changes}})
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::fixtures::at;

    /// The sessions, of which a Tenant names these: its annotations.
    fn ended(annotations: &BTreeMap<String, String>) -> EndedSessions {
        let tenants = Arc::new(Store::new(true));
        let tenant = json!({"metadata": {"name": "ada", "resourceVersion": "1", "annotations": annotations}});
        tenants.apply_event(serde_json::from_value(tenant).expect("a Tenant"));
        EndedSessions::new(tenants)
    }

    #[test]
    fn a_session_is_found_in_its_own_tenant() {
        let of_one = BTreeMap::from([(key("one"), "2026-11-20T10:00:00Z".to_owned())]);
        let ended = ended(&of_one);
        let found = [("ada", "one"), ("ada", "two"), ("bob", "one")].map(|(of, id)| ended.names(of, id));
        assert_eq!(found, [true, false, false]);
        assert_eq!(ended.own("one"), None);
        ended.add("one", true);
        assert_eq!([ended.own("one"), ended.own("two")], [Some(true), None]);
    }

    #[test]
    fn people_are_found_by_parts_of_their_names() {
        let tenants = Arc::new(Store::new(true));
        for (number, (name, first, last)) in
            [("ada.rossi", "Ada", "Rossi"), ("s1", "Bob", "Rossi"), ("rosa", "Rosa", "Bianchi")]
                .iter()
                .enumerate()
        {
            let labels = json!({FIRST_NAME: first, LAST_NAME: last});
            let tenant = json!({"metadata": {"name": name, "resourceVersion": format!("{}", number + 1), "labels": labels}});
            tenants.apply_event(serde_json::from_value(tenant).expect("a Tenant"));
        }
        let ended = EndedSessions::new(tenants);
        for (text, names) in [
            ("ros", vec!["ada.rossi", "rosa", "s1"]),
            ("ROSSI bob", vec!["s1"]),
            ("bianchi", vec!["rosa"]),
            ("ada.r", vec!["ada.rossi"]),
            ("nobody", vec![]),
            (" ", vec![]),
        ] {
            assert_eq!(ended.names_like(text), names, "{text}");
        }
    }

    #[test]
    fn an_annotation_is_valid_and_does_not_contain_the_session() {
        let key = key("one");
        let (_, name) = key.split_once('/').expect("a prefix");
        assert!(crate::api::names::check_label_value(name).is_ok(), "{name}");
        assert_eq!(name.len(), "ended-session-".len() + 32);
    }

    #[test]
    fn a_logout_removes_old_entries_and_the_oldest_of_too_many() {
        let hour = 3_600;
        let entry =
            |name: &str, time: i64| (format!("{ENDED_SESSION_PREFIX}{name}"), clock::rfc3339(at(time)));
        let removed = |entries: Vec<(String, String)>| {
            let patch = ended(&entries.into_iter().collect()).patch("ada", "new", at(30 * hour));
            let changes = patch["metadata"]["annotations"].as_object().expect("annotations").clone();
            assert_eq!(changes[&key("new")], clock::rfc3339(at(30 * hour)).as_str());
            let nulls = changes.into_iter().filter(|(_, value)| value.is_null());
            nulls.map(|(key, _)| key.replace(ENDED_SESSION_PREFIX, "")).collect::<BTreeSet<_>>()
        };
        let other = ("example.org/x".to_owned(), String::new());
        let broken = (format!("{ENDED_SESSION_PREFIX}broken"), "x".to_owned());
        let few = vec![entry("old", 5 * hour), entry("recent", 7 * hour), other, broken];
        assert_eq!(removed(few), ["broken", "old"].map(str::to_owned).into());
        let many = (0..17).map(|number| entry(&format!("{number:02}"), 20 * hour + number)).collect();
        assert_eq!(removed(many), ["00", "01"].map(str::to_owned).into(), "15 of them stay, and the new one");
    }

    #[test]
    fn a_user_without_a_tenant_gets_a_patch_that_the_api_server_rejects() {
        let patch = ended(&BTreeMap::new()).patch("nobody", "one", at(0));
        assert_eq!(patch["metadata"]["annotations"].as_object().map(Map::len), Some(1));
    }
}
