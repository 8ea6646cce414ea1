//! The rules of `NetworkPolicies` about outgoing traffic. The policies of Tenants and of exams consist of them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::api::names::check_dns_label;
use crate::config::Network;

/// The name of the policy of a Tenant's namespace that restricts outgoing traffic.
pub const POLICY: &str = "crownlabs-egress";
/// The label with the name of a namespace, which Kubernetes sets on every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// The address of `NodeLocal DNSCache` on each node, as its documentation proposes it.
const NODE_LOCAL_DNS: &str = "169.254.20.10/32";
/// All addresses, each with the networks of metadata services: link-local addresses for IPv4, and the IPv6 addresses of
/// Amazon EC2 and of Google Compute Engine. These services hand out credentials of the node.
const WORLD: [(&str, &[&str]); 2] =
    [("0.0.0.0/0", &["169.254.0.0/16"]), ("::/0", &["fd00:ec2::254/128", "fd20:ce::254/128"])];
/// The port of NFS 4.
const NFS_PORT: u16 = 2049;

/// The rule for DNS: the cluster's servers, and the cache on each node.
pub fn dns() -> Value {
    json!({
        "to": [
            {
                "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            },
            block(NODE_LOCAL_DNS),
        ],
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
    })
}

/// The rule for the pods of the same namespace.
pub fn same_namespace() -> Value {
    json!({"to": [{"podSelector": {}}]})
}

/// The rule for these networks. `None` without networks, because a rule without destinations allows all of them.
pub fn networks(allowed: &[Network]) -> Option<Value> {
    let allowed: BTreeSet<String> = allowed.iter().map(|network| network.truncated().to_string()).collect();
    rule(&allowed.iter().map(|network| block(network)).collect::<Vec<_>>())
}

/// The rule for NFS servers, which are addresses, or Services of the cluster as `<service>.<namespace>…`. A host name
/// outside of the cluster cannot be in a `NetworkPolicy` and is left out.
pub fn nfs(servers: &BTreeSet<String>) -> Option<Value> {
    let mut rule = rule(&servers.iter().filter_map(|server| nfs_server(server)).collect::<Vec<_>>())?;
    rule["ports"] = json!([{"port": NFS_PORT, "protocol": "TCP"}]);
    Some(rule)
}

fn nfs_server(server: &str) -> Option<Value> {
    if let Ok(address) = server.parse::<IpAddr>() {
        let length = if address.is_ipv4() { 32 } else { 128 };
        return Some(block(&format!("{address}/{length}")));
    }
    let mut labels = server.split('.').skip(1);
    let namespace = labels.next().filter(|namespace| check_dns_label(namespace).is_ok())?;
    let is_of_cluster = labels.next().is_none_or(|third| third == "svc");
    is_of_cluster.then(|| json!({"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: namespace}}}))
}

/// The rule for all addresses except these networks and metadata services. `None` if nothing is left.
pub fn world(denied: &[Network]) -> Option<Value> {
    let family = |(all, metadata): (&str, &[&str])| {
        let whole: Network = all.parse().ok()?;
        let denied: Vec<&Network> = denied.iter().filter(|network| whole.covers(network)).collect();
        // An exception must be smaller than the block.
        if denied.iter().any(|network| network.covers(&whole)) {
            return None;
        }
        let denied = denied.into_iter().map(|network| network.truncated().to_string());
        let except: BTreeSet<String> =
            denied.chain(metadata.iter().map(|&network| network.to_owned())).collect();
        Some(json!({"ipBlock": {"cidr": all, "except": except}}))
    };
    rule(&WORLD.into_iter().filter_map(family).collect::<Vec<_>>())
}

fn block(cidr: &str) -> Value {
    json!({"ipBlock": {"cidr": cidr}})
}

/// The rule for these destinations; `None` without destinations.
fn rule(to: &[Value]) -> Option<Value> {
    (!to.is_empty()).then(|| json!({"to": to}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().expect("a network")).collect()
    }

    #[test]
    fn networks_are_sorted_and_written_with_their_first_address() {
        assert_eq!(networks(&[]), None);
        let allowed = networks(&parsed(&["192.0.2.7/24", "10.0.0.1/32", "192.0.2.0/24", "2001:db8::1/64"]));
        let expected = json!({"to": [
            {"ipBlock": {"cidr": "10.0.0.1/32"}},
            {"ipBlock": {"cidr": "192.0.2.0/24"}},
            {"ipBlock": {"cidr": "2001:db8::/64"}},
        ]});
        assert_eq!(allowed, Some(expected));
    }

    #[test]
    fn the_world_never_has_the_metadata_services() {
        let world = |denied: &[&str]| world(&parsed(denied));
        let v4 = |except: &[&str]| json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": except}});
        let metadata = ["fd00:ec2::254/128", "fd20:ce::254/128"];
        let v6 = |except: &[&str]| json!({"ipBlock": {"cidr": "::/0", "except": except}});
        assert_eq!(world(&[]), Some(json!({"to": [v4(&["169.254.0.0/16"]), v6(&metadata)]})));
        let denied = world(&["10.1.2.3/8", "fd00::/8"]);
        let except = ["fd00::/8", metadata[0], metadata[1]];
        assert_eq!(denied, Some(json!({"to": [v4(&["10.0.0.0/8", "169.254.0.0/16"]), v6(&except)]})));
        // A network that the site denies, too, is named once.
        assert_eq!(world(&["169.254.0.0/16", "::/0"]), Some(json!({"to": [v4(&["169.254.0.0/16"])]})));
        assert_eq!(world(&["0.0.0.0/0", "::/0"]), None);
    }

    #[test]
    fn an_nfs_server_is_an_address_or_a_service() {
        let of = |server: &str| nfs(&BTreeSet::from([server.to_owned()])).map(|rule| rule["to"][0].clone());
        let block = |cidr: &str| Some(json!({"ipBlock": {"cidr": cidr}}));
        let namespace =
            Some(json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "rook"}}}));
        for (server, expected) in [
            ("10.0.0.1", block("10.0.0.1/32")),
            ("fd00::1", block("fd00::1/128")),
            ("nfs.rook", namespace.clone()),
            ("nfs.rook.svc", namespace.clone()),
            ("nfs.rook.svc.cluster.local", namespace),
            ("nfs.rook.example.org", None),
            ("nfs", None),
            ("nfs.", None),
            ("", None),
        ] {
            assert_eq!(of(server), expected, "{server}");
        }
        assert_eq!(nfs(&BTreeSet::new()), None);
        let rule = nfs(&BTreeSet::from(["10.0.0.1".to_owned()])).expect("a rule");
        assert_eq!(rule["ports"], json!([{"port": 2049, "protocol": "TCP"}]));
    }
}
