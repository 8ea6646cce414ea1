//! Instances with a ready container and a web interface that can be reached or not.

use serde_json::{Value, json};

use super::*;
use crate::api::instance::InstanceKind;
use crate::api::reason::Reason;
use crate::config::{GatewayApi, InstanceConfig, ParentRef};
use crate::controllers::instance::observe::Observed;
use crate::controllers::instance::plan::tests::{edit, environment, observed, owned, reconciled};
use crate::fixtures::time;
use crate::kinds::{DeploymentKind, HttpRouteKind, ServiceKind};
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::Report;

fn config() -> InstanceConfig {
    let parent = ParentRef { name: "labs".to_owned(), namespace: "gateways".to_owned() };
    let gateway_api = GatewayApi { enabled: true, parent_refs: vec![parent], ..GatewayApi::default() };
    InstanceConfig { gateway_api, ..InstanceConfig::classic() }
}

/// A time that is this many seconds after the creation of all objects.
fn at(seconds: i64) -> Timestamp {
    let created: Timestamp = time("2026-01-01T00:00:00Z");
    created.checked_add(jiff::SignedDuration::from_secs(seconds)).expect("a time")
}

fn created<T: Kind>(name: &str, spec: Value, status: &Value) -> std::sync::Arc<Object<T>> {
    let object = owned::<T>(name, spec);
    edit(&object, &json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status}))
}

/// An Instance with a ready container, and a route and an Ingress in these states.
fn world(route: Option<Value>, ingress: Option<Value>) -> Observed {
    let mut observed = observed(json!([environment("main", "Container", json!({}))]));
    observed.has_routes = true;
    let deployment =
        created::<DeploymentKind>("my-lab", json!({"replicas": 1}), &json!({"readyReplicas": 1}));
    observed.children.set::<DeploymentKind>([deployment]);
    observed.children.set::<ServiceKind>([created("my-lab", json!({"clusterIP": "10.1.1.1"}), &json!({}))]);
    observed.children.set::<HttpRouteKind>(route.map(|status| created("my-lab", json!({}), &status)));
    let ingress = ingress.map(|status| created("my-lab-gui", json!({"ingressClassName": "nginx"}), &status));
    observed.children.set::<IngressKind>(ingress);
    observed
}

fn reported(observed: &Observed, now: Timestamp) -> (Report<InstanceKind>, Requeue) {
    let (report, plan) = reconciled(observed, &config(), now);
    (report, plan.requeue)
}

/// The phase, and status, reason and message of a condition.
fn said(report: &Report<InstanceKind>, type_: &str) -> (String, String, String, String) {
    let condition = report.status.conditions.iter().find(|condition| condition.type_ == *type_);
    let condition = condition.expect("the condition");
    let texts = [&*condition.status, &*condition.reason, &*condition.message].map(str::to_owned);
    let [status, reason, message] = texts;
    (report.status.phase.to_string(), status, reason, message)
}

fn ready(observed: &Observed, now: Timestamp) -> (String, String, String, String) {
    said(&reported(observed, now).0, "Ready")
}

fn parent(conditions: &Value) -> Value {
    json!({"parents": [{"controllerName": "example.org/c", "parentRef": {"name": "labs", "namespace": "gateways"},
        "conditions": conditions}]})
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message})
}

fn is_ready() -> (String, String, String, String) {
    ("Ready".into(), "True".into(), "Ready".into(), "The environment can be used".into())
}

#[test]
fn a_refused_route_makes_the_instance_not_ready_with_the_words_of_the_gateway() {
    let refused = condition("Accepted", "False", "NotAllowedByListeners", "no listener allows the namespace");
    let unresolved = json!([
        condition("Accepted", "True", "Accepted", ""),
        condition("ResolvedRefs", "False", "BackendNotFound", ""),
    ]);
    for (conditions, message) in [
        (
            json!([refused]),
            "HTTPRoute my-lab: Gateway gateways/labs: Accepted is false: NotAllowedByListeners: no listener allows the \
             namespace",
        ),
        (unresolved, "HTTPRoute my-lab: Gateway gateways/labs: ResolvedRefs is false: BackendNotFound"),
    ] {
        let world = world(Some(parent(&conditions)), None);
        let (report, requeue) = reported(&world, at(1));
        let expected =
            ("Running".to_owned(), "False".to_owned(), "RouteRefused".to_owned(), message.to_owned());
        assert_eq!(said(&report, "Ready"), expected);
        assert_eq!(said(&report, "Stalled").1, "False", "it may clear itself");
        assert_eq!(requeue, Requeue::After(Duration::from_mins(2)));
        assert_eq!(report.events.iter().map(|event| event.reason).collect::<Vec<Reason>>(), ["RouteRefused"]);
        // The refusal has lasted.
        let mut later = world;
        later.instance = edit(&later.instance, &json!({"status": report.status}));
        let mut stalled = (*later.instance).clone();
        for condition in &mut stalled.status.conditions {
            condition.last_transition_time.0 = at(1);
        }
        later.instance = std::sync::Arc::new(stalled);
        let (lasting, _) = reported(&later, at(121));
        assert_eq!(said(&lasting, "Stalled").1, "True");
        assert_eq!(said(&lasting, "Ready"), expected);
    }
}

