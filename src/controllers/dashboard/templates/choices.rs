//! The choices of the form, read from the cluster with the token of the user.

use std::collections::{BTreeMap, BTreeSet};

use futures::join;
use serde::Deserialize;

use super::place::Place;
use crate::api::image_list::{ImageList, ImageListKind};
use crate::api::quantity::RawQuantity;
use crate::api::shared_volume::{SharedVolume, SharedVolumeKind};
use crate::api::{Kind, Object, Quantity};
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::student::read::Reads;
use crate::kinds::{Node, NodeKind, PodKind, StorageClassKind};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The maximum number of images.
const MOST_IMAGES: usize = 2_000;
/// The maximum number of labels of nodes.
const MOST_LABELS: usize = 300;
/// The label with the name of a node, which no Template should select.
const HOST: &str = "kubernetes.io/hostname";
/// The devices that KubeVirt requests itself.
const OF_KUBEVIRT: &str = "devices.kubevirt.io/";
/// Pods that use the resources of their node.
const RUNNING: &str = "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

/// The choices of the form. A list that the user may not read is empty, and its field takes any text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choices {
    /// The images of the image lists.
    pub images: Vec<String>,
    /// The storage classes.
    pub storage_classes: Vec<String>,
    /// The shared volumes of the place, as `namespace/name`.
    pub volumes: Vec<String>,
    /// The labels of nodes, as `key=value`: those of the nodes, or else the configured ones (`nodeLabels`).
    pub labels: Vec<String>,
    /// The resources of the nodes; `None` if the user may not read nodes.
    pub room: Option<Room>,
}

/// Amounts of resources by their names in a pod.
pub type Amounts = BTreeMap<String, Quantity>;

/// The resources of the nodes that accept pods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Room {
    /// The amounts that they have for pods.
    pub allocatable: Amounts,
    /// The part of these amounts that no pod has reserved; `None` if the user may not read pods.
    pub free: Option<Amounts>,
}

impl Room {
    /// Returns the extended resources, each with its allocatable amount.
    pub fn extended(&self) -> impl Iterator<Item = (&String, &Quantity)> {
        let is_extended = |name: &str| name.contains('/') && !name.starts_with(OF_KUBEVIRT);
        let is_huge_page = |name: &str| name.starts_with("hugepages-");
        let offered = move |(name, amount): &(&String, &Quantity)| {
            !amount.is_zero() && (is_extended(name) || is_huge_page(name))
        };
        self.allocatable.iter().filter(offered)
    }
}

impl Choices {
    /// Reads the choices for a place. `labels` are the configured labels of nodes.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn read(reads: &Reads<'_>, place: &Place, labels: &[String]) -> Result<Self, ApiError> {
        let namespace = place.namespace();
        let (images, classes, volumes, nodes, pods) = join!(
            listed::<ImageListKind>(reads, place, ""),
            listed::<StorageClassKind>(reads, place, ""),
            listed::<SharedVolumeKind>(reads, place, namespace),
            listed::<NodeKind>(reads, place, ""),
            pods(reads, place),
        );
        let nodes = nodes?;
        let room = if nodes.is_empty() { None } else { Some(room(&nodes, pods?.as_deref())) };
        let mut known = labels_of(&nodes);
        if known.is_empty() {
            known = labels.to_vec();
        }
        let mut storage_classes: Vec<String> = classes?.iter().map(|class| class.name().to_owned()).collect();
        storage_classes.sort_unstable();
        Ok(Self {
            images: images_of(&images?),
            storage_classes,
            volumes: volumes?.iter().map(volume).collect(),
            labels: known,
            room,
        })
    }
}

/// Lists the objects of a kind; empty if the user may not list them, which the rights say before a request is sent, or
/// if there are too many for a page.
async fn listed<T: Kind>(
    reads: &Reads<'_>,
    place: &Place,
    namespace: &str,
) -> Result<Vec<Object<T>>, ApiError> {
    if !place.may(&Right::to::<T>("list")) {
        return Ok(Vec::new());
    }
    match reads.list::<T>(namespace).await {
        Err(ApiError::TooLong(_)) => Ok(Vec::new()),
        listed => listed,
    }
}

