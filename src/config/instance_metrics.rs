//! The keys of the loop that measures what Instances use; see `docs/instance-metrics.md`.

use super::duration::ConfigDuration;
use super::formats::Format;
use super::keys::keys;
use super::listen_address::ListenAddress;
use super::runtime_endpoint::RUNTIME_ENDPOINT;
use crate::api::names::check_dns_label;

keys! {
    /// What Instances in containers use.
    pub struct InstanceMetricsConfig {
        /// Whether this process measures what the Instances on its node use.
        pub enabled: bool,
        /// The address and port of the gRPC service `instmetrics.InstanceMetrics`; empty to turn it off.
        pub listen: ListenAddress = ListenAddress::port(9090),
        /// The socket of the container runtime; empty for the first that answers of those of containerd, CRI-O and k3s.
        pub runtime_endpoint: String as RUNTIME_ENDPOINT,
        /// The namespaces with Instances: names, or beginnings of names with `*` at the end. Pods in others are not
        /// measured, whatever labels they have, so nobody but the daemon should make pods in these.
        #[schemars(extend("items" = {"type": "string", "format": NAMESPACES.name}))]
        pub namespaces: Vec<String> = ["tenant-*", "workspace-*"].map(str::to_owned).to_vec(),
        /// The time in which the container runtime has to answer a request, from `100ms` to `30s`.
        pub connection_timeout: ConfigDuration = ConfigDuration::from_secs(5),
        /// The time between two measurements, from `100ms` to `15s`.
        pub update_period: ConfigDuration = ConfigDuration::from_secs(1),
    }
}

const NAMESPACES: Format = Format::new(
    "crownlabs-namespaces",
    "the name of a namespace, or the beginning of names with * at the end, such as tenant-*",
    |text| {
        let begin = text.strip_suffix('*').map(|begin| format!("{begin}x"));
        check_dns_label(begin.as_deref().unwrap_or(text)).is_ok()
    },
);

/// The format of these keys.
pub(super) const FORMATS: [&Format; 1] = [&NAMESPACES];

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
