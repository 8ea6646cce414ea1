//! The validation of the requested ports of an Instance: a pure function.

use super::Settings;
use super::allocator::{Request, Transport};
use super::observe::{Allocation, Observed, address, transport};
use crate::api::exposed_ports::faults;
use crate::api::instance::{ExposedPort, Instance};
use crate::api::parts::PUBLIC_EXPOSURE;
use crate::api::reason;
use crate::api::template::Template;
use crate::kinds::{LoadBalancerService, ServicePort};
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The result of the validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validated {
    /// The Instance or its Template cannot be parsed, or the Instance names another Tenant than the owner of its
    /// namespace. Nothing is changed, and the instance loop reports the reason.
    Unknown,
    /// The Instance requests no ports. An existing exposure is removed.
    Nothing,
    /// The Instance may not be exposed, for this reason. An existing exposure is removed.
    Denied(Problem),
    /// No requested port can be exposed, for this reason. An existing exposure is kept unchanged.
    Kept(Problem),
    /// The requested ports that can be exposed, with the specified public ports first.
    Ports(Vec<WantedPort>),
}

/// The problem that a foreign object has the name of the Service of an Instance; `conflict` describes it.
pub fn name_conflict(conflict: &str) -> Problem {
    let message = format!("{conflict}. Nothing is exposed; create the Instance again with another name");
    Problem::fault(Component::Whole, reason::NAME_CONFLICT, message)
}

/// The problem that an environment of the Instance has a Service with this name.
pub fn own_environment(name: &str) -> Problem {
    let message = format!(
        "Service {name} belongs to environment {suffix} of this Instance: the name is reserved for {what}. Nothing is exposed; \
         rename the environment in the Template, and create the Instance again",
        suffix = PUBLIC_EXPOSURE.suffix,
        what = PUBLIC_EXPOSURE.called,
    );
    Problem::fault(Component::Whole, reason::NAME_CONFLICT, message)
}

/// The problem that no address of the pool has enough free ports.
pub fn no_free_port() -> Problem {
    let message = "No public address has enough free ports for the request: request other ports, or port 0 (any \
                   free port). The request is retried when ports are freed";
    Problem::waiting(Component::Whole, reason::NO_FREE_PORT, message)
}

/// The problem that requested ports cannot be exposed; `None` if all of them can.
fn invalid_request(ports: &[ExposedPort]) -> Option<Problem> {
    let faults: Vec<String> = faults(ports).iter().flatten().map(ToString::to_string).collect();
    let message = format!("Invalid public exposure request: {}", faults.join("; "));
    (!faults.is_empty()).then(|| Problem::fault(Component::Whole, reason::INVALID_REQUEST, message))
}

/// The problems of the requested ports that are not exposed although others are: no free public port, and invalid
/// requests.
pub fn unexposed(observed: &Observed, allocation: &Allocation) -> Vec<Problem> {
    let Validated::Ports(wanted) = &observed.request else { return Vec::new() };
    let has = |port: &&WantedPort| allocation.ports.iter().any(|(held, _)| held == *port);
    let without = wanted.iter().filter(|port| !has(port)).map(|port| match port.port {
        Some(number) => format!(
            "the public port {number} of port {} is in use: request another port, or port 0 (any free port)",
            port.name
        ),
        None => format!("no public port is free for port {}", port.name),
    });
    let without: Vec<String> = without.collect();
    let waiting = (!without.is_empty()).then(|| {
        let message = format!("{}. The request is retried when ports are freed", without.join("; "));
        Problem::waiting(Component::Whole, reason::NO_FREE_PORT, message)
    });
    let invalid = invalid_request(requested(&observed.instance));
    waiting.into_iter().chain(invalid).collect()
}

/// The ports that an Instance requests.
fn requested(instance: &Instance) -> &[ExposedPort] {
    instance.spec.public_exposure.as_ref().map_or(&[][..], |exposure| &exposure.ports)
}

/// A requested port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPort {
    /// Its name.
    pub name: String,
    /// The port of the Instance that is exposed.
    pub target: u16,
    /// Its protocol.
    pub transport: Transport,
    /// The requested public port; `None` for an automatic one.
    pub port: Option<u16>,
}

impl WantedPort {
    /// Reads a port of a Service; `None` if it cannot be ours, because it has a named target port or a protocol that
    /// is not exposed.
    pub fn of_service(port: &ServicePort) -> Option<Self> {
        let target = port.target_port.as_u64().and_then(|target| u16::try_from(target).ok())?;
        let (name, transport) = (port.name.clone(), transport(&port.protocol)?);
        Some(Self { name, target, transport, port: Some(port.port) })
    }

