//! Foreign changes, and changes of the request and of the Template: which of them are kept, and which are repaired.

use super::*;
use crate::controllers::public_exposure::observe::{Observed, remembered};
use crate::kinds::{LoadBalancerService, NetworkPolicyKind};
use crate::runtime::component::Component;

/// The Service of `assigned`, with further members.
fn changed(case: &Observed, more: &Value) -> Observed {
    let mut service = serde_json::to_value(case.service().expect("made")).expect("JSON");
    merge::apply(&mut service, more);
    replaced(case, service)
}

/// An Instance whose exposure is ready, with the `NetworkPolicy`.
fn ready(settings: &Settings) -> Observed {
    let mut case = assigned(settings, Some("10.0.0.1"));
    let desired = policy(&case, case.allocation.as_ref().expect("allocated")).expect("ports");
    let mut policy = desired.manifest.as_ref().expect("to be made").json().clone();
    policy["metadata"]["uid"] = "p1".into();
    case.children.set::<NetworkPolicyKind>([object(policy)]);
    with_status(&case, &report(&case, settings, &Outcome::default(), now()))
}

/// The request of an Instance with these ports, and everything else as in `case`.
fn asking(case: &Observed, ports: &Value, settings: &Settings, addresses: &Addresses) -> Observed {
    let asked = observed(ports, &json!({"status": to_json(&case.instance.status)}));
    let mut asked = Observed { instance: asked.instance, ..case.clone() };
    asked.request = Validated::Ports(wanted(&asked, settings));
    asked.allocation = Some(allocate(addresses, &asked, settings));
    asked
}

fn to_json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("JSON")
}

#[test]
fn a_service_with_colliding_node_ports_is_recreated() {
    let settings = settings(&["10.0.0.1"]);
    let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": port, "protocol": protocol});
    let ports = json!([port("dns", 53, "UDP"), port("zone", 53, "TCP")]);
    let shared = changed(&ready(&settings), &json!({"spec": {"ports": ports}}));
    for (ports, is_made_anew) in [
        (json!([port("dns", 80, "TCP"), port("zone", 81, "TCP")]), true),
        (json!([port("dns", 80, "UDP"), port("zone", 81, "UDP")]), true),
        (json!([port("dns", 80, "UDP"), port("zone", 81, "TCP")]), false),
        (json!([port("dns", 80, "TCP"), port("other", 81, "TCP")]), false),
        (json!([port("zone", 81, "UDP")]), false),
    ] {
        let plan = plan(&asking(&shared, &ports, &settings, &Addresses::default()), &settings, now());
        assert_eq!(plan.remove.len(), usize::from(is_made_anew), "{ports}");
        let is_changed = plan.ensure.iter().any(|desired| desired.kind.kind == "Service");
        assert_eq!(is_changed, !is_made_anew, "{ports}");
    }
}

#[test]
fn the_order_of_ports_changes_nothing() {
    let settings = settings(&["10.0.0.1"]);
    let case = ready(&settings);
    let addresses = Addresses::default();
    addresses.observe(&key(), || claim(case.service().expect("made"), &settings));
    let third = json!({"name": "dns", "port": 0, "targetPort": 53, "protocol": "UDP"});
    for ports in [two(), json!([two()[1], two()[0]])] {
        let asked = asking(&case, &ports, &settings, &addresses);
        let plan = plan(&asked, &settings, now());
        for desired in &plan.ensure {
            assert_eq!((&desired.manifest, &desired.fields), (&None, &Value::Null), "{ports}");
        }
        let report = report(&asked, &settings, &Outcome::default(), now());
        assert_eq!((&report.status, report.events.len()), (&case.instance.status, 0), "{ports}");
    }
    // The order in the existing Service and NetworkPolicy does not matter either.
    let service = case.service().expect("made");
    let reversed: Vec<Value> = service.spec.ports.iter().rev().map(to_json).collect();
    let reordered = changed(&case, &json!({"spec": {"ports": reversed}}));
    let asked = asking(&reordered, &two(), &settings, &addresses);
    assert_eq!(plan(&asked, &settings, now()).ensure[0].fields, Value::Null);
    assert_eq!(report(&asked, &settings, &Outcome::default(), now()).status, case.instance.status);
    // A further port is a change.
    let more = asking(&case, &json!([third, two()[0], two()[1]]), &settings, &addresses);
    let plan = plan(&more, &settings, now());
    assert_eq!(plan.ensure[0].fields["spec"]["ports"].as_array().map(Vec::len), Some(3));
    assert_eq!(plan.ensure[1].fields["spec"]["ingress"][0]["ports"].as_array().map(Vec::len), Some(3));
}

