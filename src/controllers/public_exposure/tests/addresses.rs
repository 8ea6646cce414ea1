//! Addresses: IPv6, changes of the pool and the annotation, and load balancers that assign other addresses.

use std::time::Duration;

use jiff::SignedDuration;

use super::*;
use crate::controllers::public_exposure::observe::Observed;
use crate::runtime::component::Component;
use crate::runtime::plan::Requeue;

/// The Service of `case`, with further members.
fn with_service(case: &Observed, more: &Value) -> Observed {
    let mut service = serde_json::to_value(case.service().expect("made")).expect("JSON");
    merge::apply(&mut service, more);
    replaced(case, service)
}

#[test]
fn a_service_with_an_ipv6_address_is_of_that_family() {
    let spec = |pool: &str| {
        let settings = settings(&[pool]);
        let case = observed(&two(), &json!({}));
        let allocation = allocate(&Addresses::default(), &case, &settings);
        service(&case, &settings, &allocation).manifest.expect("to be made").json()["spec"].clone()
    };
    let six = spec("2001:db8::1");
    assert_eq!((&six["ipFamilies"], &six["ipFamilyPolicy"]), (&json!(["IPv6"]), &json!("SingleStack")));
    let four = spec("10.0.0.1");
    assert_eq!((&four["ipFamilies"], &four["ipFamilyPolicy"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_family_that_the_api_server_has_chosen_is_not_written() {
    let settings = settings(&["10.0.0.1"]);
    let case =
        with_service(&assigned(&settings, Some("10.0.0.1")), &json!({"spec": {"ipFamilies": ["IPv4"]}}));
    let allocation = allocate(&Addresses::default(), &case, &settings);
    assert_eq!(service(&case, &settings, &allocation).fields, Value::Null, "nothing to repair");
}

/// The API server rejects a change of a Service's first family.
#[test]
fn a_service_that_moves_to_another_family_is_recreated() {
    let (four, six) = (settings(&["10.0.0.1"]), settings(&["2001:db8::1"]));
    let lost = json!({"metadata": {"annotations": null}, "spec": {"ipFamilies": ["IPv4"]}});
    let case = with_service(&assigned(&four, Some("10.0.0.1")), &lost);
    let removed = |case: &Observed, settings: &Settings| {
        let mut case = case.clone();
        case.allocation = Some(allocate(&Addresses::default(), &case, settings));
        let plan = plan(&case, settings, now());
        let kinds: Vec<&str> = plan.ensure.iter().map(|desired| desired.kind.kind).collect();
        (plan.remove.len(), kinds.contains(&"Service"), plan.requeue)
    };
    assert_eq!(removed(&case, &six), (1, false, Requeue::After(Duration::ZERO)));
    assert_eq!(removed(&case, &four), (0, true, Requeue::Resync));
}

#[test]
fn a_new_address_annotation_keeps_the_address_and_removes_the_old_annotation() {
    let old = settings(&["10.0.0.1-10.0.0.9"]);
    let key = &*old.config.load_balancer_ips_key;
    let with_key = |key: &str| {
        let mut settings = old.clone();
        key.clone_into(&mut settings.config.load_balancer_ips_key);
        settings
    };
    let case = assigned(&old, Some("10.0.0.1"));
    let case = with_status(&case, &report(&case, &old, &Outcome::default(), now()));
    // An address other than the first one.
    let moved = json!({"metadata": {"annotations": {key: "10.0.0.7", "theirs": "x"}}});
    let case = with_service(&case, &moved);
    let status = json!({"status": {"publicExposure": {"externalIP": "10.0.0.7", "ports": [
        {"name": "ssh", "port": 22, "targetPort": 22}, {"name": "http", "port": 49152, "targetPort": 8080},
    ]}}});
    let case = Observed { instance: observed(&two(), &status).instance, ..case };
    let custom = with_service(
        &case,
        &json!({"metadata": {"annotations": {key: null, "lb.example.org/ip": "10.0.0.7"}}}),
    );
    for (case, before, now) in [
        (&case, key, "metallb.universe.tf/loadBalancerIPs"),
        (&case, key, "lbipam.cilium.io/ips"),
        (&custom, "lb.example.org/ip", key),
    ] {
        let settings = with_key(now);
        let addresses = Addresses::default();
        let said = || super::super::observe::remembered(&case.instance, &settings);
        addresses.remember(&ObjectKey::of(&*case.instance), said);
        addresses.observe(&super::key(), || claim(case.service().expect("there"), &settings));
        let given = allocate(&addresses, case, &settings);
        let ports: Vec<u16> = given.ports.iter().map(|(_, port)| *port).collect();
        assert_eq!((given.address.to_string().as_str(), &*ports), ("10.0.0.7", &[22, 49152][..]), "{now}");
        let desired = service(case, &settings, &given);
        assert_eq!(desired.annotations[now].as_deref(), Some("10.0.0.7"));
        assert_eq!(desired.annotations.get(before), Some(&None), "{before}");
        assert_eq!(desired.annotations.get("theirs"), None, "foreign annotations stay");
        assert_eq!(desired.fields, Value::Null, "the ports stay");
    }
    // Nothing is removed once the annotation has the configured key.
    let settled = json!({"metadata": {"annotations": {"dns.example.org/target": "10.0.0.7"}}});
    let settled = with_service(&case, &settled);
    let given = allocate(&Addresses::default(), &settled, &old);
    let desired = service(&settled, &old, &given);
    assert_eq!(desired.annotations.get("dns.example.org/target"), None);
}

#[test]
fn a_service_keeps_an_address_removed_from_the_pool_if_no_address_is_left() {
    let before = settings(&["10.0.0.1"]);
    let case = assigned(&before, Some("10.0.0.1"));
    let case = with_status(&case, &report(&case, &before, &Outcome::default(), now()));
    let full = settings(&["10.0.0.2"]);
    let invalid = Problem::fault(Component::Whole, reason::INVALID_REQUEST, "no");
    let empty = settings(&[]);
    let none = validate(&case.instance, Some(&template()), &empty);
    for (settings, request) in
        [(&full, case.request.clone()), (&full, Validated::Kept(invalid.clone())), (&empty, none)]
    {
        let case = Observed { request, allocation: None, ..case.clone() };
        let plan = plan(&case, settings, now());
        assert_eq!(plan.remove, []);
        let report = report(&case, settings, &Outcome::default(), now());
        let said = report.status.public_exposure.expect("an error");
        assert_eq!((said.external_ip.as_str(), said.ports.len()), ("10.0.0.1", 2), "it still has them");
    }
    // The same with an address of the pool.
    for request in [case.request.clone(), Validated::Kept(invalid)] {
        let case = Observed { request, allocation: None, ..case.clone() };
        assert_eq!(plan(&case, &before, now()).remove, []);
        let report = report(&case, &before, &Outcome::default(), now());
        assert_eq!(report.status.public_exposure.expect("an error").ports.len(), 2);
    }
}

#[test]
fn another_address_is_an_error_only_after_a_minute() {
    let settings = settings(&["10.0.0.1"]);
    let case = assigned(&settings, Some("10.9.9.9"));
    let after = |seconds: i64| now() + SignedDuration::from_secs(seconds);
    let key = ObjectKey::of(&*case.instance);
    let addresses = Addresses::default();
    let requested = "10.0.0.1".parse().expect("an address");
    let at = |case: &Observed, seconds: i64| {
        let since = addresses.other_since(&key, Some(requested), after(seconds));
        let case = Observed { other_since: since, ..case.clone() };
        (
            plan(&case, &settings, after(seconds)).requeue,
            report(&case, &settings, &Outcome::default(), after(seconds)),
        )
    };
    let (requeue, first) = at(&case, 0);
    assert_eq!(requeue, Requeue::After(Duration::from_mins(1)));
    assert!(told(&first).contains("| WaitingForAddress |"), "{}", told(&first));
    let (requeue, later) = at(&with_status(&case, &first), 59);
    assert_eq!((requeue, &later.status), (Requeue::After(Duration::from_secs(1)), &first.status));
    let (requeue, error) = at(&with_status(&case, &first), 60);
    let said = told(&error);
    assert_eq!(requeue, Requeue::Resync);
    assert!(
        said.contains("has assigned 10.9.9.9 instead of 10.0.0.1") && said.contains("OtherAddress"),
        "{said}"
    );
    // Another process, which has only started counting, reports the same.
    let known = Observed { other_since: Some(after(70)), ..with_status(&case, &error) };
    assert_eq!(report(&known, &settings, &Outcome::default(), after(71)).status, error.status);
    // Once the load balancer has assigned the address, the time starts again.
    assert_eq!(addresses.other_since(&key, None, after(80)), None);
    let (_, again) = at(&case, 90);
    assert!(told(&again).contains("| WaitingForAddress |"), "{}", told(&again));
    let elsewhere = "10.0.0.2".parse().expect("an address");
    assert_eq!(addresses.other_since(&key, Some(elsewhere), after(200)), Some(after(200)));
}
