//! The public ports of an Instance: a new port must be possible beside the other ports of the Instance, and its public
//! port must be free.

use std::collections::BTreeSet;

use serde::Deserialize as _;

use crate::api::Instance;
use crate::api::denial::DenialReason;
use crate::api::exposed_ports::{PortFault, Taken, added, public_port};
use crate::api::instance::ExposedPort;
use crate::runtime::ObjectKey;
use crate::webhook::decision::Denial;
use crate::webhook::requester::{Bypass, Requester};
use crate::webhook::review::Request;
use crate::webhook::view::View;

/// Refuses new ports that cannot be exposed. Stored ports may stay, so that other parts of the Instance can be changed:
/// the exposure loop exposes the ports that are possible. For administrators, who may restore a stored Instance, the
/// faults are warnings, which are returned. This daemon is exempt.
///
/// # Errors
/// When a new port cannot be exposed. The message names the port and the fault.
pub fn check(request: &Request, bypass: &Bypass, view: &dyn View) -> Result<Vec<String>, Denial> {
    let requester = bypass.requester(&request.user_info);
    if !request.is_write() || requester == Requester::Ourselves {
        return Ok(Vec::new());
    }
    // The schema rejects an object that cannot be read, and an invalid stored object has no ports.
    let ports = |object: &serde_json::Value| {
        let exposure = Instance::deserialize(object).ok().and_then(|instance| instance.spec.public_exposure);
        exposure.map(|exposure| exposure.ports).unwrap_or_default()
    };
    let (old, new) = (ports(&request.old_object), ports(&request.object));
    let added = added(&old, &new);
    // Of two new ports that exclude each other, the second one is refused.
    let is_stored = |(at, _): &(usize, &ExposedPort)| added.binary_search_by_key(at, |(at, _)| *at).is_err();
    let mut beside: Taken<'_> = new.iter().enumerate().filter(is_stored).map(|(_, port)| port).collect();
    let instance = ObjectKey::new(request.namespace.as_str(), request.object_name());
    let has_number = added.iter().any(|(_, port)| port.port > 0);
    let in_use = if has_number { view.taken_public_ports(&instance) } else { BTreeSet::new() };
    let mut denials = added.iter().filter_map(|(at, port)| {
        let fault = beside.fault(port);
        beside.add(port);
        if let Some(fault) = fault {
            return Some(of_fault(*at, &fault));
        }
        let is_in_use = public_port(port).is_some_and(|port| in_use.contains(&port));
        is_in_use.then(|| of_public_port(*at, port))
    });
    if requester == Requester::Administrator {
        return Ok(denials.map(|denial| denial.message).collect());
    }
    denials.next().map_or(Ok(Vec::new()), Err)
}

fn of_fault(at: usize, fault: &PortFault) -> Denial {
    let denial = Denial::malformed(format!("spec.publicExposure.ports[{at}]: {fault}"));
    match fault {
        PortFault::NameTaken(name) => denial.because(DenialReason::PortNameTaken, name),
        PortFault::TargetTaken(target) => denial.because(DenialReason::PortTargetTaken, &target.to_string()),
        PortFault::PublicTaken(port) => denial.because(DenialReason::PublicPortTaken, &port.to_string()),
        PortFault::Protocol { .. } | PortFault::Number { .. } | PortFault::Name(_) => denial,
    }
}