/// Lists the pods of all namespaces; `None` if the user may not list them, or if there are too many for a page.
async fn pods(reads: &Reads<'_>, place: &Place) -> Result<Option<Vec<PodUse>>, ApiError> {
    if !place.may(&Right::to::<NodeKind>("list")) || !place.may(&Right::to::<PodKind>("list")) {
        return Ok(None);
    }
    let (client, credential) = (&reads.users.client, &reads.user.credential);
    match client.list_as::<PodUse>(credential, KindInfo::of::<PodKind>(), "", RUNNING).await {
        Ok(pods) => Ok(Some(pods)),
        // The right may be limited to the namespace.
        Err(ApiError::Forbidden(_) | ApiError::NotFound(_) | ApiError::TooLong(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A pod: its node, and what it reserves there.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PodUse {
    spec: PodUseSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodUseSpec {
    node_name: String,
    containers: Vec<ContainerUse>,
    init_containers: Vec<ContainerUse>,
    overhead: BTreeMap<String, RawQuantity>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ContainerUse {
    resources: ContainerResources,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ContainerResources {
    requests: BTreeMap<String, RawQuantity>,
}

impl PodUseSpec {
    /// Returns the amount that the pod reserves: its containers together, or one of those that run before them.
    fn reserved(&self, resource: &str) -> Quantity {
        let amount = |amounts: &BTreeMap<String, RawQuantity>| {
            amounts.get(resource).and_then(|amount| amount.parse().ok()).unwrap_or_default()
        };
        let of = |container: &ContainerUse| -> Quantity { amount(&container.resources.requests) };
        let together = self.containers.iter().map(of).fold(Quantity::ZERO, |sum, one| sum.plus(&one));
        let before = self.init_containers.iter().map(of).max().unwrap_or_default();
        together.max(before).plus(&amount(&self.overhead))
    }
}

/// Adds up the resources of the nodes that accept pods.
fn room(nodes: &[Node], pods: Option<&[PodUse]>) -> Room {
    let is_ready = |node: &&Node| {
        let conditions = &node.status.conditions;
        !node.spec.spec.unschedulable && conditions.iter().any(|condition| condition.status == "True")
    };
    let open: Vec<&Node> = nodes.iter().filter(is_ready).collect();
    let mut allocatable = Amounts::new();
    for (name, amount) in open.iter().flat_map(|node| &node.status.allocatable) {
        let sum = allocatable.entry(name.clone()).or_default();
        *sum = sum.plus(&amount.parse().unwrap_or_default());
    }
    let names: BTreeSet<&str> = open.iter().map(|node| node.name()).collect();
    let free = pods.map(|pods| {
        let on_them = pods.iter().map(|pod| &pod.spec).filter(|pod| names.contains(pod.node_name.as_str()));
        let on_them: Vec<&PodUseSpec> = on_them.collect();
        let left = |(name, amount): (&String, &Quantity)| {
            let used = on_them.iter().fold(Quantity::ZERO, |sum, pod| sum.plus(&pod.reserved(name)));
            (name.clone(), Quantity::ZERO.max(amount.minus(&used)))
        };
        allocatable.iter().map(left).collect()
    });
    Room { allocatable, free }
}

/// Returns the labels of nodes, sorted.
fn labels_of(nodes: &[Node]) -> Vec<String> {
    let all = nodes.iter().flat_map(|node| &node.spec.metadata.labels).filter(|(key, _)| *key != HOST);
    let known: BTreeSet<String> = all.map(|(key, value)| format!("{key}={value}")).collect();
    known.into_iter().take(MOST_LABELS).collect()
}

/// Returns the images of the lists by their full names, in the order of the lists.
fn images_of(lists: &[ImageList]) -> Vec<String> {
    let of_list = |list: &ImageList| {
        let spec = &list.spec;
        let parts = [spec.registry_name.as_str(), spec.project_base_name.as_str()];
        let prefix: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let prefix = prefix.join("/");
        let images =
            spec.images.iter().flat_map(|image| image.versions.iter().map(move |tag| (&image.name, tag)));
        images.map(|(name, tag)| format!("{prefix}/{name}:{tag}")).collect::<Vec<_>>()
    };
    lists.iter().flat_map(of_list).take(MOST_IMAGES).collect()
}

fn volume(volume: &SharedVolume) -> String {
    format!("{}/{}", volume.namespace(), volume.name())
}

#[cfg(test)]
mod unit_tests {
    use serde_json::{Value, json};

    use super::*;

    fn object<T: serde::de::DeserializeOwned>(json: Value) -> T {
        serde_json::from_value(json).expect("an object")
    }

    fn node(name: &str, ready: &str, labels: &Value, allocatable: &Value) -> Node {
        object(json!({
            "metadata": {"name": name, "labels": labels}, "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": allocatable},
        }))
    }

    #[test]
    fn images_have_their_full_names() {
        let list = |project: &str| -> ImageList {
            object(json!({"metadata": {"name": "l"}, "spec": {
                "registryName": "registry.example.org", "projectBaseName": project,
                "images": [{"name": "machines/ubuntu", "versions": ["24.04", "22.04"]}, {"name": "none", "versions": []}],
            }}))
        };
        let expected = [
            "registry.example.org/machines/ubuntu:24.04",
            "registry.example.org/machines/ubuntu:22.04",
            "registry.example.org/labs/machines/ubuntu:24.04",
            "registry.example.org/labs/machines/ubuntu:22.04",
        ];
        assert_eq!(images_of(&[list(""), list("labs")]), expected);
    }

    #[test]
    fn free_resources_are_those_of_open_nodes_that_no_pod_has_reserved() {
        let amounts = json!({"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "2", "pods": "110"});
        let mut cordoned = node("c", "True", &json!({}), &amounts);
        cordoned.spec.spec.unschedulable = true;
        let nodes = [
            node("a", "True", &json!({"disk": "fast", HOST: "a"}), &amounts),
            node("b", "False", &json!({}), &amounts),
            cordoned,
            node("d", "True", &json!({"disk": "slow"}), &json!({"cpu": "1500m"})),
        ];
        let pod = |node: &str, cpu: &str| -> PodUse {
            let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
            object(json!({"spec": {
                "nodeName": node, "containers": [container(cpu), container(cpu)],
                "initContainers": [container("1")], "overhead": {"cpu": "250m"},
            }}))
        };
        // 2 x 1 + 0.25 on an open node, 1 + 0.25 for one that is larger before it starts, and a pod on a closed node.
        let pods = [pod("a", "1"), pod("a", "100m"), pod("b", "1"), pod("", "1")];
        let room = room(&nodes, Some(&pods));
        let text = |amounts: &Amounts, name: &str| amounts.get(name).map(ToString::to_string);
        assert_eq!(text(&room.allocatable, "cpu").as_deref(), Some("9500m"));
        let free = room.free.as_ref().expect("amounts");
        assert_eq!(text(free, "cpu").as_deref(), Some("6"));
        assert_eq!(text(free, "nvidia.com/gpu").as_deref(), Some("2"));
        let extended: Vec<&str> = room.extended().map(|(name, _)| name.as_str()).collect();
        assert_eq!(extended, ["nvidia.com/gpu"]);
        assert_eq!(labels_of(&nodes), ["disk=fast", "disk=slow"]);
    }
}
