//! The objects that the Go operators wrote for some custom resources, and the intended differences of the daemon's objects
//! from them. Everything else must be equal.

#![allow(dead_code, reason = "each test target uses only a part")]

mod differences;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The folder of the recordings.
pub fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// The input files, in the order of their application.
pub fn inputs() -> Vec<PathBuf> {
    ["00-cluster.yaml", "10-templates.yaml", "20-instances.yaml"]
        .map(|name| recorded().join("inputs").join(name))
        .to_vec()
}

/// A Secret that existed when the recording was made, in addition to the input files.
pub const MY_DRIVE: &str = "apiVersion: v1
kind: Secret
metadata: {name: mydrive-info, namespace: tenant-ada-rossi}
type: Opaque
stringData: {server-name: nfs.example.org, path: /exports/ada}
";

/// The content of the web terminal's public key file when the recording was made.
pub const MASTER_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA webssh\n";

/// The configuration that corresponds to the flags of the Go operators when the recording was made.
pub fn config(master_key_file: &Path) -> String {
    format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {{crownlabs.polito.it/operator-selector: local}}
controllers:
  tenant: {{enabled: false}}
  workspace: {{enabled: false}}
  instance:
    vmPower: running
    layout: classic
    websiteBaseUrl: labs.example.org
    instancesAuthUrl: https://labs.example.org/auth
    websshMasterKeyFile: {}
",
        master_key_file.display()
    )
}

/// Objects by kind and name, or by kind, namespace and name.
pub type Objects = BTreeMap<String, Value>;

/// Reads YAML documents.
pub fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// The recorded objects, with the intended differences applied to them.
pub fn expected() -> Objects {
    let text = std::fs::read_to_string(recorded().join("instances.yaml")).expect("the recording");
    let mut objects = by_name(documents(&text));
    objects.remove("EventsSeen/");
    objects.remove("Secret/mydrive-info");
    for object in objects.values_mut() {
        drop_nulls(object);
        remove(object, "/metadata/uid");
        if object["kind"] != "Instance" {
            remove(object, "/status");
        }
        if object["kind"] == "Secret" {
            parse_user_data(object);
        }
    }
    differences::apply(&mut objects);
    objects
}

/// The input of the recording of Tenants and Workspaces, as YAML. Every last login is replaced with one in the future.
pub fn tenant_inputs() -> String {
    let text = |name: &str| {
        std::fs::read_to_string(recorded().join("inputs").join(name)).expect("the recorded inputs")
    };
    let both = format!("{}\n---\n{}", text("00-cluster.yaml"), text("30-tenants.yaml"));
    let logins = both.lines().map(|line| match line.split_once("lastLogin: ") {
        Some((indentation, _)) => format!("{indentation}lastLogin: \"{LOGIN}\""),
        None => line.to_owned(),
    });
    logins.collect::<Vec<_>>().join("\n")
}

/// The last login of the Tenants: in the future, so that their namespaces are kept.
const LOGIN: &str = "2099-01-01T00:00:00Z";

/// Whether the recording of Tenants and Workspaces has this object. It has none of the namespaces that the recording of
/// Instances needed.
fn is_recorded(object: &Value) -> bool {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    !["tenant-ada-rossi", "workspace-kube"].contains(&namespace)
        && (object["kind"] != "Namespace" || object["metadata"].get("ownerReferences").is_some())
}

