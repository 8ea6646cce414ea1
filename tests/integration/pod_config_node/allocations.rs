//! Allocations of addresses on a node.

use serde_json::{Value, json};

use super::node::Node;

/// The allocation of an address.
pub fn allocation(node: &Node, pod: &str, attachment: &str, bridge: &str, address: &str) -> Value {
    json!({
        "pod": pod,
        "node": node.name,
        "podConfig": "lab-net",
        "podConfigUid": "0b0e33f4-3b0a-4b6e-9b39-5cb24bd9a2c1",
        "attachment": attachment,
        "bridge": bridge,
        "address": address,
    })
}

/// The same, of a pod that is being deleted.
pub fn ending(mut allocation: Value) -> Value {
    allocation["ending"] = Value::Bool(true);
    allocation
}

/// The same, marked for removal.
pub fn released(mut allocation: Value) -> Value {
    allocation["release"] = Value::Bool(true);
    allocation
}
