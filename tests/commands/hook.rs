//! The role of the node for the Job that checks the configuration before the chart is installed or upgraded.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::site::crownlabs;

/// The label of the pods of the Job.
const CHECK: &str = "crownlabs-check";

/// Runs the commands of pods of the Job that wait for a node, and reports their results. The API server may be down.
pub fn run(lab: &Lab) {
    for pod in lab.cluster.list("pods", "").unwrap_or_default() {
        let metadata = &pod["metadata"];
        let is_check = metadata["labels"]["app.kubernetes.io/name"] == CHECK;
        let [Some(namespace), Some(name)] = ["namespace", "name"].map(|key| metadata[key].as_str()) else {
            continue;
        };
        if !is_check || pod["status"]["phase"] != "Pending" {
            continue;
        }
        let Some(is_valid) = is_valid(lab, namespace, &pod) else { continue };
        let phase = if is_valid { "Succeeded" } else { "Failed" };
        let status = json!({"status": {"phase": phase}}).to_string();
        // A pod that is gone needs no status.
        let _ = lab.cluster.patch("pods", namespace, name, Some("status"), &status);
    }
}

/// Whether all containers succeed; `None` if the configuration cannot be read.
fn is_valid(lab: &Lab, namespace: &str, pod: &Value) -> Option<bool> {
    let [volume] = pod["spec"]["volumes"].as_array()?.as_slice() else { panic!("it mounts more: {pod}") };
    let map = lab.cluster.get("configmaps", namespace, volume["configMap"]["name"].as_str()?).ok()??;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in map["data"].as_object()? {
        std::fs::write(folder.path().join(name), text.as_str()?).expect("written");
    }
    let succeeds = |container: &Value| {
        let arguments = container["args"].as_array().expect("arguments").iter();
        let arguments: Vec<&str> = arguments.filter_map(Value::as_str).collect();
        let [command @ .., file] = arguments.as_slice() else { panic!("a command: {container}") };
        let file = folder.path().join(Path::new(file).file_name().expect("a file"));
        let output = Command::new(crownlabs()).args(command).arg(file).output().expect("it starts");
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        }
        output.status.success()
    };
    Some(pod["spec"]["containers"].as_array()?.iter().all(succeeds))
}
