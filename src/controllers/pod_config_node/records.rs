//! The requests of the pools for this node: a pure function of their records.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::mark::{LinkKey, Mark};
use crate::controllers::pod_network::{Allocation, POOL_KEY, Pool, is_link_name, pool_name};

/// A link that a pool requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredLink {
    /// The allocation, which identifies the link.
    pub mark: Mark,
    /// The name of the pod.
    pub pod: String,
    /// The name of the `PodConfig`.
    pub pod_config: String,
    /// The bridge.
    pub bridge: String,
    /// Whether the pod is being deleted. An existing link stays, and no new one is created.
    pub is_ending: bool,
}

/// The requests of the pools for this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    /// The links that should exist.
    pub wanted: BTreeMap<LinkKey, DesiredLink>,
    /// The links to be removed, so that their addresses become free.
    pub released: BTreeMap<LinkKey, DesiredLink>,
    /// The bridges that pools name, whether or not this node needs them. Each has its namespaces with their gateways.
    pub bridges: BTreeMap<String, BTreeMap<String, BTreeSet<IpNet>>>,
    /// The parsed pools: namespace and range. Links that a parsed pool does not contain are not wanted. About other
    /// pools, nothing is known.
    pub pools: BTreeSet<(String, IpNet)>,
    /// The pods with entries that cannot be parsed. Their links stay unchanged.
    pub unreadable_pods: BTreeSet<String>,
    /// Messages about entries that cannot be parsed. Bridges are not deleted while there are any.
    pub unreadable: Vec<String>,
}

impl Desired {
    /// Parses the requests of these pools for a node. A pool is the name of its `ConfigMap` and its data.
    pub fn of<'p>(
        node: &str,
        pools: impl IntoIterator<Item = (&'p str, &'p BTreeMap<String, String>)>,
    ) -> Self {
        let mut desired = Self::default();
        for (name, data) in pools {
            match read_pool(name, data) {
                Ok((pool, range)) => desired.add(node, name, &pool, range, data),
                Err(reason) => desired.unreadable.push(format!("ConfigMap {name}: {reason}")),
            }
        }
        desired
    }

    fn add(&mut self, node: &str, name: &str, pool: &Pool, range: IpNet, data: &BTreeMap<String, String>) {
        self.pools.insert((pool.namespace.clone(), range));
        let gateway = IpNet::new(pool.gateway, range.prefix_len()).ok();
        for bridge in &pool.bridges {
            let users = self.bridges.entry(bridge.clone()).or_default();
            users.entry(pool.namespace.clone()).or_default().extend(gateway);
        }
        for (pod_uid, text) in data.iter().filter(|(key, _)| *key != POOL_KEY) {
            let mut unreadable = |why: &str| {
                self.unreadable_pods.insert(pod_uid.clone());
                self.unreadable.push(format!("ConfigMap {name}, key {pod_uid}: {why}"));
            };
            let allocations = serde_json::from_str::<Vec<Allocation>>(text).unwrap_or_else(|error| {
                unreadable(&error.to_string());
                Vec::new()
            });
            for allocation in allocations.into_iter().filter(|allocation| allocation.node == node) {
                let links = if allocation.release { &mut self.released } else { &mut self.wanted };
                match desired_link(pool, range, pod_uid, allocation) {
                    Some(link) => {
                        links.entry(link.mark.key.clone()).or_insert(link);
                    }
                    None => unreadable("the link is invalid"),
                }
            }
        }
    }
}

/// Parses a pool and its range. The error is the end of a sentence.
fn read_pool(name: &str, data: &BTreeMap<String, String>) -> Result<(Pool, IpNet), String> {
    let text = data.get(POOL_KEY).ok_or("the key of the pool is missing")?;
    let pool: Pool = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if pool_name(&pool.namespace, &pool.range) != name {
        return Err("its name does not match its pool".to_owned());
    }
    let range: IpNet = pool.range.parse().map_err(|_| format!("{:?} is not an address range", pool.range))?;
    if range != range.trunc() || !range.contains(&pool.gateway) {
        return Err(format!("its gateway is not in {}", pool.range));
    }
    if !pool.bridges.iter().all(|bridge| is_link_name(bridge)) {
        return Err("it has an invalid bridge name".to_owned());
    }
    Ok((pool, range))
}

/// The link for an allocation; `None` if the allocation is invalid.
fn desired_link(pool: &Pool, range: IpNet, pod_uid: &str, allocation: Allocation) -> Option<DesiredLink> {
    let Allocation { pod, pod_config, pod_config_uid, attachment, bridge, address, release, .. } = allocation;
    let is_ending = allocation.ending;
    let key = LinkKey { pod_uid: pod_uid.to_owned(), attachment };
    let net = IpNet::new(address, range.prefix_len()).ok().filter(|_| range.contains(&address))?;
    // The pool may no longer name the bridge of a link that is to be removed.
    let is_sound = is_link_name(&key.attachment) && (release || pool.bridges.contains(&bridge));
    let mark = Mark { namespace: pool.namespace.clone(), pod_config_uid, key, net };
    (is_sound && mark.fits()).then_some(DesiredLink { mark, pod, pod_config, bridge, is_ending })
}