/// An Instance with ports in its status that a new Instance would not get.
fn reported() -> Observed {
    let ports = json!([
        {"name": "ssh", "port": 22, "targetPort": 22}, {"name": "http", "port": 49200, "targetPort": 8080},
    ]);
    observed(&two(), &json!({"status": {"publicExposure": {"externalIP": "10.0.0.2", "ports": ports}}}))
}

#[test]
fn a_service_that_lost_label_annotation_or_type_gets_its_address_and_ports_back() {
    let settings = settings(&["10.0.0.1-10.0.0.2"]);
    let whole = json!({
        "metadata": {
            "name": "my-box-pe", "namespace": "tenant-ada", "uid": "s1",
            "annotations": {"metallb.io/loadBalancerIPs": "10.0.0.2"},
            "ownerReferences": [{"kind": "Instance", "name": "my.box", "uid": "u1", "controller": true}],
        },
        "spec": {"type": "LoadBalancer", "ports": [
            {"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"},
            {"name": "http", "port": 49200, "targetPort": 8080, "protocol": "TCP"},
        ]},
    });
    let service = |more: &Value| {
        let mut service = whole.clone();
        merge::apply(&mut service, more);
        Some(object::<crate::kinds::LoadBalancerServiceKind>(service))
    };
    let elsewhere = json!({"metallb.io/loadBalancerIPs": "192.0.2.1"});
    let cases = [
        // Without its label, it is not in the store, like a deleted Service.
        ("label", None),
        ("annotation", service(&json!({"metadata": {"annotations": null}}))),
        ("type", service(&json!({"spec": {"type": "ClusterIP"}}))),
        ("address", service(&json!({"metadata": {"annotations": elsewhere}}))),
        ("ports", service(&json!({"metadata": {"annotations": null}, "spec": {"ports": []}}))),
    ];
    for (lost, service) in cases {
        let addresses = Addresses::default();
        let mut case = reported();
        addresses.remember(&ObjectKey::of(&*case.instance), || remembered(&case.instance, &settings));
        let before = object::<crate::kinds::LoadBalancerServiceKind>(whole.clone());
        addresses.observe(&key(), || claim(&before, &settings));
        case.children.set(service);
        addresses.observe(&key(), || claim(case.service()?, &settings));
        // Other Instances do not get them in the meantime.
        let other = observed(&two(), &json!({"metadata": {"name": "other", "uid": "u9"}}));
        assert_eq!(allocate(&addresses, &other, &settings).address.to_string(), "10.0.0.1", "{lost}");
        let given = allocate(&addresses, &case, &settings);
        let ports: Vec<u16> = given.ports.iter().map(|(_, port)| *port).collect();
        assert_eq!((given.address.to_string().as_str(), &*ports), ("10.0.0.2", &[22, 49200][..]), "{lost}");
        let desired = super::service(&case, &settings, &given);
        let mut repaired = case.service().map_or_else(|| json!({}), to_json::<LoadBalancerService>);
        merge::apply(&mut repaired, &desired.fields);
        let numbers: Vec<&Value> =
            repaired["spec"]["ports"].as_array().expect("ports").iter().map(|port| &port["port"]).collect();
        assert_eq!(
            (&repaired["spec"]["type"], numbers),
            (&json!("LoadBalancer"), vec![&json!(22), &json!(49200)])
        );
        let address = desired.annotations["metallb.io/loadBalancerIPs"].as_deref();
        assert_eq!(address, Some("10.0.0.2"), "{lost}");
    }
}

