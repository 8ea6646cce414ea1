//! The keys of the exam agent; see `docs/exam-agent.md`.

use std::collections::BTreeMap;

use super::formats::{self, Format};
use super::keys::keys;
use super::listen_address::ListenAddress;
use super::network::Network;

keys! {
    /// The exam agent.
    pub struct ExamAgentConfig {
        /// Whether this replica serves exams; if so, `namespace` is required.
        pub enabled: bool,
        /// The address and port of the HTTP server.
        pub listen: ListenAddress = ListenAddress::port(8888),
        /// The only namespace whose Instances and Templates are used.
        pub namespace: String as formats::OPTIONAL_NAME,
        /// The Tenant to which the Instances belong; those of others in the namespace are neither shown nor touched.
        pub tenant: String as formats::OBJECT_NAME = "service-tenant".to_owned(),
        /// What the paths begin with.
        pub base_path: String as BASE_PATH = "/api".to_owned(),
        /// The networks of the clients that may list, create, replace and delete Instances; if empty, nobody may.
        pub allowed_ips: Vec<Network>,
        /// Whether everybody who reaches the server may do that, so that `allowedIps` is empty.
        pub allow_anyone: bool,
        /// The networks of the proxies whose header `X-Forwarded-For` is believed, as narrow as possible: whoever is in
        /// one can say who it is. If empty, whoever connects counts as the one proxy.
        pub trusted_proxies: Vec<Network>,
        /// The labels of the Templates that are for exams; if empty, those are all of the namespace.
        #[schemars(transform = formats::labels)]
        pub template_selector: BTreeMap<String, String>,
        /// Whether the URLs of desktops, contents and status checks are hidden from clients that are not in
        /// `allowedIps`.
        pub hide_urls: bool = true,
        /// The number of requests to the API server in a second, from 1 to 10000.
        #[schemars(range(min = 1, max = 10_000))]
        pub client_qps: u32 = 100,
        /// The number of such requests that may be sent at once after a rest, from 1 to 10000.
        #[schemars(range(min = 1, max = 10_000))]
        pub client_max_burst: u32 = 100,
        /// The folder with `tls.crt` and `tls.key`, which are read again when they change; empty to serve without TLS,
        /// behind an Ingress.
        pub certificate_dir: String,
    }
}

const BASE_PATH: Format = Format::new(
    "crownlabs-base-path",
    "a path such as /api: segments of letters, digits, dashes, dots, underscores and tildes, each after a slash",
    is_base_path,
);

/// The formats of these keys.
pub(super) const FORMATS: [&Format; 1] = [&BASE_PATH];

/// Whether a text is a path that needs no encoding, without a slash at its end.
fn is_base_path(text: &str) -> bool {
    let is_segment = |segment: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !matches!(segment, "" | "." | "..") && segment.bytes().all(fits)
    };
    text.strip_prefix('/').is_some_and(|path| path.split('/').all(is_segment))
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
