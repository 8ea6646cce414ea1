//! The content of the objects, removals, and reports of failures.

use serde_json::{Value, json};

use super::{
    Observed, Outcome, Problem, Validated, assigned, now, object, observed, policy, service, settings, two,
};
use crate::api::condition::Condition;
use crate::api::instance::{ExposedPort, InstanceKind};
use crate::api::{Object, reason};
use crate::controllers::public_exposure::allocator::Transport;
use crate::controllers::public_exposure::children::in_order_of;
use crate::controllers::public_exposure::observe::transport;
use crate::controllers::public_exposure::plan::plan;
use crate::controllers::public_exposure::report::report;
use crate::controllers::public_exposure::validate::WantedPort;
use crate::kinds::{LoadBalancerServiceKind, NetworkPolicyKind};
use crate::runtime::apply::Failure;
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::events::EventType;
use crate::runtime::reconciler::Report;

fn labels() -> Value {
    json!({
        "crownlabs.polito.it/instance": "my.box",
        "crownlabs.polito.it/template": "box",
        "crownlabs.polito.it/tenant": "ada",
    })
}

#[test]
fn the_objects_select_the_pods_of_the_instance_and_their_ports() {
    let settings = settings(&["10.0.0.1"]);
    let dns = json!([{"name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP"}, two()[1]]);
    let mut case = observed(&dns, &json!({}));
    let allocation = super::allocate(&super::Addresses::default(), &case, &settings);
    let made = service(&case, &settings, &allocation).manifest.expect("to be made").json().clone();
    assert_eq!(made["spec"]["selector"], labels());
    assert_eq!(made["metadata"]["labels"]["crownlabs.polito.it/component"], "pe");
    let made =
        policy(&case, &allocation).and_then(|desired| desired.manifest).expect("to be made").json().clone();
    let name = "crownlabs-allow-publicexposure-ingress-traffic-my.box";
    assert_eq!(
        (&made["metadata"]["name"], &made["metadata"]["namespace"]),
        (&name.into(), &"tenant-ada".into())
    );
    let mut expected = labels();
    expected["crownlabs.polito.it/managed-by"] = "instance".into();
    assert_eq!(made["metadata"]["labels"], expected);
    let spec = json!({
        "podSelector": {"matchLabels": {"crownlabs.polito.it/instance": "my.box"}},
        "ingress": [{"ports": [{"port": 5353, "protocol": "UDP"}, {"port": 22, "protocol": "TCP"}]}],
        "policyTypes": ["Ingress"],
    });
    assert_eq!(made["spec"], spec);
    // The status contains the protocols, too.
    case.request = Validated::Ports(super::wanted(&case, &settings));
    case.allocation = Some(allocation.clone());
    super::made(&mut case, &settings, &allocation);
    let said = report(&case, &settings, &Outcome::default(), now()).status.public_exposure.expect("reported");
    let said: Vec<Value> = said.ports.iter().map(|port| json!([port.name, port.protocol])).collect();
    assert_eq!(said, [json!(["dns", "UDP"]), json!(["ssh", "TCP"])]);
}

#[test]
fn an_absent_protocol_is_tcp_and_others_are_refused() {
    let known = ["", "TCP", "UDP", "SCTP"].map(transport);
    assert_eq!(known, [Some(Transport::Tcp), Some(Transport::Tcp), Some(Transport::Udp), None]);
}

#[test]
fn a_list_keeps_its_order_only_if_it_has_the_same_elements() {
    for (before, wanted, expected) in [
        (vec![1, 2], vec![2, 1], vec![1, 2]),
        (vec![1, 2], vec![3, 1], vec![3, 1]),
        (vec![1, 2, 3], vec![2, 1], vec![2, 1]),
        (vec![], vec![1], vec![1]),
    ] {
        assert_eq!(in_order_of(&before, wanted.clone()), expected, "{before:?}, {wanted:?}");
    }
}

