//! Instances that were admitted but are not in the store yet.
//!
//! The API server stores an Instance after it was admitted, and the watch delivers it a moment later. Without
//! reservations, several concurrent requests would be admitted for the same free quota. A replica knows only its own
//! reservations; across replicas, the `ResourceQuota` of the namespace is the limit.

use jiff::{SignedDuration, Timestamp};

use crate::api::{GenericRef, Instance};
use crate::webhook::view::View;

/// How long an admitted Instance counts if it never appears in the store because another check has rejected it.
const LIFETIME: SignedDuration = SignedDuration::from_secs(5);
/// The maximum number of reservations; beyond it, the oldest is dropped. An API server admits a few hundred Instances
/// per second.
const MOST: usize = 1_000;

/// An Instance that was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The uid of the review. A repeated review makes only one reservation.
    pub review: String,
    /// The namespace of the Instance.
    pub namespace: String,
    /// The name of the Instance.
    pub name: String,
    /// The uid of the Instance; empty if the API server has not assigned one yet.
    pub uid: String,
    /// The Template of the Instance.
    pub template: GenericRef,
}

/// The Instances that were admitted recently, with the time of their admission.
#[derive(Debug, Default)]
pub struct Reservations {
    admitted: Vec<(Admitted, Timestamp)>,
}

impl Reservations {
    /// Returns the Instances that were admitted within the last seconds before `now` and that the view does not show as
    /// running. Drops the others.
    pub fn pending(&mut self, view: &dyn View, now: Timestamp) -> Vec<Admitted> {
        self.admitted.retain(|(admitted, at)| now.duration_since(*at) < LIFETIME && !shows(admitted, view));
        self.admitted.iter().map(|(admitted, _)| admitted.clone()).collect()
    }

    /// Removes the reservations that are now in the store: `instance` runs with the admitted Template.
    pub fn stored(&mut self, instance: &Instance) {
        self.admitted.retain(|(admitted, _)| !(admitted.names(instance) && admitted.is_running(instance)));
    }

    /// Removes all reservations of an Instance that was deleted.
    pub fn deleted(&mut self, instance: &Instance) {
        self.admitted.retain(|(admitted, _)| !admitted.names(instance));
    }

    /// Adds a reservation for an Instance that is admitted at `now`. It replaces a reservation of the same review, and
    /// a reservation of the same Instance with the same Template.
    pub fn add(&mut self, new: Admitted, now: Timestamp) {
        let what = |admitted: &Admitted| {
            (admitted.namespace.clone(), admitted.name.clone(), admitted.template.clone())
        };
        self.admitted.retain(|(known, _)| known.review != new.review && what(known) != what(&new));
        let surplus = (self.admitted.len() + 1).saturating_sub(MOST);
        self.admitted.drain(..surplus);
        self.admitted.push((new, now));
    }
}

impl Admitted {
    /// Whether the reservation is for this Instance, or for an earlier one of the same name.
    fn names(&self, instance: &Instance) -> bool {
        instance.name() == self.name && instance.namespace() == self.namespace
    }

    /// Whether the Instance of that name runs as admitted.
    pub fn is_running(&self, instance: &Instance) -> bool {
        instance.spec.running
            && instance.spec.template_ref == self.template
            && (self.uid.is_empty() || instance.uid() == self.uid)
    }
}

/// Whether the view shows the admitted Instance as running.
fn shows(admitted: &Admitted, view: &dyn View) -> bool {
    let instances = view.instances(&admitted.namespace);
    instances.iter().any(|instance| instance.name() == admitted.name && admitted.is_running(instance))
}
