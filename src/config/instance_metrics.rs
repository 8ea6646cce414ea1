//! The keys of the loop that measures the resource usage of Instances; see `docs/instance-metrics.md`.

use super::duration::ConfigDuration;
use super::formats::formats;
use super::keys::keys;
use super::listen_address::ListenAddress;
use super::runtime_endpoint::RUNTIME_ENDPOINT;
use crate::api::names::check_dns_label;

keys! {
    /// The resource usage of Instances in containers.
    pub struct InstanceMetricsConfig {
        /// Whether this process measures the resource usage of the Instances on its node.
        pub enabled: bool,
        /// The address and port of the gRPC service `instmetrics.InstanceMetrics`; empty to turn it off.
        pub listen: ListenAddress = ListenAddress::port(9090),
        /// The socket of the container runtime; if empty, the first socket of containerd, CRI-O and k3s that answers is
        /// used.
        pub runtime_endpoint: String as RUNTIME_ENDPOINT,
        /// The namespaces with Instances: names, or prefixes of names followed by `*`. Pods in other namespaces are not
        /// measured, whatever labels they have. Only the daemon should create pods in these namespaces.
        pub namespaces: Vec<String> as [NAMESPACES] = ["tenant-*", "workspace-*"].map(str::to_owned).to_vec(),
        /// The time limit of a request to the container runtime, from `100ms` to `30s`.
        pub connection_timeout: ConfigDuration where "100ms"..="30s" = ConfigDuration::from_secs(5),
        /// The time between two measurements, from `100ms` to `15s`.
        pub update_period: ConfigDuration where "100ms"..="15s" = ConfigDuration::from_secs(1),
    }
}

formats! {
    NAMESPACES = "crownlabs-namespaces",
        |text| {
            let begin = text.strip_suffix('*').map(|begin| format!("{begin}x"));
            check_dns_label(begin.as_deref().unwrap_or(text)).is_ok()
        },
        "the name of a namespace, or the beginning of names with * at the end, such as tenant-*",
        "^[-a-z0-9]{0,63}[*]?$";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_names_or_their_beginnings() {
        for text in ["exams", "tenant-*", "a*", "*"] {
            assert!((NAMESPACES.accepts)(text), "{text:?}");
        }
        for text in ["", "A", "-a*", "a**", "*-a", "a b", "a.b"] {
            assert!(!(NAMESPACES.accepts)(text), "{text:?}");
        }
    }
}
