//! Plans converge for any node and any requests, and foreign links stay unchanged.

use proptest::prelude::*;

use super::kernel::*;
use crate::controllers::pod_config_node::mark::{Mark, Side, bridge_alias, bridge_namespace};
use crate::controllers::pod_config_node::plan::Observed;
use crate::controllers::pod_config_node::records::Desired;
use crate::netlink::Link;

const BRIDGES: [&str; 4] = ["br0", "br1", "br-ext", "eth0"];
const NAMESPACES: [&str; 2] = ["lab", "other"];

/// A pool: namespace, third byte of the range, whether it can be parsed, its bridges, its allocations.
fn any_pool() -> impl Strategy<Value = (String, std::collections::BTreeMap<String, String>)> {
    let allocation = (0..3_usize, 0..2_usize, 0..4_usize, 2..6_u8, any::<bool>());
    (0..2_usize, 0..3_u8, 0..8_u8, prop::collection::vec(allocation, 0..6)).prop_map(
        |(namespace, byte, odd, allocations)| {
            let texts: Vec<_> = allocations
                .iter()
                .map(|(pod, attachment, bridge, last, release)| {
                    (
                        ["p1", "p2", "p3"][*pod],
                        ["data", "mgmt"][*attachment],
                        BRIDGES[*bridge],
                        format!("10.77.{byte}.{last}"),
                        *release,
                    )
                })
                .collect();
            let listed: Vec<_> = texts.iter().map(|(a, b, c, d, e)| (*a, *b, *c, d.as_str(), *e)).collect();
            let (name, mut data) =
                pool(NAMESPACES[namespace], &format!("10.77.{byte}.0/24"), &BRIDGES, &listed);
            if odd == 0 {
                data.insert("p2".to_owned(), "nonsense".to_owned());
            }
            if odd == 1 {
                data.insert("pool".to_owned(), "nonsense".to_owned());
            }
            (name, data)
        },
    )
}

/// A link: ours or foreign, correct or not.
fn any_link(index: u32) -> impl Strategy<Value = Link> {
    let pair = (0..2_usize, 0..3_usize, 0..2_usize, 0..3_u8, 2..6_u8, 0..6_u32, any::<[bool; 4]>()).prop_map(
        move |(namespace, pod, attachment, byte, last, master, [alias, mac, up, pod_end])| {
            let net = format!("10.77.{byte}.{last}/24");
            let mark =
                mark(NAMESPACES[namespace], ["p1", "p2", "p3"][pod], ["data", "mgmt"][attachment], &net);
            let mut link = Link { is_up: up, ..end(index, &mark, master) };
            link.name = format!("h{index}");
            if pod_end {
                link.alias = mark.alias(Side::Pod);
            } else if !alias {
                link.alias.clear();
            }
            if !mac {
                link.mac = None;
            }
            link
        },
    );
    let bridge = (0..4_usize, 0..3_usize, any::<bool>()).prop_map(move |(name, alias, up)| Link {
        alias: [String::new(), bridge_alias("lab"), "somebody".to_owned()][alias].clone(),
        is_up: up,
        ..link(index, BRIDGES[name], "bridge")
    });
    let other = (0..4_usize, 0..6_u32).prop_map(move |(name, master)| Link {
        master,
        ..link(index, BRIDGES[name], ["veth", "", "vlan", "veth"][name])
    });
    prop_oneof![3 => pair, 2 => bridge, 1 => other]
}

fn any_node() -> impl Strategy<Value = Observed> {
    let links: Vec<_> = (1..9).map(any_link).collect();
    let addresses = prop::collection::vec((1..9_u32, 0..4_u8, 1..4_u8), 0..5);
    (links, addresses).prop_map(|(links, addresses)| {
        let mut kept: Vec<Link> = Vec::new();
        for link in links {
            if kept.iter().all(|other| other.name != link.name) {
                kept.push(link);
            }
        }
        let bridges: Vec<u32> =
            kept.iter().filter(|link| link.kind == "bridge").map(|link| link.index).collect();
        for link in &mut kept {
            link.master = if bridges.contains(&link.master) { link.master } else { 0 };
        }
        let is_there = |index: u32| kept.iter().any(|link| link.index == index);
        let addresses = addresses.into_iter().filter(|(link, ..)| is_there(*link));
        let mut addresses: Vec<_> =
            addresses.map(|(link, byte, last)| address(link, &format!("10.77.{byte}.{last}/24"))).collect();
        addresses.sort();
        addresses.dedup();
        Observed { links: kept, addresses, routes: None }
    })
}

/// Whether a link may be changed: it has our alias, or it has no alias and the hardware address of a requested link.
fn is_ours(link: &Link, desired: &Desired) -> bool {
    let expected = || {
        let mut all = desired.wanted.values().chain(desired.released.values());
        all.any(|wanted| link.mac == Some(wanted.mark.mac(Side::Node)))
    };
    match link.kind.as_str() {
        "veth" => Mark::read(&link.alias).is_some() || link.alias.is_empty() && expected(),
        "bridge" => bridge_namespace(&link.alias).is_some(),
        _ => false,
    }
}

proptest! {
    #![proptest_config(crate::properties::cases(1_000))]
    #[test]
    fn plans_converge_and_leave_others_alone(
        node in any_node(),
        pools in prop::collection::vec(any_pool(), 0..4),
    ) {
        let desired = desired(&pools);
        let mut after = node.clone();
        let last = converge(&mut after, &desired);
        for link in node.links.iter().filter(|link| !is_ours(link, &desired)) {
            prop_assert!(after.links.contains(link), "{link:?}");
            let of = |observed: &Observed| {
                observed.addresses.iter().filter(|address| address.link == link.index).copied().collect::<Vec<_>>()
            };
            prop_assert_eq!(of(&node), of(&after));
        }
        // Each existing wanted link is the only one for its key, and is in a bridge that it may use.
        for (key, end) in &last.ends {
            prop_assert!(desired.wanted.contains_key(key));
            let bridge = &desired.wanted[key].bridge;
            prop_assert!(last.bridges.get(bridge).is_none_or(|index| *index == end.master || last.problems.contains_key(key)));
        }
        // Released links are gone, except for pods that cannot be parsed.
        for key in desired.released.keys().filter(|key| !desired.wanted.contains_key(key)) {
            let is_left = |link: &Link| Mark::read(&link.alias).is_some_and(|(_, mark)| mark.key == *key);
            let is_known = !desired.unreadable_pods.contains(&key.pod_uid);
            prop_assert!(!is_known || !after.links.iter().any(|link| link.kind == "veth" && is_left(link)));
        }
        // Without any known request, only misplaced links are deleted.
        let mut without = node.clone();
        converge(&mut without, &Desired { unreadable: vec!["all".to_owned()], ..Desired::default() });
        let is_end = |link: &&Link| matches!(Mark::read(&link.alias), Some((Side::Node, _)));
        prop_assert_eq!(node.links.iter().filter(is_end).count(), without.links.iter().filter(is_end).count());
    }
}
