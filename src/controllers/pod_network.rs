//! The records that the two pod network loops exchange. They are ConfigMaps in the daemon's namespace, which tenants
//! cannot edit.
//!
//! | object | written by | content |
//! |---|---|---|
//! | a pool: one for each range in a namespace | the leader (`podConfig`), before a link is created | the address and node of each allocation, and the required bridges |
//! | a report: one for each node | that node (`podConfigNode`) | the allocations that have a link, the allocations that were released, and the problems |
//!
//! An address goes through these states. Only the last step frees it, so an address on a live link is never reused:
//!
//! 1. the leader adds the allocation to the pool;
//! 2. the node creates the link and reports [`LinkState::Plugged`];
//! 3. when the pod or the attachment is gone, the leader sets [`Allocation::release`];
//! 4. the node removes the rest of the link and reports [`LinkState::Released`];
//! 5. the leader removes the allocation; then the node removes its entry.
//!
//! Three rules follow. First, a pod has at most one allocation for an attachment's name at a time, across all pools. A
//! new allocation is made only when no report has an entry [`LinkState::Released`] for it. Second, a node accepts a
//! pool, and the leader a report, only under the name that [`pool_name`] and [`report_name`] return. Third, a node
//! keeps a link, and reports it, while no pool covers its range, because the node cannot know whether the record was
//! lost or the `PodConfig` was deleted. The leader knows, and recreates the pool from the reports. Allocations that no
//! `PodConfig` requests are to be released.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The label of all these `ConfigMap`s; its value is [`POOL`] or [`REPORT`].
pub const RECORD: &str = "crownlabs.polito.it/pod-network";
/// The value of [`RECORD`] of a pool.
pub const POOL: &str = "pool";
/// The value of [`RECORD`] of the report of a node.
pub const REPORT: &str = "report";
/// The key in the data of a pool with its [`Pool`]. Every other key is the uid of a pod, with a list of
/// [`Allocation`]s.
pub const POOL_KEY: &str = "pool";
/// The key in the data of a report with its [`Node`]. Every other key is the uid of a pod, with a list of [`Link`]s.
pub const NODE_KEY: &str = "node";

/// The longest name of a link, in bytes (`IFNAMSIZ` of the kernel less the zero byte).
pub const LONGEST_NAME: usize = 15;

/// Why a text cannot be the name of a link or its prefix; `None` if it can. The rules are those in `dev_valid_name` of
/// the kernel, which also treats `%` as a pattern.
pub fn link_name_fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("is empty: write a name such as data or labbr0");
    }
    if text == "." || text == ".." {
        return Some("is not a valid link name");
    }
    let is_refused = |c: char| matches!(c, '/' | ':' | '%') || c.is_whitespace() || c.is_control();
    text.contains(is_refused).then_some("has a character that is not allowed in link names: a slash, colon, percent sign, space or control character")
}

/// Whether a text can be the name of a link.
pub fn is_link_name(text: &str) -> bool {
    link_name_fault(text).is_none() && text.len() <= LONGEST_NAME
}

/// The data of a merge patch that changes a record from `stored` to `data`.
pub fn difference(stored: &BTreeMap<String, String>, data: &BTreeMap<String, String>) -> Map<String, Value> {
    let gone = stored.keys().filter(|key| !data.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = data.iter().filter(|(key, text)| stored.get(*key) != Some(text));
    gone.chain(changed.map(|(key, text)| (key.clone(), Value::from(text.as_str())))).collect()
}

/// The first `most` of these names, and the number of the remaining ones.
pub fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut names = names.into_iter();
    let first: Vec<T> = names.by_ref().take(most).collect();
    let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The name of the `ConfigMap` of a pool. It is unique for each pool and at most 135 characters long.
pub fn pool_name(namespace: &str, range: &str) -> String {
    let readable = range.replace(['.', ':', '/'], "-");
    format!("podnet-{namespace}-{readable}-{}", tag(&["pool", namespace, range]))
}

/// The name of the `ConfigMap` of the report of a node. It is unique for each node and at most 229 characters long.
pub fn report_name(node: &str) -> String {
    // Names of objects are ASCII, so every index is a character boundary.
    let readable = node.get(..200).unwrap_or(node).trim_end_matches(['-', '.']);
    format!("podnet-node-{readable}-{}", tag(&["report", node]))
}

/// Sixteen hexadecimal digits of a digest of these texts. None of the texts contains the separator.
fn tag(parts: &[&str]) -> String {
    let digest = digest::digest(&digest::SHA256, parts.join("\n").as_bytes());
    let number = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    format!("{number:016x}")
}

/// A pool of addresses: one for each range in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    /// The namespace of the `PodConfig`s.
    pub namespace: String,
    /// The range without host bits, for example `10.77.0.0/24`.
    pub range: String,
    /// The first usable address, which every node assigns to the bridge.
    pub gateway: IpAddr,
    /// The names of the bridges that `PodConfig`s use with this range, sorted. A bridge is kept while a pool names it.
    pub bridges: Vec<String>,
}