    /// Reads a port of a status; `None` if it is not valid.
    pub fn of_status(port: &ExposedPort) -> Option<Self> {
        let number = |number: i32| u16::try_from(number).ok().filter(|number| *number > 0);
        let (target, public) = (number(port.target_port)?, number(port.port)?);
        let (name, transport) = (port.name.clone(), transport(port.protocol.as_str())?);
        Some(Self { name, target, transport, port: Some(public) })
    }

    /// Reads a requested port; `None` if it is not valid.
    fn of_request(port: &ExposedPort) -> Option<Self> {
        let number = |number: i32| u16::try_from(number).ok();
        let (target, public) = (number(port.target_port)?, number(port.port)?);
        let (name, transport) = (port.name.clone(), transport(port.protocol.as_str())?);
        Some(Self { name, target, transport, port: Some(public).filter(|port| *port > 0) })
    }

    /// Whether a port belongs to the same request, regardless of its number.
    fn is(&self, port: &Self) -> bool {
        (&port.name, port.target, port.transport) == (&self.name, self.target, self.transport)
    }

    /// The request to the allocator. An automatic port keeps its number in `before` if possible.
    pub fn request(&self, before: &[Self]) -> Request {
        if let Some(port) = self.port {
            return Request::Specified((self.transport, port));
        }
        let before = before.iter().find(|port| self.is(port)).and_then(|port| port.port);
        Request::Automatic(self.transport, before)
    }
}

/// Validates the requested ports of an Instance.
pub fn validate(instance: &Instance, template: Option<&Template>, settings: &Settings) -> Validated {
    if instance.malformed.is_some() {
        return Validated::Unknown;
    }
    let ports = requested(instance);
    if ports.is_empty() || !instance.spec.running {
        return Validated::Nothing;
    }
    let reference = &instance.spec.template_ref;
    let Some(template) = template.filter(|template| template.malformed.is_none()) else {
        return Validated::Unknown;
    };
    if !template.spec.allow_public_exposure {
        let message = format!(
            "the Template {reference} does not allow public exposure: its owner can set \
             spec.allowPublicExposure; otherwise remove spec.publicExposure"
        );
        return Validated::Denied(Problem::fault(Component::Whole, reason::NOT_ALLOWED, message));
    }
    // The environments of an Instance are fixed when its objects are created, even if the Template changes.
    let environments = match instance.status.environments.len() {
        0 => template.spec.environment_list.len(),
        fixed => fixed,
    };
    if environments != 1 {
        let message = "Public exposure is not allowed for templates with multiple environments";
        return Validated::Denied(Problem::fault(Component::Whole, reason::SEVERAL_ENVIRONMENTS, message));
    }
    let wanted = wanted(ports);
    if let Some(problem) = invalid_request(ports).filter(|_| wanted.is_empty()) {
        return Validated::Kept(problem);
    }
    if settings.pool.is_empty() {
        let message = "No public addresses are available (controllers.publicExposure.ipPool is empty): contact \
                       the administrator";
        return Validated::Kept(Problem::fault(Component::Whole, reason::NO_ADDRESSES, message));
    }
    Validated::Ports(wanted)
}

/// The requested ports that can be exposed, with the specified public ports first.
fn wanted(ports: &[ExposedPort]) -> Vec<WantedPort> {
    let faults = faults(ports);
    let valid = ports.iter().zip(faults).filter(|(_, fault)| fault.is_none());
    let mut wanted: Vec<WantedPort> = valid.filter_map(|(port, _)| WantedPort::of_request(port)).collect();
    // The sort is stable: both groups keep the order of the request.
    wanted.sort_by_key(|port| port.port.is_none());
    wanted
}

/// The public ports of a Service, in the order of `wanted`, if the Service has an address (inside or outside of the
/// pool) and exactly the requested ports. Any number fulfils the request for an automatic port: a change of
/// `automaticPortRange` moves no port. Otherwise `None`.
pub fn held(service: &LoadBalancerService, wanted: &[WantedPort], settings: &Settings) -> Option<Vec<u16>> {
    if address(service, settings).is_none()
        || service.spec.ports.len() != wanted.len()
        || service.spec.type_ != "LoadBalancer"
    {
        return None;
    }
    let ports: Vec<WantedPort> = service.spec.ports.iter().filter_map(WantedPort::of_service).collect();
    wanted
        .iter()
        .map(|port| {
            let found = ports.iter().find(|found| port.is(found))?.port?;
            port.port.is_none_or(|port| port == found).then_some(found)
        })
        .collect()
}
