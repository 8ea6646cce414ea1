//! The condition `SwitchedOff`: the spec asks for something that the configuration switches off ([`SwitchedOff`]).
//!
//! [`SwitchedOff`]: crate::config::SwitchedOff

use jiff::Timestamp;

use crate::api::condition::{Condition, SWITCHED_OFF};
use crate::api::{Kind, Object, reason};
use crate::runtime::conditions::{Observation, merge};

/// Adds the condition with these sentences to the conditions of an object, or removes it if there are no sentences. The
/// conditions of an object that is being deleted do not change.
pub fn add<T: Kind>(
    object: &Object<T>,
    conditions: &mut Vec<Condition>,
    sentences: &[String],
    now: Timestamp,
) {
    if object.is_terminating() {
        return;
    }
    let observation = Observation::new(SWITCHED_OFF, true, reason::SWITCHED_OFF, sentences.join("; "));
    let (observed, retired) =
        if sentences.is_empty() { (&[][..], &[SWITCHED_OFF][..]) } else { (&[observation][..], &[][..]) };
    *conditions = merge(conditions, observed, retired, object.metadata.generation, now);
}
