//! The keys of the node side of pod networks; see `docs/pod-networks.md`.

use super::duration::ConfigDuration;
use super::formats::Format;
use super::keys::keys;
use super::runtime_endpoint::RUNTIME_ENDPOINT;

keys! {
    /// The node side of pod networks.
    pub struct PodConfigNodeConfig {
        /// Whether this process makes the links of the pods on its node: in a `DaemonSet` of its own. Pools and reports
        /// are `ConfigMap`s in `leaderElection.namespace`.
        pub enabled: bool,
        /// The name of the node; if empty, the variable `NODE_NAME` of the environment has it.
        pub node_name: String,
        /// The socket of the container runtime such as `unix:///run/containerd/containerd.sock`; if empty, the first
        /// that answers of containerd's, CRI-O's and that of k3s.
        pub runtime_endpoint: String as RUNTIME_ENDPOINT,
        /// The folder in which the processes of the node are.
        pub proc_root: String as PATH = "/proc".to_owned(),
        /// The network namespace of the node; if empty, that of its first process, `1/ns/net` in `procRoot`.
        pub node_namespace: String as OPTIONAL_PATH,
        /// The bridges of others that links may be plugged into. They get no address, and are never changed or deleted.
        #[schemars(extend("items" = {"type": "string", "format": LINK.name}))]
        pub allowed_bridges: Vec<String>,
        /// The time after which all links are verified again, also without a change.
        pub resync: ConfigDuration = ConfigDuration::from_secs(60),
    }
}

const PATH: Format =
    Format::new("crownlabs-path", "an absolute path such as /proc, without a slash at the end", is_path);
const OPTIONAL_PATH: Format =
    Format::new("crownlabs-optional-path", "an absolute path such as /proc/1/ns/net, or \"\"", |text| {
        text.is_empty() || is_path(text)
    });
const LINK: Format = Format::new("crownlabs-link", "the name of a bridge, of at most 15 bytes", |text| {
    let is_fine = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    (1..=15).contains(&text.len()) && text.chars().all(is_fine) && text != "." && text != ".."
});

/// The formats of these keys.
pub(super) const FORMATS: [&Format; 3] = [&PATH, &OPTIONAL_PATH, &LINK];

fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && !text.ends_with('/')
        && !text.contains(char::is_control)
        && !text.split('/').any(|part| part == "..")
}
