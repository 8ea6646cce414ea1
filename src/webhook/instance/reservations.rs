//! Instances that were admitted and do not show in the store yet.
//!
//! The API server stores an Instance after it was admitted, and the store hears of it a moment
//! later: without this, several requests at the same time would all see the same free share. It
//! holds within one replica; across replicas the `ResourceQuota` of the namespace does.

use jiff::{SignedDuration, Timestamp};

use crate::api::GenericRef;
use crate::webhook::view::View;

/// How long an admitted Instance counts that never shows: one that something else has refused.
const LIFETIME: SignedDuration = SignedDuration::from_secs(5);

/// An Instance that was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; empty where the API server has not given it one.
    pub uid: String,
    /// Its Template.
    pub template: GenericRef,
}

/// The Instances that were admitted a moment ago.
#[derive(Debug, Default)]
pub struct Reservations {
    admitted: Vec<(Admitted, Timestamp)>,
}

impl Reservations {
    /// What was admitted before `now` and does not show in the view.
    pub fn pending(&mut self, view: &dyn View, now: Timestamp) -> Vec<Admitted> {
        self.admitted.retain(|(admitted, at)| now.duration_since(*at) < LIFETIME && !shows(admitted, view));
        self.admitted.iter().map(|(admitted, _)| admitted.clone()).collect()
    }

    /// Takes note that an Instance shows in the store, or is gone from it.
    pub fn seen(&mut self, namespace: &str, name: &str) {
        self.admitted.retain(|(admitted, _)| admitted.namespace != namespace || admitted.name != name);
    }

    /// Takes note of an Instance that was admitted now.
    pub fn add(&mut self, admitted: Admitted, now: Timestamp) {
        self.seen(&admitted.namespace, &admitted.name);
        self.admitted.push((admitted, now));
    }
}

fn shows(admitted: &Admitted, view: &dyn View) -> bool {
    view.instances(&admitted.namespace).iter().any(|instance| {
        instance.name() == admitted.name
            && instance.spec.running
            && (admitted.uid.is_empty() || instance.uid() == admitted.uid)
    })
}
