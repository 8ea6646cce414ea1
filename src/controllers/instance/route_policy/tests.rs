//! Instances with a ready container, whose route and policy are in all states.

use std::sync::Arc;

use super::*;
use crate::api::Object;
use crate::api::instance::InstanceKind;
use crate::config::{GatewayApi, InstanceConfig, ParentRef};
use crate::controllers::instance::children;
use crate::controllers::instance::observe::Observed;
use crate::controllers::instance::plan::tests::{edit, environment, observed, owned, plan, reconciled};
use crate::fixtures::time;
use crate::kinds::{DeploymentKind, ServiceKind};
use crate::runtime::merge;
use crate::runtime::plan::{Desired, Requeue};
use crate::runtime::selection::Selection;
use crate::runtime::store::StoreFactory;
use crate::runtime::store_set::StoreSet;

const KIND: KindInfo = KindInfo {
    group: "gateway.envoyproxy.io",
    version: "v1alpha1",
    kind: "SecurityPolicy",
    plural: "securitypolicies",
};

fn config() -> InstanceConfig {
    let parent = ParentRef { name: "labs".to_owned(), namespace: "gateways".to_owned() };
    let target = json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "${route}"});
    let policy = serde_json::from_value(json!({
        "resource": "securitypolicies",
        "template": {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1",
            "kind": "SecurityPolicy",
            "metadata": {"labels": {"example.org/part": "login"}, "annotations": {"example.org/by": "ops"}},
            "spec": {"targetRefs": [target], "oidc": {"redirectURL": "https://${host}${path}/oauth2/callback"}},
        },
    }));
    let policy = policy.expect("a policy");
    let gateway_api =
        GatewayApi { enabled: true, parent_refs: vec![parent], policy, ..GatewayApi::default() };
    InstanceConfig { gateway_api, ..InstanceConfig::classic() }
}

/// A time that is this many seconds after the creation of all objects.
fn at(seconds: i64) -> Timestamp {
    let created: Timestamp = time("2026-01-01T00:00:00Z");
    created.checked_add(jiff::SignedDuration::from_secs(seconds)).expect("a time")
}

/// An Instance with a ready container, which has no policy and no route yet.
fn world() -> Observed {
    let mut observed = observed(json!([environment("main", "Container", json!({}))]));
    observed.has_routes = true;
    observed.policies = Some(Policies { kind: KIND, is_served: true });
    let made = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
    let ready: Arc<Object<DeploymentKind>> = edit(&made, &json!({"status": {"readyReplicas": 1}}));
    observed.children.set::<DeploymentKind>([ready]);
    observed.children.set::<ServiceKind>([owned::<ServiceKind>("my-lab", json!({"clusterIP": "10.1.1.1"}))]);
    observed
}

fn with_route(observed: &mut Observed, status: &Value) {
    let route = owned::<HttpRouteKind>("my-lab", json!({}));
    observed.children.set::<HttpRouteKind>([edit(&route, &json!({"status": status}))]);
}

/// Adds the policy with the annotations of the plan, after these changes.
fn with_policy(observed: &mut Observed, now: Timestamp, changes: &Value) {
    let planned = desired(&plan(observed, &config(), now), "SecurityPolicy").expect("a policy").clone();
    let mut annotations = json!({});
    for (key, value) in planned.annotations.iter().filter_map(|(key, value)| Some((key, value.clone()?))) {
        annotations[key] = value.into();
    }
    let made = owned::<RoutePolicyKind>("my-lab", json!({"old": true}));
    let mut patch = json!({"metadata": {"annotations": annotations}});
    merge::apply(&mut patch, changes);
    observed.children.set::<RoutePolicyKind>([edit(&made, &patch)]);
}

fn desired<'p>(plan: &'p Plan, kind: &str) -> Option<&'p Desired> {
    plan.ensure.iter().find(|desired| desired.kind.kind == kind)
}

fn accepted(status: &str) -> Value {
    json!([{"type": "Accepted", "status": status, "reason": "TargetNotFound", "message": "no such route"}])
}

fn parents(conditions: &Value) -> Value {
    json!({"parents": [{"parentRef": {"name": "labs", "namespace": "gateways"}, "conditions": conditions}]})
}

fn ancestors(conditions: &Value) -> Value {
    let gateway = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "labs", "namespace": "gateways"});
    json!({"ancestors": [{"ancestorRef": gateway, "conditions": conditions}]})
}

