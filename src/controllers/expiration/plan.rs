//! The plan for the expiration of an Instance: a pure function.

use jiff::Timestamp;

use super::Settings;
use super::observe::{Observed, ending};
use crate::controllers::cleanup::ending::{Effect, proceed, sound};
use crate::runtime::component::Component;
use crate::runtime::plan::{Plan, Removal};

/// The plan.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
    let mut plan = Plan::default();
    let unreadable =
        |error| format!("the age in the Template cannot be read: {error}; the Instance never expires");
    if let Some(ending) = sound(ending(observed, settings, now), unreadable, &mut plan)
        && proceed(&ending, now, &settings.site, &mut plan)
    {
        plan.remove.push(Removal::of(&*observed.instance, Component::Whole));
    }
    plan
}
