//! `crownlabs takeover check` and `crownlabs plan --kubeconfig` in the recorded cluster; the migration in both directions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options, config};
use crate::golden;
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;
use cluster::audit::writes;

const NAMESPACE: &str = "tenant-ada-rossi";
const INSTANCES: &str = "instances.crownlabs.polito.it";
/// The kinds of the objects that the Go operators created.
const CHILDREN: &str = "services,ingresses,secrets,persistentvolumeclaims,deployments,virtualmachines.kubevirt.io,\
                        virtualmachineinstances.kubevirt.io";

/// Runs a command of the binary. Returns its exit code and its output.
pub fn crownlabs(arguments: &[&str], config: &Path, kubeconfig: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(arguments)
        .arg("--config")
        .arg(config)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("an exit code"), text(&output.stdout) + &text(&output.stderr))
}

/// A recorded object in a form that can be applied.
fn applicable(mut object: Value) -> Value {
    let members = object.as_object_mut().expect("an object");
    members.remove("status");
    members.get_mut("metadata").and_then(Value::as_object_mut).expect("metadata").remove("uid");
    // The recording shows the data of Secrets as text.
    if let Some(data) = members.remove("data") {
        members.insert("stringData".to_owned(), data);
    }
    object
}

/// A recording, with the uids of its custom resources in a cluster.
fn documents(file: &str, owners: &[Value]) -> Vec<Value> {
    let mut text = std::fs::read_to_string(golden::recorded().join(file)).expect("the recording");
    for owner in owners {
        let part = |value: &Value| value.as_str().expect("a text").to_owned();
        let placeholder = format!("<uid {}/{}>", part(&owner["kind"]), part(&owner["metadata"]["name"]));
        text = text.replace(&placeholder, &part(&owner["metadata"]["uid"]));
    }
    golden::documents(&text)
}

/// Creates the cluster of the recording: its inputs, and all objects that the Go operators wrote.
pub fn record(lab: &Lab) {
    let inputs = golden::inputs();
    let inputs: Vec<&Path> = inputs.iter().map(AsRef::as_ref).collect();
    lab.cluster.apply_files(&inputs).expect("the inputs are accepted");
    lab.apply(golden::MY_DRIVE);
    // The class of a disk.
    lab.apply("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast-ssd}, provisioner: example.org/none}");
    let recorded = documents("instances.yaml", &lab.list(INSTANCES, NAMESPACE));
    let (instances, children): (Vec<Value>, Vec<Value>) =
        recorded.into_iter().partition(|object| object["kind"] == "Instance");
    for child in children {
        let name = child["metadata"]["name"].as_str().unwrap_or_default();
        if child["kind"] != "EventsSeen" && name != "mydrive-info" {
            lab.apply(&applicable(child).to_string());
        }
    }
    for instance in instances {
        let name = instance["metadata"]["name"].as_str().expect("a name");
        lab.patch(
            INSTANCES,
            NAMESPACE,
            name,
            &json!({"metadata": {"labels": instance["metadata"]["labels"]}}).to_string(),
        );
        let address = lab.get("services", NAMESPACE, name).expect("its Service")["spec"]["clusterIP"].clone();
        let mut status = instance["status"].clone();
        if status["ip"] == "<clusterIP>" {
            status["ip"] = address;
        }
        lab.patch_status(INSTANCES, NAMESPACE, name, &json!({"status": status}).to_string());
    }
}