fn of_public_port(at: usize, port: &ExposedPort) -> Denial {
    let number = port.port.to_string();
    let message = format!(
        "spec.publicExposure.ports[{at}]: the public port {number} is in use: request another port, or port 0 (any free port)"
    );
    Denial::conflict(message).because(DenialReason::PublicPortTaken, &number)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::webhook::fixture::{TestCluster, instance, merged, request};

    fn with(ports: &Value) -> Value {
        let object = instance("tenant-ada", "vm", "workspace-tea/small", true);
        merged(object, &json!({"spec": {"publicExposure": {"ports": ports}}}))
    }

    fn bypass() -> Bypass {
        Bypass { groups: vec!["admins".to_owned()], own_user: "daemon".to_owned() }
    }

    /// Returns the message and the reasons of a refusal; empty for an admission. Public port 443 is taken.
    fn refusal(old: Value, new: &Value) -> (String, Vec<DenialReason>) {
        let cluster = TestCluster::default().with_taken_port(443);
        let denial = check(&request("ada", "instances", old, with(new)), &bypass(), &cluster).err();
        let reasons = |denial: &Denial| denial.causes.iter().map(|cause| cause.reason).collect();
        denial.map(|denial| (denial.message.clone(), reasons(&denial))).unwrap_or_default()
    }

    fn port(name: &str, public: u16, target: u16, protocol: &str) -> Value {
        json!({"name": name, "port": public, "targetPort": target, "protocol": protocol})
    }

    #[test]
    fn a_new_port_that_is_not_possible_is_refused_with_its_reason() {
        let ssh = port("ssh", 22, 22, "TCP");
        for (added, words, reason) in [
            (port("web", 0, 80, "TCP"), "", None),
            (
                port("ssh", 0, 80, "TCP"),
                "ports[1]: two ports are named ssh",
                Some(DenialReason::PortNameTaken),
            ),
            (
                port("web", 0, 22, "TCP"),
                "ports[1]: two ports have targetPort 22",
                Some(DenialReason::PortTargetTaken),
            ),
            (
                port("web", 22, 80, "TCP"),
                "ports[1]: two ports request the public port 22",
                Some(DenialReason::PublicPortTaken),
            ),
            (
                port("web", 443, 80, "TCP"),
                "ports[1]: the public port 443 is in use",
                Some(DenialReason::PublicPortTaken),
            ),
            (port("web", 0, 80, "SCTP"), "ports[1]: port web is SCTP", None),
        ] {
            let new = json!([ssh, added]);
            for old in [Value::Null, with(&json!([ssh])), with(&json!([]))] {
                let (message, reasons) = refusal(old, &new);
                let expected = format!("spec.publicExposure.{words}");
                let is_expected =
                    if words.is_empty() { message.is_empty() } else { message.starts_with(&expected) };
                assert!(is_expected, "{new}: {message}");
                assert_eq!(reasons, Vec::from_iter(reason), "{new}");
            }
        }
        // The new port comes first.
        let (message, _) = refusal(with(&json!([ssh])), &json!([port("ssh", 0, 80, "TCP"), ssh]));
        assert!(message.starts_with("spec.publicExposure.ports[0]: two ports are named ssh"), "{message}");
    }

    #[test]
    fn stored_ports_that_are_not_possible_may_stay() {
        let [ssh, again, taken] =
            [port("ssh", 22, 22, "TCP"), port("ssh", 22, 22, "TCP"), port("https", 443, 443, "TCP")];
        let stored = json!([ssh, again, taken]);
        for new in [
            stored.clone(),
            json!([taken, ssh, again]),
            json!([ssh, again, taken, port("web", 0, 80, "TCP")]),
            json!([again, taken]),
            json!([]),
        ] {
            assert_eq!(refusal(with(&stored), &new).0, "", "{new}");
        }
        let third = json!([ssh, again, taken, ssh]);
        assert!(refusal(with(&stored), &third).0.contains("ports[3]: two ports are named ssh"));
    }

    #[test]
    fn the_faults_are_warnings_for_administrators_and_this_daemon_is_exempt() {
        let bad = with(&json!([port("ssh", 22, 22, "TCP"), port("ssh", 443, 80, "TCP")]));
        let checked = |user: &str, group: &str| {
            let mut review = request(user, "instances", Value::Null, bad.clone());
            review.user_info.groups.push(group.to_owned());
            check(&review, &bypass(), &TestCluster::default())
        };
        assert_eq!(checked("boss", "admins").map(|warnings| warnings.len()), Ok(1));
        assert_eq!(checked("daemon", "x"), Ok(Vec::new()));
        assert!(checked("ada", "x").is_err());
    }
}
