//! The plan of a public exposure: its Service and `NetworkPolicy`, or their removal.

use std::time::Duration;

use jiff::Timestamp;

use super::Settings;
use super::children::{self, family, protocol};
use super::observe::{Allocation, Observed, service_key};
use super::validate::{Validated, no_free_port, unexposed};
use crate::api::reason;
use crate::api::template::TemplateKind;
use crate::controllers::shared::children::Child;
use crate::controllers::shared::references::template_key;
use crate::controllers::shared::waits::{self, passed};
use crate::kinds::{LoadBalancerService, LoadBalancerServiceKind};
use crate::runtime::ObjectKey;
use crate::runtime::plan::{KindInfo, Plan, Precondition, Removal, Requeue};

/// The maximum time until an Instance without a free port or name is reconciled again.
const RETRY: Duration = Duration::from_mins(1);
/// The time that a load balancer has for replacing an assigned address.
const OTHER_ADDRESS_GRACE: Duration = Duration::from_mins(1);

/// Plans a public exposure.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    let mut plan = Plan { stop_at_failure: true, ..Plan::default() };
    if observed.is_unanswered {
        // The state in the API server determines which ports are free.
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
            if problem.reason == reason::NAME_CONFLICT {
                // The other Instance may stop or be deleted before it has created anything.
                plan.requeue_after(RETRY);
            }
            plan.problems.push(problem.clone());
        }
        Validated::Ports(_) => {
            if let Some(allocation) = &observed.allocation {
                expose(observed, settings, allocation, now, &mut plan);
                plan.problems = unexposed(observed, allocation);
                if plan.problems.iter().any(|problem| problem.reason == reason::NO_FREE_PORT) {
                    plan.requeue_after(RETRY);
                }
            } else {
                plan.problems.push(no_free_port());
                plan.requeue_after(RETRY);
            }
        }
    }
    plan
}

/// Plans the Service and the `NetworkPolicy`.
fn expose(observed: &Observed, settings: &Settings, allocated: &Allocation, now: Timestamp, plan: &mut Plan) {
    let grace = observed.other_since.map(|since| grace_left(since, now));
    let service = observed.own_service();
    let leaving = service.and_then(|service| service.metadata.deletion_timestamp.as_ref());
    let held = leaving.map(|since| waits::held_in(since.0, now));
    let left = [grace, held, ignored_in(observed, settings, now)].into_iter().flatten();
    left.filter(|left| !left.is_zero()).for_each(|left| plan.requeue_after(left));
    let ignored = ignored(observed, settings, now);
    plan.awaited = ignored.map(|service| waits::about(service.namespace(), service.uid()));
    match service {
        // Its deletion triggers the next reconcile, which creates it again.
        Some(leaving) if leaving.is_terminating() => {}
        Some(existing) if cannot_be_changed(existing, allocated) => {
            children::service(observed, settings, allocated).remove(plan);
            plan.requeue_after(Duration::ZERO);
        }
        _ => children::service(observed, settings, allocated).ensure(plan),
    }
    plan.ensure.extend(children::policy(observed, allocated).map(Child::made));
}

/// Whether the API server would reject this address or these ports for the Service, so that it must be recreated.
fn cannot_be_changed(existing: &LoadBalancerService, allocation: &Allocation) -> bool {
    let has_other_family =
        existing.spec.ip_families.first().is_some_and(|first| first != family(allocation.address));
    has_other_family || node_ports_collide(existing, allocation)
}

/// Whether two ports would get the same node port. A TCP port and a UDP port with the same number share a node port.
/// The API server keeps the node port of a port while the port keeps its name, even if both ports change to the same
/// protocol, and then rejects the collision.
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

/// The remaining time for a load balancer to assign the requested address, if the Service has had another address since
/// `since`; zero if the time is over.
pub fn grace_left(since: Timestamp, now: Timestamp) -> Duration {
    OTHER_ADDRESS_GRACE.saturating_sub(passed(since, now))
}

/// The time until the Service counts as ignored, if the load balancer has not assigned any address; zero if it is
/// ignored.
pub fn ignored_in(observed: &Observed, settings: &Settings, now: Timestamp) -> Option<Duration> {
    let is_waited_for = |service: &&LoadBalancerService| {
        settings.config.wait_for_address && service.status.load_balancer.ingress.is_empty()
    };
    let service = observed.own_service().filter(is_waited_for)?;
    let made = service.metadata.creation_timestamp.as_ref()?.0;
    Some(settings.stalled_after.get().saturating_sub(passed(made, now)))
}

/// The Service that load balancers have ignored for `stalledAfter`, without a condition that says why.
fn ignored<'a>(
    observed: &'a Observed,
    settings: &Settings,
    now: Timestamp,
) -> Option<&'a LoadBalancerService> {
    let is_ignored = ignored_in(observed, settings, now).is_some_and(|left| left.is_zero());
    let is_silent =
        |service: &&LoadBalancerService| !service.is_terminating() && service.status.conditions.is_empty();
    observed.own_service().filter(|_| is_ignored).filter(is_silent)
}

/// The removals of the existing Service and `NetworkPolicy`.
fn removals(observed: &Observed) -> Vec<Removal> {
    let [service, policy] = children::bare(observed).map(|child| child.removal());
    // The address and the ports are lost with the Service.
    let mut preconditions = vec![Precondition::object(&*observed.instance)];
    if matches!(observed.request, Validated::Denied(_)) {
        preconditions
            .push(Precondition::Object(KindInfo::of::<TemplateKind>(), template_key(&observed.instance)));
    }
    service.map(|service| service.with_preconditions(preconditions)).into_iter().chain(policy).collect()
}