/// The configuration that corresponds to the Go operators of the recording.
fn settings(folder: &Path) -> String {
    let key = folder.join("key.pub");
    std::fs::write(&key, golden::MASTER_KEY).expect("written");
    format!(
        "controllers:
  tenant: {{enabled: false}}
  workspace: {{enabled: false}}
  instance: {{websiteBaseUrl: labs.example.org, instancesAuthUrl: \"https://labs.example.org/auth\", websshMasterKeyFile: {}}}\n",
        key.display()
    )
}

/// The resource versions of the objects of the Go operators, or the specs of Deployments and claims, which others write.
fn versions(lab: &Lab) -> BTreeMap<String, Value> {
    let version = |object: Value| {
        let name = format!("{}/{}", object["kind"], object["metadata"]["name"]);
        let of_others =
            ["Deployment", "PersistentVolumeClaim"].contains(&object["kind"].as_str().unwrap_or_default());
        let version = if of_others { &object["spec"] } else { &object["metadata"]["resourceVersion"] };
        (name, version.clone())
    };
    lab.list(CHILDREN, NAMESPACE).into_iter().map(version).collect()
}

/// Asserts that the fields of Instances that the Go operators use are unchanged, so that the way back is open.
fn assert_kept(old: &[Value], new: &[Value]) {
    assert_eq!(old.len(), new.len());
    for (old, new) in old.iter().zip(new) {
        let name = &new["metadata"]["name"];
        for member in ["labels", "annotations", "finalizers", "ownerReferences", "generation"] {
            assert_eq!(old["metadata"][member], new["metadata"][member], "{member} of {name}");
        }
        assert_eq!(old["spec"], new["spec"]);
        for (field, value) in old["status"].as_object().expect("a status") {
            assert_eq!(new["status"][field], *value, "{field} of {name}");
        }
    }
}

/// Waits until every Instance and every Template is reconciled.
fn await_reconciled(lab: &Lab) {
    let has = |object: &Value, wanted: &dyn Fn(&Value) -> bool| {
        object["status"]["conditions"].as_array().is_some_and(|conditions| conditions.iter().any(wanted))
    };
    let is_reconciled =
        |condition: &Value| condition["type"] == "Reconciled" && condition["status"] == "True";
    let is_judged = |condition: &Value| condition["type"] == "Valid";
    wait_until(PATIENCE, || {
        let instances = lab.list(INSTANCES, NAMESPACE).into_iter().filter(|each| !has(each, &is_reconciled));
        let templates =
            lab.list("templates", "workspace-kube").into_iter().filter(|each| !has(each, &is_judged));
        let left: Vec<String> = instances.chain(templates).map(|object| object.to_string()).collect();
        left.is_empty().then_some(()).ok_or_else(|| format!("not reconciled: {left:#?}"))
    });
}

/// Asserts that programs read the same about the recording: one patch that does not concern a status, and no obstacle.
fn assert_output_for_programs(text: &str) {
    let told: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let writes = told["objects"].as_array().expect("a list").iter().flat_map(|object| {
        object["writes"].as_array().expect("a list").iter().filter(|write| write["subresource"].is_null())
    });
    let writes: Vec<_> = writes.map(|write| [&write["verb"], &write["kind"], &write["name"]]).collect();
    assert_eq!(writes, [["patch", "Ingress", "i-standalone-app"]], "{text}");
    assert!(
        told["obstacles"].as_object().expect("sorts").values().all(|found| *found == json!([])),
        "{text}"
    );
}

#[test]
fn instances_of_the_go_operators_are_migrated_in_both_directions_with_one_write() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    record(&lab);
    let folder = tempfile::tempdir().expect("a folder");
    let more = settings(folder.path());
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config("local", &more)).expect("written");
    let check = || crownlabs(&["takeover", "check"], &file, &lab.admin());
    let (code, text) = check();
    assert_eq!(code, 0, "{text}");
    for line in [
        "12 objects checked: 0 to create, 1 to patch, 0 to delete, 12 statuses to write",
        "patch Ingress tenant-ada-rossi/i-standalone-app",
        "+        pathType: ImplementationSpecific\n",
        "12 statuses get fields that the Go operators ignore",
        "No obstacles were found.",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_output_for_programs(&crownlabs(&["takeover", "check", "-o", "json"], &file, &lab.admin()).1);

    let before = versions(&lab);
    assert_eq!(before.len(), 21);
    let old: Vec<Value> = lab.list(INSTANCES, NAMESPACE);
    let audit = lab.cluster.audit();
    let mark = audit.mark().expect("the audit log");
    let kubeconfig = lab.service_account();
    let mut daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "local", config: &more });
    await_reconciled(&lab);
    daemon.stop();
    let entries = audit.since(mark).expect("the audit log");
    let ours = writes(&entries)
        .filter(|entry| entry.user_agent.starts_with("crownlabs/") && entry.namespace == NAMESPACE);
    let others: Vec<_> =
        ours.filter(|entry| entry.resource != "instances" || entry.subresource != "status").collect();
    // One path is a regular expression, which the NGINX Ingress controller accepts only with another path type.
    let others: Vec<_> = others.iter().map(|entry| format!("{} {}", entry.verb, entry.name)).collect();
    assert_eq!(others, ["patch i-standalone-app"]);
    let kept = |versions: BTreeMap<String, Value>| -> BTreeMap<String, Value> {
        versions.into_iter().filter(|(name, _)| !name.contains("i-standalone-app")).collect()
    };
    assert_eq!(kept(versions(&lab)), kept(before));

    assert_kept(&old, &lab.list(INSTANCES, NAMESPACE));
    let (code, text) = crownlabs(&["plan"], &file, &lab.admin());
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("12 objects checked: 0 to create, 0 to patch, 0 to delete, 0 statuses to write"),
        "{text}"
    );
}

