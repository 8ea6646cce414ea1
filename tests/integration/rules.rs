//! Rules in CRDs reject changes, but no stored objects: `docs/decisions/0007-rules-in-crds.md`.

use serde_json::{Value, json};

use crate::golden;
use crate::lab::{Lab, PATIENCE, crd_files, wait_until};
use cluster::Options as ClusterOptions;

const SNAPSHOTS: &str = "instancesnapshots.crownlabs.polito.it";
const NAMESPACE: &str = "generations";

/// Removes the rules from the CRD, as under the Go operators, and waits until the change takes effect.
fn without_rules(lab: &Lab) {
    let rules = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations";
    let removal = json!([{"op": "remove", "path": rules}]).to_string();
    lab.kubectl(&["patch", "crd", SNAPSHOTS, "--type=json", "-p", &removal]);
    lab.apply(&snapshot("probe"));
    lab.patch_status(SNAPSHOTS, NAMESPACE, "probe", r#"{"status": {"phase": "Completed"}}"#);
    wait_until(PATIENCE, || change(lab, "probe", "one").map(drop));
}

/// Installs the CRD of the project, and waits until its rule takes effect.
fn with_rules(lab: &Lab) {
    let file =
        crd_files().into_iter().find(|file| file.to_string_lossy().contains(SNAPSHOTS)).expect("its file");
    lab.kubectl(&["replace", "-f", &file.to_string_lossy()]);
    let mut names = ["two", "three"].into_iter().cycle();
    wait_until(PATIENCE, || match change(lab, "probe", names.next().expect("a cycle")) {
        Err(_) => Ok(()),
        Ok(_) => Err("the rule".to_owned()),
    });
}

fn snapshot(name: &str) -> String {
    json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"imageName": name, "instanceRef": {"name": "web-1"}},
    })
    .to_string()
}

/// Gives a snapshot another image name; the error is the message of the API server.
fn change(lab: &Lab, name: &str, image: &str) -> Result<String, String> {
    let patch = json!({"spec": {"imageName": image}}).to_string();
    lab.try_kubectl(&["patch", SNAPSHOTS, "-n", NAMESPACE, name, "--type=merge", "-p", &patch], "")
}

/// The recorded snapshots of both generations, with their own names, and one of each phase.
fn stored() -> Vec<Value> {
    let mut snapshots = Vec::new();
    for part in ["generations", "samples"] {
        let entries = std::fs::read_dir(golden::recorded().join(part)).expect("recordings");
        for entry in entries {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a recording");
            let documents = golden::documents(&text).into_iter();
            snapshots.extend(documents.filter(|document| document["kind"] == "InstanceSnapshot"));
        }
    }
    assert!(snapshots.len() >= 8, "only {} snapshots", snapshots.len());
    for phase in ["Completed", "Failed", "Processing", "Pending"] {
        let mut made: Value = serde_json::from_str(&snapshot("made")).expect("JSON");
        made["status"] = json!({"phase": phase});
        snapshots.push(made);
    }
    for (index, snapshot) in snapshots.iter_mut().enumerate() {
        snapshot["metadata"]["name"] = format!("stored-{index}").into();
        snapshot["metadata"]["namespace"] = NAMESPACE.into();
        snapshot["metadata"]["finalizers"] = json!(["example.org/held"]);
    }
    snapshots
}

#[test]
fn stored_snapshots_can_be_written_and_a_complete_one_keeps_its_spec() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    lab.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}).to_string());
    without_rules(&lab);
    let stored = stored();
    for snapshot in &stored {
        let name = snapshot["metadata"]["name"].as_str().expect("a name");
        lab.try_kubectl(&["apply", "-f", "-"], &snapshot.to_string()).expect("it is accepted");
        if snapshot["status"].is_object() {
            lab.patch_status(SNAPSHOTS, NAMESPACE, name, &json!({"status": snapshot["status"]}).to_string());
        }
    }
    with_rules(&lab);
    let mut refused = 0;
    for snapshot in &stored {
        let name = snapshot["metadata"]["name"].as_str().expect("a name");
        // Stored objects, and writes by other clients.
        let applied = lab.try_kubectl(&["apply", "-f", "-"], &snapshot.to_string());
        applied.unwrap_or_else(|error| panic!("{error}: {snapshot}"));
        lab.patch(SNAPSHOTS, NAMESPACE, name, r#"{"metadata": {"labels": {"a": "b"}}}"#);
        let before = lab.get(SNAPSHOTS, NAMESPACE, name).expect("there");
        let phase = before["status"]["phase"].clone();
        let seen = json!({"status": {"phase": phase, "observedGeneration": 1}});
        if phase.is_string() {
            lab.patch_status(SNAPSHOTS, NAMESPACE, name, &seen.to_string());
        }
        match change(&lab, name, "another") {
            Ok(_) => assert_ne!(phase, "Completed", "{snapshot}"),
            Err(error) => {
                assert!(
                    phase == "Completed" && error.contains("create another snapshot"),
                    "{error}: {snapshot}"
                );
                assert_eq!(lab.get(SNAPSHOTS, NAMESPACE, name).expect("there")["spec"], before["spec"]);
                refused += 1;
            }
        }
        lab.begin_delete(SNAPSHOTS, NAMESPACE, &[name]);
        lab.patch(SNAPSHOTS, NAMESPACE, name, r#"{"metadata": {"finalizers": null}}"#);
        lab.await_gone(SNAPSHOTS, NAMESPACE, name);
    }
    assert!(refused >= 2, "{refused} of {}", stored.len());
}