/// What happens to policy and route, the time until the next reconcile, and whether the URL is shown.
fn outcome(observed: &Observed, now: Timestamp) -> (bool, &'static str, Requeue, bool) {
    let (report, plan) = reconciled(observed, &config(), now);
    let is_removed = plan.remove.iter().any(|removal| removal.kind.kind == "HTTPRoute");
    let route = match (desired(&plan, "HTTPRoute"), is_removed) {
        (Some(_), false) => "kept",
        (None, true) => "removed",
        (None, false) => "absent",
        (Some(_), true) => panic!("both"),
    };
    let shown = !report.status.environments[0].url.is_empty();
    assert_eq!(report.status.environments[0].exposition_accepted, shown, "there is no Ingress");
    assert!(desired(&plan, "Ingress").is_none(), "an Ingress would be a way around the policy");
    (desired(&plan, "SecurityPolicy").is_some(), route, plan.requeue, shown)
}

fn after(seconds: u64) -> Requeue {
    Requeue::After(Duration::from_secs(seconds))
}

#[test]
fn the_kind_of_the_template_is_watched_while_there_are_routes() {
    let rights = |config: &InstanceConfig| {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("instance", &mut factory);
        let instances = set.store::<InstanceKind>(&Selection::ALL).get();
        let policies = children::declare(&mut set, &instances, config, None).policies;
        assert_eq!(policies.map(|store| store.kind()), config.gateway_api.enabled.then_some(KIND));
        drop(set);
        let verbs = factory.rights["instance"].get(&(KIND, "")).cloned();
        verbs.map(|verbs| verbs.into_iter().collect::<Vec<_>>().join(" "))
    };
    let mut config = config();
    assert_eq!(rights(&config).as_deref(), Some("create delete get list patch watch"));
    config.gateway_api.enabled = false;
    assert_eq!(rights(&config), None);
}

#[test]
fn a_new_policy_is_written_before_the_route_that_it_names() {
    let plan = plan(&world(), &config(), at(0));
    let policy = desired(&plan, "SecurityPolicy").expect("a policy");
    let route = desired(&plan, "HTTPRoute").expect("a route");
    assert!(policy.wave < route.wave && route.is_guarded);
    assert_eq!((policy.kind, &policy.key), (KIND, &route.key));
    let manifest = policy.manifest.as_ref().expect("new").json();
    assert_eq!(manifest["apiVersion"], "gateway.envoyproxy.io/v1alpha1");
    assert_eq!(
        manifest["spec"],
        json!({
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "my-lab"}],
            "oidc": {"redirectURL": "https://crownlabs.example.com/instance/u1/app/oauth2/callback"},
        })
    );
    let metadata = &manifest["metadata"];
    assert_eq!(metadata["labels"]["example.org/part"], "login");
    assert_eq!(metadata["labels"]["crownlabs.polito.it/managed-by"], "instance");
    assert_eq!(metadata["annotations"]["example.org/by"], "ops");
    assert_eq!(
        metadata["annotations"]["crownlabs.polito.it/route-state"],
        r#"{"isOpen":true,"since":"2026-01-01T00:00:00Z","withdrawals":0,"why":""}"#
    );
    assert_eq!(metadata["ownerReferences"][0]["uid"], "u1");
    assert_eq!(plan.requeue, after(120));
}

#[test]
fn the_url_is_shown_only_while_route_and_policy_are_accepted() {
    let elsewhere = json!({"ancestors": [{
        "ancestorRef": {"kind": "Gateway", "name": "other", "namespace": "gateways"}, "conditions": accepted("True"),
    }]});
    let of_route = json!({"ancestors": [{
        "ancestorRef": {"kind": "HTTPRoute", "name": "my-lab"}, "conditions": accepted("True"),
    }]});
    let twice =
        json!({"ancestors": ancestors(&accepted("True"))["ancestors"], "conditions": accepted("False")});
    let yes = ancestors(&accepted("True"));
    for (route, policy, is_shown) in [
        (parents(&accepted("True")), yes.clone(), true),
        (parents(&accepted("True")), json!({"conditions": accepted("True")}), true),
        (parents(&accepted("True")), of_route, true),
        (parents(&accepted("True")), json!({}), false),
        (parents(&accepted("True")), ancestors(&json!([])), false),
        (parents(&accepted("True")), ancestors(&accepted("False")), false),
        (parents(&accepted("True")), ancestors(&accepted("Unknown")), false),
        (parents(&accepted("True")), elsewhere, false),
        (parents(&accepted("True")), twice, false),
        (parents(&accepted("False")), yes.clone(), false),
        (json!({}), yes, false),
    ] {
        let mut world = world();
        with_policy(&mut world, at(0), &json!({"status": policy}));
        with_route(&mut world, &route);
        let requeue = if is_shown { Requeue::Resync } else { after(119) };
        assert_eq!(outcome(&world, at(1)), (true, "kept", requeue, is_shown), "{route} {policy}");
    }
    // A policy that is being deleted protects nothing for long.
    let mut leaving = world();
    let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:01Z"}, "status": ancestors(&accepted("True"))});
    with_policy(&mut leaving, at(0), &gone);
    with_route(&mut leaving, &parents(&accepted("True")));
    assert!(!outcome(&leaving, at(1)).3);
}

