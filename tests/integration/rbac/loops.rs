//! The rights of each loop alone. Each loop has a daemon and an account with the rights that
//! `manifests/chart/files/rights.yaml` grants for that loop. So every set of loops has exactly the rights that it
//! needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::mirrors::exercise_mirrors;
use super::pod_networks::exercise_pod_networks;
use super::rights::{CHECKED, Shown};
use super::{NAMESPACE, exercise, exercise_storage, exercise_tenants, exercise_uploads};
use crate::daemon::{Daemon, Options};
use crate::exam_server::{Answer, ExamServer};
use crate::expiration::expire;
use crate::image_list;
use crate::inactivity::{allow_idle, prometheus};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::shared_volumes::shared_volume;
use crate::snapshots::snapshot;
use crate::tenants::{tenant, workspace};
use crate::termination::{await_condition, exam};
use cluster::Options as ClusterOptions;
use cluster::audit::{AuditEntry, Mark};
use cluster::config::only;

/// The loops, each with its configuration.
const LOOPS: [(&str, &str); 13] = [
    ("workspace", ""),
    (
        "tenant",
        "personalWorkspace: {enabled: true}, myDrive: {onTenantDeletion: delete}, egress: {enabled: true}",
    ),
    (
        "instance",
        "gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}, stalledAfter: 60s, \
         examEgress: {enabled: true}",
    ),
    ("publicExposure", "ipPool: [172.18.4.1]"),
    ("sharedVolume", ""),
    ("snapshot", "vmRegistry: r.example.org, vmRegistrySecret: login"),
    ("inactivity", "maxNumberOfAlerts: 1, notificationInterval: 4s, checkInterval: 2s"),
    ("expiration", "notificationInterval: 1s"),
    ("termination", "confirmAfter: 5s, allowCidrs: [127.0.0.0/8]"),
    ("submission", ""),
    // With a registry of the test.
    ("imageList", ""),
    ("podConfig", "lostNodeGrace: 3s"),
    ("pvcMirror", ""),
];

/// Rights whose use only the test of all loops together shows: repairs of a Job or Secret while a watch is late, or
/// before the Job has ended; and the events about a claim, a Job or a Service that waits for more than a minute.
const ELSEWHERE: [(&str, &str); 10] = [
    ("tenant", "list /events"),
    ("publicExposure", "list /events"),
    ("sharedVolume", "list /events"),
    ("snapshot", "list /events"),
    ("submission", "list /events"),
    ("tenant", "get /secrets"),
    ("tenant", "patch batch/jobs"),
    ("sharedVolume", "patch batch/jobs"),
    ("snapshot", "get batch/jobs"),
    ("snapshot", "patch batch/jobs"),
];

/// The account of a loop.
fn account(name: &str) -> String {
    format!("loop-{}", name.to_lowercase())
}

/// The rights of each loop, as `verb group/resource`.
fn rights() -> BTreeMap<String, BTreeSet<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/chart/files/rights.yaml");
    let text = std::fs::read_to_string(file).expect("the rights");
    let parts: BTreeMap<String, BTreeMap<String, String>> = serde_saphyr::from_str(&text).expect("YAML");
    let of = |part: &BTreeMap<String, String>| -> BTreeSet<String> {
        let verbs = part
            .iter()
            .flat_map(|(resource, verbs)| verbs.split(' ').map(move |verb| format!("{verb} {resource}")));
        verbs.collect()
    };
    let common = of(&parts["common"]);
    parts.iter().map(|(name, part)| (name.clone(), of(part).union(&common).cloned().collect())).collect()
}

/// Creates the account of a loop, with its rights.
fn grant(lab: &Lab, name: &str, rights: &BTreeSet<String>) {
    let account = account(name);
    let mut rules: Vec<Value> = Vec::new();
    for right in rights {
        let (verb, resource) = right.split_once(' ').expect("a verb and a resource");
        let (group, resource) = resource.split_once('/').expect("a group and a resource");
        rules.push(json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]}));
    }
    // The chart names the CRDs.
    let group = "apiextensions.k8s.io";
    rules.push(json!({"apiGroups": [group], "resources": ["customresourcedefinitions"], "verbs": ["get"]}));
    // Roles that the loop binds to users without having their rights; the chart names the roles.
    if ["workspace", "tenant"].contains(&name) {
        let group = "rbac.authorization.k8s.io";
        rules.push(json!({"apiGroups": [group], "resources": ["clusterroles"], "verbs": ["bind"]}));
    }
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": account}, "rules": rules});
    let subject = json!({"kind": "ServiceAccount", "name": account, "namespace": "crownlabs-system"});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": account}, "subjects": [subject.clone()],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}});
    let user = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": account, "namespace": "crownlabs-system"}});
    for object in [user, role, binding] {
        lab.apply(&object.to_string());
    }
    if name == "podConfig" {
        // The Role in the manifests for its records.
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": account, "namespace": "crownlabs-system"}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "crownlabs-pod-networks"}});
        lab.apply(&binding.to_string());
    }
}