/// The recorded objects of Tenants and Workspaces, with the intended differences applied to them.
pub fn expected_tenants() -> Objects {
    let text = std::fs::read_to_string(recorded().join("tenants.yaml")).expect("the recording");
    let objects = documents(&text).into_iter().filter(is_recorded).map(|mut object| {
        drop_nulls(&mut object);
        remove(&mut object, "/metadata/uid");
        if object["kind"] == "Tenant" || object["kind"] == "Workspace" {
            // The daemon records the selector that it had when it added the finalizer.
            let selector = "crownlabs.polito.it/operator-selector=local";
            object["metadata"]["annotations"] = json!({"crownlabs.polito.it/finalized-by": selector});
        }
        if object["status"]["failingWorkspaces"].as_array().is_some_and(|failing| !failing.is_empty()) {
            // A Tenant of a course that does not exist is not ready.
            object["status"]["ready"] = false.into();
        }
        if object["metadata"]["labels"]["crownlabs.polito.it/type"] == "sandbox" && object["kind"] == "Namespace" {
            object["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline".into();
        }
        if object["kind"] == "PersistentVolumeClaim" {
            // The daemon keeps a personal volume when its Tenant is deleted: it has no owner, but says whose it was.
            let owner = object["metadata"]["ownerReferences"][0]["name"].clone();
            remove(&mut object, "/metadata/ownerReferences");
            object["metadata"]["labels"]["crownlabs.polito.it/tenant"] = owner.clone();
            object["metadata"]["annotations"] = json!({
                "crownlabs.polito.it/mydrive-owner": owner,
                "crownlabs.polito.it/mydrive-email": format!("{}@example.org", owner.as_str().expect("a name")),
                "crownlabs.polito.it/mydrive-tenant-uid": format!("<uid Tenant/{}>", owner.as_str().expect("a name")),
            });
        }
        object
    });
    let mut objects = by_place(objects.collect());
    objects.remove("EventsSeen//");
    objects
}

/// Objects by `Kind/namespace/name`.
pub fn by_place(objects: Vec<Value>) -> Objects {
    let place = |object: &Value| {
        let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        format!("{}/{}/{}", part(&object["kind"]), part(&metadata["namespace"]), part(&metadata["name"]))
    };
    objects.into_iter().map(|object| (place(&object), object)).collect()
}

/// The daemon keeps a personal volume when its Tenant is deleted: the volume has no owner, but names its former Tenant.
pub fn normalised_tenant(mut object: Value, uids: &BTreeMap<String, String>) -> Option<Value> {
    for key in ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"] {
        remove(&mut object, &format!("/metadata/{key}"));
    }
    if !is_recorded(&object) {
        return None;
    }
    match object["kind"].as_str().unwrap_or_default() {
        // The Go operators wrote neither conditions nor generations.
        "Tenant" | "Workspace" => {
            remove(&mut object, "/status/conditions");
            remove(&mut object, "/status/observedGeneration");
            let login = object.pointer_mut("/spec/lastLogin").filter(|login| login.is_string());
            if let Some(login) = login {
                assert_eq!(*login, LOGIN, "the daemon does not change it");
                *login = "<time>".into();
            }
        }
        "Namespace" => {}
        _ => remove(&mut object, "/status"),
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| key.starts_with("crownlabs.polito.it/"));
        // Where replicas elect a leader, the name of their Lease follows the selector.
        if let Some(Value::String(mark)) = annotations.get_mut("crownlabs.polito.it/finalized-by") {
            let length = mark.find(" (lease ").unwrap_or(mark.len());
            mark.truncate(length);
        }
        if annotations.is_empty() {
            object["metadata"].as_object_mut().expect("metadata").remove("annotations");
        }
    }
    drop_nulls(&mut object);
    let mut text = object.to_string();
    for (uid, placeholder) in uids {
        text = text.replace(uid, placeholder);
    }
    Some(serde_json::from_str(&text).expect("JSON"))
}

/// An object of the daemon in the form of [`expected`]. `uids` maps uids to the placeholders of the recording.
pub fn normalised(mut object: Value, uids: &BTreeMap<String, String>) -> Value {
    for key in ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"] {
        remove(&mut object, &format!("/metadata/{key}"));
    }
    if object["kind"] == "Instance" {
        // The recorded input has an empty namespace here, which means the same as none.
        object["spec"]["tenant.crownlabs.polito.it/TenantRef"]["namespace"] = "".into();
        let ip = object.pointer_mut("/status/ip").filter(|ip| ip.is_string());
        if let Some(ip) = ip {
            *ip = "<clusterIP>".into();
        }
    } else {
        remove(&mut object, "/status");
    }
    if object["kind"] == "Service" {
        // They differ from cluster to cluster.
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            remove(&mut object, &format!("/spec/{key}"));
        }
    }
    if object["kind"] == "Deployment" {
        remove(&mut object, "/metadata/annotations/deployment.kubernetes.io~1revision");
        if object.pointer("/metadata/annotations") == Some(&json!({})) {
            remove(&mut object, "/metadata/annotations");
        }
    }
    if object["kind"] == "Secret" {
        for (_, value) in object["data"].as_object_mut().into_iter().flatten() {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(value.clone()).expect("base64");
            *value = String::from_utf8(bytes.0).expect("text").into();
        }
        parse_user_data(&mut object);
    }
    drop_nulls(&mut object);
    let mut text = object.to_string();
    for (uid, placeholder) in uids {
        text = text.replace(uid, placeholder);
    }
    serde_json::from_str(&text).expect("JSON")
}

