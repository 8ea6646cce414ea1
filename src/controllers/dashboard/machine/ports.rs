//! The model of the public ports on the page of a machine.

use super::actions::entry;
use crate::api::condition::PUBLIC_EXPOSURE_READY;
use crate::api::exposed_ports::{PortFault, faults};
use crate::api::instance::{ExposedPort, ExposurePhase};
use crate::api::{Condition, Instance, Template, reason};
use crate::controllers::dashboard::texts::Problem;

/// The public ports of a machine.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The ports.
    pub all: Vec<Port>,
    /// The condition that says why they cannot be reached, unless the ports say so.
    pub trouble: Option<Condition>,
}

/// A public port.
#[derive(Debug, Clone)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The port of the machine.
    pub inside: i32,
    /// The protocol.
    pub protocol: String,
    /// The public address and port, once they are assigned.
    pub outside: Option<String>,
    /// Why it is not public.
    pub fault: Option<Problem>,
    /// Its content in the form that removes it, see [`entry`].
    pub entry: String,
    /// The number of ports with this content.
    pub same: usize,
}

impl Ports {
    /// Returns the ports of an Instance; `None` if it has no ports and cannot have any.
    pub fn of(instance: &Instance, template: Option<&Template>) -> Option<Self> {
        let requested = instance.spec.public_exposure.as_ref().map_or(&[][..], |exposure| &exposure.ports);
        let is_allowed = template.is_some_and(|template| {
            template.spec.allow_public_exposure && template.spec.environment_list.len() == 1
        });
        if !is_allowed && requested.is_empty() {
            return None;
        }
        let mut conditions = instance.status.conditions.iter();
        let trouble = conditions.find(|of| of.type_ == PUBLIC_EXPOSURE_READY && of.status != "True");
        let is_full = trouble.is_some_and(|of| {
            of.reason == reason::NO_FREE_PORT && of.observed_generation == instance.metadata.generation
        });
        let port = |(port, fault): (&ExposedPort, Option<PortFault>)| {
            let outside = outside(instance, port).filter(|_| fault.is_none());
            let is_taken = is_full && outside.is_none() && port.port > 0;
            Port {
                name: port.name.clone(),
                inside: port.target_port,
                protocol: port.protocol.to_string(),
                fault: fault.as_ref().map(Problem::from).or(is_taken.then_some(Problem::PublicPortTaken)),
                outside,
                entry: entry(port),
                same: requested.iter().filter(|other| *other == port).count(),
            }
        };
        let all: Vec<Port> = requested.iter().zip(faults(requested)).map(port).collect();
        let is_said = all.iter().any(|port| port.fault.is_some());
        Some(Self { all, trouble: trouble.filter(|_| !is_said).cloned() })
    }
}

/// Returns the public address and port of a requested port, once they are assigned.
fn outside(instance: &Instance, port: &ExposedPort) -> Option<String> {
    let status = instance.status.public_exposure.as_ref()?;
    if status.phase != ExposurePhase::Ready || status.external_ip.is_empty() {
        return None;
    }
    let is_it = |assigned: &&ExposedPort| {
        assigned.name == port.name
            && assigned.target_port == port.target_port
            && (port.port == 0 || assigned.port == port.port)
    };
    let assigned = status.ports.iter().find(is_it)?;
    let address = &status.external_ip;
    let host = if address.contains(':') { format!("[{address}]") } else { address.clone() };
    Some(format!("{host}:{}", assigned.port))
}

#[cfg(test)]
mod unit_tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::merge;

    fn port(name: &str, public: i32, target: i32) -> Value {
        json!({"name": name, "port": public, "targetPort": target, "protocol": "TCP"})
    }

    /// An Instance that requests ports, with the ports of its status and the reason of its condition.
    fn instance(requested: &Value, assigned: &Value, reason: &str, more: &Value) -> Instance {
        let condition = json!({"type": "PublicExposureReady", "status": if reason.is_empty() { "True" } else { "False" },
            "reason": reason, "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 3});
        let mut object = json!({
            "metadata": {"name": "vm", "namespace": "tenant-ada", "uid": "u1", "generation": 3},
            "spec": {"running": true, "publicExposure": {"ports": requested}},
            "status": {
                "publicExposure": {"externalIP": "10.0.0.1", "phase": "Ready", "ports": assigned}, "conditions": [condition],
            },
        });
        merge::apply(&mut object, more);
        serde_json::from_value(object).expect("an Instance")
    }

    /// Returns the address and the fault of each port.
    fn shown(instance: &Instance) -> Vec<(Option<String>, Option<Problem>)> {
        let ports = Ports::of(instance, None).expect("it has ports");
        ports.all.into_iter().map(|port| (port.outside, port.fault)).collect()
    }

    fn at(port: u16) -> (Option<String>, Option<Problem>) {
        (Some(format!("10.0.0.1:{port}")), None)
    }

    #[test]
    fn the_reason_stands_beside_the_port_that_has_it() {
        let [ssh, second] = [port("ssh", 22, 22), port("ssh", 0, 80)];
        let [target, public] = [port("web", 0, 22), port("https", 22, 443)];
        let all = json!([ssh, second, target, public]);
        let case = instance(&all, &json!([ssh]), "InvalidRequest", &json!({}));
        let because = |problem| (None, Some(problem));
        let expected =
            [Problem::PortNameTaken, Problem::PortTargetTaken, Problem::PublicPortTaken].map(because);
        assert_eq!(shown(&case), [vec![at(22)], expected.to_vec()].concat());
        assert!(Ports::of(&case, None).expect("ports").trouble.is_none(), "the ports say so");
        let sctp = json!([{"name": "a", "port": 0, "targetPort": 1, "protocol": "SCTP"}]);
        let case = instance(&sctp, &json!([]), "InvalidRequest", &json!({}));
        assert_eq!(shown(&case), [because(Problem::PortInvalid)]);
    }

    #[test]
    fn a_port_that_another_machine_has_is_taken_until_the_request_changes() {
        let [http, ssh] = [port("http", 0, 80), port("ssh", 22, 22)];
        let assigned = json!([port("http", 49152, 80)]);
        let both = json!([http, ssh]);
        let case = instance(&both, &assigned, "NoFreePort", &json!({}));
        assert_eq!(shown(&case), [at(49152), (None, Some(Problem::PublicPortTaken))]);
        // The condition is about an earlier request.
        let newer = json!({"metadata": {"generation": 4}});
        let case = instance(&both, &assigned, "NoFreePort", &newer);
        assert_eq!(shown(&case), [at(49152), (None, None)]);
        let case = instance(&both, &assigned, "WaitingForAddress", &json!({}));
        assert_eq!(shown(&case), [at(49152), (None, None)]);
        assert!(Ports::of(&case, None).expect("ports").trouble.is_some());
        let waiting = json!({"status": {"publicExposure": {"phase": "Provisioning"}}});
        let case = instance(&both, &assigned, "WaitingForAddress", &waiting);
        assert_eq!(shown(&case), [(None, None), (None, None)]);
    }

    #[test]
    fn equal_ports_are_counted() {
        let ssh = port("ssh", 22, 22);
        let case =
            instance(&json!([ssh, port("web", 0, 80), ssh]), &json!([ssh]), "InvalidRequest", &json!({}));
        let ports = Ports::of(&case, None).expect("ports").all;
        assert_eq!(ports.iter().map(|port| port.same).collect::<Vec<_>>(), [2, 1, 2]);
        assert_eq!(ports[0].entry, ports[2].entry);
        assert_ne!(ports[0].entry, ports[1].entry);
    }
}
