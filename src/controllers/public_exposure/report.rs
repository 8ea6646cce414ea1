//! The status, the condition and the events of a public exposure.

use std::net::IpAddr;

use jiff::Timestamp;

use super::Settings;
use super::children::{in_order_of, protocol};
use super::observe::{Allocation, Observed, address, has_other_address, stored_condition};
use super::plan::{grace_left, ignored_in};
use super::validate::{Validated, WantedPort, name_conflict, no_free_port, unexposed};
use crate::api::condition::PUBLIC_EXPOSURE_READY;
use crate::api::instance::{ExposedPort, ExposurePhase, InstanceKind, PublicExposureStatus};
use crate::api::reason::{self, Reason};
use crate::api::{Kind, shown};
use crate::config::pool;
use crate::controllers::shared::waits;
use crate::kinds::NetworkPolicyKind;
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::error::ApiError;
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Outcome, Report};

/// The reported state of an exposure: the phase and message of the status, and the reason and message (`detail`) of the
/// condition.
struct State {
    phase: ExposurePhase,
    reason: Reason,
    message: String,
    detail: String,
}

impl State {
    fn new(phase: ExposurePhase, reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { phase, reason, detail: message.clone(), message }
    }
}

/// The report of a reconcile.
pub fn report(
    observed: &Observed,
    settings: &Settings,
    outcome: &Outcome<()>,
    now: Timestamp,
) -> Report<InstanceKind> {
    let old = &observed.instance.status;
    let before = said_before(observed, settings);
    let failure = outcome.failures.first();
    let unchanged = || Report::unchanged(&observed.instance);
    let (state, address, ports) = match (&observed.request, &observed.allocation, failure) {
        (Validated::Unknown, ..) => return unchanged(),
        (_, _, Some(failure)) if failure.error.is_transient() => match leaving(failure, now) {
            Some(state) => (state, before.external_ip, before.ports),
            None => return unchanged(),
        },
        (Validated::Nothing | Validated::Denied(_), _, Some(_)) => return unchanged(),
        (Validated::Nothing, ..) => {
            let mut status = old.clone();
            status.public_exposure = None;
            status.conditions = conditions::merge(&old.conditions, &[], &[PUBLIC_EXPOSURE_READY], None, now);
            return Report::new(status, Vec::new());
        }
        (Validated::Denied(problem), ..) => (error(problem), String::new(), Vec::new()),
        (Validated::Kept(problem), ..) => (error(problem), before.external_ip, before.ports),
        (Validated::Ports(_), None, _) => (error(&no_free_port()), before.external_ip, before.ports),
        (Validated::Ports(_), Some(allocation), Some(failure)) if failure.kind == NetworkPolicyKind::KIND => {
            let message = "Failed to enforce the network policy, contact the administrator.";
            let state = failed(reason::NETWORK_POLICY_FAILED, message, failure);
            (state, allocation.address.to_string(), ports(allocation, &before.ports))
        }
        (Validated::Ports(_), Some(_), Some(failure)) => {
            let message = "Failed to create or update the LoadBalancer service, contact the administrator.";
            (failed(reason::SERVICE_FAILED, message, failure), before.external_ip, before.ports)
        }
        (Validated::Ports(_), Some(allocation), None) => {
            let state = in_part(assigned(observed, settings, allocation, now), observed, allocation);
            (state, allocation.address.to_string(), ports(allocation, &before.ports))
        }
    };
    let is_ready = state.reason == reason::EXPOSURE_ASSIGNED;
    let observation = Observation::new(PUBLIC_EXPOSURE_READY, is_ready, state.reason, &*state.detail);
    let is_normal = is_ready || state.phase == ExposurePhase::Provisioning;
    let type_ = if is_normal { EventType::Normal } else { EventType::Warning };
    let event = EventNote::new(type_, state.reason, &*state.detail);
    let known = stored_condition(&observed.instance);
    let has_changed =
        known.is_none_or(|known| known.reason != state.reason || known.message != observation.message);
    let mut status = old.clone();
    let State { phase, message, .. } = state;
    status.public_exposure =
        Some(Box::new(PublicExposureStatus { external_ip: address, ports, phase, message }));
    let generation = observed.instance.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, &[observation], &[], generation, now);
    Report::new(status, has_changed.then_some(event).into_iter().collect())
}

/// The exposure in the status, unless its address was removed from the pool and the Service no longer has it.
fn said_before(observed: &Observed, settings: &Settings) -> PublicExposureStatus {
    let held = observed.own_service().and_then(|service| address(service, settings));
    let is_left = |said: &&PublicExposureStatus| {
        pool::parse(&said.external_ip).is_none_or(|said| settings.pool.contains(said) || held == Some(said))
    };
    observed.instance.status.public_exposure.as_deref().filter(is_left).cloned().unwrap_or_default()
}

fn error(problem: &Problem) -> State {
    State::new(ExposurePhase::Error, problem.reason, problem.message.clone())
}

/// The state of an exposure that is ready, if some of the requested ports are not exposed. Its phase stays `Ready`, because
/// the ports in the status can be reached.
fn in_part(state: State, observed: &Observed, allocation: &Allocation) -> State {
    let problems = unexposed(observed, allocation);
    let Some(first) = problems.first().filter(|_| state.phase == ExposurePhase::Ready) else { return state };
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let messages = messages.join(". ");
    State {
        reason: first.reason,
        message: format!("{}, except for some ports: {messages}", state.message),
        detail: format!("{}. Not exposed: {messages}", state.detail),
        ..state
    }
}

