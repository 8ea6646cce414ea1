//! A simulated kernel: a list of links to carry out plans on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::controllers::pod_config_node::mark::{LinkKey, Mark, Side};
use crate::controllers::pod_config_node::plan::{LinkChange, Observed, Plan, Settings, plan};
use crate::controllers::pod_config_node::records::Desired;
use crate::controllers::pod_network::pool_name;
use crate::netlink::{Address, Link};

pub fn settings() -> Settings {
    Settings { node: "node-1".to_owned(), allowed_bridges: BTreeSet::from(["br-ext".to_owned()]) }
}

/// A link of this kind.
pub fn link(index: u32, name: &str, kind: &str) -> Link {
    Link { index, name: name.to_owned(), kind: kind.to_owned(), is_up: true, ..Link::default() }
}

/// The node's end of a correct pair.
pub fn end(index: u32, mark: &Mark, master: u32) -> Link {
    Link {
        alias: mark.alias(Side::Node),
        mac: Some(mark.mac(Side::Node)),
        master,
        peer: 2,
        is_operational: true,
        ..link(index, &format!("h{}4711", mark.key.attachment), "veth")
    }
}

pub fn key(pod_uid: &str, attachment: &str) -> LinkKey {
    LinkKey { pod_uid: pod_uid.to_owned(), attachment: attachment.to_owned() }
}

/// The mark of an allocation of the tests' `PodConfig` in this namespace.
pub fn mark(namespace: &str, pod_uid: &str, attachment: &str, net: &str) -> Mark {
    Mark {
        namespace: namespace.to_owned(),
        pod_config_uid: "pc".to_owned(),
        key: key(pod_uid, attachment),
        net: net.parse().expect("a network"),
    }
}

/// A pool under its name. An allocation consists of pod, attachment, bridge, address, and whether it is released.
pub fn pool(
    namespace: &str,
    range: &str,
    bridges: &[&str],
    allocations: &[(&str, &str, &str, &str, bool)],
) -> (String, BTreeMap<String, String>) {
    let net: ipnet::IpNet = range.parse().expect("a range");
    let gateway = match net.network() {
        std::net::IpAddr::V4(address) => std::net::Ipv4Addr::from_bits(address.to_bits() + 1).to_string(),
        std::net::IpAddr::V6(address) => std::net::Ipv6Addr::from_bits(address.to_bits() + 1).to_string(),
    };
    let head = json!({"namespace": namespace, "range": range, "gateway": gateway, "bridges": bridges});
    let mut pods: BTreeMap<String, Vec<serde_json::Value>> = BTreeMap::new();
    for (pod, attachment, bridge, address, release) in allocations {
        pods.entry((*pod).to_owned()).or_default().push(json!({
            "pod": pod, "node": "node-1", "podConfig": "lab", "podConfigUid": "pc", "attachment": attachment,
            "bridge": bridge, "address": address, "release": release,
        }));
    }
    let mut data: BTreeMap<String, String> =
        pods.into_iter().map(|(pod, list)| (pod, json!(list).to_string())).collect();
    data.insert("pool".to_owned(), head.to_string());
    (pool_name(namespace, range), data)
}

pub fn desired(pools: &[(String, BTreeMap<String, String>)]) -> Desired {
    Desired::of("node-1", pools.iter().map(|(name, data)| (name.as_str(), data)))
}

/// The plan with routes: those in `observed`, or an empty list.
pub fn planned(observed: &Observed, desired: &Desired) -> Plan {
    let observed = Observed { routes: Some(observed.routes.clone().unwrap_or_default()), ..observed.clone() };
    plan(&observed, desired, &settings(), &BTreeSet::new())
}

/// Carries out a plan.
pub fn carry_out(observed: &mut Observed, plan: &Plan) {
    for change in &plan.changes {
        let at = |links: &mut Vec<Link>, index: u32| {
            links.iter().position(|link| link.index == index).expect("the link exists")
        };
        match change {
            LinkChange::DeletePair { index, .. } | LinkChange::DeleteBridge { index, .. } => {
                let position = at(&mut observed.links, *index);
                observed.links.remove(position);
                observed
                    .links
                    .iter_mut()
                    .filter(|link| link.master == *index)
                    .for_each(|link| link.master = 0);
                observed.addresses.retain(|address| address.link != *index);
            }
            LinkChange::CreateBridge { name, mac } => {
                assert!(observed.links.iter().all(|link| link.name != *name), "{name} exists already");
                let index = observed.links.iter().map(|link| link.index).max().unwrap_or(0) + 1;
                observed.links.push(Link { mac: Some(*mac), ..link(index, name, "bridge") });
            }
            LinkChange::SetAlias { index, alias } => {
                let position = at(&mut observed.links, *index);
                observed.links[position].alias.clone_from(alias);
            }
            LinkChange::SetMac { index, mac } => {
                let position = at(&mut observed.links, *index);
                observed.links[position].mac = Some(*mac);
            }
            LinkChange::SetUp { index } => {
                let position = at(&mut observed.links, *index);
                observed.links[position].is_up = true;
            }
            LinkChange::SetMaster { index, master, .. } => {
                assert!(observed.links.iter().any(|link| link.index == *master && link.kind == "bridge"));
                let position = at(&mut observed.links, *index);
                observed.links[position].master = *master;
            }
            LinkChange::AddGateway(address) => {
                assert!(!observed.addresses.contains(address), "{address:?} exists already");
                observed.addresses.push(*address);
            }
            LinkChange::RemoveGateway(address) => observed.addresses.retain(|other| other != address),
        }
    }
}

/// Plans and carries out until no change is left; returns the last plan.
pub fn converge(observed: &mut Observed, desired: &Desired) -> Plan {
    for _ in 0..6 {
        let plan = planned(observed, desired);
        if plan.changes.is_empty() {
            return plan;
        }
        carry_out(observed, &plan);
    }
    panic!("it does not converge: {:?}", planned(observed, desired).changes);
}

pub fn address(link: u32, net: &str) -> Address {
    Address { link, net: net.parse().expect("an address") }
}
