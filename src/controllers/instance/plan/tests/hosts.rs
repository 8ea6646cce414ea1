//! Host names of machines: the Ingresses and routes, the switch between common host names and own ones, and the key.

use super::*;
use crate::config::{Access, AccessMode, DaemonLogin, ExamAccess, GatewayApi, ParentRef, Urls};
use crate::controllers::shared::machine_host::HostKey;
use crate::kinds::HttpRoute;
use crate::runtime::ObjectKey;

/// The host name of the environment `main`.
const HOST: &str = "5ngftyjvb3ov2wxpapjdx77luw.crownlabs.example.com";
const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// A configuration with these host names and the layout of the older operators.
fn config(urls: Urls) -> InstanceConfig {
    InstanceConfig { urls, ..InstanceConfig::classic() }
}

/// An Instance of a Template with one environment, whose key of host names is known.
fn machine(kind: &str, more: Value) -> Observed {
    let mut observed = observed(json!([environment("main", kind, more)]));
    observed.hosts = Hosts::Known(HostKey::parse(&[1; 32]).expect("a key"));
    observed
}

fn plan_of(observed: &Observed, config: &InstanceConfig) -> Plan {
    plan(observed, config, Timestamp::UNIX_EPOCH)
}

/// The object of a kind after the writes of a plan.
fn written(plan: &Plan, kind: &str, existing: Option<&Value>) -> Value {
    let desired = plan.ensure.iter().find(|desired| desired.kind.kind == kind).expect("planned");
    let Some(existing) = existing else {
        let mut object = desired.manifest.as_ref().expect("a new object").json().clone();
        object["metadata"]["uid"] = format!("uid-{kind}").into();
        return object;
    };
    let mut object = existing.clone();
    merge::apply(&mut object, &json!({"metadata": {"annotations": desired.annotations}}));
    if !desired.fields.is_null() {
        merge::apply(&mut object, &desired.fields);
    }
    // The API server does not store an empty map.
    if object["metadata"]["annotations"] == json!({}) {
        object["metadata"].as_object_mut().expect("metadata").remove("annotations");
    }
    object
}

fn url(observed: &Observed, config: &InstanceConfig) -> String {
    reconciled(observed, config, Timestamp::UNIX_EPOCH).0.status.url
}

#[test]
fn each_environment_has_a_host_name_of_its_own() {
    for (kind, mode, path, target) in [
        ("Standalone", "Standard", "/instance/u1/app", None),
        ("Standalone", "Exam", "/instance/u1/app", None),
        ("Container", "Exercise", "/instance/u1/app", None),
        // The page of the desktop comes from the machine, because no other page has its host.
        ("VirtualMachine", "Standard", "/instance/u1/vnc/(.*)", Some("/$1")),
    ] {
        let mut observed = machine(kind, json!({"mode": mode}));
        let config = config(Urls::Host);
        let ingress = written(&plan_of(&observed, &config), "Ingress", None);
        assert_eq!(ingress["spec"]["tls"], json!([{"hosts": [HOST]}]), "the default certificate");
        let rule = &ingress["spec"]["rules"][0];
        assert_eq!(rule["host"], HOST);
        let paths: Vec<_> = rule["http"]["paths"].as_array().expect("paths").iter().collect();
        assert_eq!([&paths[0]["path"], &paths[1]["path"]], [path, "/_crownlabs"]);
        assert_eq!(paths[0]["backend"], paths[1]["backend"]);
        let rewrite = &ingress["metadata"]["annotations"][format!("{PREFIX}/rewrite-target")];
        assert_eq!(rewrite.as_str(), target, "{kind}");
        observed.children.set::<IngressKind>([object(ingress)]);
        let base = path.trim_end_matches("/(.*)");
        assert_eq!(url(&observed, &config), format!("https://{HOST}{base}/"));
    }
    // In another layout, the URL of the Instance leads to its first environment.
    let mut observed = machine("Standalone", json!({}));
    let config = InstanceConfig { urls: Urls::Host, ..InstanceConfig::default() };
    let ingress = written(&plan_of(&observed, &config), "Ingress", None);
    observed.children.set::<IngressKind>([object(ingress)]);
    assert_eq!(url(&observed, &config), format!("https://{HOST}/instance/u1/main/"));
}

