//! The keys of the exam agent; see `docs/exam-agent.md`.

use std::collections::BTreeMap;

use super::formats::{self, formats};
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
        /// The Tenant that owns the Instances. Instances of other Tenants in the namespace are neither shown nor
        /// changed.
        pub tenant: String as formats::OBJECT_NAME = "service-tenant".to_owned(),
        /// The prefix of all paths.
        pub base_path: String as BASE_PATH = "/api".to_owned(),
        /// The networks of the clients that may list, create, replace and delete Instances; if empty, no client may.
        pub allowed_ips: Vec<Network>,
        /// Whether every client that reaches the server may do that; if so, `allowedIps` must be empty.
        pub allow_anyone: bool,
        /// The networks of the proxies whose header `X-Forwarded-For` is trusted. Keep them as narrow as possible: any
        /// client in them can claim any address. If empty, every connecting client counts as the one proxy.
        pub trusted_proxies: Vec<Network>,
        /// The labels of the Templates for exams; if empty, all Templates of the namespace are used.
        #[schemars(transform = formats::labels)]
        pub template_selector: BTreeMap<String, String>,
        /// Whether the URLs of desktops, contents and status checks are hidden from clients that are not in
        /// `allowedIps`.
        pub hide_urls: bool = true,
        /// Whether a browser is redirected to a desktop without a login (`instance.access.exams: none`) only with the
        /// token of its Instance, which clients of `allowedIps` read. Otherwise, the name of the Instance is sufficient.
        pub require_token: bool,
        /// The number of requests to the API server per second, from 1 to 10000.
        pub client_qps: u32 as 1..=10_000 = 100,
        /// The number of requests to the API server that may be sent in one burst after idle time, from 1 to 10000.
        pub client_max_burst: u32 as 1..=10_000 = 100,
        /// The folder with `tls.crt` and `tls.key`, reloaded when they change; empty to serve without TLS behind an
        /// Ingress.
        pub certificate_dir: String,
    }
}

formats! {
    BASE_PATH = "crownlabs-base-path", is_base_path,
        "a path such as /api: segments of letters, digits, dashes, dots, underscores and tildes, each after a slash",
        "^(/[-A-Za-z0-9._~]+)+$";
}

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
