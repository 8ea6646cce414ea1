use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::*;
use crate::api::instance::InstancePhase;
use crate::api::tenant::Tenant;
use crate::config::{Access, OAuth2Proxy};
use crate::controllers::instance::plan::tests::{
    edit, environment, observed, owned, plan as planned, reconciled,
};
use crate::runtime::children::Children;
use crate::runtime::merge;

const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A configuration with this mode.
fn config(mode: AccessMode) -> InstanceConfig {
    let oauth2_proxy = OAuth2Proxy {
        issuer_url: "https://auth.example.com/realms/labs/".to_owned(),
        client_id: "instances".to_owned(),
        client_secret_file: "/secrets/client".to_owned(),
        ..OAuth2Proxy::default()
    };
    let access = Access { mode, oauth2_proxy, ..Access::default() };
    InstanceConfig { access, ..InstanceConfig::classic() }
}

/// An Instance of a Template with these environments, ready for a proxy.
fn ready(environments: Value) -> Observed {
    let mut observed = observed(environments);
    observed.proxy = ProxySecrets { client_secret: Some("s3cret".into()), new_key: Some(KEY.to_owned()) };
    observed
}

fn web() -> Value {
    json!([environment("main", "Standalone", json!({}))])
}

fn plan_of(observed: &Observed, mode: AccessMode) -> Plan {
    planned(observed, &config(mode), Timestamp::UNIX_EPOCH)
}

/// The objects of the proxy in a plan, by their kind.
fn of_proxy(plan: &Plan) -> BTreeMap<&str, &Desired> {
    plan.ensure
        .iter()
        .filter(|desired| desired.component == PROXY)
        .map(|desired| (desired.kind.kind, desired))
        .collect()
}

/// The object that the API server stores for a new one.
fn stored<T: DeserializeOwned>(desired: &Desired) -> Arc<T> {
    let manifest = desired.manifest.as_ref().expect("a new object").json();
    let mut object = manifest.clone();
    let uid = format!("uid-{}-{}", desired.kind.kind, desired.key.name);
    merge::apply(&mut object, &json!({"metadata": {"uid": uid, "resourceVersion": "1"}}));
    Arc::new(serde_json::from_value(object).expect("objects are read leniently"))
}

/// Adds the planned objects of the proxy to the existing ones.
fn make(observed: &mut Observed, plan: &Plan) {
    let made = of_proxy(plan);
    observed.children.set::<ServiceKind>([stored(made["Service"])]);
    observed.children.set::<SecretKind>([stored(made["Secret"])]);
    observed.children.set::<IngressKind>([stored(made["Ingress"])]);
    observed.children.set::<DeploymentKind>([stored(made["Deployment"])]);
}

/// The kinds of the objects that a plan removes.
fn removed(plan: &Plan) -> Vec<&str> {
    assert!(plan.remove.iter().all(|removal| removal.key.name == "my-lab-oauth2-proxy"), "{:?}", plan.remove);
    plan.remove.iter().map(|removal| removal.kind.kind).collect()
}

