//! `crownlabs plan` with the Gateway API.

use super::{SAMPLES, crownlabs, golden, text};

/// The policy of a route, as the configuration has it.
pub const POLICY: &str = "{resource: securitypolicies, template: {apiVersion: gateway.envoyproxy.io/v1alpha1, \
                      kind: SecurityPolicy, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, \
                      name: '${route}'}]}}}";

#[test]
fn routes_are_planned_where_the_gateway_api_is_configured() {
    let config = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
controllers: {instance: {gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}}}
";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config).expect("written");
    let output = crownlabs(&["plan", "--config", &file.display().to_string(), "-f", SAMPLES], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let objects = golden::by_name(golden::documents(&text(&output.stdout)));
    let route = &objects["HTTPRoute/wireshark-1-wireshark"];
    assert_eq!(route["spec"]["parentRefs"][0]["name"], "labs");
    assert_eq!(route["metadata"]["namespace"], "tenant-ada-rossi");
    let routes = objects.keys().filter(|name| name.starts_with("HTTPRoute/")).count();
    assert_eq!(routes, 4, "one for each environment with a web interface: {:?}", objects.keys());
}

#[test]
fn a_policy_is_planned_for_each_route_and_instead_of_an_ingress() {
    let config = format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n\
         controllers: {{instance: {{gatewayApi: {{enabled: true, parentRefs: [{{name: labs, namespace: gateways}}], \
         policy: {POLICY}}}}}}}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config).expect("written");
    let output = crownlabs(&["plan", "--config", &file.display().to_string(), "-f", SAMPLES], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let objects = golden::by_name(golden::documents(&text(&output.stdout)));
    let policy = &objects["SecurityPolicy/wireshark-1-wireshark"];
    assert_eq!(policy["apiVersion"], "gateway.envoyproxy.io/v1alpha1");
    assert_eq!(policy["spec"]["targetRefs"][0]["name"], "wireshark-1-wireshark");
    let of = |kind: &str| {
        let names = objects.keys().filter_map(|name| name.strip_prefix(kind));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("SecurityPolicy/"), of("HTTPRoute/"));
    assert_eq!(of("SecurityPolicy/").len(), 4, "one for each environment with a web interface");
    assert_eq!(of("Ingress/"), [""; 0], "an Ingress would be a way around the policies");
}
