//! The plans for different requests and states.

use std::collections::BTreeSet;

use super::kernel::*;
use crate::controllers::pod_config_node::mark::{Side, bridge_alias, bridge_mac};
use crate::controllers::pod_config_node::plan::{
    LinkChange, Observed, Repair, Verdict, overlapped, plan, verify,
};
use crate::controllers::pod_config_node::records::Desired;
use crate::netlink::{Link, Mac, Route};

const RANGE: &str = "10.77.0.0/24";

fn one() -> Desired {
    desired(&[pool("lab", RANGE, &["br0"], &[("p1", "data", "br0", "10.77.0.2", false)])])
}

fn bridge(index: u32, name: &str) -> Link {
    Link { mac: Some(bridge_mac("node-1", name)), alias: bridge_alias("lab"), ..link(index, name, "bridge") }
}

/// The node when everything for [`one`] exists.
fn complete() -> Observed {
    Observed {
        links: vec![bridge(5, "br0"), end(6, &mark("lab", "p1", "data", "10.77.0.2/24"), 5)],
        addresses: vec![address(5, "10.77.0.1/24")],
        routes: None,
    }
}

#[test]
fn a_bridge_is_made_with_mark_and_gateway_and_then_takes_links() {
    let mut observed = Observed { links: vec![link(1, "lo", "")], ..Observed::default() };
    let first = planned(&observed, &one());
    let mac = bridge_mac("node-1", "br0");
    assert_eq!(first.changes, [LinkChange::CreateBridge { name: "br0".to_owned(), mac }]);
    assert!(first.bridges.is_empty(), "it has no number yet");
    carry_out(&mut observed, &first);
    let second = planned(&observed, &one());
    assert_eq!(
        second.changes,
        [
            LinkChange::SetAlias { index: 2, alias: bridge_alias("lab") },
            LinkChange::AddGateway(address(2, "10.77.0.1/24"))
        ]
    );
    let last = converge(&mut observed, &one());
    assert_eq!((last.bridges["br0"], last.problems.len()), (2, 0));
}

#[test]
fn no_bridge_is_made_for_a_pod_that_is_being_deleted() {
    let mut ending = one();
    ending.wanted.values_mut().for_each(|wanted| wanted.is_ending = true);
    assert!(planned(&Observed::default(), &ending).changes.is_empty());
    assert!(planned(&complete(), &ending).changes.is_empty(), "the existing link stays");
}

#[test]
fn a_complete_node_stays_unchanged() {
    let plan = plan(&complete(), &one(), &settings(), &BTreeSet::default());
    assert!(plan.changes.is_empty() && plan.routes.is_empty(), "{plan:?}");
    assert_eq!(plan.ends.keys().collect::<Vec<_>>(), [&key("p1", "data")]);
}

/// Changes something on a node.
type Damage = fn(&mut Observed);

#[test]
fn only_differences_are_changed() {
    let pair = mark("lab", "p1", "data", "10.77.0.2/24");
    let table: [(Damage, LinkChange); 9] = [
        (|o| o.links[0].is_up = false, LinkChange::SetUp { index: 5 }),
        (|o| o.links[0].alias.clear(), LinkChange::SetAlias { index: 5, alias: bridge_alias("lab") }),
        (
            |o| o.links[0].mac = Some(Mac([2; 6])),
            LinkChange::SetMac { index: 5, mac: bridge_mac("node-1", "br0") },
        ),
        (|o| o.addresses.clear(), LinkChange::AddGateway(address(5, "10.77.0.1/24"))),
        (
            |o| o.addresses.push(address(5, "10.99.0.1/24")),
            LinkChange::RemoveGateway(address(5, "10.99.0.1/24")),
        ),
        (|o| o.links[1].master = 0, LinkChange::SetMaster { index: 6, master: 5, key: key("p1", "data") }),
        (|o| o.links[1].alias.clear(), LinkChange::SetAlias { index: 6, alias: pair.alias(Side::Node) }),
        (|o| o.links[1].is_up = false, LinkChange::SetUp { index: 6 }),
        (
            |o| {
                let again = Link { index: 9, ..o.links[1].clone() };
                o.links.push(again);
            },
            LinkChange::DeletePair { index: 9, mark: pair.clone() },
        ),
    ];
    for (damage, change) in table {
        let mut observed = complete();
        damage(&mut observed);
        assert_eq!(planned(&observed, &one()).changes, [change]);
    }
    let mut observed = complete();
    // An address that an administrator added to the bridge, and a link-local address.
    observed.addresses.extend([address(5, "10.99.0.7/24"), address(5, "fe80::1234/64")]);
    assert!(planned(&observed, &one()).changes.is_empty());
}