#[test]
fn terminating_and_foreign_objects_are_not_removed() {
    let settings = settings(&[]);
    let mut case = observed(&json!([]), &json!({}));
    case.request = Validated::Nothing;
    let metadata = |name: &str, owner: &str, leaving: Option<&str>| {
        json!({"name": name, "namespace": "tenant-ada", "uid": "x", "deletionTimestamp": leaving, "ownerReferences": [
            {"kind": "Instance", "name": "my.box", "uid": owner, "controller": true},
        ]})
    };
    let leaving = Some("2026-01-01T00:00:00Z");
    for (owner, leaving, removed) in
        [("u1", None, 2), ("u1", leaving, 0), ("u2", None, 0), ("u2", leaving, 0)]
    {
        let of = |name: &str| json!({"metadata": metadata(name, owner, leaving)});
        case.children.set::<LoadBalancerServiceKind>([object(of("my-box-pe"))]);
        let policy = "crownlabs-allow-publicexposure-ingress-traffic-my.box";
        case.children.set::<NetworkPolicyKind>([object(of(policy))]);
        assert_eq!(plan(&case, &settings, now()).remove.len(), removed, "{owner} {leaving:?}");
    }
}

fn failure(kind: &'static str, error: ApiError) -> Outcome<()> {
    Outcome::of(vec![Failure { component: Component::Whole, kind, name: "x".to_owned(), error }])
}

fn condition(report: &Report<InstanceKind>) -> &Condition {
    report.status.conditions.first().expect("a condition")
}

/// The same case with the status of a report, and optionally another message in the condition.
fn after(case: &Observed, report: &Report<InstanceKind>, message: Option<&str>) -> Observed {
    let mut instance: Object<InstanceKind> = (*case.instance).clone();
    instance.status = report.status.clone();
    if let Some(message) = message {
        instance.status.conditions[0].message = message.into();
    }
    Observed { instance: instance.into(), ..case.clone() }
}

#[test]
fn reports_distinguish_failures() {
    let settings = settings(&["10.0.0.1"]);
    let case = assigned(&settings, Some("10.0.0.1"));
    let ready = report(&case, &settings, &Outcome::default(), now());
    assert_eq!(condition(&ready).status, "True");
    assert_eq!(
        condition(&ready).message,
        "Public exposure assigned: 10.0.0.1, ssh at 22 (TCP), http at 49152 (TCP)"
    );
    assert!(matches!(ready.events[0].type_, EventType::Normal), "{ready:?}");
    // Transient failures are not reported.
    let passing = report(&case, &settings, &failure("Service", ApiError::transient("a timeout")), now());
    assert_eq!((passing.status, passing.events.len()), (case.instance.status.clone(), 0));
    for (kind, reason, sentence) in [
        ("NetworkPolicy", "NetworkPolicyFailed", "Failed to enforce the network policy"),
        ("Service", "ServiceFailed", "Failed to create or update the LoadBalancer service"),
    ] {
        let failed = report(&case, &settings, &failure(kind, ApiError::Invalid("because".to_owned())), now());
        let told = condition(&failed);
        assert_eq!((&*told.reason, &*told.status), (reason, "False"));
        assert!(told.message.starts_with(sentence) && told.message.contains("because"), "{told:?}");
        assert!(matches!(failed.events[0].type_, EventType::Warning), "{failed:?}");
    }
}

#[test]
fn an_event_reports_a_new_reason_or_a_new_message() {
    let settings = settings(&["10.0.0.1"]);
    let case = assigned(&settings, Some("10.0.0.1"));
    let first = report(&case, &settings, &Outcome::default(), now());
    let events = |case: &Observed| report(case, &settings, &Outcome::default(), now()).events.len();
    assert_eq!(events(&after(&case, &first, None)), 0);
    assert_eq!(events(&after(&case, &first, Some("Public exposure assigned: 10.0.0.9"))), 1);
    let waiting = assigned(&settings, None);
    assert_eq!(events(&after(&waiting, &first, None)), 1);
    let told = report(&waiting, &settings, &Outcome::default(), now());
    assert_eq!(condition(&told).message, "Waiting for LoadBalancer IP to be assigned: 10.0.0.1 is requested");
    let problem = Problem::fault(Component::Whole, reason::INVALID_REQUEST, "no");
    let denied = Observed { request: Validated::Denied(problem), allocation: None, ..case };
    assert_eq!(events(&after(&denied, &first, None)), 1);
}

#[test]
fn a_port_with_an_invalid_number_in_the_status_is_ignored() {
    let port = |number: i32, target: i32| -> ExposedPort {
        serde_json::from_value(json!({"name": "web", "port": number, "targetPort": target})).expect("a port")
    };
    for (number, target, is_used) in [
        (1, 1, true),
        (65_535, 65_535, true),
        (0, 80, false),
        (80, 0, false),
        (-1, 80, false),
        (65_536, 80, false),
    ] {
        assert_eq!(WantedPort::of_status(&port(number, target)).is_some(), is_used, "{number} {target}");
    }
}
