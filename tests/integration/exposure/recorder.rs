//! Records every write of the Services in a namespace, in the order of the API server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Deserializer, Value};
use tempfile::TempDir;

use crate::lab::{Lab, PATIENCE, wait_until};

/// A watch that writes its events into a file. It ends when it is dropped.
pub struct Recorder {
    watch: Child,
    dir: TempDir,
    namespace: String,
}

/// The state of a Service after a write.
pub struct Write {
    /// The name of the Service.
    pub name: String,
    /// The Service; `None` after its deletion.
    pub service: Option<Value>,
}

impl Recorder {
    /// Starts to record.
    pub fn start(lab: &Lab, namespace: &str) -> Self {
        let dir = TempDir::new().expect("a folder");
        let file = File::create(dir.path().join("writes")).expect("a file");
        let mut command = lab.cluster.kubectl();
        command.args(["get", "services", "-n", namespace, "--watch", "--output-watch-events", "-o", "json"]);
        let watch = command.stdin(Stdio::null()).stdout(file).spawn().expect("kubectl starts");
        Self { watch, dir, namespace: namespace.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("writes")
    }

    /// The recorded writes so far, each with its resource version.
    fn recorded(&self) -> Vec<(Value, Write)> {
        let text = fs::read_to_string(self.path()).expect("written by kubectl");
        // The last one may be incomplete.
        let events = Deserializer::from_str(&text).into_iter::<Value>().map_while(Result::ok);
        let write = |mut event: Value| {
            let object = event["object"].take();
            let version = object["metadata"]["resourceVersion"].clone();
            let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
            (version, Write { name, service: (event["type"] != "DELETED").then_some(object) })
        };
        events.map(write).collect()
    }

    /// All writes, once the last write of each existing Service is recorded.
    pub fn writes(&self, lab: &Lab) -> Vec<Write> {
        let last: Vec<Value> = lab.list("services", &self.namespace);
        wait_until(PATIENCE, || {
            let recorded = self.recorded();
            let seen = |service: &&Value| {
                let version = &service["metadata"]["resourceVersion"];
                !recorded.iter().any(|(known, _)| known == version)
            };
            match last.iter().find(seen) {
                None => Ok(()),
                Some(service) => Err(format!("{} in the record", service["metadata"]["name"])),
            }
        });
        self.recorded().into_iter().map(|(_, write)| write).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.watch.kill();
        let _ = self.watch.wait();
    }
}

/// The addresses, ports and protocols of a Service.
pub fn places(service: &Value) -> Vec<String> {
    let address = &service["metadata"]["annotations"]["metallb.io/loadBalancerIPs"];
    let ports = service["spec"]["ports"].as_array().expect("ports").iter();
    ports.map(|port| format!("{address} {} {}", port["port"], port["protocol"])).collect()
}

/// Replays the writes, and panics if at any time two Services had the same address, port and protocol. Returns how
/// many writes there were.
pub fn assert_never_shared(writes: &[Write]) -> usize {
    let mut holders: BTreeMap<String, &str> = BTreeMap::new();
    for (number, Write { name, service }) in writes.iter().enumerate() {
        holders.retain(|_, holder| *holder != name);
        for place in service.iter().flat_map(places) {
            let other = holders.insert(place.clone(), name);
            assert_eq!(other, None, "after write {number}, {place} is held by {name} as well");
        }
    }
    writes.len()
}
