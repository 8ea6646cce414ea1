//! The nodes of a cluster in memory, which follow the protocol of the records.

use std::collections::BTreeMap;

use serde_json::json;

use super::world::{Live, SYSTEM, World};
use crate::controllers::pod_config::ranges::Range;
use crate::controllers::pod_config::records::text;
use crate::controllers::pod_network::{
    Allocation, Link, LinkState, NODE_KEY, Node, Pool, RECORD, REPORT, report_name,
};

impl World {
    /// A node carries out its records, and reports the result.
    pub fn work(&mut self, node: &str) {
        let pools = self.pools();
        let mut wanted: BTreeMap<(String, String), (Pool, Allocation)> = BTreeMap::new();
        for (pool, entries) in &pools {
            for (uid, list) in entries {
                for allocation in list.iter().filter(|allocation| allocation.node == node) {
                    let slot = (uid.clone(), allocation.attachment.clone());
                    assert!(
                        wanted.insert(slot, (pool.clone(), allocation.clone())).is_none(),
                        "a slot twice"
                    );
                }
            }
        }
        let is_live = |world: &Self, uid: &str| {
            world.objects.values().any(|object| object["kind"] == "Pod" && object["metadata"]["uid"] == uid)
        };
        let is_recorded = |live: &Live| {
            pools.iter().any(|(pool, _)| pool.namespace == live.namespace && pool.range == range(live))
        };
        let own: Vec<_> = self.links.keys().filter(|(of, ..)| of == node).cloned().collect();
        for key in own {
            let slot = (key.1.clone(), key.2.clone());
            let is_lost =
                self.links.get(&key).is_some_and(|live| !is_recorded(live)) && is_live(self, &key.1);
            let is_kept = wanted.get(&slot).is_some_and(|(_, allocation)| !allocation.release);
            if !is_kept && (!is_lost || wanted.contains_key(&slot)) {
                self.links.remove(&key);
            }
        }
        for ((uid, attachment), (pool, allocation)) in &wanted {
            let key = (node.to_owned(), uid.clone(), attachment.clone());
            let may_be = !allocation.ending || self.links.contains_key(&key);
            if !allocation.release && may_be && is_live(self, uid) && !self.broken.contains_key(attachment) {
                let prefix = pool.range.split_once('/').expect("a range").1.parse().expect("a number");
                let live = Live { allocation: allocation.clone(), namespace: pool.namespace.clone(), prefix };
                self.links.insert(key, live);
            }
        }
        self.tell(node, &wanted);
    }

    /// Writes the report of a node, if it differs.
    fn tell(&mut self, node: &str, wanted: &BTreeMap<(String, String), (Pool, Allocation)>) {
        let mut links: BTreeMap<String, Vec<Link>> = BTreeMap::new();
        let of = |allocation: &Allocation, namespace: &str, state: LinkState| Link {
            namespace: namespace.to_owned(),
            pod_config: allocation.pod_config.clone(),
            pod_config_uid: allocation.pod_config_uid.clone(),
            pod: allocation.pod.clone(),
            attachment: allocation.attachment.clone(),
            state,
            pod_link: String::new(),
            host_link: String::new(),
            address: String::new(),
            bridge: String::new(),
            problem: None,
        };
        let live = self.links.iter().filter(|((on, ..), _)| on == node);
        for ((_, uid, attachment), live) in live {
            let plugged = of(&live.allocation, &live.namespace, LinkState::Plugged);
            links.entry(uid.clone()).or_default().push(Link {
                pod_link: format!("{attachment}77"),
                host_link: format!("h{attachment}77"),
                address: format!("{}/{}", live.allocation.address, live.prefix),
                bridge: live.allocation.bridge.clone(),
                ..plugged
            });
        }
        for ((uid, attachment), (pool, allocation)) in wanted {
            let key = (node.to_owned(), uid.clone(), attachment.clone());
            if !self.links.contains_key(&key) {
                let state = if allocation.release { LinkState::Released } else { LinkState::Pending };
                let problem = self.broken.get(attachment).filter(|_| !allocation.release).cloned();
                let link = Link { problem, ..of(allocation, &pool.namespace, state) };
                links.entry(uid.clone()).or_default().push(link);
            }
        }
        let own = Node { node: node.to_owned(), problem: None };
        let lists = links.iter().map(|(uid, list)| (uid.clone(), text(list)));
        let data: BTreeMap<String, String> = lists.chain([(NODE_KEY.to_owned(), text(&own))]).collect();
        let name = report_name(node);
        if self.get("ConfigMap", SYSTEM, &name).is_none_or(|old| old["data"] != json!(data)) {
            self.put(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"namespace": SYSTEM, "name": name, "labels": {RECORD: REPORT}}}));
        }
    }
}

fn range(live: &Live) -> String {
    let text = format!("{}/{}", live.allocation.address, live.prefix);
    Range::parse(&text).expect("a range").to_string()
}
