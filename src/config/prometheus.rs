//! The keys of Prometheus; see `docs/prometheus-queries.md`.

use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;
use super::query_template::Subject;

keys! {
    /// The Prometheus server that tells when Instances were last used; see `docs/prometheus-queries.md`.
    pub struct PrometheusConfig {
        /// The URL of the server, such as `http://prometheus.monitoring:9090`; empty if there is none.
        pub url: String as formats::SERVER_URL,
        /// The time limit of a request.
        pub timeout: ConfigDuration = ConfigDuration::from_secs(5),
        /// The file with the bearer token of every request, which is read again for each round of queries; empty
        /// for none.
        pub bearer_token_file: String,
        /// The file with the certificates of the authorities to trust, in PEM, which is read again when it
        /// changes; empty for those of the operating system.
        pub ca_file: String,
        /// The precision with which the time of a use is found, from `1s` to `1h`; it grows with the length of
        /// time that is asked for.
        pub query_step: ConfigDuration = ConfigDuration::from_secs(300),
        /// The queries of the four sources: browser (`nginx`), SSH through the bastion, SSH in the browser, and what is open
        /// of both.
        pub queries: PrometheusQueries,
    }

    /// The queries. Those of data are for one Instance, with `%s` or `%q` (a quoted `%s`) in its place.
    pub struct PrometheusQueries {
        /// The query whose first result is above 0 while the requests of browsers are counted.
        pub nginx_available: String = r#"count(up{service=~"ingress-nginx(-external)?-controller-metrics"})"#.to_owned(),
        /// The counter of the requests of browsers, by namespace and Service; empty if there is none.
        pub nginx_data: String = "nginx_ingress_controller_requests{exported_namespace=%q, exported_service=%q}"
                .to_owned(),
        /// The query whose first result is above 0 while SSH connections through the bastion are counted.
        pub bastion_ssh_available: String = r#"count(up{container="bastion-operator-tracker-sidecar"})"#.to_owned(),
        /// The counter of SSH connections through the bastion, by IP address; empty if there is none.
        pub bastion_ssh_data: String = "bastion_ssh_connections{destination_ip=%q}".to_owned(),
        /// The query whose first result is above 0 while SSH connections in the browser are counted.
        pub web_ssh_available: String = r#"count(up{container="webssh"})"#.to_owned(),
        /// The counter of SSH connections in the browser, by IP address; empty if there is none.
        pub web_ssh_data: String = "bastion_web_ssh_connections{destination_ip=%q}".to_owned(),
        /// The query whose first result is above 0 while open SSH connections are known; empty if that is so whenever
        /// those through the bastion are counted, or, where these have no query, those in the browser.
        pub open_available: String,
        /// The gauge of the SSH connections that are open, by IP address; empty if there is none. Without a counter of SSH
        /// connections it is not asked for.
        pub open_data: String = "bastion_ssh_open_connections{destination_ip=%q}".to_owned(),
    }
}

/// One source of uses: what its queries are, and what its query of data must be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceQueries<'a> {
    /// The name of the source, in status and messages.
    pub name: &'static str,
    /// The key of the query of data, below `integrations.prometheus.queries`.
    pub data_key: &'static str,
    /// The query of availability.
    pub available: &'a str,
    /// The query of data; empty if the source is off.
    pub data: &'a str,
    /// What the query of data must be about.
    pub subject: Subject,
    /// What its values say.
    pub signal: Signal,
}

/// Which values of a metric say that a machine is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Those that differ from the one before: it is a counter.
    Change,
    /// Those above 0: it is a gauge.
    Positive,
}

impl PrometheusQueries {
    /// The sources, those that are off too.
    pub fn sources(&self) -> [SourceQueries<'_>; 4] {
        // Where nobody counts SSH connections, nobody knows which are open.
        let ssh = [
            (&self.bastion_ssh_data, &self.bastion_ssh_available),
            (&self.web_ssh_data, &self.web_ssh_available),
        ];
        let ssh = ssh.into_iter().find(|(data, _)| !data.is_empty());
        let own = Some(&self.open_available).filter(|available| !available.is_empty());
        [
            SourceQueries {
                name: "ingress",
                data_key: "nginxData",
                available: &self.nginx_available,
                data: &self.nginx_data,
                subject: Subject::Service,
                signal: Signal::Change,
            },
            SourceQueries {
                name: "ssh",
                data_key: "bastionSshData",
                available: &self.bastion_ssh_available,
                data: &self.bastion_ssh_data,
                subject: Subject::Address,
                signal: Signal::Change,
            },
            SourceQueries {
                name: "webSsh",
                data_key: "webSshData",
                available: &self.web_ssh_available,
                data: &self.web_ssh_data,
                subject: Subject::Address,
                signal: Signal::Change,
            },
            SourceQueries {
                name: "open",
                data_key: "openData",
                available: own.or(ssh.map(|(_, available)| available)).map_or("", String::as_str),
                data: if ssh.is_some() { &self.open_data } else { "" },
                subject: Subject::Address,
                signal: Signal::Positive,
            },
        ]
    }
}