#[test]
fn an_environment_without_a_url_yet_is_running() {
    let mut world = world();
    with_policy(&mut world, at(0), &json!({}));
    with_route(&mut world, &parents(&accepted("True")));
    let status = reconciled(&world, &config(), at(1)).0.status;
    assert_eq!(status.phase.to_string(), "Running");
    with_policy(&mut world, at(0), &json!({"status": ancestors(&accepted("True"))}));
    let status = reconciled(&world, &config(), at(1)).0.status;
    assert_eq!(status.phase.to_string(), "Ready");
    assert_eq!(status.url, "https://crownlabs.example.com/instance/u1/app/");
}

#[test]
fn a_route_without_an_accepted_policy_is_withdrawn_and_tried_again() {
    let mut world = world();
    let refused = json!({"status": ancestors(&accepted("False"))});
    with_policy(&mut world, at(0), &refused);
    with_route(&mut world, &parents(&accepted("True")));
    assert_eq!(outcome(&world, at(119)), (true, "kept", after(1), false));
    assert_eq!(outcome(&world, at(120)), (true, "removed", after(120), false));
    // The policy stays, and says until when.
    with_policy(&mut world, at(120), &refused);
    assert_eq!(
        outcome(&world, at(121)),
        (true, "removed", after(119), false),
        "after a crash before the deletion"
    );
    world.children.set::<HttpRouteKind>([]);
    assert_eq!(outcome(&world, at(130)), (true, "absent", after(110), false));
    let (report, _) = reconciled(&world, &config(), at(130));
    let ready = report.status.conditions.iter().find(|condition| condition.type_ == *"Ready").expect("Ready");
    assert_eq!((&*ready.status, &*ready.reason), ("False", "RouteUnguarded"));
    assert_eq!(
        &*ready.message,
        "SecurityPolicy my-lab: Accepted is false: TargetNotFound: no such route; the route is removed, because without \
         this policy everyone could open the machine, and tried again later"
    );
    // The next attempt, with the same message until it succeeds.
    assert_eq!(outcome(&world, at(240)), (true, "kept", after(120), false));
    with_policy(&mut world, at(240), &json!({}));
    with_route(&mut world, &json!({}));
    let (report, _) = reconciled(&world, &config(), at(241));
    assert!(report.status.conditions.iter().any(|condition| condition.reason == *"RouteUnguarded"));
    // The second pause is twice as long. Meanwhile, the problem counts as stalled.
    assert_eq!(outcome(&world, at(360)), (true, "removed", after(120), false));
    with_policy(&mut world, at(360), &json!({}));
    world.children.set::<HttpRouteKind>([]);
    assert_eq!(outcome(&world, at(599)), (true, "absent", after(1), false));
    // Both are accepted at last: the annotation is removed.
    with_policy(&mut world, at(600), &json!({"status": ancestors(&accepted("True"))}));
    with_route(&mut world, &parents(&accepted("True")));
    assert_eq!(outcome(&world, at(601)), (true, "kept", Requeue::Resync, true));
    let plan = plan(&world, &config(), at(601));
    let annotations = &desired(&plan, "SecurityPolicy").expect("a policy").annotations;
    assert_eq!(annotations["crownlabs.polito.it/route-state"], None);
}

