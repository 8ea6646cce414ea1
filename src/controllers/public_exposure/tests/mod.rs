//! Validation, objects and reports, from JSON as the API server stores it.

mod addresses;
mod changes;
mod objects;
mod partial;
mod reconciler;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Settings;
use super::addresses::Addresses;
use super::observe::{Allocation, Observed, claim, service_name};
use super::plan::plan;
use super::report::report;
use super::validate::{Validated, WantedPort, held, validate};
use crate::api::instance::InstanceKind;
use crate::api::reason;
use crate::api::template::Template;
use crate::config::{ConfigDuration, PublicExposureConfig};
use crate::controllers::shared::children::Child;
use crate::fixtures::object;
use crate::kinds::LoadBalancerServiceKind;
use crate::runtime::apply::Failure;
use crate::runtime::children::Children;
use crate::runtime::component::Component;
use crate::runtime::error::ApiError;
use crate::runtime::object_events::Events;
use crate::runtime::plan::{Desired, Requeue};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{Outcome, Report};
use crate::runtime::{ObjectKey, merge};

fn settings(pool: &[&str]) -> Settings {
    let config = PublicExposureConfig {
        ip_pool: pool.iter().map(|&entry| entry.to_owned()).collect(),
        common_annotations: [("share".to_owned(), "pe".to_owned())].into(),
        ..PublicExposureConfig::default()
    };
    super::reconcile::settings(&config, ConfigDuration::from_secs(120)).expect("a pool")
}

