//! Instances that were admitted and are not in the store yet.
//!
//! The API server stores an Instance after it was admitted, and the watch delivers it a moment later.
//! Without reservations, several requests at the same time would all be admitted for the same free quota.
//! A replica knows only its own reservations; across replicas the `ResourceQuota` of the namespace is the
//! limit.

use jiff::{SignedDuration, Timestamp};

use crate::api::GenericRef;
use crate::webhook::view::View;

/// How long an admitted Instance counts if it never appears in the store, because something else has
/// refused it.
const LIFETIME: SignedDuration = SignedDuration::from_secs(5);

/// An Instance that was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
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
    /// The Instances that were admitted within the last seconds before `now` and that the view does not show
    /// as running. Forgets the others.
    pub fn pending(&mut self, view: &dyn View, now: Timestamp) -> Vec<Admitted> {
        self.admitted.retain(|(admitted, at)| now.duration_since(*at) < LIFETIME && !shows(admitted, view));
        self.admitted.iter().map(|(admitted, _)| admitted.clone()).collect()
    }

    /// Removes the reservation of an Instance, which is in the store now or was deleted.
    pub fn seen(&mut self, namespace: &str, name: &str) {
        self.admitted.retain(|(admitted, _)| admitted.namespace != namespace || admitted.name != name);
    }

    /// Adds a reservation for an Instance that is admitted at the time `now`.
    pub fn add(&mut self, admitted: Admitted, now: Timestamp) {
        self.seen(&admitted.namespace, &admitted.name);
        self.admitted.push((admitted, now));
    }
}

/// Whether the view shows the admitted Instance as running.
fn shows(admitted: &Admitted, view: &dyn View) -> bool {
    view.instances(&admitted.namespace).iter().any(|instance| {
        instance.name() == admitted.name
            && instance.spec.running
            && (admitted.uid.is_empty() || instance.uid() == admitted.uid)
    })
}