/// Creates the cluster of the recording of Tenants and Workspaces.
fn record_tenants(lab: &Lab) {
    lab.apply(&golden::tenant_inputs());
    let owners = lab.list("tenants.crownlabs.polito.it,workspaces.crownlabs.polito.it", "");
    let mut objects = documents("tenants.yaml", &owners);
    objects.sort_by_key(|object| object["kind"] != "Namespace");
    for object in objects {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        let metadata = &object["metadata"];
        let (name, owned) =
            (metadata["name"].as_str().unwrap_or_default(), metadata["ownerReferences"].is_array());
        match &*kind {
            "Tenant" | "Workspace" => {
                let plural = format!("{}s", kind.to_lowercase());
                let marks =
                    json!({"metadata": {"labels": metadata["labels"], "finalizers": metadata["finalizers"]}});
                lab.patch(&plural, "", name, &marks.to_string());
                lab.patch_status(&plural, "", name, &json!({"status": object["status"]}).to_string());
            }
            _ if owned => lab.apply(&applicable(object).to_string()),
            _ => {}
        }
    }
}

#[test]
fn a_preview_names_the_objects_that_a_deleted_tenant_removes() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    record_tenants(&lab);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config("local", "controllers: {instance: {enabled: false}}\n")).expect("written");
    lab.begin_delete("tenants", "", &["ada.rossi"]);
    for arguments in [&["plan"][..], &["takeover", "check"]] {
        let (code, text) = crownlabs(arguments, &file, &lab.admin());
        assert_eq!(code, 4, "{text}");
        let (_, ada) = text.split_once("Tenant ada.rossi (tenant)\n").expect("she is looked at");
        let writes: BTreeSet<&str> = ada.lines().take_while(|line| !line.is_empty()).collect();
        for written in [
            "delete Namespace tenant-ada-rossi",
            "delete ClusterRole crownlabs-manage-tenant-ada-rossi",
            "delete ClusterRoleBinding crownlabs-manage-tenant-ada-rossi",
            "patch Tenant ada.rossi",
        ] {
            assert!(writes.contains(written), "{written} is not in\n{text}");
        }
    }
    assert!(lab.get("namespaces", "", "tenant-ada-rossi").is_some(), "nothing is written");
}

#[test]
fn tenants_of_the_go_operators_are_taken_over_with_the_marks_that_keep_personal_volumes() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    record_tenants(&lab);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config("local", "controllers: {instance: {enabled: false}}\n")).expect("written");
    let (code, text) = crownlabs(&["takeover", "check"], &file, &lab.admin());
    assert_eq!(code, 0, "{text}");
    // The daemon adds the selector that it had when it took an object over, a mark that a personal volume outlives its
    // Tenant, with the Tenant's name, and the rules for sandboxes. The recording has no children of the third Tenant
    // and the third Workspace.
    let is_of_a_difference =
        |line: &str| line.starts_with(['+', '-', '@', ' ']) && !line.starts_with("  problem: ");
    let lines: Vec<&str> = text.lines().filter(|&line| !is_of_a_difference(line)).collect();
    for written in [
        &["Workspace netlab (workspace)", "patch Workspace netlab", "", "Workspace oslab (workspace)"][..],
        &["patch Workspace oslab", "", "Tenant ada.rossi (tenant)"],
        &[
            "Tenant bob.bianchi (tenant)",
            "  problem: Workspace ghost does not exist: create it, or remove it from spec.workspaces of the Tenant",
            "patch Tenant bob.bianchi",
            "patch Tenant bob.bianchi, status",
            "patch PersistentVolumeClaim mydrive-pvcs/bob-bianchi-drive",
        ],
        &["patch Namespace sandbox-bob-bianchi", "", "Tenant carl.verdi (tenant)"],
        &["patch Tenant carl.verdi", "patch PersistentVolumeClaim mydrive-pvcs/carl-verdi-drive", ""],
    ] {
        assert!(
            lines.windows(written.len()).any(|window| window == written),
            "{written:#?} is not in\n{text}"
        );
    }
    assert!(text.contains("-  ownerReferences:\n"), "{text}");
    assert!(text.contains("+    pod-security.kubernetes.io/enforce: baseline\n"), "{text}");
    assert!(text.contains(" 0 to delete, "), "{text}");
}

/// A workload of a Go operator, as its chart creates it.
fn operator(name: &str, image: &str, replicas: u32) -> String {
    let labels = json!({"app.kubernetes.io/name": name});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": image}]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "crownlabs-system"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod},
    })
    .to_string()
}

