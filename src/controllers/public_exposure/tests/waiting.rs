//! Waits for a load balancer, and for a Service that is being deleted.

use super::*;
use crate::runtime::error::Leaving;
use crate::runtime::object_events::Told;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

/// A case whose Service has this metadata.
fn with_metadata(case: &Observed, metadata: &Value) -> Observed {
    let mut service = serde_json::to_value(case.service().expect("made")).expect("JSON");
    merge::apply(&mut service, &json!({"metadata": metadata}));
    replaced(case, service)
}

fn message(case: &Observed, settings: &Settings, outcome: &Outcome<()>, second: i64) -> String {
    let report = report(case, settings, outcome, at(second));
    let condition = report.status.conditions.first();
    condition.map(|condition| format!("{}: {}", condition.reason, condition.message)).unwrap_or_default()
}

#[test]
fn the_events_of_an_ignored_service_are_read_and_reported() {
    let settings = settings(&["10.0.0.1"]);
    let mut case =
        with_metadata(&assigned(&settings, None), &json!({"creationTimestamp": "1970-01-01T00:00:00Z"}));
    assert_eq!(plan(&case, &settings, at(119)).awaited, None, "a load balancer may still assign the address");
    let about = plan(&case, &settings, at(120)).awaited.expect("a question");
    assert_eq!((&*about.namespace, about.uids), ("tenant-ada", ["s1".to_owned()].into()));
    let outcome = Outcome::default();
    let begin = "LoadBalancerIgnored: No load balancer has assigned 10.0.0.1 in 2m: ";
    let of_log = format!(
        "{begin}contact the administrator (the events of the Service and the log of the load balancer say why)"
    );
    assert_eq!(message(&case, &settings, &outcome, 120), of_log);
    let (kind, name) = ("Service".into(), "my-box-pe".into());
    let (word, message_of_event) = ("AllocationFailed".into(), "no available IPs".into());
    case.events = Events::Read(vec![Told { word, kind, name, uid: "s1".into(), message: message_of_event }]);
    let explained = format!("{begin}Service my-box-pe: AllocationFailed: no available IPs");
    assert_eq!(message(&case, &settings, &outcome, 240), explained);
    // The next process keeps the cause until it has read the events.
    let mut again = with_status(&case, &report(&case, &settings, &outcome, at(240)));
    again.events = Events::Unknown;
    assert_eq!(message(&again, &settings, &outcome, 300), explained);
    again.events = Events::Read(vec![]);
    assert_eq!(message(&again, &settings, &outcome, 300), of_log);
    // A load balancer with a condition says why there.
    let refused =
        json!({"type": "LoadBalancerPortsError", "status": "True", "reason": "Ports", "message": "no"});
    let mut service = serde_json::to_value(case.service().expect("made")).expect("JSON");
    merge::apply(&mut service, &json!({"status": {"conditions": [refused]}}));
    assert_eq!(plan(&replaced(&case, service), &settings, at(240)).awaited, None);
}

#[test]
fn a_service_that_finalizers_hold_is_reported_after_a_minute() {
    let settings = settings(&["10.0.0.1"]);
    let assigned = assigned(&settings, Some("10.0.0.1"));
    let finalizers = ["service.kubernetes.io/load-balancer-cleanup"];
    let metadata = json!({"deletionTimestamp": "1970-01-01T00:00:00Z", "finalizers": finalizers});
    let own = with_metadata(&assigned, &metadata);
    let outcome = Outcome::default();
    let again = "and will be recreated with the same address and ports.";
    let early = format!("ServiceLeaving: Service my-box-pe is being deleted {again}");
    assert_eq!(message(&own, &settings, &outcome, 59), early);
    assert_eq!(plan(&own, &settings, at(59)).requeue, Requeue::After(Duration::from_secs(1)));
    let held =
        "(since 1970-01-01T00:00:00Z; its finalizers remain: service.kubernetes.io/load-balancer-cleanup)";
    let late = format!("ServiceLeaving: Service my-box-pe is being deleted {held} {again}");
    assert_eq!(message(&own, &settings, &outcome, 60), late);
    // The Service of a deleted Instance of the same name.
    let leaving = Leaving {
        kind: "Service",
        key: key(),
        former_owner: Some("Instance".to_owned()),
        since: Some(at(0)),
        finalizers: vec![finalizers[0].into()],
    };
    let error = ApiError::Leaving(Box::new(leaving));
    let failure =
        Failure { component: Component::Whole, kind: "Service", name: "my-box-pe".to_owned(), error };
    let outcome = Outcome::of(vec![failure]);
    assert_eq!(message(&assigned, &settings, &outcome, 59), "");
    let whose = "tenant-ada/my-box-pe of a deleted Instance of the same name";
    let late =
        format!("ServiceLeaving: Service {whose} is being deleted {held}; it is created again after that");
    assert_eq!(message(&assigned, &settings, &outcome, 60), late);
}