/// Starts a daemon that runs one loop, with these settings and integrations.
fn start(lab: &Lab, name: &str, settings: &str, integrations: &str) -> Daemon {
    let kubeconfig =
        lab.cluster.service_account_kubeconfig("crownlabs-system", &account(name)).expect("a token");
    let config = format!("{integrations}\n{}", only(&[(name, settings)]));
    Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "rbac", config: &config })
}

/// Removes the labels of objects, so that the daemon must find them by name, and waits until they are back.
fn heal(lab: &Lab, kinds: &str, namespace: &str, is_wanted: impl Fn(&Value) -> bool) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // One of our labels. It shows that the labels are back.
    let mark = |object: &Value| {
        let labels = object["metadata"]["labels"].as_object()?;
        let (key, value) = labels.iter().find(|(key, _)| key.starts_with("crownlabs.polito.it/"))?;
        Some((format!("/metadata/labels/{}", key.replace('/', "~1")), text(value)))
    };
    let objects = lab.list(kinds, namespace).into_iter().filter(|object| is_wanted(object));
    let objects: Vec<(Value, (String, String))> =
        objects.filter_map(|object| mark(&object).map(|mark| (object, mark))).collect();
    assert!(!objects.is_empty(), "none of {kinds} in {namespace}");
    for (object, (pointer, value)) in &objects {
        let (kind, name) = (text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]));
        lab.patch(&kind, namespace, &name, r#"{"metadata": {"labels": null}}"#);
        lab.await_value(&kind, namespace, &name, pointer, value);
    }
}

/// Makes the loops repair changes of other writers, and report errors to users.
fn exercise_heals(lab: &Lab) {
    let any = |_: &Value| true;
    lab.apply(&instance("rbac", "exposed", "container"));
    let ports = r#"{"spec": {"publicExposure": {"ports": [{"name": "http", "targetPort": 80}]}}}"#;
    lab.patch("instances", NAMESPACE, "exposed", ports);
    lab.await_value("instances", NAMESPACE, "exposed", "/status/publicExposure/phase", "Ready");
    let is_exposure = |object: &Value| {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        metadata["labels"]["crownlabs.polito.it/component"] == "pe" || name.contains("publicexposure")
    };
    heal(lab, "services,networkpolicies", NAMESPACE, is_exposure);
    let exam = json!([{"name": "main", "environmentType": "Standalone", "image": "r.example.org/web:1", "mode": "Exam",
        "persistent": false, "mountMyDriveVolume": false,
        "resources": {"cpu": 1, "reservedCPUPercentage": 10, "memory": "64Mi"}}]);
    lab.create_template("rbac", "guarded", "standalone", &exam);
    lab.apply(&instance("rbac", "guarded", "guarded"));
    lab.await_phase(NAMESPACE, "guarded", "Ready");
    heal(lab, "networkpolicies", NAMESPACE, |object| object["metadata"]["name"] == "guarded");
    lab.apply(&shared_volume("rbac", "kept", "1Gi"));
    lab.await_value("sharedvolumes", "workspace-rbac", "kept", "/status/phase", "Ready");
    heal(lab, "persistentvolumeclaims,jobs", "workspace-rbac", any);
    lab.apply(&workspace("rbac", "rbac-heal", "immediate"));
    let entries = ", workspaces: [{name: rbac-heal, role: manager}, {name: nowhere, role: user}]";
    lab.apply(&tenant("rbac", "rbac.h", entries));
    let provisioning = "/metadata/labels/crownlabs.polito.it~1volume-provisioning";
    lab.await_value("persistentvolumeclaims", "mydrive-pvcs", "rbac-h-drive", provisioning, "completed");
    lab.await_value("secrets", "tenant-rbac-h", "mydrive-info", "/kind", "Secret");
    heal(lab, "rolebindings", "workspace-rbac-heal", any);
    heal(lab, "clusterrolebindings", "", |object| {
        object["metadata"]["ownerReferences"][0]["name"] == "rbac-heal"
    });
    heal(lab, "namespaces", "", |object| object["metadata"]["name"] == "workspace-rbac-heal");
    heal(lab, "secrets", "tenant-rbac-h", any);
    heal(lab, "persistentvolumeclaims,jobs", "mydrive-pvcs", any);
}

/// Makes the automation end an exam.
fn exercise_automation(lab: &Lab) {
    let server = ExamServer::start();
    server.set("over", Answer::Body(410, "{}"));
    lab.apply(&exam("rbac", "exam", "container", &format!("  statusCheckUrl: \"{}\"\n", server.url("over"))));
    await_condition(lab, NAMESPACE, "exam", "StatusChecked", "Terminated");
}