#[test]
fn a_link_goes_when_it_is_released_or_its_pool_no_longer_names_it() {
    let released = desired(&[pool("lab", RANGE, &["br0"], &[("p1", "data", "br0", "10.77.0.2", true)])]);
    let other = desired(&[pool("lab", RANGE, &["br0"], &[("p1", "data", "br0", "10.77.0.9", false)])]);
    let none = desired(&[pool("lab", RANGE, &["br0"], &[])]);
    for wanted in [released, other, none] {
        let plan = planned(&complete(), &wanted);
        assert!(matches!(plan.changes[..], [LinkChange::DeletePair { index: 6, .. }]), "{:?}", plan.changes);
    }
    // No pool covers its range.
    let (name, mut data) = pool("lab", RANGE, &["br0"], &[]);
    let elsewhere = desired(&[pool("lab", "10.78.0.0/24", &["br0"], &[])]);
    let renamed = desired(&[("podnet-other".to_owned(), data.clone())]);
    data.insert("pool".to_owned(), "{".to_owned());
    let unreadable = desired(&[(name.clone(), data.clone())]);
    for unknown in [Desired::default(), renamed, unreadable] {
        let plan = planned(&complete(), &unknown);
        assert!(plan.changes.is_empty() && plan.unknown.len() == 1, "{plan:?}");
    }
    let plan = planned(&complete(), &elsewhere);
    assert!(
        plan.unknown.len() == 1 && !plan.changes.iter().any(|c| matches!(c, LinkChange::DeletePair { .. }))
    );
    // The entry of one pod cannot be parsed.
    let (name, mut data) = pool("lab", RANGE, &["br0"], &[]);
    data.insert("p1".to_owned(), "[{}]".to_owned());
    let plan = planned(&complete(), &desired(&[(name, data)]));
    assert!(plan.changes.is_empty() && plan.unknown.len() == 1, "{plan:?}");
}

#[test]
fn a_bridge_is_deleted_with_its_last_port_unless_it_has_a_foreign_port() {
    let mut observed = complete();
    let released = desired(&[pool("lab", RANGE, &[], &[("p1", "data", "br0", "10.77.0.2", true)])]);
    converge(&mut observed, &released);
    assert!(observed.links.is_empty() && observed.addresses.is_empty(), "{observed:?}");

    let mut observed = complete();
    observed.links.push(Link { master: 5, ..link(8, "eth1", "") });
    let last = converge(&mut observed, &released);
    assert_eq!(observed.links.iter().map(|link| link.index).collect::<Vec<_>>(), [5, 8]);
    assert_eq!(
        last.kept,
        std::collections::BTreeMap::from([("br0".to_owned(), "has the foreign port eth1".to_owned())])
    );
}

#[test]
fn foreign_links_and_bridges_are_refused() {
    let with = |name: &str, kind: &str, alias: &str| {
        let mut observed = Observed { links: vec![link(1, name, kind)], ..Observed::default() };
        observed.links[0].alias = alias.to_owned();
        observed
    };
    for (name, kind, alias, refused) in [
        ("br0", "bridge", "", true),
        ("br0", "bridge", "uplinks", true),
        ("br0", "veth", "crownlabs-bridge:lab", true),
        ("br-ext", "bridge", "", false),
        ("br0", "bridge", "crownlabs-bridge:lab", false),
    ] {
        let observed = with(name, kind, alias);
        let wanted = desired(&[pool("lab", RANGE, &[name], &[("p1", "data", name, "10.77.0.2", false)])]);
        let plan = planned(&observed, &wanted);
        let reason = plan.problems.values().next().map(|problem| problem.reason.clone());
        assert_eq!(reason.as_deref(), refused.then_some("BridgeConflict"), "{name} {kind} {alias}");
        assert_eq!(plan.bridges.contains_key(name), !refused);
        if name == "br-ext" {
            assert!(plan.changes.is_empty(), "{:?}", plan.changes);
        }
    }
    // It is allowed but does not exist, and it is not created.
    let wanted = desired(&[pool("lab", RANGE, &["br-ext"], &[("p1", "data", "br-ext", "10.77.0.2", false)])]);
    let plan = planned(&Observed::default(), &wanted);
    assert!(plan.changes.is_empty() && plan.problems.len() == 1);
}

