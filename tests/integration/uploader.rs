//! The work of upload containers. The test cluster runs no containers: a pod that waits for its volume stays pending,
//! and the test runs the script of the image in its place.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::{Lab, PATIENCE, wait_until};
use crate::submission::COMPLETED;

/// The containers of the uploads in a namespace.
pub struct Uploader<'a> {
    lab: &'a Lab,
    namespace: &'a str,
    /// The uids of the pods whose container has ended.
    ended: BTreeSet<String>,
    /// The folders of the containers: `data` is the volume of every pod.
    folder: TempDir,
    /// Whether the image leaves receipts.
    leaves_receipts: bool,
}

impl<'a> Uploader<'a> {
    /// No container has run yet.
    pub fn new(lab: &'a Lab, namespace: &'a str) -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        fs::write(folder.path().join("data/answers.txt"), "42\n").expect("written");
        Self { lab, namespace, ended: BTreeSet::new(), folder, leaves_receipts: true }
    }

    /// From now on, the containers have an image that leaves no receipts.
    pub fn without_receipts(&mut self) {
        self.leaves_receipts = false;
    }

    /// Runs the container of each pod of a Job that has not run. A pod whose upload is accepted has succeeded.
    /// Otherwise its container is restarted at the next call.
    pub fn run(&mut self) {
        for pod in self.pods() {
            if self.post(&pod) {
                self.succeed(&pod);
            }
        }
    }

    /// Runs the containers until the upload of an Instance is complete. Returns the Instance.
    pub fn await_upload(&mut self, instance: &str) -> Value {
        wait_until(PATIENCE, || {
            self.run();
            let object = self.lab.get("instances", self.namespace, instance).expect("there");
            let is_completed = object.pointer(COMPLETED) == Some(&json!("true"));
            if is_completed { Ok(object) } else { Err(object["status"].to_string()) }
        })
    }

    /// The pods whose container has not ended.
    pub fn pods(&self) -> Vec<Value> {
        let mut pods = self.lab.list("pods", self.namespace);
        pods.retain(|pod| {
            let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
            pod["metadata"]["ownerReferences"][0]["kind"] == "Job" && !self.ended.contains(uid)
        });
        pods
    }

    /// Runs the container of a pod. Returns whether the server has accepted the upload.
    pub fn post(&mut self, pod: &Value) -> bool {
        let container = &pod["spec"]["containers"][0];
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/uploader/upload.sh");
        let mut command = Command::new("sh");
        command.arg(script).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("TERMINATION_LOG", self.message(pod));
        for variable in container["env"].as_array().expect("variables") {
            let text = |key: &str| variable[key].as_str().expect("a text").to_owned();
            let (name, value) = (text("name"), text("value"));
            if name == "SOURCE_PATH" {
                assert_eq!(value, container["volumeMounts"][0]["mountPath"], "the folder is mounted");
                command.env(name, self.folder.path().join("data"));
            } else {
                command.env(name, value);
            }
        }
        let is_accepted = command.output().expect("a shell").status.success();
        if is_accepted {
            self.ended.insert(pod["metadata"]["uid"].as_str().expect("a uid").to_owned());
        }
        is_accepted
    }

    /// The file with the termination message of a pod.
    fn message(&self, pod: &Value) -> PathBuf {
        self.folder.path().join(pod["metadata"]["uid"].as_str().expect("a uid"))
    }

    /// Marks a pod as succeeded, as the kubelet does; it may have been deleted in the meantime.
    pub fn succeed(&self, pod: &Value) {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let container = &pod["spec"]["containers"][0];
        let message = fs::read_to_string(self.message(pod)).ok().filter(|_| self.leaves_receipts);
        let status = json!({
            "name": container["name"], "image": container["image"], "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": message.unwrap_or_default()}},
        });
        let patch = json!({"status": {"phase": "Succeeded", "containerStatuses": [status]}}).to_string();
        let _ = self.lab.cluster.patch("pods", self.namespace, name, Some("status"), &patch);
    }
}