/// The state after a failed write. A name conflict is reported as such, not as a failed write.
fn failed(reason: Reason, message: &str, failure: &Failure) -> State {
    if matches!(failure.error, ApiError::NameConflict { .. }) {
        return error(&name_conflict(&failure.error.to_string()));
    }
    State { detail: format!("{message} {failure}"), ..State::new(ExposurePhase::Error, reason, message) }
}

/// The state while an object with the name of a child is being deleted, if that has lasted.
fn leaving(failure: &Failure, now: Timestamp) -> Option<State> {
    let ApiError::Leaving(leaving) = &failure.error else { return None };
    let problem = waits::of_leaving(leaving, failure.component.clone(), now)?;
    Some(State::new(ExposurePhase::Provisioning, reason::SERVICE_LEAVING, problem.message))
}

/// The state after address and ports were allocated: whether the load balancer has assigned the address.
fn assigned(observed: &Observed, settings: &Settings, allocation: &Allocation, now: Timestamp) -> State {
    let address = allocation.address.to_string();
    let service = observed.own_service();
    let deleted = service.and_then(|service| Some((service, service.metadata.deletion_timestamp.as_ref()?)));
    if let Some((leaving, since)) = deleted {
        let held = waits::held(since.0, &leaving.metadata.finalizers, now);
        let message = format!(
            "Service {} is being deleted{held} and will be recreated with the same address and ports.",
            leaving.name()
        );
        return State::new(ExposurePhase::Provisioning, reason::SERVICE_LEAVING, message);
    }
    let balancer = service.map_or(&[][..], |service| &service.status.load_balancer.ingress);
    let is_other = service.is_some_and(|service| has_other_address(service, allocation.address));
    if !settings.config.wait_for_address || !balancer.is_empty() && !is_other {
        let before = observed.instance.status.public_exposure.as_ref();
        let ports = ports(allocation, before.map_or(&[][..], |before| &before.ports)).into_iter();
        let ports: Vec<String> =
            ports.map(|port| format!("{} at {} ({})", port.name, port.port, port.protocol)).collect();
        let detail = format!("Public exposure assigned: {address}, {}", ports.join(", "));
        let message = "Public exposure assigned";
        return State { detail, ..State::new(ExposurePhase::Ready, reason::EXPOSURE_ASSIGNED, message) };
    }
    if let Some(other) = balancer.first() {
        let name = if other.ip.is_empty() { &other.hostname } else { &other.ip };
        let message = format!(
            "The load balancer has assigned {name} instead of {address}: contact the administrator \
             (controllers.publicExposure.ipPool and loadBalancerIpsKey must match the load balancer)"
        );
        // A report of a former process stays, because this process has only just started counting.
        let message = shown::message(&message);
        let is_reported =
            stored_condition(&observed.instance).is_some_and(|stored| stored.message == *message);
        if is_reported || observed.other_since.is_some_and(|since| grace_left(since, now).is_zero()) {
            return State::new(ExposurePhase::Error, reason::OTHER_ADDRESS, message);
        }
    }
    unassigned(observed, settings, allocation.address, now)
}

/// The state while the load balancer has not assigned the address: it may have refused or ignored the Service.
fn unassigned(observed: &Observed, settings: &Settings, address: IpAddr, now: Timestamp) -> State {
    let status = observed.own_service().map(|service| &service.status);
    let waits = status.filter(|status| status.load_balancer.ingress.is_empty());
    if let Some(refused) = waits.and_then(|status| status.conditions.first()) {
        let message = format!(
            "The load balancer rejects the Service, which requests {address}: {}: {}",
            refused.reason, refused.message
        );
        let message = message.trim_end_matches(": ");
        return State::new(ExposurePhase::Error, reason::LOAD_BALANCER_REFUSED, shown::message(message));
    }
    if ignored_in(observed, settings, now).is_some_and(|left| left.is_zero()) {
        let reason = reason::LOAD_BALANCER_IGNORED;
        let subject = format!("No load balancer has assigned {address} in {}", settings.stalled_after);
        let stored = stored_condition(&observed.instance);
        let message = waits::explained(&subject, reason, &observed.events, stored).unwrap_or_else(|| {
            let events = "the events of the Service and the log of the load balancer say why";
            format!("{subject}: contact the administrator ({events})")
        });
        return State::new(ExposurePhase::Error, reason, shown::message(&message));
    }
    let detail = format!("Waiting for LoadBalancer IP to be assigned: {address} is requested");
    let message = "Waiting for LoadBalancer IP to be assigned.";
    State { detail, ..State::new(ExposurePhase::Provisioning, reason::WAITING_FOR_ADDRESS, message) }
}

/// The ports of an allocation, in the order of the status if that contains the same ports.
fn ports(allocation: &Allocation, before: &[ExposedPort]) -> Vec<ExposedPort> {
    let port = |(wanted, port): &(WantedPort, u16)| ExposedPort {
        name: wanted.name.clone(),
        port: i32::from(*port),
        target_port: i32::from(wanted.target),
        protocol: protocol(wanted.transport).into(),
    };
    in_order_of(before, allocation.ports.iter().map(port).collect())
}
