//! The keys of Prometheus; see `docs/prometheus-queries.md`.

use super::bound::{Bound, POSITIVE};
use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;
use super::query_template::{QueryTemplate, Subject};

const STEP: Bound = Bound::TimeIf(
    |step| step.get().subsec_nanos() == 0 && (1..=3_600).contains(&step.get().as_secs()),
    "is not valid",
    "whole seconds, from 1s to 1h",
);
const OF_SERVICE: Bound = Bound::Other(
    |value| data_problem(value.as_str()?, Subject::Service),
    "a counter with the namespace and the Service, in this order, as requests{namespace=%q, service=%q}, or \"\" for \
     none",
);
const OF_ADDRESS: Bound = Bound::Other(
    |value| data_problem(value.as_str()?, Subject::Address),
    "a counter with the IP address, as connections{ip=%q}, or with the namespace and the Instance, as \
     connections{namespace=%q, instance=%q}, or \"\" for none",
);

/// Returns the problem with a data query, which may be empty.
pub(super) fn data_problem(data: &str, subject: Subject) -> Option<String> {
    let problem = |data| QueryTemplate::parse(data, subject).err().map(|error| error.to_string());
    Some(data).filter(|data| !data.is_empty()).and_then(problem)
}

keys! {
    /// The Prometheus server that records when Instances were last used; see `docs/prometheus-queries.md`.
    pub struct PrometheusConfig {
        /// The URL of the server, such as `http://prometheus.monitoring:9090`; empty for no server.
        pub url: String as formats::SERVER_URL,
        /// The time limit of a request.
        pub timeout: ConfigDuration where POSITIVE = ConfigDuration::from_secs(5),
        /// The file with the bearer token of every request, read again for each round of queries; empty for none.
        pub bearer_token_file: String,
        /// The PEM file with the certificate authorities to trust, reloaded when it changes; if empty, the operating
        /// system's authorities are trusted.
        pub ca_file: String,
        /// The precision of the time of last use, from `1s` to `1h`. It becomes coarser for longer periods.
        pub query_step: ConfigDuration where STEP = ConfigDuration::from_secs(300),
        /// The queries of the four sources: browser (`nginx`), SSH through the bastion, SSH in the browser, and open
        /// SSH connections of both kinds.
        pub queries: PrometheusQueries,
    }

    /// The queries. A data query is written for one Instance, which `%s` or `%q` (a quoted `%s`) stands for.
    pub struct PrometheusQueries {
        /// The query whose first result is above 0 while requests of browsers are counted.
        pub nginx_available: String = r#"count(up{service=~"ingress-nginx(-external)?-controller-metrics"})"#.to_owned(),
        /// The counter of browser requests, by namespace and Service; empty to turn this source off.
        pub nginx_data: String where OF_SERVICE = "nginx_ingress_controller_requests{exported_namespace=%q, exported_service=%q}"
                .to_owned(),
        /// The query whose first result is above 0 while SSH connections through the bastion are counted.
        pub bastion_ssh_available: String = r#"count(up{container="bastion-operator-tracker-sidecar"})"#.to_owned(),
        /// The counter of SSH connections through the bastion, by IP address; empty to turn this source off.
        pub bastion_ssh_data: String where OF_ADDRESS = "bastion_ssh_connections{destination_ip=%q}".to_owned(),
        /// The query whose first result is above 0 while SSH connections in the browser are counted.
        pub web_ssh_available: String = r#"count(up{container="webssh"})"#.to_owned(),
        /// The counter of SSH connections in the browser, by IP address; empty to turn this source off.
        pub web_ssh_data: String where OF_ADDRESS = "bastion_web_ssh_connections{destination_ip=%q}".to_owned(),
        /// The query whose first result is above 0 while open SSH connections are measured. If empty, the query for
        /// connections through the bastion is used, or, if `bastionSshData` is empty, the query for connections in the
        /// browser.
        pub open_available: String,
        /// The gauge of open SSH connections, by IP address; empty to turn this source off. It is not queried if both
        /// counters of SSH connections are off.
        pub open_data: String = "bastion_ssh_open_connections{destination_ip=%q}".to_owned(),
    }
}

/// One source of uses: its queries, and the required subject of its data query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceQueries<'a> {
    /// The name of the source, in status and messages.
    pub name: &'static str,
    /// The key of the data query, below `integrations.prometheus.queries`.
    pub data_key: &'static str,
    /// The availability query.
    pub available: &'a str,
    /// The data query; empty if the source is off.
    pub data: &'a str,
    /// The required subject of the data query.
    pub subject: Subject,
    /// How its values indicate a use.
    pub signal: Signal,
}

/// The values of a metric that indicate that a machine is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Values that differ from the previous value: the metric is a counter.
    Change,
    /// Values above 0: the metric is a gauge.
    Positive,
}

impl PrometheusQueries {
    /// All sources, including sources that are off.
    pub fn sources(&self) -> [SourceQueries<'_>; 4] {
        // Open SSH connections are known only where SSH connections are counted.
        let ssh = [
            (&self.bastion_ssh_data, &self.bastion_ssh_available),
            (&self.web_ssh_data, &self.web_ssh_available),
        ];
        let ssh = ssh.into_iter().find(|(data, _)| !data.is_empty());
        let own = Some(&self.open_available).filter(|available| !available.is_empty());
        let open = own.or(ssh.map(|(_, available)| available)).map_or("", String::as_str);
        let open_data = if ssh.is_some() { self.open_data.as_str() } else { "" };
        let source = |name, data_key, available, data, subject, signal| SourceQueries {
            name,
            data_key,
            available,
            data,
            subject,
            signal,
        };
        let (bastion, web) = (&self.bastion_ssh_available, &self.web_ssh_available);
        let (service, address) = (Subject::Service, Subject::Address);
        [
            source("ingress", "nginxData", &self.nginx_available, &self.nginx_data, service, Signal::Change),
            source("ssh", "bastionSshData", bastion, &self.bastion_ssh_data, address, Signal::Change),
            source("webSsh", "webSshData", web, &self.web_ssh_data, address, Signal::Change),
            source("open", "openData", open, open_data, address, Signal::Positive),
        ]
    }
}
