//! The machines of others that are shared with a user.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::api::sharing::{Access, is_enrolled, peers};
use crate::api::{Tenant, labels};
use crate::controllers::dashboard::live::watches::SignalledInstance;
use crate::runtime::ObjectKey;

/// The maximum number of machines on the first page. Everyone in a course can share machines with a user.
const MOST_SHOWN: usize = 50;

/// A machine that is shared with a user, who may not read its Instance: the watch shows only its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedMachine {
    /// The name of the Instance.
    pub key: ObjectKey,
    /// The uid of the Instance.
    pub uid: String,
    /// The name of the owner; the namespace if the owner is not known.
    pub owner: String,
    /// The name of the course, as the label says; empty without it.
    pub course: String,
    /// The name of the Template, as the label says; empty without it.
    pub template: String,
    /// What the user may do.
    pub access: Access,
    /// The end.
    pub until: Timestamp,
}

impl SharedMachine {
    /// Returns a machine for a user with whom it is shared now. The owner is not known yet.
    pub fn of(instance: &SignalledInstance, user: &str, now: Timestamp) -> Option<Self> {
        let peer = peers(instance).into_iter().find(|peer| peer.user == user);
        let peer = peer.filter(|peer| peer.is_current(now) && !instance.is_terminating())?;
        let label = |key| instance.label(key).unwrap_or_default().to_owned();
        Some(Self {
            key: ObjectKey::of(instance),
            uid: instance.uid().to_owned(),
            owner: instance.namespace().to_owned(),
            course: label(labels::WORKSPACE),
            template: label(labels::TEMPLATE),
            access: peer.access,
            until: peer.until,
        })
    }
}

/// Returns the machines of the first page of a Tenant, the longest shared one first. A machine of a course that the
/// Tenant has left cannot be opened, so it is left out.
pub fn shown(all: impl IntoIterator<Item = SharedMachine>, tenant: &Tenant) -> Vec<SharedMachine> {
    let is_of_course = |one: &SharedMachine| one.course.is_empty() || is_enrolled(tenant, &one.course);
    let mut shown: Vec<SharedMachine> = all.into_iter().filter(is_of_course).collect();
    shown.sort_by_cached_key(|one| (Reverse(one.until), one.owner.clone(), one.key.clone()));
    shown.truncate(MOST_SHOWN);
    shown
}
