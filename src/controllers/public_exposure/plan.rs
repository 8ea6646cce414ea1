//! The plan of a public exposure: its Service and `NetworkPolicy`, or their removal.

use std::time::Duration;

use jiff::Timestamp;

use super::Settings;
use super::children::{self, family, protocol};
use super::observe::{Allocation, Observed, address, service_key};
use super::validate::{Validated, no_free_port};
use crate::api::template::TemplateKind;
use crate::controllers::shared::children::Child;
use crate::controllers::shared::references::template_key;
use crate::kinds::{LoadBalancerService, LoadBalancerServiceKind};
use crate::runtime::ObjectKey;
use crate::runtime::plan::{KindInfo, Plan, Precondition, Removal, Requeue};

/// After how long at most an Instance without a free port is reconciled again.
const RETRY: Duration = Duration::from_mins(1);
/// How long a load balancer may take to assign another address than it has assigned before.
pub const OTHER_ADDRESS_GRACE: Duration = Duration::from_mins(1);

/// The plan.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    let mut plan = Plan { stop_at_failure: true, ..Plan::default() };
    if observed.is_unanswered {
        // What the API server has decides which ports are free.
        let key = service_key(&ObjectKey::of(&*observed.instance));
        plan.confirm.push((KindInfo::of::<LoadBalancerServiceKind>(), key));
    }
    match &observed.request {
        Validated::Unknown => plan.requeue = Requeue::OnChange,
        Validated::Nothing => plan.remove = removals(observed),
        Validated::Denied(problem) => {
            plan.remove = removals(observed);
            plan.problems.push(problem.clone());
        }
        Validated::Kept(problem) => {
            if is_withdrawn(observed, settings) {
                plan.remove = removals(observed);
            }
            plan.problems.push(problem.clone());
        }
        Validated::Ports(_) => {
            if let Some(allocation) = &observed.allocation {
                expose(observed, settings, allocation, now, &mut plan);
            } else {
                if is_withdrawn(observed, settings) {
                    plan.remove = removals(observed);
                }
                plan.problems.push(no_free_port());
                plan.requeue_after(RETRY);
            }
        }
    }
    plan
}

/// Plans Service and `NetworkPolicy`.
fn expose(
    observed: &Observed,
    settings: &Settings,
    allocation: &Allocation,
    now: Timestamp,
    plan: &mut Plan,
) {
    let grace = observed.other_since.map(|since| grace_left(since, now));
    if let Some(left) = grace.filter(|left| !left.is_zero()) {
        plan.requeue_after(left);
    }
    match observed.own_service() {
        // Its deletion causes the next reconcile, which makes it anew.
        Some(leaving) if leaving.is_terminating() => {}
        Some(existing) if cannot_be_changed(existing, allocation) => {
            children::service(observed, settings, allocation).remove(plan);
            plan.requeue_after(Duration::ZERO);
        }
        _ => children::service(observed, settings, allocation).ensure(plan),
    }
    plan.ensure.extend(children::policy(observed, allocation).map(Child::made));
}

/// Whether the API server would refuse to give a Service this address or these ports, so that it has to be made anew.
fn cannot_be_changed(existing: &LoadBalancerService, allocation: &Allocation) -> bool {
    let has_other_family =
        existing.spec.ip_families.first().is_some_and(|first| first != family(allocation.address));
    has_other_family || node_ports_collide(existing, allocation)
}

/// Whether two ports would get one node port. A TCP and a UDP port of one number share a node port, and the API server
/// keeps the node port of a port for as long as that has its name: also when both become ports of one protocol, which it
/// then refuses.
fn node_ports_collide(existing: &LoadBalancerService, allocation: &Allocation) -> bool {
    let ports = &existing.spec.ports;
    let wanted = |name: &str| {
        let found = allocation.ports.iter().find(|(wanted, _)| wanted.name == name);
        found.map(|(wanted, _)| protocol(wanted.transport))
    };
    ports.iter().enumerate().any(|(at, one)| {
        ports.iter().skip(at + 1).any(|other| {
            one.port == other.port && wanted(&one.name).is_some() && wanted(&one.name) == wanted(&other.name)
        })
    })
}

/// How long a load balancer may still take to assign the requested address, if it has had another one for the
/// Service since then; zero when its time is over.
pub fn grace_left(since: Timestamp, now: Timestamp) -> Duration {
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    OTHER_ADDRESS_GRACE.saturating_sub(passed)
}

/// Whether the Service has an address that is not in the pool any more. Nothing else may announce it then.
fn is_withdrawn(observed: &Observed, settings: &Settings) -> bool {
    let address = observed.own_service().and_then(|service| address(service, settings));
    address.is_some_and(|address| !settings.pool.contains(address))
}

/// The removals of the Service and the `NetworkPolicy`, as far as they exist.
fn removals(observed: &Observed) -> Vec<Removal> {
    let [service, policy] = children::bare(observed).map(|child| child.removal());
    // With the Service, the address and the ports are lost.
    let mut preconditions = vec![Precondition::object(&*observed.instance)];
    if matches!(observed.request, Validated::Denied(_)) {
        preconditions
            .push(Precondition::Object(KindInfo::of::<TemplateKind>(), template_key(&observed.instance)));
    }
    service.map(|service| service.with_preconditions(preconditions)).into_iter().chain(policy).collect()
}