#[test]
fn a_range_that_the_node_uses_is_refused_before_anything_is_made() {
    let busy = |net: &str, link: u32| Observed { addresses: vec![address(link, net)], ..Observed::default() };
    let routed = |net: &str| {
        let route = Route { range: net.parse().expect("a range"), link: 1 };
        Observed { routes: Some(vec![route]), ..Observed::default() }
    };
    for (observed, refused) in [
        (busy("10.77.0.200/16", 1), true),
        (busy("10.77.0.5/32", 1), true),
        (busy("10.78.0.5/16", 1), false),
        (routed("10.77.0.128/25"), true),
        (routed("10.76.0.0/16"), false),
    ] {
        let plan = planned(&observed, &one());
        let reason = plan.problems.values().next().map(|problem| problem.reason.clone());
        assert_eq!(reason.as_deref(), refused.then_some("NetworkOverlap"), "{observed:?}");
        assert_eq!(plan.changes.is_empty(), refused);
    }
    // Existing links are not removed.
    let mut observed = complete();
    observed.addresses.push(address(1, "10.77.0.200/16"));
    let plan = planned(&observed, &one());
    assert!(plan.changes.is_empty() && plan.problems.is_empty(), "{plan:?}");
}

#[test]
fn one_namespace_has_a_bridge_as_long_as_its_pool_names_it() {
    let of = |namespace: &str, range: &str, address: &str, pod: &str| {
        pool(namespace, range, &["br0"], &[(pod, "data", "br0", address, false)])
    };
    let lab = of("lab", RANGE, "10.77.0.2", "p1");
    let early = of("early", "10.78.0.0/24", "10.78.0.2", "p2");
    let plan = planned(&complete(), &desired(&[early.clone(), lab]));
    assert_eq!(plan.problems[&key("p2", "data")].reason, "BridgeConflict");
    assert!(plan.changes.is_empty(), "{:?}", plan.changes);
    let mut observed = complete();
    let last = converge(&mut observed, &desired(&[early, pool("lab", RANGE, &[], &[])]));
    assert_eq!(observed.links[0].alias, bridge_alias("early"));
    assert_eq!(observed.addresses, [address(5, "10.78.0.1/24")]);
    assert!(last.problems.is_empty());
}

#[test]
fn a_range_that_the_pod_has_already_is_found() {
    let (range, ours) = ("10.77.0.0/24".parse().expect("a range"), mark("lab", "p1", "data", "10.77.0.2/24"));
    let links =
        vec![link(2, "eth0", "veth"), Link { alias: ours.alias(Side::Pod), ..link(3, "data4711", "veth") }];
    let route = |net: &str, link: u32| Route { range: net.parse().expect("a range"), link };
    for (addresses, routes, expected) in [
        (vec![address(3, "10.77.0.2/24")], vec![route("10.77.0.0/24", 3)], None),
        (vec![address(2, "10.78.0.5/24"), address(2, "fe80::1/64")], vec![], None),
        (vec![address(2, "10.77.0.5/16")], vec![], Some("the address 10.77.0.5/16 on its link eth0")),
        (vec![address(2, "10.77.0.5/32")], vec![], Some("the address 10.77.0.5/32 on its link eth0")),
        (vec![], vec![route("10.64.0.0/10", 2)], Some("the route to 10.64.0.0/10 by its link eth0")),
        (vec![], vec![route("10.77.0.128/25", 0)], Some("the route to 10.77.0.128/25 by no link")),
    ] {
        let inside = Observed { links: links.clone(), addresses, routes: Some(routes) };
        assert_eq!(overlapped(&inside, &range).as_deref(), expected, "{inside:?}");
    }
}

#[test]
fn a_pair_is_repaired_or_recreated() {
    let mark = mark("lab", "p1", "data", "10.77.0.2/24");
    let host = end(6, &mark, 5);
    let inner = Link {
        peer: 6,
        mac: Some(mark.mac(Side::Pod)),
        alias: mark.alias(Side::Pod),
        ..link(2, "data4711", "veth")
    };
    let right = vec![address(2, "10.77.0.2/24")];
    let check = |inner: &Link, addresses: &[_]| verify(&mark, &host, std::slice::from_ref(inner), addresses);
    assert_eq!(check(&inner, &right), Verdict::Repair(inner.clone(), vec![]));
    let worn = Link { alias: String::new(), is_up: false, ..inner.clone() };
    let all = vec![Repair::Alias, Repair::Address, Repair::Up];
    assert_eq!(
        check(&worn, &[address(2, "10.77.0.2/25"), address(3, "10.77.0.2/24")]),
        Verdict::Repair(worn.clone(), all)
    );
    for other in [
        Link { name: "other".to_owned(), ..inner.clone() },
        Link { mac: Some(Mac([2; 6])), ..inner.clone() },
        Link { peer: 7, ..inner.clone() },
        Link { index: 3, ..inner.clone() },
        Link { kind: "bridge".to_owned(), ..inner.clone() },
    ] {
        assert_eq!(check(&other, &right), Verdict::Rebuild, "{other:?}");
    }
    let renamed = Link { name: "hother4711".to_owned(), ..host.clone() };
    assert_eq!(verify(&mark, &renamed, &[inner], &right), Verdict::Rebuild);
}
