//! The status, the condition and the events of a public exposure.

use jiff::Timestamp;

use super::Settings;
use super::allocator::Transport;
use super::observe::{Allocation, Observed};
use super::validate::{Validated, no_free_port};
use crate::api::Kind;
use crate::api::instance::{ExposedPort, ExposurePhase, InstanceKind, Protocol, PublicExposureStatus};
use crate::config::pool;
use crate::kinds::NetworkPolicyKind;
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::{EventNote, EventType};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Outcome, Report};

/// Condition: whether the requested ports can be reached; absent where none are requested.
pub const EXPOSED: &str = "PublicExposureReady";

/// The state of an exposure as it is reported: the phase and message of the status, and the reason and
/// message (`detail`) of the condition.
struct ExposureState {
    phase: ExposurePhase,
    reason: &'static str,
    message: String,
    detail: String,
}

impl ExposureState {
    fn new(phase: ExposurePhase, reason: &'static str, message: impl Into<String>) -> Self {
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
    let before = old.public_exposure.clone().unwrap_or_default();
    let failure = outcome.failures.first();
    let (state, address, ports) = match (&observed.request, &observed.allocation, failure) {
        (Validated::Unknown, ..) => return Report::unchanged(&observed.instance),
        (_, _, Some(failure)) if failure.error.is_transient() => {
            return Report::unchanged(&observed.instance);
        }
        (Validated::Nothing | Validated::Denied(_), _, Some(_)) => {
            return Report::unchanged(&observed.instance);
        }
        (Validated::Nothing, ..) => {
            let mut status = old.clone();
            status.public_exposure = None;
            status.conditions = conditions::merge(&old.conditions, &[], &[EXPOSED], None, now);
            return Report::new(status, Vec::new());
        }
        (Validated::Denied(problem), ..) => (error(problem), String::new(), Vec::new()),
        (Validated::Kept(problem), ..) => (error(problem), before.external_ip, before.ports),
        (Validated::Ports(_), None, _) => (error(&no_free_port()), before.external_ip, before.ports),
        (Validated::Ports(_), Some(allocation), Some(failure)) if failure.kind == NetworkPolicyKind::KIND => {
            let message = "Failed to enforce the network policy, contact the administrator.";
            let state = failed("NetworkPolicyFailed", message, failure);
            (state, allocation.address.to_string(), ports(allocation))
        }
        (Validated::Ports(_), Some(_), Some(failure)) => {
            let message = "Failed to create or update the LoadBalancer service, contact the administrator.";
            (failed("ServiceFailed", message, failure), before.external_ip, before.ports)
        }
        (Validated::Ports(_), Some(allocation), None) => {
            let state = assigned(observed, settings, allocation);
            (state, allocation.address.to_string(), ports(allocation))
        }
    };
    let observation =
        Observation::new(EXPOSED, state.phase == ExposurePhase::Ready, state.reason, &*state.detail);
    let type_ = if state.phase == ExposurePhase::Error { EventType::Warning } else { EventType::Normal };
    let event = EventNote::new(type_, state.reason, &*state.detail);
    let known = old.conditions.iter().find(|condition| condition.type_ == EXPOSED);
    let has_changed = known.is_none_or(|known| known.reason != state.reason || known.message != state.detail);
    let mut status = old.clone();
    status.public_exposure = Some(PublicExposureStatus {
        external_ip: address,
        ports,
        phase: state.phase,
        message: state.message,
    });
    let generation = observed.instance.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, &[observation], &[], generation, now);
    Report::new(status, has_changed.then_some(event).into_iter().collect())
}

fn error(problem: &Problem) -> ExposureState {
    ExposureState::new(ExposurePhase::Error, problem.reason, problem.message.clone())
}

fn failed(reason: &'static str, message: &str, failure: &Failure) -> ExposureState {
    ExposureState {
        detail: format!("{message} {failure}"),
        ..ExposureState::new(ExposurePhase::Error, reason, message)
    }
}

/// The state once address and ports are allocated: whether the load balancer has assigned the address.
fn assigned(observed: &Observed, settings: &Settings, allocation: &Allocation) -> ExposureState {
    let address = allocation.address.to_string();
    let balancer = observed.own_service().map_or(&[][..], |service| &service.status.load_balancer.ingress);
    let has = |wanted: &str| balancer.iter().any(|found| pool::parse(&found.ip) == pool::parse(wanted));
    if !settings.wait_for_address || has(&address) {
        let ports: Vec<String> = allocation
            .ports
            .iter()
            .map(|(wanted, port)| format!("{} at {port} ({})", wanted.name, protocol(wanted.transport)))
            .collect();
        let detail = format!("Public exposure assigned: {address}, {}", ports.join(", "));
        return ExposureState {
            detail,
            ..ExposureState::new(ExposurePhase::Ready, "PublicExposureAssigned", "Public exposure assigned")
        };
    }
    match balancer.first() {
        None => ExposureState {
            detail: format!("Waiting for LoadBalancer IP to be assigned: {address} is asked for"),
            ..ExposureState::new(
                ExposurePhase::Provisioning,
                "WaitingForAddress",
                "Waiting for LoadBalancer IP to be assigned.",
            )
        },
        Some(other) => {
            let name = if other.ip.is_empty() { &other.hostname } else { &other.ip };
            let message = format!(
                "The load balancer has assigned {name} instead of {address}: contact the administrator \
                 (controllers.publicExposure.ipPool and loadBalancerIpsKey must be those of the load balancer)"
            );
            ExposureState::new(ExposurePhase::Error, "OtherAddress", message)
        }
    }
}

fn ports(allocation: &Allocation) -> Vec<ExposedPort> {
    allocation
        .ports
        .iter()
        .map(|(wanted, port)| ExposedPort {
            name: wanted.name.clone(),
            port: i32::from(*port),
            target_port: i32::from(wanted.target),
            protocol: protocol(wanted.transport),
        })
        .collect()
}

fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
    }
}
