//! The names of the objects that the loops make for one Instance: no two loops make the same name, and every name is
//! declared in [`crate::api::parts`], which the reserved names of environments derive from.

use super::*;
use crate::api::names::CanonicalName;
use crate::api::parts::{ENVIRONMENT_KINDS, PARTS};
use crate::config::{AccessMode, Layout};
use crate::kinds::{DataVolumeKind, NetworkPolicyKind};

/// The number of rounds after which all objects of an Instance exist.
const ROUNDS: u32 = 4;
const INSTANCE: &str = "my.lab";

/// A configuration that makes every loop create its objects.
fn config(layout: Layout, mode: AccessMode) -> Config {
    let mut config = Config::default();
    let controllers = &mut config.controllers;
    controllers.tenant.enabled = false;
    controllers.workspace.enabled = false;
    controllers.submission.enabled = true;
    controllers.public_exposure.enabled = true;
    controllers.public_exposure.ip_pool = vec!["10.0.0.1".to_owned()];
    controllers.instance.layout = layout;
    controllers.instance.access.mode = mode;
    controllers.instance.exam_egress.enabled = true;
    let readable = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    controllers.instance.access.oauth2_proxy.client_secret_file = readable.to_owned();
    let gateway = json!({"enabled": true, "parentRefs": [{"name": "labs", "namespace": "gateways"}]});
    controllers.instance.gateway_api = serde_json::from_value(gateway).expect("a Gateway");
    config
}

/// An exposed Instance of a Template with one environment, and the objects that it refers to.
fn documents(environment: &str, kind: &str, persistent: bool) -> Vec<Value> {
    let group = "crownlabs.polito.it";
    vec![
        json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "Workspace", "metadata": {"name": "tea"},
            "spec": {"prettyName": "Tea"}}),
        json!({"apiVersion": format!("{group}/v1alpha2"), "kind": "Tenant", "metadata": {"name": "ada"},
            "spec": {"firstName": "Ada", "lastName": "Rossi", "email": "ada@example.org"}}),
        json!({"apiVersion": format!("{group}/v1alpha2"), "kind": "Template",
        "metadata": {"name": "lab", "namespace": "workspace-tea"},
        "spec": {
            "prettyName": "Lab", "description": "d", "allowPublicExposure": true,
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"},
            "environmentList": [{
                "name": environment, "environmentType": kind, "persistent": persistent, "image": "r.example.org/a",
                "mountMyDriveVolume": false,
                "resources": {"cpu": 1, "reservedCPUPercentage": 10, "memory": "1Gi", "disk": "1Gi"},
            }],
        }}),
        json!({"apiVersion": format!("{group}/v1alpha2"), "kind": "Instance",
        "metadata": {"name": INSTANCE, "namespace": "tenant-ada"},
        "spec": {
            "running": true,
            "template.crownlabs.polito.it/TemplateRef": {"name": "lab", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
            "publicExposure": {"ports": [{"name": "web", "port": 0, "targetPort": 80}]},
            "customizationUrls": {"contentDestination": "https://exams.example.org/upload"},
        }}),
    ]
}

/// The objects and messages of the loops while the Instance runs and after its content is uploaded.
struct Life {
    made: Vec<Value>,
    messages: Vec<String>,
}

fn life(documents: &[Value], config: &Config) -> Life {
    let mut planning = Planning::new(named(documents), None, config).expect("objects");
    let output = planning.plan().expect("a plan");
    let mut life = Life { made: Vec::new(), messages: output.messages };
    let is_given = |object: &Value| documents.iter().any(|given| identity(given) == identity(object));
    life.made.extend(output.objects.iter().filter(|object| !is_given(object)).cloned());
    let mut written = output.objects;
    for version in 1..=2 * ROUNDS {
        if version == ROUNDS {
            let mut stopped = documents.last().expect("an Instance").clone();
            let labels = json!({"crownlabs.polito.it/instance-submission-requested": "true"});
            let status = json!({"phase": "Off"});
            merge::apply(
                &mut stopped,
                &json!({"metadata": {"labels": labels}, "spec": {"running": false}, "status": status}),
            );
            written.push(stopped);
        }
        for object in &mut written {
            object["metadata"]["resourceVersion"] = version.to_string().into();
            let uid = format!("<uid {}/{}>", text(object, "/kind"), text(object, "/metadata/name"));
            object["metadata"].as_object_mut().expect("metadata").entry("uid").or_insert(uid.into());
            planning.cluster.factory.offer(object).expect("an object");
        }
        let rewritten = planning.in_namespaces.iter().flat_map(|built| built.written(now(), None));
        written = rewritten.map(|(object, _)| object).collect();
        life.messages = Vec::new();
        for planned in planning.in_namespaces.iter().flat_map(|built| built.plan(now())) {
            life.made.extend(planned.made);
            life.messages.extend(planned.messages);
        }
    }
    life
}

