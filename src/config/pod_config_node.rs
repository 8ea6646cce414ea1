//! The keys of the node side of pod networks; see `docs/pod-networks.md`.

use super::duration::ConfigDuration;
use super::formats::{self, formats};
use super::keys::keys;
use super::runtime_endpoint::RUNTIME_ENDPOINT;

keys! {
    /// The node side of pod networks.
    pub struct PodConfigNodeConfig {
        /// Whether this process makes the links of the pods on its node. It must run in a separate `DaemonSet`. Pools
        /// and reports are `ConfigMap`s in `leaderElection.namespace`.
        pub enabled: bool,
        /// The name of the node; if empty, it is read from the environment variable `NODE_NAME`.
        pub node_name: String,
        /// The socket of the container runtime such as `unix:///run/containerd/containerd.sock`; if empty, the first
        /// socket of containerd, CRI-O and k3s that answers is used.
        pub runtime_endpoint: String as RUNTIME_ENDPOINT,
        /// The `/proc` folder that contains the processes of the node.
        pub proc_root: String as PATH = "/proc".to_owned(),
        /// The network namespace of the node; if empty, the namespace of its first process, `1/ns/net` in `procRoot`.
        pub node_namespace: String as OPTIONAL_PATH,
        /// Existing bridges that links may attach to. They get no address, and are never changed or deleted.
        pub allowed_bridges: Vec<String> as [LINK],
        /// The interval at which all links are verified, even without a change.
        pub resync: ConfigDuration where "1s".. = ConfigDuration::from_secs(60),
    }
}

formats! {
    PATH = "crownlabs-path", formats::is_path, "an absolute path such as /proc, without a slash at the end",
        "^/.*[^/]$";
    OPTIONAL_PATH = "crownlabs-optional-path", |text| text.is_empty() || formats::is_path(text),
        "an absolute path such as /proc/1/ns/net, or \"\"",
        "^(/.*[^/])?$";
    LINK = "crownlabs-link", is_link, "the name of a bridge, of at most 15 bytes",
        "^[!-.0-9;-~]{1,15}$";
}

fn is_link(text: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    (1..=15).contains(&text.len()) && text.chars().all(is_fine) && text != "." && text != ".."
}
