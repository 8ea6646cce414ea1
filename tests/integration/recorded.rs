//! The objects of the daemon are equal to those that the Go operators wrote for the same input.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::golden;
use crate::lab::{Lab, PATIENCE, wait_until};

const NAMESPACE: &str = "tenant-ada-rossi";

/// Removes what cannot be compared: `conditions` and `environments`, which the Go operators did not write, and the state
/// of pods and virtual machines, which were not running when the recording was made.
fn without_state(object: &mut Value) {
    if let Some(status) = object["status"].as_object_mut() {
        for key in ["conditions", "environments", "phase", "nodeName", "nodeSelector", "initialReadyTime"] {
            status.remove(key);
        }
    }
}

#[test]
fn objects_equal_the_recorded_ones() {
    let lab = Lab::shared();
    let inputs = golden::inputs();
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key.pub");
    std::fs::write(&key, golden::MASTER_KEY).expect("written");
    lab.cluster.apply_files(&[&inputs[0], &inputs[1]]).expect("the inputs are accepted");
    lab.apply(golden::MY_DRIVE);
    let kubeconfig = lab.service_account();
    // When the recording was made, no other operators were running.
    let config = format!(
        "controllers:
  tenant: {{enabled: false}}
  workspace: {{enabled: false}}
  instance: {{websiteBaseUrl: labs.example.org, instancesAuthUrl: \"https://labs.example.org/auth\", websshMasterKeyFile: {}}}\n",
        key.display()
    );
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "local", config: &config });
    lab.cluster.apply_files(&[&inputs[2]]).expect("the inputs are accepted");

    let mut expected = golden::expected();
    expected.values_mut().for_each(without_state);
    let instances: Vec<&String> = expected.keys().filter(|name| name.starts_with("Instance/")).collect();
    wait_until(PATIENCE, || {
        let objects = lab.list("instances.crownlabs.polito.it", NAMESPACE);
        let done = objects.iter().filter(|object| object["status"]["ip"].is_string()).count();
        (done == instances.len()).then_some(()).ok_or_else(|| format!("{done} of {}", instances.len()))
    });
    let kinds = "instances.crownlabs.polito.it,services,ingresses,secrets,persistentvolumeclaims,deployments,\
                 virtualmachines.kubevirt.io,virtualmachineinstances.kubevirt.io";
    let ours = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        object["kind"] == "Instance" || owners.iter().any(|owner| owner["kind"] == "Instance")
    };
    let objects: Vec<Value> = lab.list(kinds, NAMESPACE).into_iter().filter(ours).collect();
    let uids = uids(&objects);
    let objects = objects.into_iter().map(|object| comparable(object, &uids));
    golden::assert_equal(&expected, &golden::by_name(objects.collect()));
    lab.kubectl(&["delete", "instances", "-n", NAMESPACE, "--all"]);
}

/// The placeholders of the recording for the uids of Instances.
fn uids(objects: &[Value]) -> BTreeMap<String, String> {
    objects
        .iter()
        .filter(|object| object["kind"] == "Instance")
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &object["metadata"];
            (text(&metadata["uid"]), format!("<uid Instance/{}>", text(&metadata["name"])))
        })
        .collect()
}

/// An object in the form of the recording.
fn comparable(object: Value, uids: &BTreeMap<String, String>) -> Value {
    let mut object = golden::normalised(object, uids);
    // Others add the finalizer of a virtual machine and bind claims.
    if object["apiVersion"] == "kubevirt.io/v1" {
        object["metadata"].as_object_mut().expect("metadata").remove("finalizers");
    }
    if let Some(spec) = object["spec"].as_object_mut().filter(|spec| spec.contains_key("accessModes")) {
        spec.remove("volumeName");
        spec.remove("storageClassName");
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| key.starts_with("nginx.ingress.kubernetes.io/"));
        if annotations.is_empty() {
            object["metadata"].as_object_mut().expect("metadata").remove("annotations");
        }
    }
    without_state(&mut object);
    object
}