/// The data of the Secret in a plan, as text.
fn data(plan: &Plan) -> BTreeMap<String, String> {
    let secret = of_proxy(plan)["Secret"].manifest.as_ref().expect("a new Secret").json();
    let data = secret["data"].as_object().expect("data");
    let text = |value: &Value| decoded(value.as_str().expect("base64")).expect("text");
    data.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

#[test]
fn each_instance_has_a_separate_proxy() {
    let plan = plan_of(&ready(web()), AccessMode::PerInstance);
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    let made = of_proxy(&plan);
    assert_eq!(made.keys().copied().collect::<Vec<_>>(), ["Deployment", "Ingress", "Secret", "Service"]);
    let json = |kind: &str| made[kind].manifest.as_ref().expect("new").json();
    for (kind, desired) in &made {
        assert_eq!(&*desired.key.name, "my-lab-oauth2-proxy", "{kind}");
        assert_eq!(json(kind)["metadata"]["ownerReferences"][0]["uid"], "u1", "{kind}");
        assert_eq!(json(kind)["metadata"]["labels"][labels::COMPONENT], COMPONENT, "{kind}");
    }
    // The path of the proxy is on the same host, and leads to the proxy.
    let rule = &json("Ingress")["spec"]["rules"][0];
    assert_eq!(rule["host"], "crownlabs.example.com");
    let path = &rule["http"]["paths"][0];
    assert_eq!(path["path"], "/instance/u1/_oauth2");
    assert_eq!(path["backend"]["service"], json!({"name": "my-lab-oauth2-proxy", "port": {"name": "http"}}));
    assert!(json("Ingress")["metadata"].get("annotations").is_none(), "the login is public");
    // The Ingress of the environment refers to it.
    let main = plan.ensure.iter().find(|desired| &*desired.key.name == "my-lab-app").expect("the Ingress");
    let annotation = |name: &str| main.annotations[&format!("nginx.ingress.kubernetes.io/{name}")].clone();
    let url = "https://crownlabs.example.com/instance/u1/_oauth2";
    assert_eq!(annotation("auth-url"), Some(format!("{url}/auth")));
    assert_eq!(annotation("auth-signin"), Some(format!("{url}/start?rd=$escaped_request_uri")));
}

#[test]
fn the_pod_of_the_proxy_is_not_selected_as_a_pod_of_an_environment() {
    let plan = plan_of(&ready(web()), AccessMode::PerInstance);
    let made = of_proxy(&plan);
    let json = |kind: &str| made[kind].manifest.as_ref().expect("new").json()["spec"].clone();
    let selector = json!({labels::OAUTH2_PROXY: "my.lab"});
    let template = json("Deployment")["template"].clone();
    assert_eq!(json("Service")["selector"], selector);
    assert_eq!(json("Deployment")["selector"]["matchLabels"], selector);
    assert_eq!(template["metadata"]["labels"], selector);
    let service = plan.ensure.iter().find(|desired| &*desired.key.name == "my-lab").expect("the Service");
    let service = service.manifest.as_ref().expect("new").json();
    assert!(service["spec"]["selector"].get(labels::OAUTH2_PROXY).is_none());
    // It has the limits that the ResourceQuota of the namespace requires, and no privileges.
    let container = &template["spec"]["containers"][0];
    for limit in ["cpu", "memory"] {
        for kind in ["limits", "requests"] {
            assert!(container["resources"][kind][limit].is_string(), "{container}");
        }
    }
    assert_eq!(template["spec"]["automountServiceAccountToken"], false);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    // No secret is in its arguments.
    let text = template.to_string();
    assert!(!text.contains("s3cret") && !text.contains(KEY), "{text}");
}

#[test]
fn the_tenant_and_the_managers_of_the_workspace_may_log_in() {
    let mut observed = ready(web());
    assert_eq!(data(&plan_of(&observed, AccessMode::PerInstance))["users"], "ada\n");
    let manager = |name: &str| -> Arc<Tenant> {
        let tenant = json!({"metadata": {"name": name}, "spec": {}});
        Arc::new(serde_json::from_value(tenant).expect("a Tenant"))
    };
    observed.managers = vec![manager("zoe"), manager("ada"), manager("abe")];
    assert_eq!(data(&plan_of(&observed, AccessMode::PerInstance))["users"], "abe\nada\nzoe\n");
}

#[test]
fn a_cookie_key_is_random_and_kept() {
    let keys: BTreeSet<String> = (0..50).filter_map(|_| ProxySecrets::new(None).new_key).collect();
    assert_eq!(keys.len(), 50, "all are different");
    assert!(keys.iter().all(|key| is_key(key)));
    let mut observed = ready(web());
    let first = plan_of(&observed, AccessMode::PerInstance);
    assert_eq!(data(&first)["cookie-secret"], KEY);
    make(&mut observed, &first);
    observed.proxy.new_key = keys.first().cloned();
    let fields = |observed: &Observed| {
        let plan = plan_of(observed, AccessMode::PerInstance);
        of_proxy(&plan)["Secret"].fields["data"].clone()
    };
    assert!(fields(&observed).get("cookie-secret").is_none(), "it is not written again");
    // A modified value is replaced, and additional keys are removed.
    let changed = json!({"data": {"cookie-secret": "c2hvcnQ=", "more": "YQ=="}});
    observed.children.set::<SecretKind>(vec![edit(observed.children.first::<SecretKind>(), &changed)]);
    let repaired = fields(&observed);
    assert_eq!(decoded(repaired["cookie-secret"].as_str().expect("a key")), keys.first().cloned());
    assert_eq!(repaired.get("more"), Some(&Value::Null));
    // A Secret that has lost its labels is not in the store, but its key must not be overwritten.
    observed.children.set::<SecretKind>([]);
    assert!(fields(&observed).get("cookie-secret").is_none());
}

#[test]
fn objects_that_are_up_to_date_are_not_written() {
    let mut observed = ready(web());
    let first = plan_of(&observed, AccessMode::PerInstance);
    make(&mut observed, &first);
    let again = plan_of(&observed, AccessMode::PerInstance);
    let (children, made) = (&observed.children, of_proxy(&again));
    for (kind, object) in [
        ("Service", to_value(children.first::<ServiceKind>())),
        ("Secret", to_value(children.first::<SecretKind>())),
        ("Ingress", to_value(children.first::<IngressKind>())),
        ("Deployment", to_value(children.first::<DeploymentKind>())),
    ] {
        let desired = made[kind];
        assert!(desired.manifest.is_none(), "{kind} exists");
        if !desired.fields.is_null() {
            assert_eq!(merge::required(&object, &desired.fields), None, "{kind}");
        }
        for (key, value) in &desired.annotations {
            assert_eq!(object["metadata"]["annotations"][key].as_str(), value.as_deref(), "{kind}");
        }
    }
    assert!(again.remove.is_empty());
}

#[test]
fn another_configuration_replaces_the_pod_template() {
    let mut observed = ready(web());
    let first = plan_of(&observed, AccessMode::PerInstance);
    make(&mut observed, &first);
    let mut newer = config(AccessMode::PerInstance);
    newer.access.oauth2_proxy.image = "r.example.org/proxy:2".to_owned();
    let plan = planned(&observed, &newer, Timestamp::UNIX_EPOCH);
    let desired = of_proxy(&plan)["Deployment"];
    let image = &desired.fields["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "r.example.org/proxy:2");
    let old = observed.children.first::<DeploymentKind>().annotation(labels::POD_TEMPLATE).map(str::to_owned);
    assert!(old.is_some() && desired.annotations[labels::POD_TEMPLATE] != old);
}

#[test]
fn a_stop_keeps_the_secret_and_switching_off_removes_everything() {
    let mut observed = ready(web());
    let first = plan_of(&observed, AccessMode::PerInstance);
    make(&mut observed, &first);
    let all = ["Deployment", "Service", "Ingress", "Secret"];
    for mode in [AccessMode::Shared, AccessMode::None] {
        let plan = plan_of(&observed, mode);
        assert_eq!(removed(&plan), all, "{mode:?}");
        assert!(of_proxy(&plan).is_empty());
    }
    let exam = json!([environment("main", "Standalone", json!({"mode": "Exam"}))]);
    let mut other = ready(exam);
    other.children = observed.children.clone();
    assert_eq!(removed(&plan_of(&other, AccessMode::PerInstance)), all, "an exam has no login");
    observed.instance = edit(&observed.instance, &json!({"spec": {"running": false}}));
    assert_eq!(removed(&plan_of(&observed, AccessMode::PerInstance)), all[..3]);
    // Objects that only look similar, such as an environment with that name, are not changed.
    observed.children = Children::default();
    observed
        .children
        .set::<DeploymentKind>(vec![owned::<DeploymentKind>("my-lab-oauth2-proxy", json!({"replicas": 1}))]);
    assert!(plan_of(&observed, AccessMode::None).remove.is_empty());
}

#[test]
fn without_a_mode_or_a_login_an_ingress_has_no_annotation_that_protects_it() {
    let of = |environments: Value, mode: AccessMode| {
        let plan = plan_of(&ready(environments), mode);
        let ingress = plan.ensure.iter().find(|desired| &*desired.key.name == "my-lab-app").cloned();
        let ingress = ingress.expect("the Ingress");
        let set = ingress.annotations.iter().filter(|(_, value)| value.is_some());
        let set: Vec<String> =
            set.filter_map(|(key, _)| Some(key.split_once("/auth-")?.1.to_owned())).collect();
        let made = ingress.manifest.expect("new").json()["metadata"]["annotations"].to_string();
        assert_eq!(made.contains("/auth-"), !set.is_empty(), "{made}");
        set
    };
    assert_eq!(of(web(), AccessMode::None), [""; 0]);
    assert_eq!(of(web(), AccessMode::Shared), ["signin", "url"]);
    assert_eq!(of(web(), AccessMode::PerInstance), ["signin", "url"]);
    let exam = json!([environment("main", "Standalone", json!({"mode": "Exam"}))]);
    assert_eq!(of(exam, AccessMode::PerInstance), [""; 0]);
}

#[test]
fn several_environments_share_one_proxy_with_a_reserved_name() {
    let mut observed = ready(json!([
        environment("web", "Standalone", json!({})),
        environment("oauth2-proxy", "Standalone", json!({})),
        environment("vm", "VirtualMachine", json!({"persistent": true})),
    ]));
    let plan = plan_of(&observed, AccessMode::PerInstance);
    let names: Vec<&str> = plan
        .ensure
        .iter()
        .filter(|desired| desired.kind.kind == "Deployment")
        .map(|d| &*d.key.name)
        .collect();
    assert_eq!(names, ["my-lab-web", "my-lab-oauth2-proxy"]);
    assert_eq!(of_proxy(&plan).len(), 4);
    assert_eq!(plan.problems.len(), 1);
    assert!(plan.problems[0].message.contains("\"oauth2-proxy\" is reserved"), "{:?}", plan.problems);
    // Without proxies, the name is not reserved.
    assert!(plan_of(&observed, AccessMode::Shared).problems.is_empty());
    // A machine without a web interface needs no proxy.
    observed.template =
        ready(json!([environment("main", "VirtualMachine", json!({"guiEnabled": false}))])).template;
    assert!(of_proxy(&plan_of(&observed, AccessMode::PerInstance)).is_empty());
}

#[test]
fn an_ingress_that_is_kept_without_a_web_interface_is_still_guarded() {
    let mut observed = ready(json!([environment("main", "Standalone", json!({"guiEnabled": false}))]));
    assert!(of_proxy(&plan_of(&observed, AccessMode::PerInstance)).is_empty());
    observed.children.set::<IngressKind>(vec![owned::<IngressKind>("my-lab-app", json!({}))]);
    assert_eq!(of_proxy(&plan_of(&observed, AccessMode::PerInstance)).len(), 4);
}

#[test]
fn an_instance_is_as_ready_as_its_environment() {
    let mut observed = ready(web());
    let deployment = owned::<DeploymentKind>("my-lab", json!({"replicas": 1}));
    observed
        .children
        .set::<DeploymentKind>(vec![edit(&deployment, &json!({"status": {"readyReplicas": 1}}))]);
    let config = config(AccessMode::PerInstance);
    let reported = |observed: &Observed| reconciled(observed, &config, Timestamp::UNIX_EPOCH).0;
    // The proxy does not exist yet.
    assert_eq!(reported(&observed).status.phase, InstancePhase::Ready);
    // The proxy cannot be created. This is reported, and the environment stays as it is.
    observed.proxy.client_secret = None;
    let report = reported(&observed);
    assert_eq!(report.status.phase, InstancePhase::Ready);
    let told = report.status.conditions.iter().find(|condition| condition.type_ == "Reconciled");
    let told = told.map(|condition| (condition.reason.to_string(), condition.message.to_string()));
    let (reason, message) = told.expect("the condition");
    assert_eq!(reason, "OAuth2ProxyWaits");
    assert!(message.contains("/secrets/client"), "{message}");
}

#[test]
fn the_desktop_of_a_machine_is_opened_through_the_login() {
    let mut observed = ready(json!([environment("main", "VirtualMachine", json!({}))]));
    observed.children.set::<IngressKind>(vec![owned::<IngressKind>("my-lab-gui", json!({}))]);
    let url = |mode: AccessMode| reconciled(&observed, &config(mode), Timestamp::UNIX_EPOCH).0.status.url;
    assert_eq!(url(AccessMode::Shared), "https://crownlabs.example.com/instance/u1/");
    assert_eq!(
        url(AccessMode::PerInstance),
        "https://crownlabs.example.com/instance/u1/_oauth2/start?rd=/instance/u1/"
    );
}

#[test]
fn nothing_is_created_while_another_instance_owns_the_name_of_the_proxy() {
    let name = "my-lab-oauth2-proxy";
    let other = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "a/v1", "kind": "Instance", "name": name, "uid": "u2", "controller": true},
    ]}});
    let mut with_object = ready(web());
    with_object.children.set::<DeploymentKind>(vec![edit(&owned::<DeploymentKind>(name, json!({})), &other)]);
    // Its objects do not exist yet.
    let mut without_object = ready(web());
    without_object.taken = BTreeMap::from([(name.to_owned(), name.to_owned())]);
    for (mut observed, begin) in [
        (with_object, format!("Deployment {name} belongs to Instance {name}: it is not changed")),
        (without_object, format!("Service {name} belongs to Instance {name}, which is older")),
    ] {
        let plan = plan_of(&observed, AccessMode::PerInstance);
        assert!(plan.ensure.is_empty(), "{:?}", plan.ensure);
        let problem = &plan.problems[0];
        assert_eq!(problem.reason, "NameConflict");
        assert!(problem.message.starts_with(&begin), "{}", problem.message);
        // Instances without a proxy do not need the name.
        assert!(plan_of(&observed, AccessMode::Shared).problems.is_empty());
        let exam = json!([environment("main", "Standalone", json!({"mode": "Exam"}))]);
        observed.template = ready(exam).template;
        assert!(plan_of(&observed, AccessMode::PerInstance).problems.is_empty());
    }
    // An existing proxy keeps its name.
    let mut existing = ready(web());
    let plan = plan_of(&existing, AccessMode::PerInstance);
    make(&mut existing, &plan);
    existing.children.set::<SecretKind>(vec![edit(existing.children.first::<SecretKind>(), &other)]);
    let plan = plan_of(&existing, AccessMode::PerInstance);
    assert!(plan.problems.is_empty() && plan.remove.is_empty(), "{:?}", plan.problems);
}