#[test]
fn an_accepted_route_is_ready_regardless_of_the_ingress() {
    let accepted = json!([
        condition("Accepted", "True", "Accepted", ""),
        condition("ResolvedRefs", "True", "ResolvedRefs", ""),
    ]);
    let mut world = world(Some(parent(&accepted)), Some(json!({})));
    world.published_classes = [Text::interned("nginx")].into();
    assert_eq!(ready(&world, at(600)), is_ready());
}

#[test]
fn a_route_without_a_status_counts_as_ignored_after_a_time() {
    for silent in [json!({}), parent(&json!([]))] {
        let world = world(Some(silent), Some(json!({})));
        let (early, requeue) = reported(&world, at(119));
        assert_eq!(said(&early, "Ready"), is_ready());
        assert_eq!(requeue, Requeue::After(Duration::from_secs(1)));
        let message = "HTTPRoute my-lab: Gateway gateways/labs has not reported a status for 2m";
        let expected = ("Running".into(), "False".into(), "RouteIgnored".into(), message.into());
        assert_eq!(ready(&world, at(120)), expected);
    }
    // The Ingress serves it until a Gateway does.
    let served = json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}});
    assert_eq!(ready(&world(Some(json!({})), Some(served)), at(600)), is_ready());
}

#[test]
fn a_route_that_is_neither_accepted_nor_refused_counts_as_ignored_after_a_time() {
    let pending = |changed: &str| {
        let mut pending = condition("Accepted", "Unknown", "Pending", "waiting for the controller");
        pending["lastTransitionTime"] = changed.into();
        json!([pending])
    };
    let resolved = json!([condition("ResolvedRefs", "True", "ResolvedRefs", "")]);
    let gateway = "HTTPRoute my-lab: Gateway gateways/labs";
    let undecided = "has not decided for 2m: Accepted is unknown: Pending: waiting for the controller";
    for (conditions, second, said) in [
        (pending("2025-01-01T00:00:00Z"), 120, undecided),
        // It was accepted before.
        (pending("2026-01-01T00:05:00Z"), 420, undecided),
        (resolved, 120, "has not accepted it for 2m"),
    ] {
        let world = world(Some(parent(&conditions)), Some(json!({})));
        let (early, requeue) = reported(&world, at(second - 1));
        assert_eq!(self::said(&early, "Ready"), is_ready(), "{conditions}");
        assert_eq!(requeue, Requeue::After(Duration::from_secs(1)), "{conditions}");
        let message = format!("{gateway} {said}");
        let expected = ("Running".into(), "False".into(), "RouteIgnored".into(), message);
        assert_eq!(ready(&world, at(second)), expected, "{conditions}");
    }
}

#[test]
fn an_ingress_without_a_class_is_ignored_unless_a_class_is_the_default() {
    let mut world = world(None, None);
    world.children.set::<IngressKind>([created("my-lab-gui", json!({}), &json!({}))]);
    for (classes, is_ignored) in [
        (None, false),
        (Some(IngressClasses::WithDefault), false),
        (Some(IngressClasses::WithoutDefault), true),
        (Some(IngressClasses::Missing), true),
    ] {
        std::sync::Arc::make_mut(&mut world.cluster).ingress_classes = classes;
        assert_eq!(ready(&world, at(119)), is_ready());
        let (phase, status, reason, message) = ready(&world, at(120));
        let expected =
            if is_ignored { ["Running", "False", "RouteIgnored"] } else { ["Ready", "True", "Ready"] };
        assert_eq!([&*phase, &*status, &*reason], expected, "{classes:?}");
        assert_eq!(message.contains("no Ingress class is the default"), is_ignored, "{message}");
    }
    // A controller serves Ingresses of a class that is not the default.
    let mut other = self::world(None, Some(json!({})));
    other.cluster = world.cluster;
    assert_eq!(ready(&other, at(600)), is_ready());
}

#[test]
fn an_ingress_is_ignored_where_its_controller_publishes_addresses() {
    let mut without = world(None, Some(json!({})));
    // About a controller that publishes no address, nothing is known.
    let (report, requeue) = reported(&without, at(600));
    assert_eq!((said(&report, "Ready"), requeue), (is_ready(), Requeue::Resync));
    without.published_classes = [Text::interned("other")].into();
    assert_eq!(ready(&without, at(600)), is_ready());
    without.published_classes = [Text::interned("nginx")].into();
    assert_eq!(ready(&without, at(119)), is_ready());
    let message = "Ingress my-lab-gui: the controller of class nginx, which serves other Ingresses, has assigned no address for 2m";
    let expected = ("Running".into(), "False".into(), "RouteIgnored".into(), message.into());
    assert_eq!(ready(&without, at(120)), expected);
    let mut published = world(None, Some(json!({"loadBalancer": {"ingress": [{"hostname": "lb"}]}})));
    published.published_classes = [Text::interned("nginx")].into();
    assert_eq!(ready(&published, at(600)), is_ready());
}
