//! Whether any node has room for an environment, as if nothing else ran there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::quantity::Quantity;
use crate::api::resources::Amounts;
use crate::api::template::Selector;
use crate::kinds::{Node, Taint};

/// Why no node has room for a pod that requests these amounts and selects nodes by these labels; `None` if one has, or if no
/// node is known: then it is not the size of the environment that keeps it from starting.
pub fn missing(nodes: &[Arc<Node>], selector: Option<&Selector>, requests: &Amounts) -> Option<String> {
    if nodes.is_empty() {
        return None;
    }
    let none = Selector::new();
    let selector = selector.unwrap_or(&none);
    let is_selected = |node: &&Arc<Node>| {
        selector.iter().all(|(key, value)| node.spec.metadata.labels.get(key) == Some(value))
    };
    let selected: Vec<&Arc<Node>> = nodes.iter().filter(is_selected).collect();
    if selected.is_empty() {
        let labels: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        return Some(format!("no node has the labels of its node selector, {}", labels.join(", ")));
    }
    let open: Vec<&Arc<Node>> = selected.iter().copied().filter(|node| takes_pods(node, requests)).collect();
    if open.is_empty() {
        let count = selected.len();
        return Some(format!("no node takes it: of {count} that it may run on, all are cordoned or tainted"));
    }
    let of = |node: &Node, name: &str| node.status.allocatable.get(name).and_then(|raw| raw.parse().ok());
    let has = |node: &Node, name: &str| of(node, name).unwrap_or(Quantity::ZERO);
    if open.iter().any(|node| requests.iter().all(|(name, amount)| has(node, name) >= *amount)) {
        return None;
    }
    let largest = requests.keys().map(|name| {
        let most = open.iter().map(|node| has(node, name)).max().unwrap_or_default();
        (name.clone(), most)
    });
    Some(format!(
        "no node is large enough: it requests {}; of {} that it may run on, the largest have {}",
        listed(requests),
        open.len(),
        listed(&largest.collect())
    ))
}

/// Whether a node takes such a pod. What is tainted for the sake of a resource takes those who request it: API servers let
/// these tolerate the taint.
fn takes_pods(node: &Node, requests: &Amounts) -> bool {
    let keeps_away = |taint: &Taint| {
        matches!(&*taint.effect, "NoSchedule" | "NoExecute") && !requests.contains_key(&taint.key)
    };
    !node.spec.spec.unschedulable && !node.spec.spec.taints.iter().any(keeps_away)
}

fn listed(amounts: &BTreeMap<String, Quantity>) -> String {
    let texts: Vec<String> = amounts.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
    texts.join(", ")
}