/// An Instance with these ports, and further members.
fn observed(ports: &Value, more: &Value) -> Observed {
    let mut instance = json!({
        "metadata": {"name": "my.box", "namespace": "tenant-ada", "uid": "u1", "generation": 3},
        "spec": {
            "running": true,
            "template.crownlabs.polito.it/TemplateRef": {"name": "box", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
            "publicExposure": {"ports": ports},
        },
    });
    merge::apply(&mut instance, more);
    Observed {
        instance: object(instance),
        children: Children::default(),
        request: Validated::Unknown,
        allocation: None,
        is_unanswered: false,
        other_since: None,
        events: Events::Unknown,
    }
}

/// The Service of an Instance.
fn service(observed: &Observed, settings: &Settings, allocation: &Allocation) -> Desired {
    super::children::service(observed, settings, allocation).made()
}

/// The `NetworkPolicy` of an Instance.
fn policy(observed: &Observed, allocation: &Allocation) -> Option<Desired> {
    super::children::policy(observed, allocation).map(Child::made)
}

/// An Instance with this Service, and everything else as in `case`.
fn replaced(case: &Observed, service: Value) -> Observed {
    let mut case = case.clone();
    case.children.set::<LoadBalancerServiceKind>([object(service)]);
    case
}

/// A Template that allows public exposure.
fn template() -> Arc<Template> {
    object(json!({
        "metadata": {"name": "box", "namespace": "workspace-tea"},
        "spec": {"allowPublicExposure": true, "environmentList": [{"name": "main"}]},
    }))
}

fn two() -> Value {
    json!([{"name": "http", "port": 0, "targetPort": 8080}, {"name": "ssh", "port": 22, "targetPort": 22}])
}

fn key() -> ObjectKey {
    ObjectKey::new("tenant-ada", service_name("my.box"))
}

fn wanted(observed: &Observed, settings: &Settings) -> Vec<WantedPort> {
    match validate(&observed.instance, Some(&template()), settings) {
        Validated::Ports(wanted) => wanted,
        other => panic!("{other:?}"),
    }
}

/// The allocation for an Instance.
fn allocate(addresses: &Addresses, observed: &Observed, settings: &Settings) -> Allocation {
    let wanted = wanted(observed, settings);
    let allocated = addresses.allocate(&observed.instance, observed.own_service(), &wanted, settings);
    allocated.expect("free ports")
}

/// The public ports of the Service that match the Instance's request.
fn held_by(observed: &Observed, settings: &Settings) -> Option<Vec<u16>> {
    held(observed.own_service()?, &wanted(observed, settings), settings)
}

/// Adds the Service as the API server would have created it.
fn made(observed: &mut Observed, settings: &Settings, allocation: &Allocation) {
    let mut manifest =
        service(observed, settings, allocation).manifest.as_ref().expect("to be made").json().clone();
    manifest["metadata"]["uid"] = "s1".into();
    manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    observed.children.set::<LoadBalancerServiceKind>([object(manifest)]);
}

#[test]
fn requests_are_validated() {
    let pool = settings(&["10.0.0.1"]);
    let word = |validated: Validated| match validated {
        Validated::Unknown => "unknown".to_owned(),
        Validated::Nothing => "nothing".to_owned(),
        Validated::Denied(problem) => format!("denied {}", problem.reason),
        Validated::Kept(problem) => format!("kept {}: {}", problem.reason, problem.message),
        Validated::Ports(ports) => ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(" "),
    };
    let said = |observed: &Observed, settings: &Settings| {
        word(validate(&observed.instance, Some(&template()), settings))
    };
    assert_eq!(said(&observed(&two(), &json!({})), &pool), "ssh http", "specified ones first");
    assert_eq!(said(&observed(&json!([]), &json!({})), &pool), "nothing");
    assert_eq!(said(&observed(&two(), &json!({"spec": {"publicExposure": null}})), &pool), "nothing");
    assert_eq!(said(&observed(&two(), &json!({"spec": {"running": false}})), &pool), "nothing");
    assert_eq!(said(&observed(&two(), &json!({"spec": {"running": "yes"}})), &pool), "unknown");
    let case = observed(&two(), &json!({}));
    let of = |template: Option<&Template>| word(validate(&case.instance, template, &pool));
    assert_eq!(of(None), "unknown");
    let template =
        |spec: &Value| -> Arc<Template> { object(json!({"metadata": {"name": "box"}, "spec": spec})) };
    let silent = template(&json!({"environmentList": [{"name": "main"}]}));
    assert_eq!(of(Some(&silent)), "denied NotAllowed");
    let several = json!({"allowPublicExposure": true, "environmentList": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(of(Some(&template(&several))), "denied PublicExposureMultipleEnvironments");
    assert!(said(&observed(&two(), &json!({})), &settings(&[])).starts_with("kept NoAddresses: "));
    let port = |port: i64, target: i64, protocol: &str| json!({"name": format!("p{port}-{target}"), "port": port, "targetPort": target, "protocol": protocol});
    for (ports, words) in [
        (json!([port(1, 80, "SCTP")]), "port p1-80 is SCTP; only TCP and UDP"),
        (json!([port(-1, 80, "TCP")]), "port -1 of port p-1-80 is not between 0 and 65535"),
        (json!([port(1, 0, "TCP")]), "targetPort 0 of port p1-0 is not between 1 and 65535"),
        (json!([port(65536, 1, "TCP")]), "port 65536"),
        (
            json!([port(1, 80, "SCTP"), port(1, 0, "TCP")]),
            "port p1-80 is SCTP; only TCP and UDP can be exposed; targetPort 0",
        ),
    ] {
        let said = said(&observed(&ports, &json!({})), &pool);
        let expected = format!("kept InvalidRequest: Invalid public exposure request: {words}");
        assert!(said.starts_with(&expected), "{ports}: {said}");
    }
    let both = json!([port(53, 53, "TCP"), port(53, 53, "UDP")]);
    let both = json!([both[0], {"name": "udp", "port": 53, "targetPort": 53, "protocol": "UDP"}]);
    assert_eq!(said(&observed(&both, &json!({})), &pool), "p53-53 udp");
}

#[test]
fn an_allocation_is_kept_in_any_order_of_ports() {
    let settings = settings(&["10.0.0.1-10.0.0.2"]);
    let mut case = observed(&two(), &json!({}));
    let addresses = Addresses::default();
    let given = allocate(&addresses, &case, &settings);
    assert_eq!(given.address.to_string(), "10.0.0.1");
    assert_eq!(given.ports.iter().map(|(_, port)| *port).collect::<Vec<_>>(), [22, 49152]);
    made(&mut case, &settings, &given);
    addresses.observe(&key(), || claim(case.service().expect("made"), &settings));
    // Nothing changed, so nothing is planned.
    let desired = service(&case, &settings, &given);
    assert_eq!((&desired.manifest, &desired.fields), (&None, &Value::Null));
    // The same ports in another order are equal.
    let reversed = json!([two()[1], two()[0]]);
    let mut other = observed(&reversed, &json!({}));
    other.children = case.children.clone();
    assert_eq!(held_by(&other, &settings), Some(vec![22, 49152]));
    // Any number fulfils a request for any, even a number outside of the range.
    let mut other = observed(&json!([two()[0], {"name": "ssh", "targetPort": 22}]), &json!({}));
    other.children = case.children.clone();
    assert_eq!(held_by(&other, &settings), Some(vec![49152, 22]));
    // A number instead of any, or another name are new ports.
    for ports in [
        json!([{"name": "http", "port": 80, "targetPort": 8080}, two()[1]]),
        json!([two()[0], {"name": "shell", "port": 22, "targetPort": 22}]),
        json!([two()[0]]),
    ] {
        let mut other = observed(&ports, &json!({}));
        other.children = case.children.clone();
        assert_eq!(held_by(&other, &settings), None, "{ports}");
        // The automatic port stays if it is still automatic.
        let given = allocate(&addresses, &other, &settings);
        addresses.settle(&ObjectKey::of(&*case.instance));
        let http = given.ports.iter().find(|(wanted, _)| wanted.name == "http").expect("there");
        assert_eq!(http.1, http.0.port.unwrap_or(49152), "{ports}");
    }
    // The address is outside of the pool.
    let moved = self::settings(&["10.0.0.2"]);
    assert_eq!(held_by(&case, &moved), Some(vec![22, 49152]));
    let given = allocate(&addresses, &case, &moved);
    assert_eq!(given.address.to_string(), "10.0.0.1", "a change of the pool moves nothing");
    let desired = service(&case, &moved, &given);
    assert_eq!((&desired.manifest, &desired.fields), (&None, &Value::Null));
}

#[test]
fn no_policy_opens_every_port_and_only_owned_objects_are_removed() {
    let case = observed(&two(), &json!({}));
    let none = Allocation { address: "10.0.0.1".parse().expect("an address"), ports: Vec::new() };
    assert_eq!(policy(&case, &none), None);
    let mut case = observed(&json!([]), &json!({}));
    case.request = Validated::Nothing;
    let of = |owner: &str| {
        object(
            json!({"metadata": {"name": "my-box-pe", "namespace": "tenant-ada", "uid": "s", "ownerReferences": [
                {"kind": "Instance", "name": "my.box", "uid": owner, "controller": true},
            ]}}),
        )
    };
    case.children.set::<LoadBalancerServiceKind>([of("u2")]);
    assert_eq!(plan(&case, &settings(&[]), now()).remove, []);
    case.children.set::<LoadBalancerServiceKind>([of("u1")]);
    assert_eq!(plan(&case, &settings(&[]), now()).remove.len(), 1);
}

fn told(report: &Report<InstanceKind>) -> String {
    let exposure = report.status.public_exposure.clone().unwrap_or_default();
    let condition = report.status.conditions.first();
    let events: Vec<&str> = report.events.iter().map(|event| event.reason.as_str()).collect();
    format!(
        "{} {} {} | {} | {}",
        exposure.phase,
        exposure.external_ip,
        exposure.message,
        condition.map_or("", |condition| condition.reason.as_str()),
        events.join(",")
    )
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000).expect("in range")
}

/// An Instance with two allocated ports. The load balancer has assigned this address to its Service.
fn assigned(settings: &Settings, address: Option<&str>) -> Observed {
    let mut case = observed(&two(), &json!({}));
    let allocation = allocate(&Addresses::default(), &case, settings);
    case.request = Validated::Ports(wanted(&case, settings));
    case.allocation = Some(allocation.clone());
    made(&mut case, settings, &allocation);
    if let Some(address) = address {
        let mut service = case.service().expect("made").clone();
        let status = json!({"loadBalancer": {"ingress": [{"ip": address}]}});
        service.status = serde_json::from_value(status).expect("a status");
        case.children.set([Arc::new(service)]);
    }
    case
}

/// The Instance with the status of this report.
fn with_status(case: &Observed, report: &Report<InstanceKind>) -> Observed {
    let mut instance = (*case.instance).clone();
    instance.status = report.status.clone();
    Observed { instance: Arc::new(instance), ..case.clone() }
}

/// A Service that the API server rejects opens no port: the `NetworkPolicy` is not written.
#[test]
fn the_service_is_written_before_the_policy() {
    let settings = settings(&["10.0.0.1"]);
    let plan = plan(&assigned(&settings, None), &settings, now());
    let waves: Vec<_> = plan.ensure.iter().map(|desired| (desired.kind.kind, desired.wave)).collect();
    assert_eq!((waves, plan.stop_at_failure), (vec![("Service", 0), ("NetworkPolicy", 1)], true));
}

const READY: &str =
    "Ready 10.0.0.1 Public exposure assigned | PublicExposureAssigned | PublicExposureAssigned";

#[test]
fn an_exposure_is_ready_once_the_address_is_assigned() {
    let mut settings = settings(&["10.0.0.1"]);
    let outcome = Outcome::default();
    let waiting = assigned(&settings, None);
    assert_eq!(
        told(&report(&waiting, &settings, &outcome, now())),
        "Provisioning 10.0.0.1 Waiting for LoadBalancer IP to be assigned. | WaitingForAddress | WaitingForAddress"
    );
    let case = assigned(&settings, Some("10.0.0.1"));
    let first = report(&case, &settings, &outcome, now());
    assert_eq!(told(&first), READY);
    let later = Timestamp::from_second(9_000).expect("in range");
    let again = report(&with_status(&case, &first), &settings, &outcome, later);
    assert_eq!((again.status, again.events.len()), (first.status, 0), "reported once");
    settings.config.wait_for_address = false;
    assert_eq!(told(&report(&waiting, &settings, &outcome, now())), READY);
}

#[test]
fn an_exposure_stays_reported_while_a_request_is_invalid() {
    let settings = settings(&["10.0.0.1"]);
    let outcome = Outcome::default();
    let case = assigned(&settings, Some("10.0.0.1"));
    let case = with_status(&case, &report(&case, &settings, &outcome, now()));
    let asked = |request: Validated| Observed { request, allocation: None, ..case.clone() };
    let problem = Problem::fault(Component::Whole, reason::INVALID_REQUEST, "no");
    let kept = report(&asked(Validated::Kept(problem.clone())), &settings, &outcome, now());
    assert_eq!(told(&kept), "Error 10.0.0.1 no | InvalidRequest | InvalidRequest");
    assert_eq!(kept.status.public_exposure.expect("reported").ports.len(), 2);
    let denied = report(&asked(Validated::Denied(problem)), &settings, &outcome, now());
    assert_eq!(told(&denied), "Error  no | InvalidRequest | InvalidRequest");
    let nothing = report(&asked(Validated::Nothing), &settings, &outcome, now()).status;
    assert_eq!((nothing.public_exposure, nothing.conditions), (None, Vec::new()));
}

#[test]
fn a_refused_service_is_reported() {
    let settings = settings(&["10.0.0.1"]);
    let case = assigned(&settings, Some("10.0.0.1"));
    let case = with_status(&case, &report(&case, &settings, &Outcome::default(), now()));
    let failed_by = |error: ApiError| {
        let name = "my-box-pe".to_owned();
        let failure = Failure { component: Component::Whole, kind: "Service", name, error };
        report(&case, &settings, &Outcome::of(vec![failure]), now())
    };
    let owner = "belongs to Instance a".to_owned();
    let conflict = ApiError::NameConflict { kind: "Service", name: "my-box-pe".to_owned(), owner };
    let told_of_conflict = told(&failed_by(conflict));
    assert!(told_of_conflict.ends_with("| NameConflict | NameConflict"), "{told_of_conflict}");
    let failed = failed_by(ApiError::Invalid("because".to_owned()));
    assert!(failed.events[0].message.contains("because"), "{failed:?}");
    assert_eq!(
        told(&failed),
        "Error 10.0.0.1 Failed to create or update the LoadBalancer service, contact the administrator. \
         | ServiceFailed | ServiceFailed"
    );
}

#[test]
fn a_load_balancer_that_refuses_or_ignores_the_service_is_reported() {
    let settings = settings(&["10.0.0.1"]);
    let service_of = |case: &Observed, more: &Value| {
        let mut service = serde_json::to_value(case.service().expect("made")).expect("JSON");
        merge::apply(&mut service, more);
        replaced(case, service)
    };
    let case = assigned(&settings, None);
    for type_ in ["cilium.io/IPAMRequestSatisfied", "io.cilium/lb-ipam-request-satisfied"] {
        let refused =
            json!({"type": type_, "status": "False", "reason": "no_pool", "message": "no pool matches"});
        let case = service_of(&case, &json!({"status": {"conditions": [refused]}}));
        assert_eq!(
            told(&report(&case, &settings, &Outcome::default(), now())),
            "Error 10.0.0.1 The load balancer rejects the Service, which requests 10.0.0.1: no_pool: no pool matches \
             | LoadBalancerRefused | LoadBalancerRefused"
        );
    }
    let served = json!({"type": "cilium.io/IPAMRequestSatisfied", "status": "True", "reason": "satisfied", "message": ""});
    let case = service_of(&case, &json!({"status": {"conditions": [served]}}));
    assert!(told(&report(&case, &settings, &Outcome::default(), now())).starts_with("Provisioning "));
    // The Service is as old as the time that others are left.
    let made = |age: i64| {
        let made = Timestamp::from_second(now().as_second() - age).expect("in range").to_string();
        service_of(&case, &json!({"metadata": {"creationTimestamp": made}}))
    };
    let young = made(119);
    assert!(told(&report(&young, &settings, &Outcome::default(), now())).starts_with("Provisioning "));
    assert_eq!(plan(&young, &settings, now()).requeue, Requeue::After(Duration::from_secs(1)));
    assert_eq!(
        told(&report(&made(120), &settings, &Outcome::default(), now())),
        "Error 10.0.0.1 No load balancer has assigned 10.0.0.1 in 2m: contact the administrator (the events of the \
         Service and the log of the load balancer say why) | LoadBalancerIgnored | LoadBalancerIgnored"
    );
    assert_eq!(plan(&made(120), &settings, now()).requeue, Requeue::Resync);
}