#[test]
fn the_ports_in_a_status_count_only_while_the_instance_requests_ports() {
    let settings = settings(&["10.0.0.2"]);
    let of = |more: Value| {
        let mut instance = to_json(&*reported().instance);
        merge::apply(&mut instance, &more);
        remembered(&object(instance), &settings).map(|(address, ports)| (address.to_string(), ports.len()))
    };
    assert_eq!(of(json!({})), Some(("10.0.0.2".to_owned(), 2)));
    for more in [
        json!({"spec": {"running": false}}),
        json!({"spec": {"publicExposure": {"ports": []}}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        json!({"status": {"publicExposure": {"externalIP": "10.0.0.3"}}}),
        json!({"status": {"publicExposure": {"ports": []}}}),
    ] {
        assert_eq!(of(more.clone()), None, "{more}");
    }
}

#[test]
fn a_change_of_the_automatic_range_moves_no_port_of_an_exposure() {
    let before = settings(&["10.0.0.1"]);
    let case = ready(&before);
    let mut after = before.clone();
    after.config.automatic_port_range = "30000-30001".parse().expect("a range");
    let numbers = |case: &Observed, ports: &Value, addresses: &Addresses| -> Vec<u16> {
        let allocation = asking(case, ports, &after, addresses).allocation.expect("allocated");
        allocation.ports.iter().map(|(_, port)| *port).collect()
    };
    let addresses = Addresses::default();
    addresses.observe(&key(), || claim(case.service().expect("made"), &after));
    assert_eq!(numbers(&case, &two(), &addresses), [22, 49152]);
    let third = json!({"name": "dns", "port": 0, "targetPort": 53, "protocol": "UDP"});
    let three = json!([two()[0], two()[1], third]);
    assert_eq!(numbers(&case, &three, &addresses), [22, 49152, 30000], "a new port is in the new range");
    // A Service that was deleted is restored with the ports in the status.
    let addresses = Addresses::default();
    addresses.remember(&ObjectKey::of(&*case.instance), || remembered(&case.instance, &after));
    let mut gone = case.clone();
    gone.children.set::<LoadBalancerServiceKind>([]);
    assert_eq!(numbers(&gone, &two(), &addresses), [22, 49152]);
    // A new Instance gets ports of the new range.
    let other = observed(&json!([two()[0]]), &json!({"metadata": {"name": "other", "uid": "u9"}}));
    assert_eq!(allocate(&addresses, &other, &after).ports[0].1, 30000);
}

/// The environments of an Instance are fixed when its objects are created.
#[test]
fn the_environments_of_the_instance_decide_not_those_of_the_template() {
    let settings = settings(&["10.0.0.1"]);
    let template = |count: usize| -> Arc<Template> {
        let list: Vec<Value> = (0..count).map(|n| json!({"name": format!("e{n}")})).collect();
        object(
            json!({"metadata": {"name": "box"}, "spec": {"allowPublicExposure": true, "environmentList": list}}),
        )
    };
    for (fixed, of_template, is_exposed) in
        [(0, 1, true), (0, 2, false), (1, 2, true), (1, 0, true), (2, 1, false)]
    {
        let fixed: Vec<Value> = (0..fixed).map(|n| json!({"name": format!("e{n}")})).collect();
        let case = observed(&two(), &json!({"status": {"environments": fixed}}));
        let validated = validate(&case.instance, Some(&template(of_template)), &settings);
        assert_eq!(matches!(validated, Validated::Ports(_)), is_exposed, "{fixed:?} of {of_template}");
    }
}

#[test]
fn changed_policy_types_are_repaired() {
    let settings = settings(&["10.0.0.1"]);
    let case = ready(&settings);
    let fields = |case: &Observed| plan(case, &settings, now()).ensure[1].fields.clone();
    assert_eq!(fields(&case), Value::Null);
    for types in [json!(["Egress"]), json!(["Ingress", "Egress"]), json!(null)] {
        let mut policy = to_json(case.policy().expect("made"));
        merge::apply(&mut policy, &json!({"spec": {"policyTypes": types}}));
        let mut case = case.clone();
        case.children.set::<NetworkPolicyKind>([object(policy)]);
        assert_eq!(fields(&case), json!({"spec": {"policyTypes": ["Ingress"]}}), "{types}");
    }
}

/// A Service that is being deleted keeps its ports until it is gone, because a load balancer may still use it.
#[test]
fn the_ports_of_a_service_that_is_being_deleted_are_not_free() {
    let settings = settings(&["10.0.0.1"]);
    let leaving = changed(
        &ready(&settings),
        &json!({"metadata": {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
        }}),
    );
    let addresses = Addresses::default();
    addresses.observe(&key(), || claim(leaving.service().expect("there"), &settings));
    // The Instance was stopped, or deleted.
    addresses.settle(&ObjectKey::of(&*leaving.instance));
    let ssh = json!([two()[1]]);
    let other = observed(&ssh, &json!({"metadata": {"name": "other", "uid": "u9"}}));
    let wanted = wanted(&other, &settings);
    assert_eq!(addresses.allocate(&other.instance, None, &wanted, &settings), None);
    addresses.observe(&key(), || None);
    assert!(addresses.take_waiting().contains(&ObjectKey::of(&*other.instance)));
    assert!(addresses.allocate(&other.instance, None, &wanted, &settings).is_some());
    // If it is still requested, it is recreated once it is gone. Nothing is written before.
    let plan = plan(&leaving, &settings, now());
    assert!(plan.ensure.iter().all(|desired| desired.kind.kind != "Service"), "{plan:?}");
    let told = told(&report(&leaving, &settings, &Outcome::default(), now()));
    assert!(told.starts_with("Provisioning 10.0.0.1 Service my-box-pe is being deleted"), "{told}");
}

#[test]
fn the_service_is_read_before_the_next_plan_after_a_write_without_a_response() {
    let settings = settings(&["10.0.0.1"]);
    for request in [Validated::Nothing, Validated::Ports(Vec::new())] {
        let case = Observed { request, is_unanswered: true, ..ready(&settings) };
        let confirm = plan(&case, &settings, now()).confirm;
        assert_eq!(confirm.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>(), [key()]);
    }
    assert_eq!(plan(&ready(&settings), &settings, now()).confirm, []);
}

#[test]
fn a_name_conflict_with_another_instance_is_reported_and_nothing_is_exposed() {
    let settings = settings(&["10.0.0.1"]);
    let problem = crate::controllers::public_exposure::validate::name_conflict(
        "Service my-box-pe belongs to Instance my-box",
    );
    let case = Observed { request: Validated::Kept(problem), ..observed(&two(), &json!({})) };
    let plan = plan(&case, &settings, now());
    let in_a_minute = Requeue::After(Duration::from_mins(1));
    assert_eq!((plan.ensure.len(), plan.remove.len(), plan.requeue), (0, 0, in_a_minute));
    let told = told(&report(&case, &settings, &Outcome::default(), now()));
    assert!(told.starts_with("Error  Service my-box-pe belongs to Instance my-box"), "{told}");
    assert!(told.ends_with("| NameConflict | NameConflict"), "{told}");
}

#[test]
fn a_service_is_deleted_only_if_the_api_server_confirms_the_reason() {
    let settings = settings(&["10.0.0.1"]);
    let case = ready(&settings);
    let problem = Problem::fault(Component::Whole, reason::NOT_ALLOWED, "no");
    for (request, kinds) in
        [(Validated::Nothing, vec!["Instance"]), (Validated::Denied(problem), vec!["Instance", "Template"])]
    {
        let case = Observed { request, allocation: None, ..case.clone() };
        let plan = plan(&case, &settings, now());
        let removal = plan.remove.iter().find(|removal| removal.kind.kind == "Service").expect("removed");
        let preconditions: Vec<&str> =
            removal.preconditions.iter().map(|precondition| precondition.kind().kind).collect();
        assert_eq!(preconditions, kinds);
    }
}