/// Objects by `Kind/name`.
pub fn by_name(objects: Vec<Value>) -> Objects {
    let name = |object: &Value| {
        let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{}/{}", part(&object["kind"]), part(&object["metadata"]["name"]))
    };
    objects.into_iter().map(|object| (name(&object), object)).collect()
}

fn remove(object: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let key = key.replace("~1", "/");
    if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.remove(&key);
    }
}

/// Replaces the text of the cloud-init document with its value, since the layout of the YAML does not matter.
fn parse_user_data(secret: &mut Value) {
    let Some(text) = secret["data"]["userdata"].as_str() else { return };
    assert!(text.starts_with("#cloud-config\n"), "{text}");
    let document: Value = serde_saphyr::from_str(text).expect("user data is YAML");
    secret["data"]["userdata"] = document;
}

/// Removes members that are null, such as `creationTimestamp: null`.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Removes the defaults that the API server writes: `crownlabs plan` does not print them.
pub fn without_server_defaults(object: &mut Value) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    remove(object, "/status");
    match kind.as_str() {
        "Deployment" => {
            remove(object, "/spec/progressDeadlineSeconds");
            remove(object, "/spec/revisionHistoryLimit");
            for key in ["dnsPolicy", "restartPolicy", "schedulerName"] {
                remove(object, &format!("/spec/template/spec/{key}"));
            }
            for list in ["containers", "initContainers"] {
                let pointer = format!("/spec/template/spec/{list}");
                for container in
                    object.pointer_mut(&pointer).and_then(Value::as_array_mut).into_iter().flatten()
                {
                    container_defaults(container);
                }
            }
        }
        "Service" => remove(object, "/spec/sessionAffinity"),
        "Namespace" => {
            remove(object, "/spec");
            remove(object, "/metadata/labels/kubernetes.io~1metadata.name");
            // They belong to namespaces that existed before; the plan changes nothing else in them.
            remove(object, "/metadata/labels/crownlabs.polito.it~1workspace-name");
            remove(object, "/metadata/labels/crownlabs.polito.it~1tenant-name");
        }
        "NetworkPolicy" => remove(object, "/spec/policyTypes"),
        "PersistentVolumeClaim" => {
            remove(object, "/spec/volumeMode");
            remove(object, "/metadata/finalizers");
        }
        _ => {}
    }
}

fn container_defaults(container: &mut Value) {
    for key in ["imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"] {
        remove(container, &format!("/{key}"));
    }
    remove(container, "/readinessProbe/timeoutSeconds");
    remove(container, "/readinessProbe/httpGet/scheme");
    for variable in container["env"].as_array_mut().into_iter().flatten() {
        remove(variable, "/valueFrom/fieldRef/apiVersion");
    }
}

/// Asserts that the objects are equal; the message lists all differences.
pub fn assert_equal(expected: &Objects, actual: &Objects) {
    compare(expected, actual).unwrap_or_else(|differences| panic!("{differences}"));
}

/// Whether the objects are equal; the error lists all differences.
pub fn compare(expected: &Objects, actual: &Objects) -> Result<(), String> {
    let faults = all_differences(expected, actual);
    let message = || format!("{} differences:\n{}", faults.len(), faults.join("\n"));
    faults.is_empty().then_some(()).ok_or_else(message)
}

/// The differences between the expected and the actual objects, one per line.
pub fn all_differences(expected: &Objects, actual: &Objects) -> Vec<String> {
    let mut faults = Vec::new();
    for name in expected.keys().filter(|name| !actual.contains_key(*name)) {
        faults.push(format!("{name} is missing"));
    }
    for (name, object) in actual {
        match expected.get(name) {
            None => faults.push(format!("{name} is not expected")),
            Some(wanted) => differences(name, wanted, object, &mut faults),
        }
    }
    faults
}

fn differences(path: &str, expected: &Value, actual: &Value, faults: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let side = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differences(&format!("{path}.{key}"), &side(a), &side(b), faults);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{index}]"), a, b, faults);
            }
        }
        (a, b) if a == b => {}
        (a, b) => faults.push(format!("{path}: expected {a}, found {b}")),
    }
}