/// Leaves two machines unused until one of them, which has data, is stopped, and the other is deleted.
fn exercise_inactivity(lab: &Lab) {
    for template in ["container", "container-persistent"] {
        allow_idle(lab, "rbac", template, "5s");
    }
    lab.apply(&instance("rbac", "paused", "container-persistent"));
    lab.apply(&instance("rbac", "ended", "container"));
    await_condition(lab, NAMESPACE, "paused", "Inactive", "Stopped");
    lab.await_gone("instances", NAMESPACE, "ended");
}

#[test]
fn each_loop_has_the_rights_that_it_uses_and_no_others() {
    let options =
        ClusterOptions { gateway: true, cross_namespace_volumes: true, ..ClusterOptions::default() };
    let lab = Lab::start(options);
    lab.create_fixtures("rbac");
    let (rights, mails, prometheus) =
        (rights(), tempfile::tempdir().expect("a folder"), prometheus(NAMESPACE));
    let integrations = format!(
        "integrations: {{mail: {{transport: file, folder: {}, from: labs@example.org}}, \
         prometheus: {{url: \"{}\", queryStep: 1s, timeout: 30s}}}}",
        mails.path().display(),
        prometheus.url()
    );
    let mut daemons: BTreeMap<&str, Daemon> = BTreeMap::new();
    let registry = ExamServer::start();
    let lists = image_list::keys("rbac-loop", &registry);
    for (name, settings) in LOOPS {
        grant(&lab, name, &rights[name]);
        let settings = if name == "imageList" { &lists } else { settings };
        daemons.insert(name, start(&lab, name, settings, &integrations));
    }
    image_list::exercise(&lab, "rbac-loop", &registry);
    let mut shown = Shown::default();
    exercise(&lab);
    exercise_storage(&lab, &mut shown);
    exercise_uploads(&lab);
    expire(&lab, "rbac", "cloudvm", "1s");
    lab.await_gone("instances", NAMESPACE, "cloudvm");
    exercise_tenants(&lab, &mut shown);
    exercise_pod_networks(&lab, &mut shown);
    exercise_mirrors(&lab);
    exercise_heals(&lab);
    exercise_automation(&lab);
    exercise_inactivity(&lab);
    // No node has that much memory: the Job does not start, and its pods are read before it is deleted.
    drop(daemons.remove("snapshot"));
    let huge = "vmRegistry: r.example.org, vmRegistrySecret: login, startDeadline: 5s, \
                pusherMemoryRequest: 100Ti, pusherMemoryLimit: 100Ti";
    daemons.insert("snapshot", start(&lab, "snapshot", huge, &integrations));
    lab.apply(&snapshot("rbac", "stuck", "vm-persistent", "image"));
    lab.await_value("instancesnapshots", NAMESPACE, "stuck", "/status/phase", "Failed");
    // A watch appears in the audit log when it ends.
    drop(daemons);
    wait_until(PATIENCE, || {
        let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
        let faults: Vec<String> =
            LOOPS.iter().filter_map(|(name, _)| fault(name, &rights[*name], &entries, &shown)).collect();
        faults.is_empty().then_some(()).ok_or_else(|| faults.join("\n"))
    });
}

/// The rights that a loop has and does not use. Panics if a request was rejected. Rights of all loops are used by one
/// of them. The API server requires `delete` of a child when the child gets an owner again, so that right is not in the
/// audit log.
fn fault(name: &str, granted: &BTreeSet<String>, entries: &[AuditEntry], shown: &Shown) -> Option<String> {
    let account_name = format!("system:serviceaccount:crownlabs-system:{}", account(name));
    let ours = || entries.iter().filter(|entry| entry.user == account_name);
    // A quota rejects the Job of one snapshot.
    let by_quota = |entry: &AuditEntry| (&*entry.resource, &*entry.name) == ("jobs", "again");
    let forbidden: Vec<_> = ours().filter(|entry| entry.code == 403 && !by_quota(entry)).collect();
    assert!(forbidden.is_empty(), "{name}: {forbidden:#?}");
    let mut used: BTreeSet<String> = ours()
        .map(|entry| {
            let slash = if entry.subresource.is_empty() { "" } else { "/" };
            format!("{} {}/{}{slash}{}", entry.verb, entry.group, entry.resource, entry.subresource)
        })
        .collect();
    used.extend(CHECKED.map(str::to_owned));
    used.extend(shown.0.iter().cloned());
    used.extend(ELSEWHERE.iter().filter(|(loop_, _)| *loop_ == name).map(|(_, right)| (*right).to_owned()));
    let is_checked = |right: &str| {
        let child = right.strip_prefix("delete ").unwrap_or(".");
        granted.contains(&format!("create {child}")) || right.ends_with(" events.k8s.io/events")
    };
    let unused: Vec<_> = granted.difference(&used).filter(|right| !is_checked(right)).cloned().collect();
    (!unused.is_empty()).then(|| format!("{name} has, and does not use: {}", unused.join(", ")))
}
