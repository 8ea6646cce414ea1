//! The objects of the daemon equal the objects that the Go operators wrote for the same input.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::golden;
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;

const NAMESPACE: &str = "tenant-ada-rossi";

/// Removes the fields that the Go operators of the recording did not write.
fn without_additions(object: &mut Value) {
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("conditions");
        status.remove("environments");
        status.remove("observedGeneration");
    }
}

#[test]
fn objects_equal_the_recorded_ones() {
    // No pods were running when the recording was made.
    let lab = Lab::start(ClusterOptions { simulate: false, furnished: false, ..ClusterOptions::default() });
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
  instance: {{websiteBaseUrl: labs.example.org, instancesAuthUrl: \"https://labs.example.org/auth\", websshMasterKeyFile: {}, vmPower: running, layout: classic}}\n",
        key.display()
    );
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "local", config: &config });
    lab.cluster.apply_files(&[&inputs[2]]).expect("the inputs are accepted");

    let expected = golden::expected();
    wait_until(PATIENCE, || golden::compare(&expected, &ours(&lab)));
}

/// The Instances and their objects, in the form of the recording.
fn ours(lab: &Lab) -> golden::Objects {
    let kinds = "instances.crownlabs.polito.it,services,ingresses,secrets,persistentvolumeclaims,deployments,\
                 virtualmachines.kubevirt.io,virtualmachineinstances.kubevirt.io";
    let ours = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        object["kind"] == "Instance" || owners.iter().any(|owner| owner["kind"] == "Instance")
    };
    let objects: Vec<Value> = lab.list(kinds, NAMESPACE).into_iter().filter(ours).collect();
    let uids = uids(&objects);
    golden::by_name(objects.into_iter().map(|object| comparable(object, &uids)).collect())
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
    without_additions(&mut object);
    object
}
