//! Which changes of an Instance and of its Template matter for its inactivity, and what is known of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::observe::{Observed, Seen};
use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::lifetime::Lifetime;
use crate::api::names::CanonicalName;
use crate::api::template::{Template, TemplateKind};
use crate::capture::ConnectionCounter;
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

/// The SSH connections that this process sees itself.
pub struct OwnWitnesses {
    /// Those through the bastion.
    pub ssh: Arc<ConnectionCounter>,
    /// Those in the browser.
    pub web_ssh: Arc<ConnectionCounter>,
}

impl OwnWitnesses {
    /// The last connection to any address of an Instance.
    fn last_use(&self, instance: &Instance) -> Option<(Timestamp, &'static str)> {
        let addresses = addresses(instance).filter_map(|address| address.parse::<IpAddr>().ok());
        let connections = addresses.flat_map(|address| {
            let seen = |counter: &ConnectionCounter, name| Some((counter.last_seen(address)?, name));
            [seen(&self.ssh, "ssh"), seen(&self.web_ssh, "webSsh")]
        });
        connections.flatten().max_by_key(|(time, _)| *time)
    }
}

/// The addresses in the status of an Instance.
fn addresses(instance: &Instance) -> impl Iterator<Item = &str> {
    let status = &instance.status;
    status.environments.iter().map(|environment| environment.ip.as_str()).chain([status.ip.as_str()])
}

/// What is known of an Instance: what the stores have, what the latest round of queries says, and what this process
/// has seen.
pub fn observed(found: Found, round: Option<&Activity>, own: &OwnWitnesses) -> Observed {
    let Found { instance, template, tenant, is_exempt } = found;
    Observed {
        template,
        tenant,
        is_exempt,
        seen: round.map(|round| seen(&instance, round)),
        connected: own.last_use(&instance),
        instance,
    }
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
    let canonical = CanonicalName::of(instance.name());
    let uses = addresses(instance).filter_map(|address| {
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
