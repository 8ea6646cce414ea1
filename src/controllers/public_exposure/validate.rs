//! The validation of the requested ports of an Instance: a pure function.

use std::collections::BTreeSet;

use super::Settings;
use super::allocator::{Port, Request, Transport};
use super::observe::{address, transport};
use crate::api::instance::{ExposedPort, Instance, Protocol};
use crate::api::reason;
use crate::api::template::Template;
use crate::kinds::{LoadBalancerService, ServicePort};
use crate::runtime::component::Component;
use crate::runtime::problem::Problem;

/// The result of the validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validated {
    /// The Instance or its Template cannot be read, or the Instance names another Tenant than that of its namespace:
    /// everything stays as it is, and the instance loop reports the reason.
    Unknown,
    /// The Instance requests no ports: an existing exposure is removed.
    Nothing,
    /// The Instance may not be exposed, for this reason: an existing exposure is removed.
    Denied(Problem),
    /// The request is invalid, for this reason: an existing exposure is kept as it is.
    Kept(Problem),
    /// The requested ports, those with a specified public port first.
    Ports(Vec<WantedPort>),
}

/// The problem that somebody else has the name of the Service of an Instance, as `conflict` says.
pub fn name_conflict(conflict: &str) -> Problem {
    let message = format!(
        "{conflict}: names that differ in dots and dashes only share it. Nothing is \
         exposed; make the Instance again with another name"
    );
    Problem::fault(Component::Whole, reason::NAME_CONFLICT, message)
}

/// The problem that no address of the pool has enough free ports.
pub fn no_free_port() -> Problem {
    Problem::waiting(
        Component::Whole,
        reason::NO_FREE_PORT,
        "No public address has room for all requested ports: ask for other ports, or for port 0 (any that is free). \
         It is tried again when ports are freed",
    )
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

/// A port that cannot be one of ours: a named target port, or a protocol that is not exposed.
pub struct OtherPort;

impl TryFrom<&ServicePort> for WantedPort {
    type Error = OtherPort;

    fn try_from(port: &ServicePort) -> Result<Self, OtherPort> {
        let target = port.target_port.as_u64().and_then(|target| u16::try_from(target).ok());
        Ok(Self {
            name: port.name.clone(),
            target: target.ok_or(OtherPort)?,
            transport: transport(&port.protocol).ok_or(OtherPort)?,
            port: Some(port.port),
        })
    }
}

impl TryFrom<&ExposedPort> for WantedPort {
    type Error = OtherPort;

    fn try_from(port: &ExposedPort) -> Result<Self, OtherPort> {
        let number = |number: i32| u16::try_from(number).ok().filter(|number| *number > 0);
        Ok(Self {
            name: port.name.clone(),
            target: number(port.target_port).ok_or(OtherPort)?,
            transport: transport(&port.protocol.to_string()).ok_or(OtherPort)?,
            port: Some(number(port.port).ok_or(OtherPort)?),
        })
    }
}

impl WantedPort {
    /// Whether a port is for the same request, whatever its number.
    fn is(&self, port: &Self) -> bool {
        (&port.name, port.target, port.transport) == (&self.name, self.target, self.transport)
    }

    /// The request to the allocator. An automatic port stays the same as `before` if possible.
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
        return Validated::Denied(Problem::fault(
            Component::Whole,
            reason::NOT_ALLOWED,
            format!(
                "the Template {reference} does not allow public exposure: its owner can set \
                 spec.allowPublicExposure; otherwise remove spec.publicExposure"
            ),
        ));
    }
    // The environments of an Instance are fixed when its objects are made, whatever becomes of the Template.
    let environments = match instance.status.environments.len() {
        0 => template.spec.environment_list.len(),
        fixed => fixed,
    };
    if environments != 1 {
        return Validated::Denied(Problem::fault(
            Component::Whole,
            reason::SEVERAL_ENVIRONMENTS,
            "Public exposure is not allowed for templates with multiple environments",
        ));
    }
    match wanted(ports) {
        Err(fault) => Validated::Kept(Problem::fault(
            Component::Whole,
            reason::INVALID_REQUEST,
            format!("Invalid public exposure request: {fault}"),
        )),
        Ok(_) if settings.pool.is_empty() => Validated::Kept(Problem::fault(
            Component::Whole,
            reason::NO_ADDRESSES,
            "There are no public addresses to give (controllers.publicExposure.ipPool is empty): contact the \
             administrator",
        )),
        Ok(wanted) => Validated::Ports(wanted),
    }
}

/// The requested ports, those with a specified public port first; or what is wrong with them.
fn wanted(ports: &[ExposedPort]) -> Result<Vec<WantedPort>, String> {
    let mut names = BTreeSet::new();
    let mut targets: BTreeSet<Port> = BTreeSet::new();
    let mut requested: BTreeSet<Port> = BTreeSet::new();
    let mut wanted = Vec::new();
    for port in ports {
        let name = &port.name;
        let transport = match &port.protocol {
            Protocol::Tcp => Transport::Tcp,
            Protocol::Udp => Transport::Udp,
            other => match other.to_string().as_str() {
                "" => Transport::Tcp,
                other => return Err(format!("port {name} is {other}; only TCP and UDP can be exposed")),
            },
        };
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
            return Err(format!("two ports are named {name}: give each a name of its own"));
        }
        wanted.push(WantedPort {
            name: name.clone(),
            target,
            transport,
            port: Some(public).filter(|port| *port != 0),
        });
    }
    // The sort is stable: within both groups the order of the request is kept.
    wanted.sort_by_key(|port| port.port.is_none());
    Ok(wanted)
}

/// The public ports of a Service, in the order of `wanted`, if it has exactly the requested ports on an
/// address of the pool. An automatic port must be within its range. Otherwise `None`.
pub fn held(
    service: Option<&LoadBalancerService>,
    wanted: &[WantedPort],
    settings: &Settings,
) -> Option<Vec<u16>> {
    let service = service?;
    let is_ours = address(service, settings).is_some_and(|address| settings.pool.contains(address));
    if !is_ours || service.spec.ports.len() != wanted.len() || service.spec.type_ != "LoadBalancer" {
        return None;
    }
    let ports: Vec<WantedPort> =
        service.spec.ports.iter().filter_map(|port| WantedPort::try_from(port).ok()).collect();
    wanted
        .iter()
        .map(|port| {
            let found = ports.iter().find(|found| port.is(found))?.port?;
            let fits = port.port.map_or_else(|| settings.automatic.contains(&found), |port| port == found);
            fits.then_some(found)
        })
        .collect()
}
