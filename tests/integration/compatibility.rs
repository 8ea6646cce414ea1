//! Objects of both generations of the custom resources against the project's CRDs, and the daemon's virtual machines
//! against KubeVirt's CRDs.

use std::path::PathBuf;

use serde_json::Value;

use crate::golden;
use crate::lab::{Lab, TEMPLATES};

/// Creates each object of a file as a dry run with strict validation. Panics when the API server drops or changes a
/// member. Returns the number of objects.
fn round_trip(lab: &Lab, file: &PathBuf) -> usize {
    let text = std::fs::read_to_string(file).expect("a recording");
    let mut count = 0;
    for object in golden::documents(&text) {
        if object["kind"] == "Namespace" {
            continue;
        }
        let mut object = object;
        object["metadata"]["namespace"] =
            if is_cluster_scoped(&object) { Value::Null } else { "generations".into() };
        let made = lab
            .try_kubectl(
                &["create", "--validate=strict", "--dry-run=server", "-o", "json", "-f", "-"],
                &object.to_string(),
            )
            .unwrap_or_else(|error| panic!("{}: {error}\n{object}", file.display()));
        let made: Value = serde_json::from_str(&made).expect("JSON");
        assert_kept(
            &object["spec"],
            &made["spec"],
            &format!("{} {}", file.display(), object["metadata"]["name"]),
        );
        count += 1;
    }
    count
}

fn is_cluster_scoped(object: &Value) -> bool {
    ["Workspace", "Tenant", "ImageList"].iter().any(|kind| object["kind"] == *kind)
}

/// Asserts that every member that was sent has been stored unchanged. The API server may have added defaults.
fn assert_kept(sent: &Value, stored: &Value, path: &str) {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(_)) => {
            for (key, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
                assert_kept(value, &stored[key], &format!("{path}.{key}"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{path}");
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                assert_kept(a, b, &format!("{path}[{index}]"));
            }
        }
        (sent, stored) => assert_eq!(sent, stored, "{path}"),
    }
}

#[test]
fn objects_of_both_generations_are_accepted_and_kept() {
    let lab = Lab::shared();
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: generations}}");
    let folder = golden::recorded();
    let mut files = Vec::new();
    for part in ["generations", "samples"] {
        let entries = std::fs::read_dir(folder.join(part)).expect("recordings");
        files.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    let count: usize = files.iter().map(|file| round_trip(&lab, file)).sum();
    assert!(count >= 60, "only {count} objects were tried");
}

#[test]
fn virtual_machines_pass_the_strict_validation_of_kubevirt() {
    let lab = Lab::shared();
    let _course = lab.course("strict");
    let mut checked = 0;
    for template in TEMPLATES {
        // `crownlabs plan` prints the objects that `crownlabs run` writes.
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("in.yaml");
        let objects = ["templates", "tenants"].map(|kind| lab.kubectl(&["get", kind, "-A", "-o", "yaml"]));
        let secret = lab.kubectl(&["get", "secret", "-n", "tenant-strict", "mydrive-info", "-o", "yaml"]);
        let instance = crate::lab::instance("strict", template, template);
        std::fs::write(&file, format!("{}\n---\n{}\n---\n{secret}\n{instance}", objects[0], objects[1]))
            .expect("written");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_crownlabs"))
            .args(["plan", "--allow-problems", "-f"])
            .arg(&file)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for mut object in golden::documents(&String::from_utf8_lossy(&output.stdout)) {
            if object["kind"] == "Instance" {
                continue;
            }
            object["metadata"]["ownerReferences"] = Value::Null;
            let text = object.to_string().replace("<uid Instance/", "uid-").replace(">/", "/");
            let made =
                lab.try_kubectl(&["create", "--validate=strict", "--dry-run=server", "-f", "-"], &text);
            made.unwrap_or_else(|error| panic!("{template}: {error}\n{text}"));
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} objects");
}
