//! The validation of the requested ports of an Instance: a pure function.

use std::collections::BTreeSet;

use super::Settings;
use super::allocator::{Port, Request, Transport};
use super::observe::{address, transport};
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
    /// The request is invalid, for this reason. An existing exposure is kept unchanged.
    Kept(Problem),
    /// The requested ports, with the specified public ports first.
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
    let ports = instance.spec.public_exposure.as_ref().map_or(&[][..], |exposure| &exposure.ports);
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
    match wanted(ports) {
        Err(fault) => {
            let message = format!("Invalid public exposure request: {fault}");
            Validated::Kept(Problem::fault(Component::Whole, reason::INVALID_REQUEST, message))
        }
        Ok(_) if settings.pool.is_empty() => {
            let message = "No public addresses are available (controllers.publicExposure.ipPool is empty): contact \
                           the administrator";
            Validated::Kept(Problem::fault(Component::Whole, reason::NO_ADDRESSES, message))
        }
        Ok(wanted) => Validated::Ports(wanted),
    }
}

/// The requested ports, with the specified public ports first, or a message about the first invalid port.
fn wanted(ports: &[ExposedPort]) -> Result<Vec<WantedPort>, String> {
    let mut names = BTreeSet::new();
    let mut targets: BTreeSet<Port> = BTreeSet::new();
    let mut requested: BTreeSet<Port> = BTreeSet::new();
    let mut wanted = Vec::new();
    for port in ports {
        let name = &port.name;
        let transport = transport(port.protocol.as_str())
            .ok_or_else(|| format!("port {name} is {}; only TCP and UDP can be exposed", port.protocol))?;
        let number = |number: i32, what: &str, least: u16| {
            let valid = u16::try_from(number).ok().filter(|number| *number >= least);
            valid.ok_or_else(|| format!("{what} {number} of port {name} is not between {least} and 65535"))
        };
        let target = number(port.target_port, "targetPort", 1)?;
        let public = number(port.port, "port", 0)?;
        if !targets.insert((transport, target)) {
            return Err(format!("duplicate desired targetPort {target} found in public exposure request"));
        }
        if public != 0 && !requested.insert((transport, public)) {
            return Err(format!("duplicate requested port {public} found in public exposure request"));
        }
        if !names.insert(name) {
            return Err(format!("two ports are named {name}: give each a different name"));
        }
        let port = Some(public).filter(|port| *port != 0);
        wanted.push(WantedPort { name: name.clone(), target, transport, port });
    }
    // The sort is stable: both groups keep the order of the request.
    wanted.sort_by_key(|port| port.port.is_none());
    Ok(wanted)
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
