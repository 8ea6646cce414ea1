#![allow(clippy::needless_pass_by_value, reason = "JSON literals read better as they are")]

mod hosts;
mod openings;
mod pods;
mod power;
mod requirements;
mod restart;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::*;
use crate::api::instance::{EnvironmentStatus, Instance, InstanceKind};
use crate::api::requirements::Cluster;
use crate::api::template::Template;
use crate::api::tenant::Tenant;
use crate::api::{Kind, Object};
use crate::config::Layout;
use crate::controllers::instance::access::ProxySecrets;
use crate::controllers::instance::host_key::Hosts;
use crate::controllers::instance::report::report;
use crate::controllers::instance::validate::validate;
use crate::fixtures::object;
use crate::kinds::{Deployment, DeploymentKind, HttpRouteKind, Ingress, IngressKind, Service, ServiceKind};
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;
use crate::runtime::plan::to_value;
use crate::runtime::reconciler::{Outcome, Report};

/// An Instance of a Template with these environments.
pub fn observed(environments: Value) -> Observed {
    let instance: Arc<Instance> = object(json!({
        "metadata": {"name": "my.lab", "namespace": "tenant-ada", "uid": "u1"},
        "spec": {
            "template.crownlabs.polito.it/TemplateRef": {"name": "t", "namespace": "workspace-w"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
            "prettyName": "Lab",
        },
    }));
    let template: Arc<Template> = object(json!({
        "metadata": {"name": "t", "namespace": "workspace-w"},
        "spec": {"environmentList": environments, "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "w"}},
    }));
    let tenant: Arc<Tenant> = object(json!({"metadata": {"name": "ada"}, "spec": {}}));
    Observed {
        instance,
        template: Some(template),
        tenant: Some(tenant),
        managers: Vec::new(),
        my_drive: None,
        mirrors: None,
        shared_volumes: Vec::new(),
        name_owner: None,
        taken: BTreeMap::new(),
        foreign_tenant: None,
        master_key: None,
        proxy: ProxySecrets::default(),
        hosts: Hosts::default(),
        validated: Arc::default(),
        children: Children::default(),
        published_classes: BTreeSet::new(),
        pods: Vec::new(),
        events: Events::Unknown,
        has_routes: false,
        policies: None,
        cluster: Arc::new(Cluster { has_kubevirt: true, has_cdi: true, ..Cluster::default() }),
        has_import_secret: true,
    }
}

/// An environment of this type, with these members set or removed.
pub fn environment(name: &str, kind: &str, more: Value) -> Value {
    let mut environment = json!({
        "name": name, "environmentType": kind, "image": "img", "mountMyDriveVolume": false,
        "resources": {"cpu": 1, "reservedCPUPercentage": 50, "memory": "1Gi", "disk": "2Gi"},
    });
    merge::apply(&mut environment, &more);
    environment
}

/// The same observation after its validation.
pub fn validated(observed: &Observed, config: &InstanceConfig) -> Observed {
    Observed { validated: Arc::new(validate(observed, config)), ..observed.clone() }
}

/// The plan of a new observation.
pub fn plan(observed: &Observed, config: &InstanceConfig, now: Timestamp) -> Plan {
    super::plan(&validated(observed, config), config, now)
}

/// The report and the plan of a reconcile that changes nothing.
pub fn reconciled(
    observed: &Observed,
    config: &InstanceConfig,
    now: Timestamp,
) -> (Report<InstanceKind>, Plan) {
    let observed = validated(observed, config);
    let plan = super::plan(&observed, config, now);
    (report(&observed, config, &plan, &Outcome::default(), now), plan)
}

fn planned(observed: &Observed) -> Plan {
    plan(observed, &InstanceConfig::classic(), Timestamp::UNIX_EPOCH)
}

fn names(plan: &Plan) -> Vec<String> {
    plan.ensure.iter().map(|desired| format!("{} {}", desired.kind.kind, desired.key.name)).collect()
}

/// The object with a merge patch applied.
pub fn edit<T: Kind>(object: &Object<T>, patch: &Value) -> Arc<Object<T>> {
    let mut value = to_value(object);
    merge::apply(&mut value, patch);
    self::object(value)
}

/// An object that the Instance controls.
pub fn owned<T: Kind>(name: &str, spec: Value) -> Arc<Object<T>> {
    object(json!({
        "metadata": {"name": name, "namespace": "tenant-ada", "uid": format!("{}-{name}", T::KIND), "resourceVersion": "1",
            "ownerReferences": [{"apiVersion": "a/v1", "kind": "Instance", "name": "my.lab", "uid": "u1", "controller": true}]},
        "spec": spec,
    }))
}

#[test]
fn each_type_has_its_objects_under_its_names() {
    let of = |kind: &str, more: Value| names(&planned(&observed(json!([environment("main", kind, more)]))));
    assert_eq!(of("Container", json!({})), ["Service my-lab", "Ingress my-lab-gui", "Deployment my-lab"]);
    assert_eq!(
        of("Container", json!({"persistent": true})),
        ["Service my-lab", "Ingress my-lab-gui", "PersistentVolumeClaim my-lab", "Deployment my-lab"]
    );
    assert_eq!(of("Standalone", json!({})), ["Service my-lab", "Ingress my-lab-app", "Deployment my-lab"]);
    assert_eq!(
        of("VirtualMachine", json!({"guiEnabled": false})),
        ["Service my-lab", "Secret my-lab", "VirtualMachineInstance my-lab"]
    );
    assert_eq!(
        of("CloudVM", json!({"persistent": true})),
        ["Service my-lab", "Ingress my-lab-gui", "Secret my-lab", "VirtualMachine my-lab"]
    );
    // An exam has no cloud-init.
    assert_eq!(
        of("CloudVM", json!({"persistent": true, "mode": "Exam"})),
        ["Service my-lab", "Ingress my-lab-gui", "VirtualMachine my-lab"]
    );
}

#[test]
fn a_container_without_a_web_interface_still_has_a_port() {
    let ports = |kind: &str, mode: &str| {
        let environment = environment("main", kind, json!({"guiEnabled": false, "mode": mode}));
        let plan = planned(&observed(json!([environment])));
        assert!(!names(&plan).iter().any(|name| name.starts_with("Ingress")), "{kind}");
        let service = plan.ensure[0].manifest.as_ref().expect("new").json()["spec"]["ports"].clone();
        service.as_array().expect("ports").iter().map(|port| port["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ports("Standalone", "Standard"), ["mydrive"]);
    assert_eq!(ports("Standalone", "Exam"), ["metrics"]);
    assert_eq!(ports("Container", "Exam"), ["metrics"]);
    assert_eq!(ports("Container", "Standard"), ["mydrive", "metrics"]);
}

#[test]
fn a_stop_removes_service_and_ingress_and_keeps_the_workload() {
    let mut observed = observed(json!([environment("main", "Standalone", json!({}))]));
    observed.instance = edit(&observed.instance, &json!({"spec": {"running": false}}));
    observed.children.set::<ServiceKind>(vec![owned::<crate::kinds::ServiceKind>("my-lab", json!({}))]);
    observed.children.set::<IngressKind>(vec![owned::<crate::kinds::IngressKind>("my-lab-app", json!({}))]);
    observed
        .children
        .set::<DeploymentKind>(vec![owned::<crate::kinds::DeploymentKind>("my-lab", json!({"replicas": 1}))]);
    let plan = planned(&observed);
    let removed: Vec<_> =
        plan.remove.iter().map(|removal| (removal.kind.kind, removal.key.name.as_str())).collect();
    assert_eq!(removed, [("Service", "my-lab"), ("Ingress", "my-lab-app")]);
    assert_eq!(plan.ensure[0].fields, json!({"spec": {"replicas": 1}}), "a stop keeps the replicas");
    let stamp = &plan.patches.first().expect("labels and stamp").patch["metadata"]["annotations"];
    assert_eq!(stamp[labels::LAST_POWERED_OFF], "1970-01-01T00:00:00Z");
    let stamped = |text: &str| {
        let instance =
            edit(&observed.instance, &json!({"metadata": {"annotations": {labels::LAST_POWERED_OFF: text}}}));
        let plan = planned(&Observed { instance, ..observed.clone() });
        let patch = &plan.patches.first().expect("labels").patch;
        patch["metadata"]["annotations"][labels::LAST_POWERED_OFF].as_str().map(str::to_owned)
    };
    assert_eq!(stamped("2026-01-01T00:00:00Z"), None, "it stays");
    assert_eq!(
        stamped("yesterday").as_deref(),
        Some("1970-01-01T00:00:00Z"),
        "an unparseable time is replaced"
    );
    // Nothing is removed if nothing exists.
    observed.children = Children::default();
    assert!(planned(&observed).remove.is_empty());
}

#[test]
fn replicas_follow_the_rules_of_stopping() {
    let replicas = |running: bool, persistent: bool, existing: Option<i32>| {
        let mut observed =
            observed(json!([environment("main", "Container", json!({"persistent": persistent}))]));
        observed.instance = edit(&observed.instance, &json!({"spec": {"running": running}}));
        let deployment =
            |replicas| owned::<crate::kinds::DeploymentKind>("my-lab", json!({"replicas": replicas}));
        observed.children.set::<DeploymentKind>(existing.map(deployment));
        let plan = planned(&observed);
        let found =
            plan.ensure.iter().find(|desired| desired.kind.kind == "Deployment").expect("a Deployment");
        found.fields["spec"]["replicas"].clone()
    };
    assert_eq!(replicas(true, false, None), 1);
    assert_eq!(replicas(true, true, Some(0)), 1);
    assert_eq!(replicas(false, true, Some(1)), 0);
    assert_eq!(replicas(false, false, None), 0);
    assert_eq!(replicas(false, false, Some(0)), 0);
    assert_eq!(replicas(false, false, Some(1)), 1);
    assert_eq!(replicas(false, false, Some(3)), 1);
}

#[test]
fn the_environments_are_fixed_when_the_first_objects_are_made() {
    let two =
        || json!([environment("a", "Standalone", json!({})), environment("b", "Standalone", json!({}))]);
    let chosen_by = |layout: Layout, observed: &Observed| {
        let config = InstanceConfig { layout, ..InstanceConfig::default() };
        let Validated { environments: chosen, removed, .. } = validate(observed, &config);
        let chosen: Vec<_> = chosen.iter().map(|c| (c.environment.name.clone(), c.classic)).collect();
        (chosen, removed)
    };
    let chosen = |observed: &Observed| {
        let [first, second] =
            [Layout::Classic, Layout::PerEnvironment].map(|layout| chosen_by(layout, observed));
        assert_eq!(first, second, "the layout applies only to new Instances with one environment");
        first
    };
    let only = observed(json!([environment("a", "Standalone", json!({}))]));
    assert_eq!(chosen_by(Layout::Classic, &only).0, [("a".to_owned(), true)]);
    assert_eq!(chosen_by(Layout::PerEnvironment, &only).0, [("a".to_owned(), false)]);
    // A new Instance has all environments of the Template, each under its own name.
    let fresh = observed(two());
    assert_eq!(chosen(&fresh).0, [("a".to_owned(), false), ("b".to_owned(), false)]);
    // An Instance of the older operator, which knew only the first environment, keeps this one.
    let mut old = observed(two());
    old.children.set::<DeploymentKind>(vec![owned::<crate::kinds::DeploymentKind>("my-lab", json!({}))]);
    assert_eq!(chosen(&old).0, [("a".to_owned(), true)]);
    // The Template has got another environment since.
    let mut grown = observed(two());
    let status = json!({"status": {"environments": [{"name": "a"}]}});
    grown.instance = edit(&grown.instance, &status);
    grown.children.set::<DeploymentKind>(vec![owned::<crate::kinds::DeploymentKind>("my-lab", json!({}))]);
    assert_eq!(chosen(&grown).0, [("a".to_owned(), true)]);
    // One of two environments was removed from the Template.
    let mut shrunk = observed(json!([environment("b", "Standalone", json!({}))]));
    shrunk.instance =
        edit(&shrunk.instance, &json!({"status": {"environments": [{"name": "a"}, {"name": "b"}]}}));
    assert_eq!(chosen(&shrunk), (vec![("b".to_owned(), false)], vec!["a".into()]));
    assert_eq!(shrunk.instance.status.environments, [named("a"), named("b")]);
    // The only environment was renamed, and is still the only one.
    let mut renamed = observed(json!([environment("new", "Standalone", json!({}))]));
    renamed.instance = edit(&renamed.instance, &json!({"status": {"environments": [{"name": "old"}]}}));
    assert_eq!(chosen_by(Layout::Classic, &renamed), (vec![("new".to_owned(), true)], vec![]));
    // If its objects have the former name, nothing replaces them.
    renamed
        .children
        .set::<DeploymentKind>(vec![owned::<crate::kinds::DeploymentKind>("my-lab-old", json!({}))]);
    assert_eq!(chosen(&renamed), (vec![], vec!["old".into()]));
    // Likewise, an Instance with classic objects keeps them.
    let mut stays = observed(json!([environment("a", "Standalone", json!({}))]));
    stays.children.set::<DeploymentKind>(vec![owned::<crate::kinds::DeploymentKind>("my-lab", json!({}))]);
    assert_eq!(chosen(&stays).0, [("a".to_owned(), true)]);
    // For an Instance of the newer operator, the only environment has a name with a suffix, and keeps it.
    let mut newer = observed(json!([environment("a", "Standalone", json!({}))]));
    newer.children.set::<DeploymentKind>(vec![owned::<crate::kinds::DeploymentKind>("my-lab-a", json!({}))]);
    assert_eq!(chosen(&newer).0, [("a".to_owned(), false)]);
}

fn named(name: &str) -> EnvironmentStatus {
    EnvironmentStatus { name: name.into(), ..EnvironmentStatus::default() }
}

#[test]
fn a_name_conflict_blocks_the_whole_environment() {
    let mut observed = observed(json!([environment("main", "Standalone", json!({}))]));
    let taken: Arc<Ingress> = edit(
        &owned::<crate::kinds::IngressKind>("my-lab-app", json!({})),
        &json!({"metadata": {"ownerReferences": [{"apiVersion": "a/v1", "kind": "Instance", "name": "my-lab", "uid": "u2", "controller": true}]}}),
    );
    observed.children.set::<IngressKind>(vec![taken]);
    let plan = planned(&observed);
    assert_eq!(names(&plan), Vec::<String>::new());
    assert_eq!(plan.problems[0].reason, "NameConflict");
    assert!(plan.problems[0].message.contains("belongs to Instance my-lab"), "{}", plan.problems[0].message);
}

#[test]
fn existing_objects_are_not_created_again() {
    let mut observed =
        observed(json!([environment("main", "Standalone", json!({"resources": {"memory": "nonsense"}}))]));
    let service: Arc<Service> = owned::<crate::kinds::ServiceKind>("my-lab", json!({}));
    let deployment: Arc<Deployment> = owned::<crate::kinds::DeploymentKind>("my-lab", json!({}));
    observed.children.set::<ServiceKind>(vec![service]);
    observed.children.set::<DeploymentKind>(vec![deployment]);
    let plan = planned(&observed);
    // A later invalid change of the Template does not affect existing objects.
    assert!(plan.problems.is_empty(), "{:?}", plan.problems);
    let built: Vec<_> =
        plan.ensure.iter().filter(|desired| desired.manifest.is_some()).map(|d| d.kind.kind).collect();
    assert_eq!(built, ["Ingress"]);
}

#[test]
fn a_container_names_the_shared_volumes_that_its_pod_mounts_and_no_others() {
    let reference = |name: &str| json!({"name": name, "namespace": "workspace-w"});
    let mount = |name: &str| json!({"sharedVolume": reference(name), "mountPath": format!("/mnt/{name}")});
    let volume = |name: &str| {
        let export = json!({"serverAddress": "nfs", "exportPath": format!("/{name}")});
        object(json!({"metadata": reference(name), "status": export}))
    };
    // The Template mounts `late`, which was added after the pod was created.
    let mut observed =
        observed(json!([environment("main", "Standalone", json!({"sharedVolumeMounts": [mount("late")]}))]));
    observed.shared_volumes = vec![volume("late"), volume("early")];
    let note = |observed: &Observed| {
        let plan = planned(observed);
        let found = plan.ensure.iter().find(|desired| desired.kind.kind == "Deployment").expect("planned");
        found.annotations.get(labels::SHARED_VOLUMES).cloned().flatten()
    };
    assert_eq!(
        note(&observed).as_deref(),
        Some("workspace-w/late"),
        "a new pod mounts the volumes of the Template"
    );
    let pod = |volumes: Value| json!({"replicas": 1, "template": {"spec": {"volumes": volumes}}});
    let nfs = |name: &str, path: &str| json!({"name": name, "nfs": {"server": "nfs", "path": path}});
    let has = |spec: Value| vec![owned::<crate::kinds::DeploymentKind>("my-lab", spec)];
    observed
        .children
        .set::<DeploymentKind>(has(pod(json!([nfs("mydrive", "/late"), {"name": "persistent"}]))));
    assert_eq!(note(&observed), None, "it never mounted a shared volume");
    observed.children.set::<DeploymentKind>(has(pod(json!([nfs("nfs0", "/early"), nfs("nfs1", "/gone")]))));
    assert_eq!(note(&observed).as_deref(), Some("workspace-w/early"), "the mounts of the pod count");
}
