//! The status of an exposure (03 §1.10, 00 decision 11), and what is told of it.

use jiff::Timestamp;

use super::Settings;
use super::allocator::Transport;
use super::observe::Observed;
use super::plan::Given;
use super::wish::Denial;
use crate::api::instance::{ExposedPort, ExposurePhase, InstanceStatus, Protocol, PublicExposureStatus};
use crate::config::pool;
use crate::runtime::apply::Failure;
use crate::runtime::conditions::{self, Observation};
use crate::runtime::events::{EventNote, EventType};

/// Condition: whether the ports that are asked for can be reached; absent where none are.
pub const EXPOSED: &str = "PublicExposureReady";

/// What a pass came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is exposed.
    Nothing,
    /// Nothing is exposed, for this reason.
    Denied(Denial),
    /// What was exposed before stays, for this reason.
    Kept(Denial),
    /// The Service could not be made or repaired.
    ServiceFailed(Failure),
    /// The Service is there, the `NetworkPolicy` could not be made or repaired.
    PolicyFailed(Given, Failure),
    /// Service and `NetworkPolicy` are there.
    Given(Given),
}

/// What a pass reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The whole status of the Instance.
    pub status: InstanceStatus,
    /// What changed.
    pub events: Vec<EventNote>,
}

/// A phase, with its reason and sentences: that of the status, and that of the condition.
struct Told {
    phase: ExposurePhase,
    reason: &'static str,
    message: String,
    detail: String,
}

impl Told {
    fn new(phase: ExposurePhase, reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { phase, reason, detail: message.clone(), message }
    }
}

/// The report of a pass.
#[must_use]
pub fn report(observed: &Observed, settings: &Settings, outcome: &Outcome, now: Timestamp) -> Report {
    let old = &observed.instance.status;
    let before = old.public_exposure.clone().unwrap_or_default();
    let (told, address, ports) = match outcome {
        Outcome::Nothing => {
            let mut status = old.clone();
            status.public_exposure = None;
            status.conditions = conditions::merge(&old.conditions, &[], &[EXPOSED], None, now);
            return Report { status, events: Vec::new() };
        }
        Outcome::Denied(denial) => (error(denial), String::new(), Vec::new()),
        Outcome::Kept(denial) => (error(denial), before.external_ip, before.ports),
        Outcome::ServiceFailed(failure) => {
            let message = "Failed to create or update the LoadBalancer service, contact the administrator.";
            (failed("ServiceFailed", message, failure), before.external_ip, before.ports)
        }
        Outcome::PolicyFailed(given, failure) => {
            let message = "Failed to enforce the network policy, contact the administrator.";
            (failed("NetworkPolicyFailed", message, failure), given.address.to_string(), ports(given))
        }
        Outcome::Given(given) => {
            (assigned(observed, settings, given), given.address.to_string(), ports(given))
        }
    };
    let observation = Observation {
        type_: EXPOSED,
        holds: Some(told.phase == ExposurePhase::Ready),
        reason: told.reason.to_owned(),
        message: told.detail.clone(),
    };
    let known = old.conditions.iter().find(|condition| condition.type_ == EXPOSED);
    let is_news = known.is_none_or(|known| known.reason != told.reason || known.message != told.detail);
    let event = EventNote {
        type_: if told.phase == ExposurePhase::Error { EventType::Warning } else { EventType::Normal },
        reason: told.reason.to_owned(),
        message: told.detail,
    };
    let mut status = old.clone();
    status.public_exposure =
        Some(PublicExposureStatus { external_ip: address, ports, phase: told.phase, message: told.message });
    let generation = observed.instance.metadata.generation;
    status.conditions = conditions::merge(&old.conditions, &[observation], &[], generation, now);
    Report { status, events: is_news.then_some(event).into_iter().collect() }
}

fn error(denial: &Denial) -> Told {
    Told::new(ExposurePhase::Error, denial.reason, denial.message.clone())
}

fn failed(reason: &'static str, message: &str, failure: &Failure) -> Told {
    Told { detail: format!("{message} {failure}"), ..Told::new(ExposurePhase::Error, reason, message) }
}

/// How far the load balancer is.
fn assigned(observed: &Observed, settings: &Settings, given: &Given) -> Told {
    let address = given.address.to_string();
    let balancer = observed.own_service().map_or(&[][..], |service| &service.status.load_balancer.ingress);
    let has = |wanted: &str| balancer.iter().any(|found| pool::parse(&found.ip) == pool::parse(wanted));
    if !settings.wait_for_address || has(&address) {
        let ports: Vec<String> = given
            .ports
            .iter()
            .map(|(wanted, port)| format!("{} at {port} ({})", wanted.name, protocol(wanted.transport)))
            .collect();
        let detail = format!("Public exposure assigned: {address}, {}", ports.join(", "));
        return Told {
            detail,
            ..Told::new(ExposurePhase::Ready, "PublicExposureAssigned", "Public exposure assigned")
        };
    }
    match balancer.first() {
        None => Told {
            detail: format!("Waiting for LoadBalancer IP to be assigned: {address} is asked for"),
            ..Told::new(
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
            Told::new(ExposurePhase::Error, "OtherAddress", message)
        }
    }
}

fn ports(given: &Given) -> Vec<ExposedPort> {
    given
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
