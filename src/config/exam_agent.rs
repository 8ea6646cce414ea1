//! The keys of the exam agent; see `docs/exam-agent.md`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats::{self, Format};
use super::network::{self, Network};
use super::rules::Rule;
use super::types::{Config, ListenAddress};

/// The exam agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExamAgentConfig {
    /// Whether this replica serves exams; if so, `namespace` is required.
    pub enabled: bool,
    /// The address and port of the HTTP server.
    pub listen: ListenAddress,
    /// The only namespace whose Instances and Templates are used.
    #[schemars(extend("format" = formats::OPTIONAL_NAME.name))]
    pub namespace: String,
    /// The Tenant to which the Instances belong; those of others in the namespace are neither shown nor touched.
    #[schemars(extend("format" = formats::OBJECT_NAME.name))]
    pub tenant: String,
    /// What the paths begin with.
    #[schemars(extend("format" = BASE_PATH.name))]
    pub base_path: String,
    /// The networks of the clients that may list, create, replace and delete Instances; if empty, nobody may.
    pub allowed_ips: Vec<Network>,
    /// Whether everybody who reaches the server may do that, so that `allowedIps` is empty.
    pub allow_anyone: bool,
    /// The networks of the proxies whose header `X-Forwarded-For` is believed, as narrow as possible: whoever is in one can say
    /// who it is. If empty, whoever connects counts as the one proxy.
    pub trusted_proxies: Vec<Network>,
    /// The labels of the Templates that are for exams; if empty, those are all of the namespace.
    #[schemars(extend(
        "propertyNames" = {"format": formats::LABEL_KEY.name},
        "additionalProperties" = {"type": "string", "format": formats::LABEL_VALUE.name},
    ))]
    pub template_selector: BTreeMap<String, String>,
    /// Whether the URLs of desktops, contents and status checks are hidden from clients that are not in `allowedIps`.
    pub hide_urls: bool,
    /// The number of requests to the API server in a second, from 1 to 10000.
    #[schemars(range(min = 1, max = 10_000))]
    pub client_qps: u32,
    /// The number of such requests that may be sent at once after a rest, from 1 to 10000.
    #[schemars(range(min = 1, max = 10_000))]
    pub client_max_burst: u32,
    /// The folder with `tls.crt` and `tls.key`, which are read again when they change; empty to serve without TLS, behind an
    /// Ingress.
    pub certificate_dir: String,
}

impl Default for ExamAgentConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            listen: ListenAddress(Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8888)))),
            namespace: String::new(),
            tenant: "service-tenant".to_owned(),
            base_path: "/api".to_owned(),
            allowed_ips: Vec::new(),
            allow_anyone: false,
            trusted_proxies: Vec::new(),
            template_selector: BTreeMap::new(),
            hide_urls: true,
            client_qps: 100,
            client_max_burst: 100,
            certificate_dir: String::new(),
        }
    }
}

const BASE_PATH: Format = Format::new(
    "crownlabs-base-path",
    "a path such as /api: segments of letters, digits, dashes, dots, underscores and tildes, each after a slash",
    is_base_path,
);

/// The formats of these keys.
pub(super) const FORMATS: [&Format; 2] = [&BASE_PATH, &network::FORMAT];

/// Whether a text is a path that needs no encoding, without a slash at its end.
fn is_base_path(text: &str) -> bool {
    let is_segment = |segment: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !matches!(segment, "" | "." | "..") && segment.bytes().all(fits)
    };
    text.strip_prefix('/').is_some_and(|path| path.split('/').all(is_segment))
}

/// The rules about these keys.
pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["controllers.examAgent.namespace", "controllers.examAgent.enabled"],
        broken: |config| lacks(config, "namespace", |keys| keys.namespace.is_empty()),
        expected: "expected the namespace of the exams",
    },
    Rule {
        keys: &["controllers.examAgent.listen", "controllers.examAgent.enabled"],
        broken: |config| lacks(config, "listen", |keys| keys.listen.address().is_none()),
        expected: "expected an address and a port",
    },
    Rule {
        keys: &["controllers.examAgent.allowAnyone", "controllers.examAgent.allowedIps"],
        broken: |config| {
            let keys = &config.controllers.exam_agent;
            let both = keys.allow_anyone && !keys.allowed_ips.is_empty();
            both.then(|| "allowAnyone is true and allowedIps names networks".to_owned())
        },
        expected: "expected one of them",
    },
];

/// The problem that the exam agent is enabled and a key is empty.
fn lacks(config: &Config, key: &str, is_empty: fn(&ExamAgentConfig) -> bool) -> Option<String> {
    let keys = &config.controllers.exam_agent;
    (keys.enabled && is_empty(keys)).then(|| format!("examAgent is enabled and {key} is empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_needs_no_encoding() {
        for text in ["/api", "/a/b", "/exams-1.0/api_v2~"] {
            assert!(is_base_path(text), "{text:?}");
        }
        for text in ["", "/", "api", "/api/", "//api", "/a//b", "/..", "/a/./b", "/a b", "/%61", "/a?b", "/ä"]
        {
            assert!(!is_base_path(text), "{text:?}");
        }
    }
}
