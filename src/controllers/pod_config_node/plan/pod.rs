//! The pairs of one pod, once its namespace is open: whether a pair is as it should be.

use ipnet::IpNet;

use crate::controllers::pod_config_node::mark::{Mark, Side, process_of};
use crate::netlink::{Address, Link, Route, overlap};

/// What there is in the namespace of a pod.
#[derive(Debug, Clone, Default)]
pub struct Inside {
    /// All links.
    pub links: Vec<Link>,
    /// All addresses.
    pub addresses: Vec<Address>,
    /// The routes into the ranges of its attachments.
    pub routes: Vec<Route>,
}

impl Inside {
    /// The network that the pod has by others, such as its primary one, which a range overlaps: in words.
    pub fn overlapped(&self, range: &IpNet) -> Option<String> {
        let is_ours = |index: u32| {
            let link = self.links.iter().find(|link| link.index == index);
            link.is_some_and(|link| Mark::read(&link.alias).is_some())
        };
        let name = |index: u32| {
            let link = self.links.iter().find(|link| link.index == index);
            link.map_or_else(|| "no link".to_owned(), |link| format!("its link {}", link.name))
        };
        let mut addresses = self.addresses.iter().filter(|address| !is_ours(address.link));
        if let Some(found) = addresses.find(|address| overlap(&address.net, range)) {
            return Some(format!("the address {} on {}", found.net, name(found.link)));
        }
        let mut routes = self.routes.iter().filter(|route| !is_ours(route.link));
        let found = routes.find(|route| overlap(&route.range, range))?;
        Some(format!("the route to {} by {}", found.range, name(found.link)))
    }
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
