//! The pairs of one pod, once its namespace is open: whether a pair is as it should be.

use ipnet::IpNet;

use super::Observed;
use crate::controllers::pod_config_node::mark::{Mark, Side, process_of};
use crate::netlink::{Address, Link};

/// The network that a pod has by others, such as its primary one, which a range overlaps: in words.
pub fn overlapped(inside: &Observed, range: &IpNet) -> Option<String> {
    let is_ours = |index| inside.link(index).is_some_and(|link| Mark::read(&link.alias).is_some());
    inside.overlap(range, "its", is_ours).ok().flatten()
}

/// What is to be done with a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is right, once this is done to the pod's end, in this order.
    Repair(Link, Vec<Repair>),
    /// It is to be deleted and made anew: the pod's end is not where or what it should be.
    Rebuild,
}

/// A change of the pod's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Give it its alias.
    Alias,
    /// Give it its address.
    Address,
    /// Switch it on.
    Up,
}

/// What is to be done with the pair whose end on the node is `host`, where the pod's namespace has these links and addresses.
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