/// The address of one attachment of one pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// The name of the pod.
    pub pod: String,
    /// The node that the pod runs on.
    pub node: String,
    /// The name of the `PodConfig`.
    pub pod_config: String,
    /// Its uid.
    pub pod_config_uid: String,
    /// The name of the attachment.
    pub attachment: String,
    /// The bridge.
    pub bridge: String,
    /// The address.
    pub address: IpAddr,
    /// Whether the pod is being deleted. An existing link stays, and no new one is created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ending: bool,
    /// Whether the link is to be removed. After that, the address is free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,
}

/// The state of a node as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The name of the node.
    pub node: String,
    /// A problem that affects all of the node's work, for example that the container runtime does not respond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<LinkProblem>,
}

/// The state of one allocation on a node.
#[expect(clippy::struct_field_names, reason = "both links have a name")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The namespace of the `PodConfig`.
    pub namespace: String,
    /// The name of the `PodConfig`; empty if only the link is known.
    pub pod_config: String,
    /// Its uid.
    pub pod_config_uid: String,
    /// The name of the pod; empty if only the link is known.
    pub pod: String,
    /// The name of the attachment.
    pub attachment: String,
    /// Its state.
    pub state: LinkState,
    /// The name of the pod's end; empty unless plugged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_link: String,
    /// The name of the node's end; empty unless plugged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_link: String,
    /// The address with its prefix length; empty unless there is a link.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The bridge.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bridge: String,
    /// The problem that prevents the link from being plugged or released, or that affects a plugged link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<LinkProblem>,
}

/// Whether there is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LinkState {
    /// The link does not exist yet or no longer exists. The problem says why, if there is one.
    Pending,
    /// The link exists and was verified.
    Plugged,
    /// The link has been removed completely.
    Released,
}

/// A problem on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkProblem {
    /// One of the reasons of `api::reason`.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Link {
    /// The text of a plugged link in `status.podConfigurations[].configList`. Clients rely on its format.
    pub fn text(&self) -> String {
        let Self { pod_link, address, host_link, bridge, .. } = self;
        format!("{{podVethName:{pod_link} podIPAddr:{address} peerVethName:{host_link} bridge:{bridge}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names::check_object_name;

    #[test]
    fn records_have_unique_and_valid_object_names() {
        let (long, node) = ("n".repeat(63), format!("{}.x", "m".repeat(250)));
        let range = "fd00:aaaa:bbbb:cccc:dddd:eeee:ffff:0/112";
        let names = [
            pool_name("a", "10.0.0.0/24"),
            pool_name("a-10", "0.0.0.0/24"),
            pool_name("node", "10.0.0.0/24"),
            pool_name(&long, range),
            pool_name("a", "fd00::/64"),
            report_name("a"),
            report_name(&node),
            report_name(&node[..250]),
        ];
        for (place, name) in names.iter().enumerate() {
            assert!(check_object_name(name).is_ok(), "{name}");
            assert!(!names[..place].contains(name), "{name}");
        }
        assert_eq!(pool_name("a", "10.0.0.0/24"), "podnet-a-10-0-0-0-24-807bec4133869a83");
    }
}