/// The kinds and names of the objects that are made for the Instance.
fn names(made: &[Value]) -> Vec<(String, String)> {
    made.iter().map(|object| (text(object, "/kind"), text(object, "/metadata/name"))).collect()
}

/// The names that are made more than once.
fn shared(names: &[(String, String)]) -> Vec<&(String, String)> {
    let mut seen = BTreeSet::new();
    names.iter().filter(|name| !seen.insert(*name)).collect()
}

const TYPES: [(&str, bool); 6] = [
    ("Container", false),
    ("Container", true),
    ("Standalone", true),
    ("VirtualMachine", false),
    ("VirtualMachine", true),
    ("CloudVM", true),
];

#[test]
fn every_name_that_the_loops_make_for_an_instance_is_declared() {
    let canonical = CanonicalName::of(INSTANCE);
    let mut of_environments = BTreeSet::from([DataVolumeKind::KIND.to_owned()]);
    let mut of_parts: BTreeSet<(&str, String)> = BTreeSet::new();
    for layout in [Layout::Classic, Layout::PerEnvironment] {
        let environment = canonical.environment("desktop");
        let base = if layout == Layout::Classic { &canonical } else { &environment };
        let own = [base.to_string(), base.gui(), base.app()];
        let modes = TYPES.into_iter().flat_map(|type_| ["Standard", "Exam"].map(|mode| (type_, mode)));
        for ((kind, persistent), mode) in modes {
            let config = config(layout, AccessMode::PerInstance);
            let mut documents = documents("desktop", kind, persistent);
            documents[2]["spec"]["environmentList"][0]["mode"] = mode.into();
            let names = names(&life(&documents, &config).made);
            assert_eq!(shared(&names), Vec::<&(String, String)>::new(), "{layout:?} {kind}");
            for (kind, name) in names {
                // This is the only name that does not begin with the Instance's name.
                if kind == NetworkPolicyKind::KIND && name.ends_with(&format!("-{INSTANCE}")) {
                    continue;
                }
                if own.contains(&name) {
                    of_environments.insert(kind);
                    continue;
                }
                let is_it = |part: &&&crate::api::parts::Part| {
                    name == canonical.part(part) || name == base.part(part)
                };
                let part =
                    PARTS.iter().find(is_it).unwrap_or_else(|| panic!("{kind} {name} is not declared"));
                of_parts.insert((part.suffix, kind));
            }
        }
    }
    assert_eq!(of_environments, BTreeSet::from(ENVIRONMENT_KINDS.map(str::to_owned)));
    let declared =
        PARTS.iter().flat_map(|part| part.kinds.iter().map(|kind| (part.suffix, (*kind).to_owned())));
    assert_eq!(of_parts, declared.collect());
}

#[test]
fn no_two_loops_make_the_same_name_whatever_an_environment_is_called() {
    let suffixes = PARTS.map(|part| part.suffix);
    for layout in [Layout::Classic, Layout::PerEnvironment] {
        // This mode makes all objects of the other modes, and more.
        let config = config(layout, AccessMode::PerInstance);
        for name in suffixes.into_iter().chain(["gui", "app", "drive"]) {
            for (kind, persistent) in TYPES {
                let names = names(&life(&documents(name, kind, persistent), &config).made);
                assert_eq!(shared(&names), Vec::<&(String, String)>::new(), "{layout:?} {name} {kind}");
            }
        }
    }
}

#[test]
fn an_environment_named_like_the_exposure_runs_and_only_the_exposure_has_a_name_conflict() {
    let config = config(Layout::PerEnvironment, AccessMode::None);
    let documents = documents("pe", "Container", false);
    let mut planning = Planning::new(named(&documents), None, &config).expect("objects");
    let first = planning.plan().expect("a plan");
    let service = first.objects.iter().find(|object| object["kind"] == "Service").expect("a Service");
    assert_eq!(
        (text(service, "/metadata/name"), text(service, "/spec/type")),
        ("my-lab-pe".into(), "ClusterIP".into())
    );
    for object in &first.objects {
        let mut object = object.clone();
        let uid = format!("<uid {}/{}>", text(&object, "/kind"), text(&object, "/metadata/name"));
        merge::apply(&mut object, &json!({"metadata": {"uid": uid, "resourceVersion": "1"}}));
        planning.cluster.factory.offer(&object).expect("an object");
    }
    let planned: Vec<Planned> = planning.in_namespaces.iter().flat_map(|built| built.plan(now())).collect();
    let of_instance = planned.iter().filter(|planned| planned.kind == "Instance");
    let messages: Vec<String> = of_instance.flat_map(|planned| planned.messages.clone()).collect();
    assert!(
        matches!(&messages[..], [only] if only.starts_with("Service my-lab-pe belongs to environment pe of this Instance")),
        "{messages:?}"
    );
    assert!(planned.iter().all(|planned| planned.made.is_empty()), "{planned:?}");
}