/// Makes shared volumes look as if they had been stored in another version.
pub fn store_older_version(lab: &Lab) {
    let name = "sharedvolumes.crownlabs.polito.it";
    let crd = lab.get("customresourcedefinitions", "", name).expect("the CRD");
    let mut versions = crd["spec"]["versions"].clone();
    let mut older = versions[0].clone();
    older["name"] = "v1alpha1".into();
    older["storage"] = false.into();
    versions.as_array_mut().expect("versions").push(older);
    let spec = json!({"spec": {"versions": versions}}).to_string();
    lab.patch("customresourcedefinitions", "", name, &spec);
    let status = json!({"status": {"storedVersions": ["v1alpha1", "v1alpha2"]}}).to_string();
    lab.patch_status("customresourcedefinitions", "", name, &status);
}

/// A webhook configuration with a Service.
fn webhook(configuration: &str, namespace: &str, service: &str) -> String {
    let webhook = r#"{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "CONFIGURATION"},
        "webhooks": [{"name": "validate.tenant.crownlabs.polito.it", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "SERVICE", "namespace": "NAMESPACE"}},
            "rules": [{"apiGroups": ["crownlabs.polito.it"], "apiVersions": ["v1alpha2"], "operations": ["UPDATE"], "resources": ["tenants"]}]}]}"#;
    webhook
        .replace("CONFIGURATION", configuration)
        .replace("SERVICE", service)
        .replace("NAMESPACE", namespace)
}

#[test]
fn obstacles_to_a_takeover_are_named() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    record(&lab);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config("local", &settings(folder.path()))).expect("written");
    // A field of CRDs of another version.
    let schema = r#"[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour", "value": {"type": "string"}}]"#;
    lab.kubectl(&["patch", "crd", "templates.crownlabs.polito.it", "--type=json", "-p", schema]);
    wait_until(PATIENCE, || {
        lab.patch("templates", "workspace-kube", "container", r#"{"spec": {"colour": "red"}}"#);
        let template = lab.get("templates", "workspace-kube", "container").ok_or("the Template")?;
        (template["spec"]["colour"] == "red").then_some(()).ok_or_else(|| "the field".to_owned())
    });
    store_older_version(&lab);
    lab.apply(&operator(
        "labs-instances",
        "registry.example.org:5000/crownlabs/instance-operator:v1@sha256:0",
        2,
    ));
    lab.apply(&operator("labs-mirror", "crownlabs/bastion-operator:v1", 1));
    lab.apply(&operator("labs-tenants", "crownlabs/operator:v1", 0));
    lab.apply(&operator("unrelated", "example.org/other/operator:v1", 1));
    // One configuration of the operators, one of a former release in another namespace, and one of the daemon.
    lab.apply(&webhook("crownlabs-operator", "labs-production", "labs"));
    lab.apply(&webhook("left", "earlier", "crownlabs-webhook"));
    lab.apply(&webhook("own", "crownlabs-system", "crownlabs-webhook"));
    // Another client has changed objects that the daemon would repair, and removed objects that it needs.
    lab.patch("deployments", NAMESPACE, "i-container", r#"{"spec": {"replicas": 0}}"#);
    lab.delete("services", NAMESPACE, &["i-cloudvm"]);
    let (code, text) = crownlabs(&["takeover", "check"], &file, &lab.admin());
    assert_eq!(code, 4, "{text}");
    for line in [
        "  Deployment crownlabs-system/labs-instances, replicas: 2, image \
         registry.example.org:5000/crownlabs/instance-operator:v1@sha256:0, for instance, publicExposure, snapshot, \
         sharedVolume\n",
        "  ValidatingWebhookConfiguration crownlabs-operator, served by labs-production/labs\n",
        "  ValidatingWebhookConfiguration left, served by earlier/crownlabs-webhook\n",
        "  Template: spec.colour (in workspace-kube/container)\n",
        "patch Deployment tenant-ada-rossi/i-container\n--- live\n+++ planned\n",
        "-  replicas: 0\n+  replicas: 1\n",
        "create Service tenant-ada-rossi/i-cloudvm\n--- live\n+++ planned\n@@ -0,0 +1,",
        "  sharedvolumes.crownlabs.polito.it: v1alpha1\n",
        "5 obstacles were found.\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    for absent in ["labs-mirror", "labs-tenants", "unrelated", "WebhookConfiguration own"] {
        assert!(!text.contains(absent), "{absent} is in\n{text}");
    }
    assert!(lab.get("services", NAMESPACE, "i-cloudvm").is_none(), "nothing is written");
}
