//! The nodes with their capacity, and what is free: pure functions.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::api::Quantity;
use crate::api::quantity::RawQuantity;
use crate::api::usage::Measure;
use crate::controllers::dashboard::admin::read::Part;
use crate::kinds::Node;

/// The resources that every node has, in the order of the page.
const PLAIN: [(&str, Measure); 2] = [("cpu", Measure::Cpu), ("memory", Measure::Memory)];
/// Resources that are not shown: every node has them, and machines do not ask for them.
const LEFT_OUT: [&str; 4] = ["pods", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi"];

/// The amounts of resources by name.
type Amounts = BTreeMap<String, Quantity>;

/// A pod, with the fields that tell its requests.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    spec: AskedSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AskedSpec {
    node_name: String,
    containers: Vec<AskedContainer>,
    overhead: BTreeMap<String, RawQuantity>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AskedContainer {
    resources: AskedResources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AskedResources {
    requests: BTreeMap<String, RawQuantity>,
}

/// The requests of the pods of each node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requested {
    by_node: BTreeMap<String, Amounts>,
    /// The number of pods.
    pub pods: usize,
}

impl Requested {
    /// Adds a pod. Init containers, which run before the others, are left out.
    pub fn add(&mut self, pod: &Asked) {
        self.pods += 1;
        let AskedSpec { node_name, containers, overhead } = &pod.spec;
        if node_name.is_empty() {
            return;
        }
        let of_node = self.by_node.entry(node_name.clone()).or_default();
        let requests = containers.iter().flat_map(|container| &container.resources.requests);
        for (name, amount) in requests.chain(overhead) {
            let sum = of_node.entry(name.clone()).or_default();
            *sum = sum.plus(&amount.parse().unwrap_or_default());
        }
    }
}

/// An amount of a resource, with the free part if it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// The resource.
    pub measure: Measure,
    /// The amount for pods.
    pub allocatable: Quantity,
    /// The amount that no pod has requested.
    pub free: Option<Quantity>,
}

/// The capacity of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capacity {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes that accept new pods.
    pub open: usize,
    /// The resources of the nodes that accept new pods.
    pub rooms: Vec<Room>,
}

/// Whether a node accepts new pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Open,
    /// It is ready, and an administrator has closed it (`kubectl cordon`).
    Cordoned,
    /// It is not ready.
    NotReady,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Whether it accepts new pods.
    pub standing: Standing,
    /// Its resources.
    pub rooms: Vec<Room>,
}

/// The nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// The nodes by name.
    pub rows: Vec<Row>,
    /// Why the free amounts are unknown; empty if they are known.
    pub unknown: String,
}

impl Nodes {
    /// Returns the nodes with their free amounts, if the requests of their pods are known.
    pub fn of(nodes: &[Node], requested: Part<Requested>) -> Self {
        let (requested, unknown) = match requested {
            Ok(requested) => (Some(requested), String::new()),
            Err(reason) => (None, reason),
        };
        let row = |node: &Node| {
            let is_ready = node.status.conditions.iter().any(|condition| condition.status == "True");
            let standing = match (is_ready, node.spec.spec.unschedulable) {
                (true, false) => Standing::Open,
                (true, true) => Standing::Cordoned,
                (false, _) => Standing::NotReady,
            };
            let used =
                requested.as_ref().map(|all| all.by_node.get(node.name()).cloned().unwrap_or_default());
            Row {
                name: node.name().to_owned(),
                standing,
                rooms: rooms(&node.status.allocatable, used.as_ref()),
            }
        };
        let mut rows: Vec<Row> = nodes.iter().map(row).collect();
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        Self { rows, unknown }
    }