#[test]
fn pauses_double_up_to_an_hour() {
    let mark = |withdrawals| Mark { is_open: true, since: Time(at(0)), withdrawals, why: String::new() };
    let minutes = [0, 1, 2, 3, 4, 5, 6, u32::MAX].map(|withdrawals| {
        let next = mark(withdrawals).next(|| "words".to_owned(), Duration::from_mins(2), at(120));
        let Stage::Withdrawn(mark, left) = next else { panic!("it is withdrawn") };
        assert_eq!((mark.is_open, &*mark.why), (false, "words"));
        left.as_secs() / 60
    });
    assert_eq!(minutes, [2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn a_changed_template_is_written_as_a_whole_and_tried_at_once() {
    let mut world = world();
    with_policy(&mut world, at(0), &json!({}));
    with_route(&mut world, &json!({}));
    with_policy(&mut world, at(120), &json!({}));
    world.children.set::<HttpRouteKind>([]);
    assert_eq!(outcome(&world, at(121)).1, "absent");
    let unchanged = plan(&world, &config(), at(121));
    let policy = desired(&unchanged, "SecurityPolicy").expect("a policy");
    assert_eq!(policy.fields, Value::Null, "changes by others are kept");
    let mut other = config();
    other.gateway_api.policy.template["spec"]["oidc"] = json!({"clientID": "labs"});
    let changed = plan(&world, &other, at(121));
    let policy = desired(&changed, "SecurityPolicy").expect("a policy");
    assert_eq!(policy.fields["spec"].get("old"), Some(&Value::Null), "the former spec is replaced");
    assert_eq!(policy.fields["spec"]["oidc"], json!({"clientID": "labs"}));
    assert!(desired(&changed, "HTTPRoute").is_some());
}

#[test]
fn a_route_is_removed_until_its_present_policy_is_written_unless_a_former_policy_guards_it() {
    // The route of a configuration without policies.
    let mut world = world();
    with_route(&mut world, &parents(&accepted("True")));
    assert_eq!(outcome(&world, at(1)), (true, "removed", after(0), false));
    with_policy(&mut world, at(1), &json!({}));
    assert_eq!(outcome(&world, at(2)), (true, "kept", after(119), false), "the policy is written");
    // The API server may refuse another template.
    let mut other = config();
    other.gateway_api.policy.template["spec"]["oidc"] = json!({"clientID": 1});
    let is_kept = |world: &Observed| {
        let plan = plan(world, &other, at(2));
        let is_removed = plan.remove.iter().any(|removal| removal.kind.kind == "HTTPRoute");
        assert_ne!(desired(&plan, "HTTPRoute").is_some(), is_removed);
        !is_removed
    };
    assert!(!is_kept(&world));
    with_policy(&mut world, at(1), &json!({"status": ancestors(&accepted("True"))}));
    assert!(is_kept(&world));
}

#[test]
fn without_the_kind_a_route_is_removed() {
    let mut world = world();
    with_route(&mut world, &parents(&accepted("True")));
    world.policies = Some(Policies { kind: KIND, is_served: false });
    assert_eq!(outcome(&world, at(1)), (false, "removed", after(120), false));
    let (report, _) = reconciled(&world, &config(), at(1));
    let ready = report.status.conditions.iter().find(|condition| condition.type_ == *"Ready").expect("Ready");
    assert!(
        ready.message.starts_with("the cluster does not serve securitypolicies.gateway.envoyproxy.io"),
        "{}",
        ready.message
    );
}

#[test]
fn an_ingress_is_kept_until_the_route_is_guarded() {
    let mut world = world();
    let published = json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}});
    world.children.set::<IngressKind>([edit(&owned::<IngressKind>("my-lab-gui", json!({})), &published)]);
    with_policy(&mut world, at(0), &json!({}));
    with_route(&mut world, &parents(&accepted("True")));
    let (report, made) = reconciled(&world, &config(), at(1));
    assert!(desired(&made, "Ingress").is_some() && made.remove.is_empty());
    assert!(!report.status.url.is_empty(), "the Ingress serves it, with a login of its own");
    with_policy(&mut world, at(0), &json!({"status": ancestors(&accepted("True"))}));
    let made = plan(&world, &config(), at(1));
    let removed: Vec<_> = made.remove.iter().map(|removal| removal.kind.kind).collect();
    assert_eq!(removed, ["Ingress"]);
}

#[test]
fn a_stopped_instance_loses_its_route_before_the_policy() {
    let mut world = world();
    world.instance = edit(&world.instance, &json!({"spec": {"running": false}}));
    let removed = |world: &Observed| {
        let plan = plan(world, &config(), at(1));
        assert!(desired(&plan, "SecurityPolicy").is_none() && desired(&plan, "HTTPRoute").is_none());
        let kinds = plan.remove.iter().map(|removal| removal.kind.kind).filter(|kind| *kind != "Service");
        (kinds.collect::<Vec<_>>(), plan.requeue)
    };
    assert_eq!(removed(&world), (vec![], Requeue::Resync));
    let policy = owned::<RoutePolicyKind>("my-lab", json!({}));
    world.children.set::<RoutePolicyKind>([policy]);
    with_route(&mut world, &json!({}));
    assert_eq!(removed(&world), (vec!["HTTPRoute"], after(0)));
    let leaving = owned::<HttpRouteKind>("my-lab", json!({}));
    let leaving = edit(&leaving, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:01Z"}}));
    world.children.set::<HttpRouteKind>([leaving]);
    assert_eq!(removed(&world), (vec![], Requeue::Resync), "the watch shows its end");
    world.children.set::<HttpRouteKind>([]);
    assert_eq!(removed(&world), (vec!["SecurityPolicy"], Requeue::Resync));
}
