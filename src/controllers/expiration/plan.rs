//! The plan of an Instance's expiration: a pure function.

use jiff::Timestamp;

use super::Settings;
use super::observe::Observed;
use crate::api::reason;
use crate::controllers::cleanup::ending::{Effect, link, proceed};
use crate::runtime::component::Component;
use crate::runtime::plan::{Plan, Removal, Requeue};
use crate::runtime::problem::Problem;

/// The plan.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
    let mut plan = Plan::default();
    match observed.ending(settings, now) {
        // The Template and the namespace are watched.
        Ok(None) => plan.requeue = Requeue::OnChange,
        Err(error) => {
            let message =
                format!("the age in the Template cannot be read: {error}; the Instance never expires");
            plan.problems.push(Problem::fault(Component::Whole, reason::INVALID_DURATION, message));
            plan.requeue = Requeue::OnChange;
        }
        Ok(Some(ending)) => {
            if proceed(&ending, now, &link(&settings.website), &mut plan) {
                plan.remove.push(Removal::of(&*observed.instance, Component::Whole));
            }
        }
    }
    plan
}
