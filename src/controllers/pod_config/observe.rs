//! The input of the plan and the report of a `PodConfig`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};
use ipnet::IpNet;
use jiff::Timestamp;

use super::records::{NodeReport, PoolRecord};
use super::validate::Validated;
use crate::api::meta::Metadata;
use crate::api::pod_config::PodConfig;
use crate::controllers::pod_network::{Allocation, Link, LinkState};
use crate::kinds::{NetworkRecord, NetworkedPod, Node, SampleDeployment};
use crate::runtime::finalizer;

/// The finalizer of `PodConfig`s, kept until no node has a link for the `PodConfig`.
pub const FINALIZER: &str = "podconfig.finalizers.opdev.io";
/// The label of pods whose value is the name of their `PodConfig`.
pub const LABEL: &str = "podconfig";

/// The settings of the loop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of the records.
    pub namespace: String,
    /// The namespaces whose `PodConfig`s are reconciled; none for all.
    pub namespaces: BTreeSet<String>,
    /// The ranges that attachments must not overlap.
    pub reserved: Vec<IpNet>,
    /// How long a node may be not ready before it counts as lost.
    pub grace: jiff::SignedDuration,
    /// The image of the sample Deployment.
    pub image: String,
    /// How long a problem outside of the `PodConfig` must last before the `PodConfig` is `Stalled`.
    pub stalled_after: std::time::Duration,
}

/// All inputs of the plan and the report, except the settings and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The `PodConfig`. It has no uid and no name if it stands for the leftovers in a namespace without reconciled
    /// `PodConfig`s.
    #[as_ref(PodConfig)]
    #[as_mut]
    pub config: Arc<PodConfig>,
    /// All `PodConfig`s of its namespace, including this one: they share pools.
    pub members: Vec<Member>,
    /// The pools of its namespace: recorded pools, requested pools, and pools with reported links.
    pub pools: Vec<PoolView>,
    /// The reports by node.
    pub reports: BTreeMap<String, Arc<NodeReport>>,
    /// The nodes of pods, allocations and reports.
    pub nodes: BTreeMap<String, NodeState>,
    /// The report records of nodes that do not exist and have no allocations, by node.
    pub former: Vec<(String, Arc<NetworkRecord>)>,
    /// Its pods that use the host network (metadata only).
    pub host_network: Vec<Metadata>,
    /// The Deployment with the name of the sample, regardless of its owner.
    pub sample: Option<Arc<SampleDeployment>>,
    /// All Deployments that it controls.
    pub samples: Vec<Arc<SampleDeployment>>,
}

/// A `PodConfig`, with its pods.
#[derive(Debug, Clone)]
pub struct Member {
    /// The `PodConfig`.
    pub config: Arc<PodConfig>,
    /// The attachments that it requests.
    pub validated: Validated,
    /// Whether its links are to be removed because it is being deleted.
    pub is_leaving: bool,
    /// Whether the configuration no longer lists its namespace. Its records stay unchanged.
    pub is_outside: bool,
    /// Its pods that do not use the host network and have not ended, ordered by name.
    pub pods: Vec<Arc<NetworkedPod>>,
}

/// A pool, and its record.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// The recorded pool.
    pub pool: PoolRecord,
    /// The object with the name of its record, if it exists.
    pub record: Option<Arc<NetworkRecord>>,
}

/// Whether a node is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// The node is ready.
    Ready,
    /// The node has not been ready since this time.
    NotReady(Timestamp),
    /// The node does not exist.
    Absent,
}

impl NodeState {
    /// The state of a node.
    pub fn of(node: Option<&Node>) -> Self {
        let Some(node) = node else { return Self::Absent };
        let ready = node.status.conditions.first();
        if ready.is_some_and(|ready| ready.status == "True") {
            return Self::Ready;
        }
        let since = ready.and_then(|ready| ready.last_transition_time.as_ref());
        let since = since.or(node.metadata.creation_timestamp.as_ref());
        Self::NotReady(since.map_or(Timestamp::UNIX_EPOCH, |time| time.0))
    }

    /// Whether the loop no longer waits for the node.
    pub fn is_lost(self, grace: jiff::SignedDuration, now: Timestamp) -> bool {
        match self {
            Self::Ready => false,
            Self::NotReady(since) => now.duration_since(since) >= grace,
            Self::Absent => true,
        }
    }
}

impl Member {
    /// Whether it has our finalizer. Without it, nothing is recorded for the `PodConfig`.
    pub fn is_held(&self) -> bool {
        finalizer::holds(&self.config, FINALIZER)
    }
}

impl Observed {
    /// The member for the `PodConfig` itself.
    pub fn own(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.config.uid() == self.config.uid())
    }

    /// Whether the `PodConfig` with this uid exists in the namespace, according to the store.
    pub fn exists(&self, uid: &str) -> bool {
        self.members.iter().any(|member| member.config.uid() == uid)
    }

    /// The state of a node.
    pub fn node(&self, name: &str) -> NodeState {
        self.nodes.get(name).copied().unwrap_or(NodeState::Absent)
    }

    /// The link that the node of a pod reports for an attachment.
    pub fn link(&self, node: &str, uid: &str, attachment: &str) -> Option<&Link> {
        let links = self.reports.get(node)?.links.get(uid)?;
        links.iter().find(|link| link.attachment == attachment)
    }

    /// The link of an attachment of a pod, if it matches its allocation.
    pub fn verified(&self, pod: &NetworkedPod, attachment: &str) -> Option<&Link> {
        let (pool, allocation) = self.allocation(pod.uid(), attachment)?;
        let link = self.link(&pod.spec.node_name, pod.uid(), attachment)?;
        let is_as_allocated = link.state == LinkState::Plugged
            && link.pod_config_uid == allocation.pod_config_uid
            && link.bridge == allocation.bridge
            && link.address == format!("{}/{}", allocation.address, pool.range.prefix_len())
            && !link.pod_link.is_empty()
            && !link.host_link.is_empty();
        is_as_allocated.then_some(link)
    }

    /// The allocation of this `PodConfig` for an attachment of a pod, and its pool.
    fn allocation(&self, uid: &str, attachment: &str) -> Option<(&PoolRecord, &Allocation)> {
        self.pools.iter().find_map(|view| {
            let found = view.pool.entries.get(uid)?.iter().find(|allocation| {
                !allocation.release
                    && allocation.attachment == attachment
                    && allocation.pod_config_uid == self.config.uid()
            })?;
            Some((&view.pool, found))
        })
    }
}

/// The address of a pod's attachment on this bridge, according to the status of a `PodConfig`.
pub fn remembered(config: &PodConfig, pod: &str, attachment: &str, bridge: &str) -> Option<IpAddr> {
    let entry = config.status.pod_configurations.iter().find(|entry| entry.pod_name == pod)?;
    entry.config_list.iter().find_map(|text| {
        let items = text.strip_prefix('{')?.strip_suffix('}')?.split(' ');
        let items: BTreeMap<&str, &str> = items.filter_map(|item| item.split_once(':')).collect();
        let number = items.get("podVethName")?.strip_prefix(attachment)?;
        let is_this = !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && items.get("bridge") == Some(&bridge);
        let (address, _) = items.get("podIPAddr").filter(|_| is_this)?.split_once('/')?;
        address.parse().ok()
    })
}
