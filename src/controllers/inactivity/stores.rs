//! The changes of an Instance and its Template that matter for its inactivity, and the sources of its use.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::InactivityReconciler;
use super::observe::{Observed, RoundResult};
use crate::api::instance::Instance;
use crate::api::labels;
use crate::api::lifetime::Lifetime;
use crate::api::names::CanonicalName;
use crate::api::template::{Template, TemplateKind};
use crate::capture::{ConnectionCounter, OpenConnections};
use crate::clients::prometheus::{Activity, Target};
use crate::controllers::cleanup::stores::{Candidate, Dependencies};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::runtime::store::Store;

impl Dependencies for InactivityReconciler {
    const EXEMPT: &'static str = labels::INACTIVITY_IGNORE;

    fn of_instance(instance: &Instance) -> impl PartialEq {
        let annotations = [labels::LAST_POWERED_OFF, labels::KEPT_AT].map(|key| instance.annotation(key));
        (instance.metadata.generation, annotations)
    }

    fn of_template(template: &Template) -> impl PartialEq {
        let number = template.annotation(labels::CUSTOM_NUMBER_ALERTS);
        (template.spec.max_idle(), template.spec.max_off(), number)
    }
}

/// The sources of the use of Instances. The machines are identified by their Services.
pub struct Witnesses {
    /// The addresses of the Services.
    pub addresses: InstanceAddresses,
    /// The SSH connections through the bastion that this process has seen.
    pub ssh: Arc<ConnectionCounter>,
    /// The SSH connections from the browser that this process has seen.
    pub web_ssh: Arc<ConnectionCounter>,
    /// The open connections of both kinds.
    pub open: Arc<OpenConnections>,
}

impl Witnesses {
    /// The last connection to any of these addresses that this process has seen: the time when it began, or now if it
    /// is open.
    fn last_use(&self, addresses: &[IpAddr]) -> Option<(Timestamp, &'static str)> {
        let connections = addresses.iter().flat_map(|&address| {
            let seen = |counter: &ConnectionCounter, name| Some((counter.last_seen(address)?, name));
            let open = self.open.seen(address).map(|time| (time, "open"));
            [seen(&self.ssh, "ssh"), seen(&self.web_ssh, "webSsh"), open]
        });
        connections.flatten().max_by_key(|(time, _)| *time)
    }
}

/// The observation of an Instance, with its last use from the latest round of queries and from the connections of this
/// process.
pub fn observed(candidate: Candidate, round: Option<&Activity>, witnesses: &Witnesses) -> Observed {
    let instance = &candidate.instance;
    // The addresses in the status do not count. The user of the Instance can write them, and could name the address of
    // a busier machine.
    let services = witnesses.addresses.services_of(instance.namespace(), instance.uid());
    let addresses: Vec<IpAddr> = services.iter().filter_map(|(_, address)| *address).collect();
    let names: Vec<&str> = services.iter().map(|(name, _)| name.as_str()).collect();
    let seen = round.map(|round| seen(instance, &names, &addresses, round));
    Observed { seen, connected: witnesses.last_use(&addresses), candidate }
}

/// The longest idle time that any Template allows. A round looks back this far.
pub fn longest_idle(templates: &Store<TemplateKind>) -> Duration {
    let idle = templates.objects().filter_map(|template| match Lifetime::parse(template.spec.max_idle()) {
        Ok(Lifetime::After(idle)) => Some(idle),
        _ => None,
    });
    idle.max().unwrap_or_default()
}

/// The result of a round for an Instance with these Services: the latest use of any of its environments.
fn seen(instance: &Instance, services: &[&str], addresses: &[IpAddr], round: &Activity) -> RoundResult {
    let canonical = CanonicalName::of(instance.name());
    let environments =
        services.iter().filter_map(|service| service.strip_prefix(&*canonical)?.strip_prefix('-'));
    let environments: Vec<String> = environments.map(str::to_owned).collect();
    // Also without an address: requests from browsers are identified by the Service.
    let addresses = addresses.iter().map(IpAddr::to_string).chain([String::new()]);
    let uses = addresses.filter_map(|address| {
        round.last_use(&Target {
            namespace: instance.namespace(),
            instance: instance.name(),
            environments: &environments,
            address: &address,
        })
    });
    RoundResult {
        since: round.observed_since(),
        answered: round.answered,
        problems: round.problems(),
        last_use: uses.max_by_key(|(time, _)| *time),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::instance::InstanceKind;
    use crate::controllers::cleanup::mail_log::Mailed;
    use crate::runtime::store::StoreFactory;
    use crate::runtime::store_set::StoreSet;
    use crate::runtime::watch::Selection;

    #[test]
    fn the_use_of_a_machine_follows_its_services_and_not_its_status() {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("test", &mut factory);
        let instances = set.store::<InstanceKind>(&Selection::ALL).get();
        let addresses = InstanceAddresses::declare(&mut set, &instances);
        let counter = || Arc::new(ConnectionCounter::new("connections", "Connections"));
        let witnesses = Witnesses { addresses, ssh: counter(), web_ssh: counter(), open: Arc::default() };
        // The status names another user's machine, which is in constant use.
        let metadata = json!({"namespace": "tenant-ada", "name": "lab", "uid": "i", "resourceVersion": "1"});
        let status = json!({"ip": "10.0.0.9", "environments": [{"name": "main", "ip": "10.0.0.9"}]});
        let instance: Instance =
            serde_json::from_value(json!({"metadata": metadata, "status": status})).expect("an Instance");
        instances.apply_event(instance.clone());
        let owner = json!({"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": "lab", "uid": "i", "controller": true});
        let service = json!({
            "kind": "Service",
            "metadata": {"namespace": "tenant-ada", "name": "lab", "uid": "s", "resourceVersion": "2",
                "labels": {"crownlabs.polito.it/managed-by": "instance"}, "ownerReferences": [owner]},
            "spec": {"clusterIP": "10.0.0.1"},
        });
        assert!(factory.offer(&service).expect("a Service"));
        let at = |second| Timestamp::from_second(second).expect("a time");
        let candidate = || Candidate {
            instance: Arc::new(instance.clone()),
            template: None,
            tenant: None,
            managers: Vec::new(),
            mailed: Mailed::default(),
            is_exempt: false,
        };
        let uses = |used: &[(&str, Timestamp)]| {
            let round = Activity::of_addresses(at(1_000), used);
            let observed = observed(candidate(), Some(&round), &witnesses);
            (observed.seen.expect("a round").last_use, observed.connected)
        };
        witnesses.ssh.count_at("10.0.0.9:22".parse().expect("an address"), at(900));
        assert_eq!(uses(&[("10.0.0.9", at(900))]), (None, None));
        witnesses.ssh.count_at("10.0.0.1:22".parse().expect("an address"), at(700));
        let expected = (Some((at(800), "ssh")), Some((at(700), "ssh")));
        assert_eq!(uses(&[("10.0.0.1", at(800)), ("10.0.0.9", at(900))]), expected);
        let _other = witnesses.open.begin("10.0.0.9:22".parse().expect("an address"));
        assert_eq!(uses(&[]).1, expected.1, "a terminal of another machine");
        let _open = witnesses.open.begin("10.0.0.1:22".parse().expect("an address"));
        assert_eq!(uses(&[]).1.map(|(_, source)| source), Some("open"));
    }
}
