//! Whether any node could run an environment without other workloads, or a node that an autoscaler would add.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::quantity::Quantity;
use crate::api::reason::{self, Reason};
use crate::api::resources::Amounts;
use crate::api::template::Selector;

/// The label of nodes that run virtual machines. KubeVirt's agent sets it on its node, and the pods of virtual
/// machines select it.
const RUNS_MACHINES: (&str, &str) = ("kubevirt.io/schedulable", "true");
/// The device of nodes with hardware virtualization. If a node loses the device, its amount is 0.
const KVM: &str = "devices.kubevirt.io/kvm";

/// The pods that a node accepts, and its resources for them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeRoom {
    /// Its labels.
    pub labels: Selector,
    /// The resources that are available to its pods together.
    pub allocatable: Amounts,
    /// Whether it is cordoned.
    pub is_cordoned: bool,
    /// The keys of the taints that keep pods away.
    pub taints: BTreeSet<String>,
}

/// A node pool that an autoscaler enlarges when a pod needs a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// One of its nodes without workloads.
    pub node: NodeRoom,
}

/// The requirements of a pod.
pub struct Need<'a> {
    /// The labels that its node must have.
    pub selector: Option<&'a Selector>,
    /// Its requests.
    pub requests: &'a Amounts,
    /// Whether it is the pod of a virtual machine.
    pub is_machine: bool,
}

impl NodeRoom {
    fn is_selected(&self, selector: &Selector) -> bool {
        selector.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }

    fn runs_machines(&self) -> bool {
        let (label, value) = RUNS_MACHINES;
        let has_device = self.allocatable.get(KVM).is_none_or(|devices| *devices > Quantity::ZERO);
        self.labels.get(label).is_some_and(|found| found == value) && has_device
    }

    /// Whether the node accepts such a pod. A node whose taint has the name of a resource accepts pods that request
    /// the resource, because API servers add a toleration to them.
    fn takes_pods(&self, requests: &Amounts) -> bool {
        !self.is_cordoned && self.taints.iter().all(|taint| requests.contains_key(taint))
    }

    fn amount(&self, name: &str) -> Quantity {
        self.allocatable.get(name).cloned().unwrap_or_default()
    }

    fn is_large_enough(&self, requests: &Amounts) -> bool {
        requests.iter().all(|(name, amount)| self.amount(name) >= *amount)
    }

    fn fits(&self, need: &Need<'_>) -> bool {
        need.selector.is_none_or(|selector| self.is_selected(selector))
            && (!need.is_machine || self.runs_machines())
            && self.takes_pods(need.requests)
            && self.is_large_enough(need.requests)
    }
}

/// The first condition that no node satisfies. Returns `None` if a node can run the pod, or if no node is known. If a
/// node of a pool could run it, the reason is to wait for that node. A node is known once its kubelet has reported its
/// resources.
pub fn missing(nodes: &[NodeRoom], pools: &[Pool], need: &Need<'_>) -> Option<(Reason, String)> {
    if nodes.iter().any(|node| node.fits(need)) {
        return None;
    }
    if let Some(pool) = pools.iter().find(|pool| pool.node.fits(need)) {
        let name = &pool.name;
        let message = format!(
            "no node can run it now; it waits for a node of the pool {name}, which the autoscaler adds when it starts"
        );
        return Some((reason::NODE_ON_DEMAND, message));
    }
    let known: Vec<&NodeRoom> = nodes.iter().filter(|node| !node.allocatable.is_empty()).collect();
    (!known.is_empty()).then(|| (reason::NO_NODE, why(&known, need)))
}

/// Describes the first condition that no node satisfies.
fn why(nodes: &[&NodeRoom], need: &Need<'_>) -> String {
    let none = Selector::new();
    let (selector, requests) = (need.selector.unwrap_or(&none), need.requests);
    let selected: Vec<&NodeRoom> = nodes.iter().copied().filter(|node| node.is_selected(selector)).collect();
    if selected.is_empty() {
        let labels: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        return format!("no node has the labels of its node selector, {}", labels.join(", "));
    }
    let able: Vec<&NodeRoom> =
        selected.iter().copied().filter(|node| !need.is_machine || node.runs_machines()).collect();
    if able.is_empty() {
        let (count, (label, value)) = (selected.len(), RUNS_MACHINES);
        return format!(
            "no node runs virtual machines: none of the nodes that it may run on ({count}) has the label {label}={value} and the device \
             {KVM}; KubeVirt's agent virt-handler sets them on nodes with hardware virtualisation"
        );
    }
    let open: Vec<&NodeRoom> = able.iter().copied().filter(|node| node.takes_pods(requests)).collect();
    if open.is_empty() {
        let count = able.len();
        return format!("no node accepts it: all nodes that it may run on ({count}) are cordoned or tainted");
    }
    let largest = requests.keys().map(|name| {
        let most = open.iter().map(|node| node.amount(name)).max().unwrap_or_default();
        (name.clone(), most)
    });
    format!(
        "no node is large enough: it requests {}; the largest of the nodes that it may run on ({}) have {}",
        listed(requests),
        open.len(),
        listed(&largest.collect())
    )
}

fn listed(amounts: &BTreeMap<String, Quantity>) -> String {
    let texts: Vec<String> = amounts.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
    texts.join(", ")
}
