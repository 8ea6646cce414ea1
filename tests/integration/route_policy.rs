//! Routes of the Gateway API whose policy is made from a template. No controller runs here: the tests write the status of
//! routes and policies as a controller would.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The kind of the policies, as `kubectl` names it.
pub const KIND: &str = "securitypolicies.gateway.envoyproxy.io";

/// A CRD with the names of Envoy Gateway's, and a field with a default.
const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: securitypolicies.gateway.envoyproxy.io}
spec:
  group: gateway.envoyproxy.io
  scope: Namespaced
  names: {kind: SecurityPolicy, listKind: SecurityPolicyList, plural: securitypolicies, singular: securitypolicy}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [targetRefs]
            properties:
              targetRefs:
                type: array
                minItems: 1
                items:
                  type: object
                  required: [kind, name]
                  properties: {group: {type: string}, kind: {type: string}, name: {type: string}, weight: {type: integer, default: 1}}
              authorization:
                type: object
                properties: {defaultAction: {type: string, enum: [Allow, Deny], default: Deny}, realm: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// Installs the kind of the policies.
pub fn install(lab: &Lab) {
    lab.apply(CRD);
    lab.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", &format!("crd/{KIND}")]);
}

/// Waits until the garbage collector deletes policies without an owner: it looks for new kinds every 30 s.
pub fn await_collection(lab: &Lab, namespace: &str) {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"});
    let orphan = json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
        "metadata": {"name": "orphan", "namespace": namespace, "ownerReferences": [owner]},
        "spec": {"targetRefs": [{"kind": "HTTPRoute", "name": "orphan"}]},
    });
    lab.apply(&orphan.to_string());
    lab.await_gone(KIND, namespace, "orphan");
}

/// A configuration with this `authorization` of the policies.
pub fn config(stalled_after: &str, authorization: &str) -> String {
    format!(
        "controllers: {{instance: {{stalledAfter: {stalled_after}, gatewayApi: {{enabled: true, \
         parentRefs: [{{name: labs, namespace: gateways}}], policy: {{resource: securitypolicies, template: {{\
         apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, spec: {{targetRefs: [{{\
         group: gateway.networking.k8s.io, kind: HTTPRoute, name: '${{route}}'}}], authorization: {authorization}}}}}}}}}}}}}\n"
    )
}

/// The status of a route.
fn of_route(accepted: &str) -> String {
    let parent = json!({"name": "labs", "namespace": "gateways"});
    let condition = json!({"type": "Accepted", "status": accepted, "reason": "Test", "message": "said by the test",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let parents =
        json!([{"controllerName": "example.org/test", "parentRef": parent, "conditions": [condition]}]);
    json!({"status": {"parents": parents}}).to_string()
}

/// The status of a policy.
fn of_policy(accepted: &str) -> String {
    let gateway = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "labs", "namespace": "gateways"});
    let condition =
        json!({"type": "Accepted", "status": accepted, "reason": "Test", "message": "said by the test"});
    json!({"status": {"ancestors": [{"ancestorRef": gateway, "conditions": [condition]}]}}).to_string()
}

/// Waits until the URL of an Instance is shown or hidden. Returns its status.
fn await_url(lab: &Lab, namespace: &str, is_shown: bool) -> Value {
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, "web").ok_or("the Instance")?;
        let status = object["status"].clone();
        let (url, phase) = (&status["environments"][0]["url"], &status["phase"]);
        let is_it = url.is_string() == is_shown && *phase == if is_shown { "Ready" } else { "Running" };
        is_it.then(|| status.clone()).ok_or_else(|| status.to_string())
    })
}

