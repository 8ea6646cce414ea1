//! The keys of Prometheus; see `docs/prometheus-queries.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;
use super::query_template::{QueryTemplate, Subject, check_expression};
use super::rules::Rule;
use super::types::Config;

/// The Prometheus server that tells when Instances were last used; see `docs/prometheus-queries.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PrometheusConfig {
    /// The URL of the server, such as `http://prometheus.monitoring:9090`; empty if there is none.
    #[schemars(extend("format" = formats::SERVER_URL.name))]
    pub url: String,
    /// The time limit of a request.
    pub timeout: ConfigDuration,
    /// The file with the bearer token of every request, which is read again for each round of queries; empty
    /// for none.
    pub bearer_token_file: String,
    /// The file with the certificates of the authorities to trust, in PEM, which is read again when it
    /// changes; empty for those of the operating system.
    pub ca_file: String,
    /// The precision with which the time of a use is found, from `1s` to `1h`; it grows with the length of
    /// time that is asked for.
    pub query_step: ConfigDuration,
    /// The queries of the three sources: browser (`nginx`), SSH through the bastion, SSH in the browser.
    pub queries: PrometheusQueries,
}

/// The queries. Those of data are for one Instance, with `%s` or `%q` (a quoted `%s`) in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PrometheusQueries {
    /// The query whose first result is above 0 while the requests of browsers are counted.
    pub nginx_available: String,
    /// The counter of the requests of browsers, by namespace and Service; empty if there is none.
    pub nginx_data: String,
    /// The query whose first result is above 0 while SSH connections through the bastion are counted.
    pub bastion_ssh_available: String,
    /// The counter of SSH connections through the bastion, by IP address; empty if there is none.
    pub bastion_ssh_data: String,
    /// The query whose first result is above 0 while SSH connections in the browser are counted.
    pub web_ssh_available: String,
    /// The counter of SSH connections in the browser, by IP address; empty if there is none.
    pub web_ssh_data: String,
}

impl Default for PrometheusConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            timeout: ConfigDuration::from_secs(5),
            bearer_token_file: String::new(),
            ca_file: String::new(),
            query_step: ConfigDuration::from_secs(300),
            queries: PrometheusQueries::default(),
        }
    }
}

impl Default for PrometheusQueries {
    fn default() -> Self {
        Self {
            nginx_available: r#"count(up{service="ingress-nginx-external-controller-metrics"})"#.to_owned(),
            nginx_data: "nginx_ingress_controller_requests{exported_namespace=%q, exported_service=%q}"
                .to_owned(),
            bastion_ssh_available: r#"count(up{container="bastion-operator-tracker-sidecar"})"#.to_owned(),
            bastion_ssh_data: "bastion_ssh_connections{destination_ip=%q}".to_owned(),
            web_ssh_available: r#"count(up{container="webssh"})"#.to_owned(),
            web_ssh_data: "bastion_web_ssh_connections{destination_ip=%q}".to_owned(),
        }
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
}

impl PrometheusQueries {
    /// The sources, those that are off too.
    pub fn sources(&self) -> [SourceQueries<'_>; 3] {
        [
            SourceQueries {
                name: "ingress",
                data_key: "nginxData",
                available: &self.nginx_available,
                data: &self.nginx_data,
                subject: Subject::Service,
            },
            SourceQueries {
                name: "ssh",
                data_key: "bastionSshData",
                available: &self.bastion_ssh_available,
                data: &self.bastion_ssh_data,
                subject: Subject::Address,
            },
            SourceQueries {
                name: "webSsh",
                data_key: "webSshData",
                available: &self.web_ssh_available,
                data: &self.web_ssh_data,
                subject: Subject::Address,
            },
        ]
    }
}

const EXPECTED_SERVICE: &str = "expected a counter with the namespace and the Service, in this order, as \
     requests{namespace=%q, service=%q}, or \"\" for none";
const EXPECTED_ADDRESS: &str = "expected a counter with the IP address, as connections{ip=%q}, or with the \
     namespace and the Instance, as connections{namespace=%q, instance=%q}, or \"\" for none";
const EXPECTED_AVAILABLE: &str = "expected a query such as count(up{container=\"webssh\"}), or an empty \
     query of data";

/// The rules about these keys.
pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["integrations.prometheus.queries.nginxData"],
        broken: |config| bad_template(config, "nginxData"),
        expected: EXPECTED_SERVICE,
    },
    Rule {
        keys: &["integrations.prometheus.queries.bastionSshData"],
        broken: |config| bad_template(config, "bastionSshData"),
        expected: EXPECTED_ADDRESS,
    },
    Rule {
        keys: &["integrations.prometheus.queries.webSshData"],
        broken: |config| bad_template(config, "webSshData"),
        expected: EXPECTED_ADDRESS,
    },
    Rule {
        keys: &[
            "integrations.prometheus.queries.nginxAvailable",
            "integrations.prometheus.queries.nginxData",
        ],
        broken: |config| bad_availability(config, "nginxData"),
        expected: EXPECTED_AVAILABLE,
    },
    Rule {
        keys: &[
            "integrations.prometheus.queries.bastionSshAvailable",
            "integrations.prometheus.queries.bastionSshData",
        ],
        broken: |config| bad_availability(config, "bastionSshData"),
        expected: EXPECTED_AVAILABLE,
    },
    Rule {
        keys: &[
            "integrations.prometheus.queries.webSshAvailable",
            "integrations.prometheus.queries.webSshData",
        ],
        broken: |config| bad_availability(config, "webSshData"),
        expected: EXPECTED_AVAILABLE,
    },
    Rule {
        keys: &["integrations.prometheus.queries", "integrations.prometheus.url"],
        broken: |config| {
            let prometheus = &config.integrations.prometheus;
            let has_source = prometheus.queries.sources().iter().any(|source| !source.data.is_empty());
            (!prometheus.url.is_empty() && !has_source).then(|| "all queries of data are empty".to_owned())
        },
        expected: "expected at least one, because without any every Instance would seem to be unused",
    },
    Rule {
        keys: &["integrations.prometheus.timeout"],
        broken: |config| {
            let timeout = config.integrations.prometheus.timeout;
            timeout.get().is_zero().then(|| format!("{timeout} is too short"))
        },
        expected: "expected more than 0s",
    },
    Rule {
        keys: &["integrations.prometheus.queryStep"],
        broken: |config| {
            let step = config.integrations.prometheus.query_step;
            let seconds = step.get().as_secs();
            let is_whole = step.get().subsec_nanos() == 0;
            (!is_whole || !(1..=3_600).contains(&seconds)).then(|| format!("{step} is not possible"))
        },
        expected: "expected whole seconds, from 1s to 1h",
    },
];

/// What is wrong with a query of data.
fn bad_template(config: &Config, data_key: &str) -> Option<String> {
    let sources = config.integrations.prometheus.queries.sources();
    let source = sources.into_iter().find(|source| source.data_key == data_key && !source.data.is_empty())?;
    QueryTemplate::parse(source.data, source.subject).err().map(|error| error.to_string())
}

/// What is wrong with the query of availability of a source that is not off.
fn bad_availability(config: &Config, data_key: &str) -> Option<String> {
    let sources = config.integrations.prometheus.queries.sources();
    let source = sources.into_iter().find(|source| source.data_key == data_key && !source.data.is_empty())?;
    if source.available.trim().is_empty() {
        return Some(format!("{data_key} is given and its query of availability is empty"));
    }
    check_expression(source.available).err().map(|error| error.to_string())
}
