//! The work of upload containers. The test cluster runs no containers: a pod that waits for its volume stays pending,
//! and the test does the work of the container in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use http::Uri;
use serde_json::Value;

use crate::lab::Lab;

/// The containers of the uploads in a namespace.
pub struct Uploader<'a> {
    lab: &'a Lab,
    namespace: &'a str,
    /// The uids of the pods whose container has ended.
    ended: BTreeSet<String>,
}

impl<'a> Uploader<'a> {
    /// No container has run yet.
    pub fn new(lab: &'a Lab, namespace: &'a str) -> Self {
        Self { lab, namespace, ended: BTreeSet::new() }
    }

    /// Runs the container of each pod of a Job that has not run. A pod whose upload is accepted has succeeded, the
    /// container of another one is started again at the next call.
    pub fn run(&mut self) {
        for pod in self.pods() {
            if self.post(&pod) {
                self.succeed(&pod);
            }
        }
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

    /// Runs the container of each pod of a Job that has not run. A pod whose upload is accepted has succeeded.
    /// Otherwise its container is restarted at the next call.
    pub fn post(&mut self, pod: &Value) -> bool {
        let container = &pod["spec"]["containers"][0];
        let variables: BTreeMap<&str, &str> = container["env"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|variable| Some((variable["name"].as_str()?, variable["value"].as_str()?)))
            .collect();
        let of = |name| *variables.get(name).unwrap_or_else(|| panic!("the variable {name}: {container}"));
        assert_eq!(of("SOURCE_PATH"), container["volumeMounts"][0]["mountPath"], "the folder is mounted");
        let is_accepted = post(of("DESTINATION_URL"), &format!("{}.zip", of("FILENAME")));
        if is_accepted {
            self.ended.insert(pod["metadata"]["uid"].as_str().expect("a uid").to_owned());
        }
        is_accepted
    }

    /// Marks a pod as succeeded, as the kubelet does; it may have been deleted in the meantime.
    pub fn succeed(&self, pod: &Value) {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let patch = r#"{"status": {"phase": "Succeeded"}}"#;
        let _ = self.lab.cluster.patch("pods", self.namespace, name, Some("status"), patch);
    }
}

/// Posts a form with a file of this name. Returns whether the server has accepted it.
fn post(url: &str, file: &str) -> bool {
    const BOUNDARY: &str = "boundary-of-the-form";
    let url: Uri = url.parse().expect("a URL");
    let server = url.authority().expect("a server").as_str();
    let path = url.path_and_query().expect("a path").as_str();
    let form = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"filename\"\r\n\r\n{file}\r\n\
         --{BOUNDARY}\r\nContent-Disposition: form-data; name=\"binfile\"; filename=\"{file}\"\r\n\
         Content-Type: application/zip\r\n\r\nPK\r\n--{BOUNDARY}--\r\n"
    );
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\ncontent-length: {}\r\n\
         content-type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n{form}",
        form.len()
    );
    let mut answer = String::new();
    let sent = TcpStream::connect(server).and_then(|mut stream| {
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut answer)
    });
    sent.expect("the server answers");
    answer.starts_with("HTTP/1.1 2")
}