#[test]
fn a_switch_and_back_changes_only_the_ingress_and_restores_it() {
    for kind in ["Standalone", "Container", "VirtualMachine"] {
        let mut observed = machine(kind, json!({}));
        let [common, own] = [Urls::Path, Urls::Host].map(config);
        let before = written(&plan_of(&observed, &common), "Ingress", None);
        observed.children.set::<IngressKind>([object(&before)]);
        let others = |plan: &Plan| {
            let others = plan.ensure.iter().filter(|desired| desired.kind.kind != "Ingress");
            others.map(|desired| format!("{desired:?}")).collect::<Vec<_>>()
        };
        let (stays, switched) = (plan_of(&observed, &common), plan_of(&observed, &own));
        assert_eq!(written(&stays, "Ingress", Some(&before)), before, "{kind}: nothing to write");
        assert_eq!(others(&switched), others(&stays), "{kind}");
        assert!(switched.remove.is_empty(), "{:?}", switched.remove);
        let after = written(&switched, "Ingress", Some(&before));
        assert_eq!(after["spec"]["rules"][0]["host"], HOST, "{kind}");
        assert_eq!(after["spec"]["tls"], json!([{"hosts": [HOST]}]), "{kind}");
        observed.children.set::<IngressKind>([object(&after)]);
        let again = plan_of(&observed, &own);
        assert_eq!(written(&again, "Ingress", Some(&after)), after, "{kind}: nothing to write");
        assert!(url(&observed, &own).starts_with(&format!("https://{HOST}/")), "{kind}");
        let back = written(&plan_of(&observed, &common), "Ingress", Some(&after));
        assert_eq!(back, before, "{kind}");
    }
}

#[test]
fn another_base_changes_the_host_of_an_existing_ingress() {
    let mut observed = machine("Standalone", json!({}));
    let before = written(&plan_of(&observed, &config(Urls::Host)), "Ingress", None);
    observed.children.set::<IngressKind>([object(&before)]);
    let moved = InstanceConfig { website_base_url: "labs.example.org".to_owned(), ..config(Urls::Host) };
    let after = written(&plan_of(&observed, &moved), "Ingress", Some(&before));
    assert_eq!(after["spec"]["rules"][0]["host"], "5ngftyjvb3ov2wxpapjdx77luw.labs.example.org");
}

#[test]
fn without_the_key_addresses_stay_and_new_ones_wait() {
    let mut observed = machine("Standalone", json!({}));
    let [common, own] = [Urls::Path, Urls::Host].map(config);
    let key = ObjectKey::new("crownlabs-system", "crownlabs-machine-hosts");
    observed.hosts = Hosts::Missing(key.clone());
    let waits = plan_of(&observed, &own);
    assert_eq!(names(&waits), ["Service my-lab", "Secret crownlabs-machine-hosts", "Deployment my-lab"]);
    assert_eq!(waits.problems[0].reason, "HostKeyWaits");
    assert_eq!(url(&observed, &own), "");
    // An existing Ingress is neither changed nor removed, and its URL stays.
    observed.children.set::<IngressKind>([object(written(&plan_of(&observed, &common), "Ingress", None))]);
    let known = url(&observed, &common);
    let environments = reconciled(&observed, &common, Timestamp::UNIX_EPOCH).0.status.environments;
    let status = json!({"status": {"url": known, "environments": environments}});
    observed.instance = edit(&observed.instance, &status);
    observed.hosts = Hosts::Invalid(key, "it has 3 bytes".to_owned());
    let plan = plan_of(&observed, &own);
    assert_eq!(names(&plan), ["Service my-lab", "Deployment my-lab"]);
    assert!(plan.remove.is_empty());
    assert_eq!(url(&observed, &own), known);
    // Without a web interface, no key is needed.
    observed = machine("VirtualMachine", json!({"guiEnabled": false}));
    observed.hosts = Hosts::Missing(ObjectKey::new("crownlabs-system", "crownlabs-machine-hosts"));
    assert!(plan_of(&observed, &own).problems.is_empty());
}

