//! Which changes of an Instance and of its Template matter for its inactivity, and what is known of it.

use std::time::Duration;

use super::observe::{Observed, Seen};
use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::lifetime::Lifetime;
use crate::api::names::CanonicalName;
use crate::api::template::{Template, TemplateKind};
use crate::clients::prometheus::{Activity, Target};
use crate::controllers::shared::ending_stores::{Dependencies, Found};
use crate::runtime::store::Store;

/// What this loop depends on.
pub struct Dependence;

impl Dependencies for Dependence {
    const EXEMPT: &'static str = labels::INACTIVITY_IGNORE;

    fn of_instance(instance: &Instance) -> impl PartialEq {
        (instance.metadata.generation, instance.annotation(labels::LAST_POWERED_OFF))
    }

    fn of_template(template: &Template) -> impl PartialEq {
        let number = template.annotation(labels::CUSTOM_NUMBER_ALERTS);
        (template.spec.max_idle(), template.spec.max_off(), number)
    }
}

/// What is known of an Instance: what the stores have, and what the latest round of queries says.
pub fn observed(found: Found, round: Option<&Activity>) -> Observed {
    let Found { instance, template, tenant, is_exempt } = found;
    Observed { template, tenant, is_exempt, seen: round.map(|round| seen(&instance, round)), instance }
}

/// The longest time without use that any Template allows: so far a round looks back.
pub fn longest_idle(templates: &Store<TemplateKind>) -> Duration {
    let idle = templates.keys().into_iter().filter_map(|key| {
        let template = templates.get(&key.namespace, &key.name)?;
        match Lifetime::parse(template.spec.max_idle()) {
            Ok(Lifetime::After(idle)) => Some(idle),
            _ => None,
        }
    });
    idle.max().unwrap_or_default()
}

/// What a round says about an Instance: the latest use of any of its environments.
fn seen(instance: &Instance, round: &Activity) -> Seen {
    let status = &instance.status;
    let names: Vec<String> = status.environments.iter().map(|environment| environment.name.clone()).collect();
    let addresses = status.environments.iter().map(|environment| environment.ip.as_str());
    let addresses = addresses.chain([status.ip.as_str()]);
    let canonical = CanonicalName::of(instance.name());
    let uses = addresses.filter_map(|address| {
        round.last_use(&Target {
            namespace: instance.namespace(),
            instance: &canonical,
            environments: &names,
            address,
        })
    });
    Seen {
        since: round.observed_since(),
        until: round.until,
        problems: round.problems(),
        last_use: uses.max_by_key(|(time, _)| *time),
    }
}
