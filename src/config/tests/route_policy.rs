//! The policy that guards each `HTTPRoute`.

use serde_json::{Value, json};

use super::*;

const GATEWAY: &str = "controllers:
  instance:
    gatewayApi:
      enabled: true
      parentRefs: [{name: labs, namespace: gateways}]
";
const POLICY: &str = "      policy:
        resource: securitypolicies
        template:
          apiVersion: gateway.envoyproxy.io/v1alpha1
          kind: SecurityPolicy
          spec:
            targetRefs:
            - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: \"${route}\"}
            authorization: {defaultAction: Deny, rules: [{a: 1, b: true, c: null}]}
";

#[test]
fn a_template_is_read_with_every_member() {
    let config = parsed(&format!("{GATEWAY}{POLICY}"));
    let policy = &config.controllers.instance.gateway_api.policy;
    assert_eq!(policy.names().map(|names| names.kind), Some("SecurityPolicy"));
    let spec = &policy.template["spec"];
    assert_eq!(spec["targetRefs"][0]["name"], "${route}");
    let rules = json!([{"a": 1, "b": true, "c": Value::Null}]);
    assert_eq!(spec["authorization"], json!({"defaultAction": "Deny", "rules": rules}));
}

#[test]
fn a_configured_policy_is_a_login() {
    let warnings = |text: &str| parsed(text).warnings();
    let [warning] = &*warnings(GATEWAY) else { panic!("one warning") };
    assert!(warning.starts_with("controllers.instance.gatewayApi.authenticated: "), "{warning}");
    assert_eq!(warnings(&format!("{GATEWAY}{POLICY}")), [""; 0]);
    let daemon = "    urls: host
    access: {mode: daemon, daemon: {authUrl: 'http://l/auth', signInUrl: 'https://d/login/machine'}}
";
    assert_eq!(warnings(&format!("{GATEWAY}{POLICY}{daemon}")), [""; 0]);
}

#[test]
fn a_template_that_guards_no_route_is_refused() {
    let key = "controllers.instance.gatewayApi.policy";
    let expected = "expected the plural name of the kind, and a template with apiVersion, kind and a spec that refers to \
                    ${route}";
    for (policy, problem) in [
        (
            POLICY.replace("${route}", "labs"),
            "policy.template.spec does not refer to ${route}, so it guards no route",
        ),
        (POLICY.replace("securitypolicies", "\"\""), "policy.template is set and policy.resource is empty"),
    ] {
        let fault = format!("f.yaml:8: {key}: {problem}; {expected}");
        assert_eq!(faults_below(&format!("{GATEWAY}{policy}")), [fault]);
    }
    let twice = POLICY.replace("kind: SecurityPolicy\n", "kind: SecurityPolicy\n          kind: Other\n");
    assert_eq!(
        faults_below(&format!("{GATEWAY}{twice}")),
        [format!("f.yaml:13: {key}.template.kind: given twice; expected it once")]
    );
    let list =
        POLICY.replace("template:\n", "template: [a]\n").lines().take(3).collect::<Vec<_>>().join("\n");
    let found = faults_below(&format!("{GATEWAY}{list}\n"));
    assert!(
        found[0].starts_with(&format!("f.yaml:10: {key}.template: a list; expected a mapping")),
        "{found:?}"
    );
}