#[test]
fn a_url_is_shown_only_while_the_gateway_accepts_route_and_policy() {
    let (lab, namespace) = (Lab::shared(), "tenant-guarded");
    let _course = lab.course("guarded");
    install(&lab);
    let admin = lab.admin();
    let text = config("10m", "{realm: labs}");
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "guarded", config: &text });
    lab.apply(&instance("guarded", "web", "standalone"));
    let route = lab.await_value("httproutes", namespace, "web", "/kind", "HTTPRoute");
    let policy = lab.get(KIND, namespace, "web").expect("the policy is older than its route");
    let version = |object: &Value| {
        object["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse::<u64>().ok())
            .expect("a version")
    };
    assert!(version(&policy) < version(&route), "{policy} {route}");
    assert_eq!(policy["spec"]["targetRefs"][0]["name"], "web");
    assert_eq!(policy["metadata"]["ownerReferences"][0]["name"], "web");
    await_url(&lab, namespace, false);
    assert!(lab.get("ingresses", namespace, "web-app").is_none(), "it would be a way around the policy");
    // The policy alone does not make the route reachable, and neither does the route alone make it safe.
    lab.patch_status(KIND, namespace, "web", &of_policy("True"));
    lab.patch_status("httproutes", namespace, "web", &of_route("True"));
    let status = await_url(&lab, namespace, true);
    assert_eq!(status["environments"][0]["expositionAccepted"], true, "{status}");
    lab.patch_status(KIND, namespace, "web", &of_policy("False"));
    let status = await_url(&lab, namespace, false);
    assert!(status["environments"][0]["expositionAccepted"] != true, "{status}");
    lab.patch_status(KIND, namespace, "web", &of_policy("True"));
    await_url(&lab, namespace, true);
    // Another template replaces the policy's content, including members that it no longer has. Defaults stay.
    drop(daemon);
    let text = config("10m", "{defaultAction: Allow}");
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "guarded", config: &text });
    let policy = lab.await_value(KIND, namespace, "web", "/spec/authorization/defaultAction", "Allow");
    assert_eq!(policy["spec"]["authorization"].get("realm"), None, "{policy}");
    // A stopped Instance has neither, and its next policy is judged anew.
    lab.patch("instances", namespace, "web", r#"{"spec": {"running": false}}"#);
    lab.await_gone("httproutes", namespace, "web");
    lab.await_gone(KIND, namespace, "web");
    lab.patch("instances", namespace, "web", r#"{"spec": {"running": true}}"#);
    lab.await_value("httproutes", namespace, "web", "/kind", "HTTPRoute");
    await_url(&lab, namespace, false);
}

#[test]
fn a_route_whose_policy_is_not_accepted_in_time_is_withdrawn_and_tried_again() {
    let (lab, namespace) = (Lab::shared(), "tenant-unguarded");
    let _course = lab.course("unguarded");
    install(&lab);
    let admin = lab.admin();
    let text = config("3s", "{realm: labs}");
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "unguarded", config: &text });
    lab.apply(&instance("unguarded", "web", "standalone"));
    lab.await_value("httproutes", namespace, "web", "/kind", "HTTPRoute");
    lab.await_gone("httproutes", namespace, "web");
    let policy = lab.get(KIND, namespace, "web").expect("the policy stays");
    let state = policy["metadata"]["annotations"]["crownlabs.polito.it/route-state"].as_str();
    assert!(state.is_some_and(|state| state.contains("withdrawals")), "{policy}");
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, "web").ok_or("the Instance")?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|found| found["type"] == "Ready").ok_or("Ready")?;
        let said = found["message"].as_str().unwrap_or_default();
        let is_it = found["reason"] == "RouteUnguarded" && said.contains("the route is removed");
        is_it.then_some(()).ok_or_else(|| object["status"].to_string())
    });
    // A controller accepts both at one of the next attempts.
    lab.patch_status(KIND, namespace, "web", &of_policy("True"));
    wait_until(PATIENCE, || {
        // The route may not exist at this moment.
        let said = lab.cluster.patch("httproutes", namespace, "web", Some("status"), &of_route("True"));
        let object = lab.get("instances", namespace, "web").ok_or("the Instance")?;
        let is_shown = object["status"]["url"].is_string() && object["status"]["phase"] == "Ready";
        is_shown.then_some(()).ok_or_else(|| format!("{said:?} {}", object["status"]))
    });
    let policy = lab.get(KIND, namespace, "web").expect("the policy");
    assert!(policy["metadata"]["annotations"].get("crownlabs.polito.it/route-state").is_none(), "{policy}");
}

#[test]
fn without_a_valid_policy_there_is_no_route() {
    let (lab, namespace) = (Lab::shared(), "tenant-noguard");
    let _course = lab.course("noguard");
    install(&lab);
    let admin = lab.admin();
    // A machine of a configuration without policies.
    let open = "controllers: {instance: {gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}}}\n";
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "noguard", config: open });
    lab.apply(&instance("noguard", "old", "standalone"));
    lab.await_value("httproutes", namespace, "old", "/kind", "HTTPRoute");
    drop(daemon);
    let text = config("10m", "{defaultAction: Maybe}");
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "noguard", config: &text });
    lab.await_gone("httproutes", namespace, "old");
    lab.apply(&instance("noguard", "web", "standalone"));
    let message = lab.await_fault(namespace, "web", "EnvironmentEnforcementFailed");
    assert!(message.contains("SecurityPolicy web") && message.contains("defaultAction"), "{message}");
    assert!(lab.get("deployments", namespace, "web").is_some(), "the workload does not depend on it");
    assert!(lab.get("httproutes", namespace, "web").is_none());
    assert!(lab.get("ingresses", namespace, "web-app").is_none());
}