    /// Returns the capacity of the nodes that accept new pods.
    pub fn total(&self) -> Capacity {
        let open = || self.rows.iter().filter(|row| row.standing == Standing::Open);
        let mut rooms: Vec<Room> = Vec::new();
        for room in open().flat_map(|row| &row.rooms) {
            match rooms.iter_mut().find(|sum| sum.measure == room.measure) {
                None => rooms.push(room.clone()),
                Some(sum) => {
                    sum.allocatable = sum.allocatable.plus(&room.allocatable);
                    sum.free = sum.free.as_ref().zip(room.free.as_ref()).map(|(sum, free)| sum.plus(free));
                }
            }
        }
        Capacity { nodes: self.rows.len(), open: open().count(), rooms }
    }
}

/// Returns the resources of a node: cores and memory first, then the others by name.
fn rooms(allocatable: &BTreeMap<String, RawQuantity>, used: Option<&Amounts>) -> Vec<Room> {
    let room = |name: &str, measure: Measure, amount: &RawQuantity| {
        let allocatable: Quantity = amount.parse().unwrap_or_default();
        let free = used.map(|used| match used.get(name) {
            Some(used) => allocatable.minus(used),
            None => allocatable.clone(),
        });
        Room { measure, allocatable, free }
    };
    let plain =
        PLAIN.into_iter().filter_map(|(name, measure)| Some(room(name, measure, allocatable.get(name)?)));
    let is_other = |name: &str| !LEFT_OUT.contains(&name) && PLAIN.iter().all(|(plain, _)| *plain != name);
    let others = allocatable.iter().filter(|(name, _)| is_other(name));
    plain.chain(others.map(|(name, amount)| room(name, Measure::Other(name.clone()), amount))).collect()
}

#[cfg(test)]
mod unit_tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str, more: &Value) -> Node {
        let ready = more["ready"].as_bool().unwrap_or(true);
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"unschedulable": more["cordoned"] == true},
            "status": {
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
                "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"},
            },
        }))
        .expect("a node")
    }

    fn pod(node: &str, cpu: &str) -> Asked {
        let container = json!({"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}});
        let pod =
            json!({"spec": {"nodeName": node, "containers": [container, {}], "overhead": {"cpu": "100m"}}});
        serde_json::from_value(pod).expect("a pod")
    }

    fn words(rooms: &[Room]) -> Vec<String> {
        let word = |room: &Room| {
            let free = room.free.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
            format!("{:?} {} {free}", room.measure, room.allocatable)
        };
        rooms.iter().map(word).collect()
    }

    #[test]
    fn the_free_part_of_a_node_is_what_its_pods_have_not_requested() {
        let mut requested = Requested::default();
        for pod in [pod("a", "2"), pod("a", "500m"), pod("b", "1"), pod("", "64")] {
            requested.add(&pod);
        }
        let nodes = [
            node("b", &json!({})),
            node("a", &json!({})),
            node("c", &json!({"cordoned": true})),
            node("d", &json!({"ready": false})),
        ];
        let found = Nodes::of(&nodes, Ok(requested));
        let standings: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.standing)).collect();
        let expected = [
            ("a", Standing::Open),
            ("b", Standing::Open),
            ("c", Standing::Cordoned),
            ("d", Standing::NotReady),
        ];
        assert_eq!(standings, expected);
        let gpu = "Other(\"nvidia.com/gpu\") 2 2";
        assert_eq!(words(&found.rows[0].rooms), ["Cpu 8 5300m", "Memory 16Gi 14Gi", gpu]);
        let total = found.total();
        assert_eq!((total.nodes, total.open), (4, 2));
        assert_eq!(
            words(&total.rooms),
            ["Cpu 16 12200m", "Memory 32Gi 29Gi", "Other(\"nvidia.com/gpu\") 4 4"]
        );
    }

    #[test]
    fn without_the_pods_the_free_part_is_unknown() {
        let found = Nodes::of(&[node("a", &json!({}))], Err("pods is forbidden".to_owned()));
        assert_eq!(found.unknown, "pods is forbidden");
        assert_eq!(words(&found.total().rooms)[0], "Cpu 8 ?");
    }
}
