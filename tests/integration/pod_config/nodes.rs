//! Nodes that only follow the contract of the records: they report allocations as plugged, and releases as released.
//! They create no links. This replaces `podConfigNode` where only the leader is tested.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ring::digest;
use serde_json::{Value, json};

use crate::lab::Lab;

/// The namespace of the records.
pub const SYSTEM: &str = "crownlabs-system";
/// The label of the records.
const RECORD: &str = "crownlabs.polito.it/pod-network";

/// The nodes of a control plane, until this is dropped.
pub struct PlayedNodes {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PlayedNodes {
    /// Starts these nodes.
    pub fn start(lab: &Arc<Lab>, nodes: &'static [&'static str]) -> Self {
        let (stop, lab) = (Arc::new(AtomicBool::new(false)), Arc::clone(lab));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !asked.load(Ordering::SeqCst) {
                let records = records(&lab);
                for node in nodes {
                    play(&lab, &records, node);
                }
                // A real node uses a watch.
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for PlayedNodes {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// All records.
pub fn records(lab: &Lab) -> Vec<Value> {
    let records = lab.list("configmaps", SYSTEM).into_iter();
    records.filter(|record| record["metadata"]["labels"][RECORD].is_string()).collect()
}

/// The pools.
pub fn pools(lab: &Lab) -> Vec<Value> {
    records(lab).into_iter().filter(|record| record["metadata"]["labels"][RECORD] == "pool").collect()
}

/// The name of the record of a report.
pub fn report_name(node: &str) -> String {
    let digest = digest::digest(&digest::SHA256, format!("report\n{node}").as_bytes());
    let tag: Vec<String> = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("podnet-node-{node}-{}", tag.concat())
}

fn parsed(text: &Value) -> Value {
    serde_json::from_str(text.as_str().unwrap_or_default()).unwrap_or_default()
}

/// Follows the pools, and reports it.
fn play(lab: &Lab, records: &[Value], node: &str) {
    let mut links: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for record in records.iter().filter(|record| record["metadata"]["labels"][RECORD] == "pool") {
        let pool = parsed(&record["data"]["pool"]);
        let entries = record["data"].as_object().into_iter().flatten().filter(|(key, _)| *key != "pool");
        for (uid, list) in entries {
            let list = parsed(list).as_array().cloned().unwrap_or_default();
            let own = list.iter().filter(|allocation| allocation["node"] == node);
            links.entry(uid.clone()).or_default().extend(own.map(|allocation| link(&pool, allocation)));
        }
    }
    let name = report_name(node);
    let old = records.iter().find(|record| record["metadata"]["name"] == *name);
    // Links that no pool mentions stay until a pool mentions them.
    let is_known = |link: &Value| {
        records.iter().any(|record| parsed(&record["data"]["pool"])["namespace"] == link["namespace"])
    };
    for (uid, list) in old.and_then(|old| old["data"].as_object()).into_iter().flatten() {
        let list = parsed(list).as_array().cloned().unwrap_or_default();
        let kept = list.into_iter().filter(|link| link["state"] == "plugged" && !is_known(link));
        links.entry(uid.clone()).or_default().extend(kept);
    }
    let own = ("node".to_owned(), json!({"node": node}).to_string());
    let lists = links.into_iter().filter(|(_, list)| !list.is_empty());
    let data: BTreeMap<String, String> =
        lists.map(|(uid, list)| (uid, json!(list).to_string())).chain([own]).collect();
    if old.is_none_or(|old| old["data"] != json!(data)) {
        let report = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": name, "namespace": SYSTEM, "labels": {RECORD: "report"}}});
        // The control plane may be ending.
        let _ = lab.cluster.apply(&report.to_string());
    }
}

/// The report of a node about an allocation.
fn link(pool: &Value, allocation: &Value) -> Value {
    let mut link = json!({"namespace": pool["namespace"], "state": "released"});
    for member in ["podConfig", "podConfigUid", "pod", "attachment"] {
        link[member] = allocation[member].clone();
    }
    if allocation["release"] != true {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, range) = (text(&allocation["attachment"]), text(&pool["range"]));
        link["state"] = "plugged".into();
        link["podLink"] = format!("{name}4711").into();
        link["hostLink"] = format!("h{name}4711").into();
        link["bridge"] = allocation["bridge"].clone();
        let prefix = range.split('/').next_back().unwrap_or_default();
        link["address"] = format!("{}/{prefix}", text(&allocation["address"])).into();
    }
    link
}
