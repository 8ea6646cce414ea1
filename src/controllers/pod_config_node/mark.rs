//! Marks our links and their allocations. A link is recognised by its alias, which lasts as long as the link. Before it
//! has an alias, it is recognised by its hardware address, which is derived from the same data.

use std::fmt;

use ipnet::IpNet;

use crate::netlink::Mac;

/// The maximum length of an alias, in bytes (`IFALIASZ` minus the terminating zero and the zero of the attribute).
const LONGEST_ALIAS: usize = 254;
/// The prefix of the alias of a bridge.
const BRIDGE: &str = "crownlabs-bridge:";

/// The end of a veth pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end on the node.
    Node,
    /// The end in the pod.
    Pod,
}

impl Side {
    /// The prefix of its alias.
    fn prefix(self) -> &'static str {
        match self {
            Self::Node => "crownlabs-node-end:",
            Self::Pod => "crownlabs-pod-end:",
        }
    }
}

/// Identifies a link of a pod. A pod has at most one link for each attachment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkKey {
    /// The uid of the pod.
    pub pod_uid: String,
    /// The name of the attachment.
    pub attachment: String,
}

/// The allocation that a link belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The namespace.
    pub namespace: String,
    /// The uid of the `PodConfig`.
    pub pod_config_uid: String,
    /// The link.
    pub key: LinkKey,
    /// The address in the pod, with the prefix length of its range.
    pub net: IpNet,
}

impl Mark {
    /// The alias of an end.
    pub fn alias(&self, side: Side) -> String {
        format!("{}{self}", side.prefix())
    }

    /// Parses an alias; `None` if it is not one of ours.
    pub fn read(alias: &str) -> Option<(Side, Self)> {
        let with = |side: Side| Some((side, alias.strip_prefix(side.prefix())?));
        let (side, text) = with(Side::Node).or_else(|| with(Side::Pod))?;
        let mut parts = text.splitn(5, ':').map(str::to_owned);
        let mut part = || parts.next().filter(|part| !part.is_empty());
        let (namespace, pod_config_uid) = (part()?, part()?);
        let key = LinkKey { pod_uid: part()?, attachment: part()? };
        let net = part()?.parse().ok()?;
        Some((side, Self { namespace, pod_config_uid, key, net }))
    }

    /// Whether its aliases are within the limit of the kernel.
    pub fn fits(&self) -> bool {
        self.alias(Side::Node).len() <= LONGEST_ALIAS
    }

    /// The hardware address of an end. The address of the pod's end depends only on the IP address, so that neighbour
    /// caches stay correct when the sandbox or the pod changes. The address of the node's end depends on the
    /// allocation, so that a link without an alias is recognised by it.
    pub fn mac(&self, side: Side) -> Mac {
        match side {
            Side::Node => Mac::derived(&[side.prefix(), &self.to_string()]),
            Side::Pod => Mac::derived(&[side.prefix(), &self.namespace, &self.net.to_string()]),
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, pod_config_uid, key: LinkKey { pod_uid, attachment }, net } = self;
        write!(f, "{namespace}:{pod_config_uid}:{pod_uid}:{attachment}:{net}")
    }
}

/// The alias of a bridge of this namespace.
pub fn bridge_alias(namespace: &str) -> String {
    format!("{BRIDGE}{namespace}")
}

/// The namespace of a bridge with this alias; `None` if the bridge is not one of ours.
pub fn bridge_namespace(alias: &str) -> Option<&str> {
    alias.strip_prefix(BRIDGE).filter(|namespace| !namespace.is_empty())
}

/// The hardware address of a bridge. It differs between nodes, because an administrator may connect their bridges.
pub fn bridge_mac(node: &str, bridge: &str) -> Mac {
    Mac::derived(&[BRIDGE, node, bridge])
}

/// The names of both ends, in the pod and on the node, for a pod with this process. They may exceed the maximum length
/// of a link name.
pub fn names(attachment: &str, process: u32) -> (String, String) {
    (format!("{attachment}{process}"), format!("h{attachment}{process}"))
}

/// The process ID in the name of the node's end; `None` if the name has another format.
pub fn process_of(attachment: &str, host_name: &str) -> Option<u32> {
    host_name.strip_prefix('h')?.strip_prefix(attachment)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::pod_network::LONGEST_NAME;

    pub(super) fn mark(net: &str) -> Mark {
        Mark {
            namespace: "cnf-test".to_owned(),
            pod_config_uid: "0b0e33f4-3b0a-4b6e-9b39-5cb24bd9a2c1".to_owned(),
            key: LinkKey { pod_uid: "9d3c".to_owned(), attachment: "data".to_owned() },
            net: net.parse().expect("a network"),
        }
    }

    #[test]
    fn an_alias_is_read_as_it_was_written() {
        for net in ["10.77.0.2/24", "fd00:7::2/64"] {
            let mark = mark(net);
            for side in [Side::Node, Side::Pod] {
                assert_eq!(Mark::read(&mark.alias(side)), Some((side, mark.clone())));
            }
            assert_ne!(mark.mac(Side::Node), mark.mac(Side::Pod));
        }
        let text = "crownlabs-node-end:cnf-test:0b0e33f4-3b0a-4b6e-9b39-5cb24bd9a2c1:9d3c:data:10.77.0.2/24";
        assert_eq!(mark("10.77.0.2/24").alias(Side::Node), text);
        for foreign in [
            "",
            "uplink",
            "crownlabs-node-end:",
            "crownlabs-node-end:a:b:c:d",
            "crownlabs-node-end:a:b::d:10.0.0.1/24",
            "crownlabs-node-end:a:b:c:d:10.0.0.1",
            "crownlabs-bridge:a:b:c:d:10.0.0.1/24",
        ] {
            assert_eq!(Mark::read(foreign), None, "{foreign}");
        }
        assert_eq!(bridge_namespace(&bridge_alias("lab")), Some("lab"));
        assert_eq!((bridge_namespace("crownlabs-bridge:"), bridge_namespace("uplink")), (None, None));
    }

    #[test]
    fn the_longest_mark_fits() {
        let uid = "0b0e33f4-3b0a-4b6e-9b39-5cb24bd9a2c1";
        let longest = Mark {
            namespace: "n".repeat(63),
            pod_config_uid: uid.to_owned(),
            key: LinkKey { pod_uid: uid.to_owned(), attachment: "a".repeat(LONGEST_NAME) },
            net: "fd00:aaaa:bbbb:cccc:dddd:eeee:ffff:1234/112".parse().expect("a network"),
        };
        assert!(longest.fits(), "{}", longest.alias(Side::Node).len());
    }

    #[test]
    fn the_process_is_in_the_names() {
        assert_eq!(names("data", 4711), ("data4711".to_owned(), "hdata4711".to_owned()));
        for (name, process) in [
            ("hdata4711", Some(4711)),
            ("data4711", None),
            ("hdata", None),
            ("hmgmt4711", None),
            ("hdata47x", None),
        ] {
            assert_eq!(process_of("data", name), process, "{name}");
        }
    }
}
