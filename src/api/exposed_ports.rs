//! The faults of the public ports that an Instance requests: a pure function. The webhook refuses new ports with a
//! fault, the exposure loop exposes the other ports, and the dashboard shows the fault beside its port.

use std::collections::BTreeSet;

use super::instance::{ExposedPort, Instance};
use super::names::check_dns_label;

/// A public port: whether it is UDP and not TCP, and its number.
pub type PublicPort = (bool, u16);

/// Why a requested port cannot be exposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortFault {
    /// Load balancers share addresses only for TCP and UDP.
    #[error("port {name} is {protocol}; only TCP and UDP can be exposed")]
    Protocol {
        /// The name of the port.
        name: String,
        /// Its protocol.
        protocol: String,
    },
    /// A number is out of range.
    #[error("{what} {number} of port {name} is not between {least} and 65535")]
    Number {
        /// The name of the port.
        name: String,
        /// The field with the number.
        what: &'static str,
        /// The number.
        number: i32,
        /// The lowest valid number.
        least: u16,
    },
    /// A Service cannot have a port with this name.
    #[error("the name {0:?} of a port is invalid: use up to 15 lower-case letters, digits and dashes")]
    Name(String),
    /// Another port of the Instance has this name.
    #[error("two ports are named {0}: give each a different name")]
    NameTaken(String),
    /// Another port of the Instance leads to the same port inside it, with the same protocol.
    #[error("two ports have targetPort {0}: remove one of them")]
    TargetTaken(u16),
    /// Another port of the Instance requests the same public port, with the same protocol.
    #[error("two ports request the public port {0}: request another port, or port 0 (any free port)")]
    PublicTaken(u16),
}

/// The numbers of a port, and its protocol; a public port of 0 means any free port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    is_udp: bool,
    target: u16,
    public: u16,
}

/// Reads the numbers of a port.
fn numbers(port: &ExposedPort) -> Result<Numbers, PortFault> {
    let name = || port.name.clone();
    let is_udp = match port.protocol.as_str() {
        // An absent protocol is TCP.
        "" | "TCP" => false,
        "UDP" => true,
        other => return Err(PortFault::Protocol { name: name(), protocol: other.to_owned() }),
    };
    let number = |number: i32, what, least| {
        let valid = u16::try_from(number).ok().filter(|number| *number >= least);
        valid.ok_or_else(|| PortFault::Number { name: name(), what, number, least })
    };
    let (target, public) = (number(port.target_port, "targetPort", 1)?, number(port.port, "port", 0)?);
    // Instances of older versions of the schema may have a port without a name.
    if !port.name.is_empty() && check_dns_label(&port.name).is_err() {
        return Err(PortFault::Name(name()));
    }
    Ok(Numbers { is_udp, target, public })
}

/// The names and numbers that ports of an Instance have.
#[derive(Debug, Default)]
pub struct Taken<'p> {
    names: BTreeSet<&'p str>,
    targets: BTreeSet<(bool, u16)>,
    publics: BTreeSet<PublicPort>,
}

impl<'p> Taken<'p> {
    /// Adds a port.
    pub fn add(&mut self, port: &'p ExposedPort) {
        self.names.insert(&port.name);
        let Ok(Numbers { is_udp, target, public }) = numbers(port) else { return };
        self.targets.insert((is_udp, target));
        if public > 0 {
            self.publics.insert((is_udp, public));
        }
    }

    /// Returns why another port cannot be exposed beside these.
    pub fn fault(&self, port: &ExposedPort) -> Option<PortFault> {
        let Numbers { is_udp, target, public } = match numbers(port) {
            Ok(numbers) => numbers,
            Err(fault) => return Some(fault),
        };
        if self.names.contains(port.name.as_str()) {
            return Some(PortFault::NameTaken(port.name.clone()));
        }
        if self.targets.contains(&(is_udp, target)) {
            return Some(PortFault::TargetTaken(target));
        }
        self.publics.contains(&(is_udp, public)).then_some(PortFault::PublicTaken(public))
    }
}

impl<'p> FromIterator<&'p ExposedPort> for Taken<'p> {
    fn from_iter<I: IntoIterator<Item = &'p ExposedPort>>(ports: I) -> Self {
        let mut taken = Self::default();
        ports.into_iter().for_each(|port| taken.add(port));
        taken
    }
}

/// Returns the fault of each port. If ports exclude each other, the first one has none.
pub fn faults(ports: &[ExposedPort]) -> Vec<Option<PortFault>> {
    let mut valid = Taken::default();
    let of = |port| {
        let fault = valid.fault(port);
        if fault.is_none() {
            valid.add(port);
        }
        fault
    };
    ports.iter().map(of).collect()
}

/// Returns the ports of `new` that `old` does not contain, with their positions. Of equal ports, as many are new as
/// there are more than before.
pub fn added<'p>(old: &[ExposedPort], new: &'p [ExposedPort]) -> Vec<(usize, &'p ExposedPort)> {
    let mut known: Vec<&ExposedPort> = old.iter().collect();
    let is_new = |(_, port): &(usize, &ExposedPort)| match known.iter().position(|known| known == port) {
        Some(at) => {
            known.swap_remove(at);
            false
        }
        None => true,
    };
    new.iter().enumerate().filter(is_new).collect()
}

/// Returns the requested public port; `None` for any free port, and for an invalid one.
pub fn public_port(port: &ExposedPort) -> Option<PublicPort> {
    let Numbers { is_udp, public, .. } = numbers(port).ok()?;
    (public > 0).then_some((is_udp, public))
}

