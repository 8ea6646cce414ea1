//! The records of the leader, as the test writes them in its place.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

/// A pool.
pub fn pool(namespace: &str, range: &str, gateway: &str, bridges: &[&str]) -> Value {
    json!({"namespace": namespace, "range": range, "gateway": gateway, "bridges": bridges})
}

/// The `ConfigMap` of a pool, with the allocations of each pod.
pub fn config_map(namespace: &str, pool: &Value, pods: &[(&str, Value)]) -> Value {
    let text = |key: &str| pool[key].as_str().expect("a text");
    let mut data = serde_json::Map::from_iter([("pool".to_owned(), pool.to_string().into())]);
    data.extend(pods.iter().map(|(uid, allocations)| ((*uid).to_owned(), allocations.to_string().into())));
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name(text("namespace"), text("range")),
            "namespace": namespace,
            "labels": {"crownlabs.polito.it/pod-network": "pool"},
        },
        "data": data,
    })
}

fn name(namespace: &str, range: &str) -> String {
    let readable = range.replace(['.', ':', '/'], "-");
    format!("podnet-{namespace}-{readable}-{}", tag(&["pool", namespace, range]))
}

/// The name of the report of a node.
pub fn report_name(node: &str) -> String {
    format!("podnet-node-{node}-{}", tag(&["report", node]))
}

fn tag(parts: &[&str]) -> String {
    let digest = digest(&SHA256, parts.join("\n").as_bytes());
    let first = digest.as_ref().first_chunk().copied().expect("32 bytes");
    format!("{:016x}", u64::from_be_bytes(first))
}
