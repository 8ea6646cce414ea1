//! What the pools ask of this node: a pure function of their records.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::mark::{LONGEST_NAME, LinkKey, Mark};
use crate::controllers::pod_network::{Allocation, POOL_KEY, Pool, pool_name};

/// A link that a pool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The allocation, by which the link is known.
    pub mark: Mark,
    /// The name of the pod.
    pub pod: String,
    /// The name of the `PodConfig`.
    pub pod_config: String,
    /// The bridge.
    pub bridge: String,
    /// Whether the pod is being deleted: a link that is there stays, and none is made.
    pub is_ending: bool,
}

/// What the pools ask of this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    /// The links that are to be there.
    pub wanted: BTreeMap<LinkKey, Wanted>,
    /// The links that are to be removed, so that their addresses become free.
    pub released: BTreeMap<LinkKey, Wanted>,
    /// The bridges that pools name, whether or not this node needs them: by the namespaces that do, the gateways.
    pub bridges: BTreeMap<String, BTreeMap<String, BTreeSet<IpNet>>>,
    /// The pools that could be read: namespace and range. What they do not name is not wanted; nothing is known of others.
    pub pools: BTreeSet<(String, IpNet)>,
    /// The pods of which a pool has something that cannot be read: their links stay as they are.
    pub unreadable_pods: BTreeSet<String>,
    /// What cannot be read, as sentences. Bridges stay as long as there is anything.
    pub unreadable: Vec<String>,
}

impl Desired {
    /// What these pools ask of a node. A pool is the name of its `ConfigMap` and its data.
    pub fn of<'p>(
        node: &str,
        pools: impl IntoIterator<Item = (&'p str, &'p BTreeMap<String, String>)>,
    ) -> Self {
        let mut desired = Self::default();
        for (name, data) in pools {
            match read_pool(name, data) {
                Ok((pool, range)) => desired.add(node, &pool, range, data),
                Err(reason) => desired.unreadable.push(format!("ConfigMap {name}: {reason}")),
            }
        }
        desired
    }

    fn add(&mut self, node: &str, pool: &Pool, range: IpNet, data: &BTreeMap<String, String>) {
        self.pools.insert((pool.namespace.clone(), range));
        let gateway = IpNet::new(pool.gateway, range.prefix_len()).ok();
        for bridge in &pool.bridges {
            let users = self.bridges.entry(bridge.clone()).or_default();
            users.entry(pool.namespace.clone()).or_default().extend(gateway);
        }
        for (pod_uid, text) in data.iter().filter(|(key, _)| *key != POOL_KEY) {
            let allocations = match serde_json::from_str::<Vec<Allocation>>(text) {
                Ok(allocations) => allocations,
                Err(error) => {
                    self.unreadable_pods.insert(pod_uid.clone());
                    let name = pool_name(&pool.namespace, &pool.range);
                    self.unreadable.push(format!("ConfigMap {name}, key {pod_uid}: {error}"));
                    continue;
                }
            };
            for allocation in allocations.into_iter().filter(|allocation| allocation.node == node) {
                let release = allocation.release;
                let Some(wanted) = wanted(pool, range, pod_uid, allocation) else {
                    self.unreadable_pods.insert(pod_uid.clone());
                    let name = pool_name(&pool.namespace, &pool.range);
                    self.unreadable
                        .push(format!("ConfigMap {name}, key {pod_uid}: no such link can be made"));
                    continue;
                };
                let links = if release { &mut self.released } else { &mut self.wanted };
                links.entry(wanted.mark.key.clone()).or_insert(wanted);
            }
        }
    }
}

/// The pool and its range. The error is the end of a sentence.
fn read_pool(name: &str, data: &BTreeMap<String, String>) -> Result<(Pool, IpNet), String> {
    let text = data.get(POOL_KEY).ok_or("it does not say which pool it is")?;
    let pool: Pool = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if pool_name(&pool.namespace, &pool.range) != name {
        return Err("it has not the name of its pool".to_owned());
    }
    let range: IpNet = pool.range.parse().map_err(|_| format!("{:?} is no range", pool.range))?;
    if range != range.trunc() || !range.contains(&pool.gateway) {
        return Err(format!("its gateway is not in {}", pool.range));
    }
    if !pool.bridges.iter().all(|bridge| is_link_name(bridge)) {
        return Err("it names a bridge that cannot exist".to_owned());
    }
    Ok((pool, range))
}

/// The link for an allocation; `None` if none can be made.
fn wanted(pool: &Pool, range: IpNet, pod_uid: &str, allocation: Allocation) -> Option<Wanted> {
    let Allocation {
        pod,
        pod_config,
        pod_config_uid,
        attachment,
        bridge,
        address,
        ending: is_ending,
        release,
        ..
    } = allocation;
    let key = LinkKey { pod_uid: pod_uid.to_owned(), attachment };
    let net = IpNet::new(address, range.prefix_len()).ok().filter(|_| range.contains(&address))?;
    // The bridge of a link that is to be removed may not be named any more.
    let is_sound = is_link_name(&key.attachment) && (release || pool.bridges.contains(&bridge));
    let mark = Mark { namespace: pool.namespace.clone(), pod_config_uid, key, net };
    (is_sound && mark.fits()).then_some(Wanted { mark, pod, pod_config, bridge, is_ending })
}

/// Whether the kernel takes this as the name of a link (`dev_valid_name`), and it can be part of an alias.
fn is_link_name(text: &str) -> bool {
    let is_fine = |c: char| !c.is_whitespace() && !c.is_control() && c != '/' && c != ':';
    !text.is_empty() && text.len() <= LONGEST_NAME && text != "." && text != ".." && text.chars().all(is_fine)
}