#[test]
fn a_route_has_the_host_and_a_rule_for_the_login() {
    let parent = ParentRef { name: "labs".to_owned(), namespace: "gateways".to_owned() };
    let gateway_api = GatewayApi { enabled: true, parent_refs: vec![parent], ..GatewayApi::default() };
    let [common, own] = [Urls::Path, Urls::Host]
        .map(|urls| InstanceConfig { gateway_api: gateway_api.clone(), ..config(urls) });
    let mut observed = machine("Standalone", json!({"rewriteURL": true}));
    observed.has_routes = true;
    let before = written(&plan_of(&observed, &common), "HTTPRoute", None);
    assert_eq!(before["spec"].get("hostnames"), None);
    let stored: Arc<HttpRoute> = object(&before);
    observed.children.set::<HttpRouteKind>([stored]);
    let after = written(&plan_of(&observed, &own), "HTTPRoute", Some(&before));
    assert_eq!(after["spec"]["hostnames"], json!([HOST]));
    let rules = after["spec"]["rules"].as_array().expect("rules");
    let prefixes: Vec<_> = rules.iter().map(|rule| &rule["matches"][0]["path"]["value"]).collect();
    assert_eq!(prefixes, ["/instance/u1/app", "/_crownlabs"]);
    assert!(rules[0].get("filters").is_some() && rules[1].get("filters").is_none(), "{rules:?}");
    observed.children.set::<HttpRouteKind>([object(&after)]);
    assert_eq!(written(&plan_of(&observed, &own), "HTTPRoute", Some(&after)), after, "nothing to write");
    assert_eq!(written(&plan_of(&observed, &common), "HTTPRoute", Some(&after)), before);
}

#[test]
fn exams_and_other_environments_have_separate_logins() {
    let login = |mode: &str, access: AccessMode, exams: ExamAccess, urls: Urls| {
        let daemon = DaemonLogin {
            auth_url: "http://login.crownlabs-system.svc.cluster.local/auth".to_owned(),
            sign_in_url: "https://labs.example.org/login/machine".to_owned(),
        };
        let access = Access { mode: access, exams, daemon, ..Access::default() };
        let config = InstanceConfig { access, ..config(urls) };
        let plan = plan_of(&machine("Standalone", json!({"mode": mode})), &config);
        let ingress = written(&plan, "Ingress", None);
        ["auth-url", "auth-signin"].map(|name| {
            let value = &ingress["metadata"]["annotations"][format!("{PREFIX}/{name}")];
            value.as_str().unwrap_or_default().to_owned()
        })
    };
    let none = ["", ""];
    let shared = ["/auth", "/start?rd=$escaped_request_uri"]
        .map(|path| format!("https://crownlabs.example.com/auth{path}"));
    let of_host = ["/auth", "/start?rd=https://$http_host$escaped_request_uri"]
        .map(|path| format!("https://crownlabs.example.com/auth{path}"));
    let daemon = [
        "http://login.crownlabs-system.svc.cluster.local/auth/5ngftyjvb3ov2wxpapjdx77luw",
        "https://labs.example.org/login/machine?rd=https://$http_host$escaped_request_uri",
    ];
    let (mode, exams) = (AccessMode::Shared, ExamAccess::None);
    assert_eq!(login("Standard", mode, exams, Urls::Path), shared);
    assert_eq!(login("Standard", mode, exams, Urls::Host), of_host);
    for exam in ["Exam", "Exercise"] {
        assert_eq!(login(exam, mode, exams, Urls::Path), none, "as the Go operators");
        assert_eq!(login(exam, AccessMode::None, ExamAccess::Shared, Urls::Path), shared);
        assert_eq!(login(exam, AccessMode::None, ExamAccess::Daemon, Urls::Host), daemon);
        assert_eq!(login(exam, AccessMode::Daemon, ExamAccess::None, Urls::Host), none);
    }
    assert_eq!(login("Standard", AccessMode::Daemon, ExamAccess::None, Urls::Host), daemon);
    assert_eq!(login("Standard", AccessMode::None, ExamAccess::Daemon, Urls::Host), none);
}