/// Returns the address in the status of an Instance, and its public ports there; `None` for an Instance that is stopped,
/// or that requests no ports.
pub fn public_ports(instance: &Instance) -> Option<(&str, impl Iterator<Item = PublicPort>)> {
    let wants = instance.spec.public_exposure.as_ref().is_some_and(|exposure| !exposure.ports.is_empty());
    if !wants || !instance.spec.running || instance.is_terminating() {
        return None;
    }
    let exposure = instance.status.public_exposure.as_deref()?;
    Some((exposure.external_ip.as_str(), exposure.ports.iter().filter_map(public_port)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn port(name: &str, public: i32, target: i32, protocol: &str) -> ExposedPort {
        ExposedPort { name: name.to_owned(), port: public, target_port: target, protocol: protocol.into() }
    }

    fn said(ports: &[ExposedPort]) -> Vec<String> {
        let said = |fault: Option<PortFault>| fault.map(|fault| fault.to_string()).unwrap_or_default();
        faults(ports).into_iter().map(said).collect()
    }

    #[test]
    fn each_fault_is_found_and_the_first_of_two_ports_is_kept() {
        for (other, expected) in [
            (port("web", 81, 8080, "TCP"), ""),
            (port("dns", 22, 22, "UDP"), ""),
            (port("web", 0, 8080, ""), ""),
            (port("ssh", 81, 8080, "TCP"), "two ports are named ssh: give each a different name"),
            (port("ssh", 81, 8080, "UDP"), "two ports are named ssh: give each a different name"),
            (port("web", 81, 22, "TCP"), "two ports have targetPort 22: remove one of them"),
            (
                port("web", 22, 8080, ""),
                "two ports request the public port 22: request another port, or port 0 (any free port)",
            ),
            (port("web", 81, 8080, "SCTP"), "port web is SCTP; only TCP and UDP can be exposed"),
            (port("web", -1, 8080, "TCP"), "port -1 of port web is not between 0 and 65535"),
            (port("web", 65_536, 8080, "TCP"), "port 65536 of port web is not between 0 and 65535"),
            (port("web", 81, 0, "TCP"), "targetPort 0 of port web is not between 1 and 65535"),
            (
                port("Web", 81, 8080, "TCP"),
                "the name \"Web\" of a port is invalid: use up to 15 lower-case letters, digits and dashes",
            ),
        ] {
            assert_eq!(said(&[port("ssh", 22, 22, "TCP"), other.clone()]), ["", expected], "{other:?}");
        }
        // Two ports that may get any public port, and a port beside one that cannot be exposed.
        assert_eq!(said(&[port("a", 0, 1, "TCP"), port("b", 0, 2, "TCP")]), ["", ""]);
        let bad = said(&[port("a", 5, 1, "SCTP"), port("a", 5, 1, "TCP")]);
        assert_eq!((bad[0].is_empty(), bad[1].as_str()), (false, ""));
        assert_eq!(said(&[port("", 0, 1, "TCP")]), [""]);
    }

    #[test]
    fn a_running_instance_holds_the_public_ports_of_its_status() {
        let of = |more: &Value| -> Vec<(String, PublicPort)> {
            let held = |protocol: &str| json!({"name": protocol.to_lowercase(), "port": 22, "targetPort": 2222, "protocol": protocol});
            let ports = json!([held("TCP"), held("UDP"), {"name": "any", "port": 0, "targetPort": 1}]);
            let mut instance = json!({
                "metadata": {"name": "vm"},
                "spec": {"running": true, "publicExposure": {"ports": ports}},
                "status": {"publicExposure": {"externalIP": "10.0.0.1", "ports": ports}},
            });
            json_patch::merge(&mut instance, more);
            let instance: Instance = serde_json::from_value(instance).expect("an Instance");
            let Some((address, ports)) = public_ports(&instance) else { return Vec::new() };
            ports.map(|port| (address.to_owned(), port)).collect()
        };
        let at = |is_udp| ("10.0.0.1".to_owned(), (is_udp, 22));
        assert_eq!(of(&json!({})), [at(false), at(true)]);
        for more in [
            json!({"spec": {"running": false}}),
            json!({"spec": {"publicExposure": null}}),
            json!({"status": {"publicExposure": null}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ] {
            assert!(of(&more).is_empty(), "{more}");
        }
    }

    #[test]
    fn only_ports_that_are_not_stored_are_new() {
        let [ssh, web] = [port("ssh", 22, 22, "TCP"), port("web", 0, 80, "TCP")];
        let at = |old: &[&ExposedPort], new: &[&ExposedPort]| -> Vec<usize> {
            let of = |ports: &[&ExposedPort]| ports.iter().map(|port| (*port).clone()).collect::<Vec<_>>();
            let (old, new) = (of(old), of(new));
            added(&old, &new).into_iter().map(|(at, _)| at).collect()
        };
        assert_eq!(at(&[], &[&ssh, &web]), [0, 1]);
        assert_eq!(at(&[&ssh], &[&web, &ssh]), [0]);
        assert_eq!(at(&[&ssh, &ssh], &[&ssh, &ssh]), [0; 0], "both are stored");
        assert_eq!(at(&[&ssh, &ssh], &[&ssh]), [0; 0]);
        assert_eq!(at(&[&ssh], &[&ssh, &ssh]), [1], "one more");
    }
}
