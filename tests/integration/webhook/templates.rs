//! Requests of teachers about Templates, and the conditions of Templates that are stored despite errors; and Instances
//! with names that no object can have.

use serde_json::{Value, json};

use super::act;
use super::quota::{instance, template};
use super::rules::expect;
use crate::lab::{Lab, PATIENCE, wait_until};

const NAMESPACE: &str = "workspace-closed";

/// The condition of a type of a Template: `status reason message`.
fn condition(lab: &Lab, name: &str, type_: &str) -> String {
    let found = lab.get("templates", NAMESPACE, name).unwrap_or_default();
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |found| {
        ["status", "reason", "message"].map(|member| found[member].as_str().unwrap_or_default()).join(" ")
    })
}

fn await_condition(lab: &Lab, name: &str, type_: &str, words: &str) {
    wait_until(PATIENCE, || {
        let found = condition(lab, name, type_);
        found.contains(words).then_some(()).ok_or_else(|| format!("{name}: {type_} {words}: {found}"))
    });
}

/// Errors are rejected for teachers, with their position; stored ones stay, with a warning and conditions.
pub fn templates(lab: &Lab) {
    let of = |name: &str| template(NAMESPACE, name, "closed");
    let create = |user: &str, text: &str| act(lab, user, &["create", "-f", "-"], text);
    expect("a Template", create("teacher", &of("sound")), "");
    await_condition(lab, "sound", "Valid", "True Valid");
    await_condition(lab, "sound", "Ready", "True Ready");
    for (what, from, to, message) in [
        ("image", "r.example.org/web:1", "no image", "image is \"no image\""),
        ("quota", "cpu: 1,", "cpu: 64,", "gives to a Tenant: CPU (64 > "),
        ("disk", "environmentType:", "persistent: true\n    environmentType:", "has no disk"),
        ("name", "- name: main", "- name: Main", "name \"Main\" must consist of lower-case letters"),
    ] {
        let faulty = of("faulty").replace(from, to);
        expect(what, create("teacher", &faulty), message);
        // An administrator may restore it, and gets a warning.
        expect(what, lab.try_kubectl(&["create", "-f", "-"], &faulty), "");
        await_condition(lab, "faulty", "Valid", "False ");
        await_condition(lab, "faulty", "Valid", message);
        await_condition(lab, "faulty", "Stalled", "True ");
        let rename = json!({"spec": {"description": "another"}}).to_string();
        let patch = ["patch", "template", "-n", NAMESPACE, "faulty", "--type=merge", "-p", &rename];
        expect("a stored value", act(lab, "teacher", &patch, ""), "");
        lab.delete("templates", NAMESPACE, &["faulty"]);
    }
    places(lab, &of("placed"));
}

/// A problem that prevents the environments from starting is in `Ready`, and disappears when it is solved.
fn places(lab: &Lab, placed: &str) {
    let disk = "persistent: true\n    storageClassName: fast\n    environmentType:";
    let placed =
        placed.replace("environmentType:", disk).replace("memory: 512Mi", "memory: 512Mi, disk: 1Gi");
    // It is stored, and the teacher gets a warning. A student who starts an Instance of it gets one, too: an autoscaler
    // may need it.
    let missing = "Warning: environment main: the storage class fast of its disk does not exist";
    let create = ["create", "-f", "-", "--warnings-as-errors"];
    expect("a class that is missing", act(lab, "teacher", &create, &placed), missing);
    await_condition(
        lab,
        "placed",
        "Ready",
        "False StorageClassNotFound environment main: the storage class fast of its disk does not exist",
    );
    await_condition(lab, "placed", "Valid", "True");
    let started = instance("warned", "workspace-closed/placed", "running: true");
    expect("an Instance of it", act(lab, "ada", &create, &started), missing);
    let name = "warned";
    assert!(lab.get("instances", "tenant-ada", name).is_some(), "it is admitted");
    lab.delete("instances", "tenant-ada", &[name]);
    lab.apply("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: example.org/none}");
    await_condition(lab, "placed", "Ready", "True");
    // A node that is too small, and then one that is large enough.
    let node = |name: &str, memory: &str| {
        lab.apply(&format!("{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}"));
        let amounts: Value = json!({"cpu": "2", "memory": memory, "pods": "10"});
        lab.patch_status(
            "nodes",
            "default",
            name,
            &json!({"status": {"allocatable": amounts, "capacity": amounts}}).to_string(),
        );
        // The API server taints new nodes until their kubelet reports that they are ready.
        lab.patch("nodes", "default", name, r#"{"spec": {"taints": null}}"#);
    };
    node("narrow", "256Mi");
    await_condition(
        lab,
        "placed",
        "Ready",
        "False NoNode environment main: no node is large enough: it requests cpu 100m, memory 512Mi",
    );
    node("wide", "4Gi");
    await_condition(lab, "placed", "Ready", "True");
    lab.delete("nodes", "default", &["narrow", "wide"]);
    lab.delete("templates", NAMESPACE, &["placed", "sound"]);
    lab.delete("storageclasses", "default", &["fast"]);
}

/// An Instance with a name that its objects could not have is rejected before any object is created.
pub fn names(lab: &Lab) {
    let long = "a".repeat(64);
    let text = instance(&long, "workspace-closed/small", "running: false");
    let refused = act(lab, "ada", &["create", "-f", "-"], &text);
    expect("a long name", refused, "the name of the Instance has 64 characters");
    let text = instance(&long[1..], "workspace-closed/small", "running: false");
    expect("the longest name", act(lab, "ada", &["create", "-f", "-"], &text), "");
    lab.delete("instances", "tenant-ada", &[&long[1..]]);
}
