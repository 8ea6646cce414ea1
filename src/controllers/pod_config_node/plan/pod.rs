//! The pairs of one pod, once its namespace is open: whether a pair is correct.

use ipnet::IpNet;

use super::Observed;
use crate::controllers::pod_config_node::mark::{Mark, Side, process_of};
use crate::netlink::{Address, Link};

/// Describes the foreign network of a pod that a range overlaps, such as its primary network.
pub fn overlapped(inside: &Observed, range: &IpNet) -> Option<String> {
    let is_ours = |index| inside.link(index).is_some_and(|link| Mark::read(&link.alias).is_some());
    inside.overlap(range, "its", is_ours).ok().flatten()
}

/// The decision about a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is correct after these changes of the pod's end, in this order.
    Repair(Link, Vec<Repair>),
    /// It must be deleted and recreated: the pod's end is missing or wrong.
    Rebuild,
}

/// A change of the pod's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Set its alias.
    Alias,
    /// Add its address.
    Address,
    /// Switch it on.
    Up,
}

/// Decides about the pair with the node's end `host`, given the links and addresses in the pod's namespace.
pub fn verify(mark: &Mark, host: &Link, inside: &[Link], addresses: &[Address]) -> Verdict {
    let Some(end) = inside.iter().find(|end| is_other_end(end, host)) else { return Verdict::Rebuild };
    let has_names = process_of(&mark.key.attachment, &host.name).is_some()
        && host.name.strip_prefix('h') == Some(&end.name);
    let has_macs = end.mac == Some(mark.mac(Side::Pod)) && host.mac == Some(mark.mac(Side::Node));
    if !has_names || !has_macs {
        return Verdict::Rebuild;
    }
    let address = Address { link: end.index, net: mark.net };
    let repairs = [
        (end.alias != mark.alias(Side::Pod), Repair::Alias),
        (!addresses.contains(&address), Repair::Address),
        (!end.is_up, Repair::Up),
    ];
    let repairs = repairs.into_iter().filter_map(|(is_needed, repair)| is_needed.then_some(repair));
    Verdict::Repair(end.clone(), repairs.collect())
}

/// Whether two links in different namespaces are the ends of one pair.
fn is_other_end(one: &Link, other: &Link) -> bool {
    one.kind == "veth" && one.index == other.peer && one.peer == other.index
}
