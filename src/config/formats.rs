//! Formats of text, including formats that several keys share. Other formats are defined next to their type or key.

use schemars::Schema;
use serde_json::json;

use crate::api::image::{is_host, is_host_port, is_image, is_image_name, is_repository, is_tag};
use crate::api::names::{check_dns_label, check_label_value, check_object_name, is_label_key};
use crate::api::quantity::Quantity;

/// A format of text values.
pub(super) struct Format {
    /// The name in the schema.
    pub name: &'static str,
    /// A description of valid texts, to be read after "expected".
    pub expected: &'static str,
    /// Whether a text is valid.
    pub accepts: fn(&str) -> bool,
    /// The pattern in the schema: see [`super::patterns`].
    #[cfg(test)]
    pub pattern: &'static str,
}

/// Declares formats, each with its name in the schema, whether it accepts a text, a description of valid texts, and the
/// pattern in the schema.
macro_rules! formats {
    ($($(#[$of_format:meta])* $format:ident = $name:literal, $accepts:expr, $expected:literal, $pattern:expr;)*) => {
        $(
            $(#[$of_format])*
            pub(super) const $format: $crate::config::formats::Format = $crate::config::formats::Format {
                name: $name,
                expected: $expected,
                accepts: $accepts,
                #[cfg(test)]
                pattern: $pattern,
            };
        )*

        /// The formats of this file.
        pub(super) const FORMATS: &[&$crate::config::formats::Format] = &[$(&$format),*];
    };
}
pub(super) use formats;

formats! {
    HOST = "crownlabs-host", is_host,
        "a host name such as crownlabs.example.com, in lower case, without scheme, port or slash",
        concat!("^", pattern!(host), "$");
    HOST_PORT = "crownlabs-host-port", is_host_port, "a host and a port such as instmetrics:9090",
        concat!("^", pattern!(host_port), "$");
    ORIGIN = "crownlabs-origin", is_origin,
        "the origin of a web page such as https://crownlabs.example.com, in lower case, without a slash at the end",
        concat!("^https?://", pattern!(authority), "$");
    HTTP_URL = "crownlabs-http-url", is_http_url,
        "a URL such as https://crownlabs.example.com/auth, without a slash, query or fragment at the end",
        r#"^https?://[^/:#?@"$ ]([^#?@"$ ]*[^/#?@"$ ])?$"#;
    SERVER_URL = "crownlabs-server-url", |text| text.is_empty() || is_http_url(text.trim_end_matches('/')),
        "a URL such as https://auth.example.com, without user, query or fragment, or \"\" for none",
        concat!("^(", pattern!(url), ")?$");
    DNS_LABEL = "crownlabs-dns-label", |text| check_dns_label(text).is_ok(),
        "at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends",
        concat!("^", pattern!(label), "$");
    OBJECT_NAME = "crownlabs-object-name", |text| check_object_name(text).is_ok(),
        "at most 253 lower-case letters, digits, dashes and dots, with a letter or digit at both ends",
        concat!("^", pattern!(name), "$");
    NAMESPACED_NAME = "crownlabs-namespaced-name", is_namespaced_name,
        "a namespace and a name, such as crownlabs-system/crownlabs-controller-manager",
        concat!("^", pattern!(label), "/", pattern!(name), "$");
    LABEL_KEY = "crownlabs-label-key", is_label_key,
        "the key of a label, such as crownlabs.polito.it/operator-selector",
        concat!("^(", pattern!(host), "/)?", pattern!(word), "$");
    LABEL_VALUE = "crownlabs-label-value", |text| check_label_value(text).is_ok(),
        "the value of a label: at most 63 letters, digits, dashes, underscores and dots, with a letter or digit at \
         both ends",
        concat!("^(", pattern!(word), ")?$");
    IMAGE_NAME = "crownlabs-image-name", is_image_name,
        "the name of an image without tag, such as crownlabs/websockify or registry.example.com:5000/websockify",
        concat!("^(", pattern!(host_port), "/)?", pattern!(repository), "$");
    IMAGE_TAG = "crownlabs-image-tag", is_tag, "the tag of an image, such as latest or v1.4.2",
        concat!("^", pattern!(tag), "$");
    IMAGE = "crownlabs-image", is_image,
        "an image such as busybox, crownlabs/img-exporter:v1 or registry.example.com/kaniko@sha256:…",
        concat!("^(", pattern!(host_port), "/)?", pattern!(repository), "(:", pattern!(tag), ")?(@[^:]*:[0-9a-f]{32,})?$");
    REGISTRY = "crownlabs-registry", is_registry,
        "a registry such as registry.example.com or registry.example.com:5000/snapshots, without scheme, or \"\" for \
         none",
        concat!("^(", pattern!(authority), "(/", pattern!(repository), ")?)?$");
    OPTIONAL_NAME = "crownlabs-optional-name", |text| text.is_empty() || check_object_name(text).is_ok(),
        "at most 253 lower-case letters, digits, dashes and dots, with a letter or digit at both ends, or \"\" for none",
        concat!("^(", pattern!(name), ")?$");
    QUANTITY = "crownlabs-quantity", |text| text.parse().is_ok_and(|amount: Quantity| !amount.is_negative()),
        "an amount such as 500m, 1Gi or 50G, not below 0",
        concat!("^", pattern!(amount), "$");
    OPTIONAL_QUANTITY = "crownlabs-optional-quantity",
        |text| text.is_empty() || text.parse().is_ok_and(|amount: Quantity| amount > Quantity::from_int(0)),
        "an amount such as 500M or 10Gi, above 0, or \"\" for none",
        concat!("^(", pattern!(positive_amount), ")?$");
}

/// Sets the schema of a map of texts to the schema of labels.
pub(super) fn labels(schema: &mut Schema) {
    schema.insert("propertyNames".to_owned(), json!({"format": LABEL_KEY.name}));
    schema.insert("additionalProperties".to_owned(), json!({"type": "string", "format": LABEL_VALUE.name}));
}

/// An amount that is a default.
pub(super) fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_default()
}

/// Whether a text is an absolute path without `..`.
pub(super) fn is_absolute(text: &str) -> bool {
    text.starts_with('/') && !text.contains(char::is_control) && !text.split('/').any(|part| part == "..")
}

/// The same, without a slash at the end.
pub(super) fn is_path(text: &str) -> bool {
    is_absolute(text) && !text.ends_with('/')
}

/// Whether a text is the origin of a web page.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| is_host(host) || is_host_port(host))
}

/// Whether a text is a namespace and the name of an object in it, with a slash between them.
fn is_namespaced_name(text: &str) -> bool {
    let parts = text.split_once('/');
    parts.is_some_and(|(of, name)| check_dns_label(of).is_ok() && check_object_name(name).is_ok())
}

/// Whether a text is a URL to which the instance loop can append `/auth` and `/start?rd=…`.
fn is_http_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let valid = |uri: &http::Uri| uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none();
    !rest.ends_with('/')
        && !rest.contains(['#', '?', '@', '"', '$'])
        && text.parse::<http::Uri>().is_ok_and(|uri| valid(&uri))
}

/// Whether a text is empty or a registry: a host, optionally with a port, followed by the leading components of
/// repositories.
fn is_registry(text: &str) -> bool {
    let (host, path) = text.split_once('/').map_or((text, None), |(host, path)| (host, Some(path)));
    text.is_empty() || (is_host(host) || is_host_port(host)) && path.is_none_or(is_repository)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::instance::PASSWORD_HASH;
    use crate::config::listen_address::LISTEN_ADDRESS;
    use crate::config::log::LOG_FILTER;
    use crate::config::mail::MAIL_HOST;
    use crate::config::network::NETWORK;
    use crate::config::schema;

    /// The texts of the tables that only the daemon rejects: patterns cannot express addresses among hosts, and the names
    /// of levels.
    const BEYOND_PATTERNS: [&str; 5] =
        ["10.0.0.1", "inof", "info,hyper", "crownlabs=loud", "info, hyper=off"];

    /// Checks that a format accepts the texts in `right` and refuses those in `wrong`, and that its pattern matches the
    /// former, and of the latter only those that patterns cannot tell.
    fn table(format: &Format, right: &[&str], wrong: &[&str]) {
        let pattern = regex::Regex::new(format.pattern).expect("a pattern");
        let is_match = |text: &&str| pattern.is_match(text) && (!text.is_empty() || (format.accepts)(""));
        for text in right {
            assert!((format.accepts)(text) && is_match(text), "{}: {text:?}", format.name);
        }
        for text in wrong {
            let is_beyond = BEYOND_PATTERNS.contains(text);
            assert!(!(format.accepts)(text) && (is_beyond || !is_match(text)), "{}: {text:?}", format.name);
        }
        assert!(schema::format(format.name).is_some(), "{} is not in the list", format.name);
    }

    #[test]
    fn hosts_and_addresses() {
        let long = "a".repeat(64);
        table(
            &HOST,
            &["crownlabs.example.com", "localhost", "a-b.c"],
            &["", "https://a.b", "a.b/", "a.b:80", "A.b", "a..b", "10.0.0.1", "::1", "*.a.b", &long],
        );
        table(
            &HOST_PORT,
            &["instmetrics:9090", "a.b:1", "10.0.0.1:80", "[::1]:80"],
            &["", "a", "a:", ":80", "a:0", "a:65536", "a:70000", "a:b", "http://a:80", "10.0.0.1:0"],
        );
        table(
            &LISTEN_ADDRESS,
            &["", "0.0.0.0:8080", "[::]:8080", "127.0.0.1:0", "127.0.0.1:65535"],
            &[":8080", "8080", "0.0.0.0", "localhost:8080", "0.0.0.0:65536", " "],
        );
        table(
            &HTTP_URL,
            &["https://a.b/auth", "http://a.b", "https://a.b:8443/x/y"],
            &[
                "",
                "a.b/auth",
                "https://a.b/",
                "https://a.b/auth/",
                "https://",
                "https:///auth",
                "ftp://a.b",
                "https://a.b/auth?x=1",
                "https://a.b/auth#x",
                "https://user@a.b/auth",
                "https://a b/auth",
                "https://a.b/$x",
                "https://:80/auth",
            ],
        );
        table(
            &SERVER_URL,
            &["", "https://auth.example.com", "http://keycloak:8080/", "https://a.b/kc/"],
            &["/", "auth.example.com", "https://", "https://user@a.b", "https://a.b?x=1", "ldap://a.b"],
        );
    }

    #[test]
    fn networks_names_and_amounts() {
        table(
            &NETWORK,
            &[
                "10.0.0.0/8",
                "192.0.2.1/32",
                "0.0.0.0/0",
                "2001:db8::/32",
                "::/0",
                "::1/128",
                "::ffff:10.0.0.0/99",
            ],
            &[
                "",
                "10.0.0.0",
                "10.0.0.0/33",
                "::/129",
                "10.0.0/8",
                "a:b/8",
                "a/8",
                "10.0.0.0/-1",
                "10.0.0.0/8/8",
            ],
        );
        table(
            &MAIL_HOST,
            &["", "mail.example.com", "192.0.2.1", "2001:db8::1", "::1", "1:2:3:4:5:6:7:8"],
            &["192.0.2.1:25", "mail:25", "a:b", "a..b", ".a", "a.", "[::1]", "smtp://a"],
        );
        let long = "a".repeat(64);
        table(&OBJECT_NAME, &["a", "a.b-c", &long], &["", "A", "-a", "a-", "a..b", "a_b", "a/b"]);
        table(&NAMESPACED_NAME, &["a/b.c", &format!("a/{long}")], &["", "a", "a/", "/a", "a.b/c", "a/b/c"]);
        table(&QUANTITY, &["0", "500m", "1Gi", "1.5G", ".5", "1e3"], &["", "-1", "1 Gi", "Gi", "1gi"]);
        table(
            &OPTIONAL_QUANTITY,
            &["", "500M", "10Gi", "0.5Gi", ".5", "10"],
            &["0", "0.0", "0Gi", "-1", "Gi"],
        );
    }

    #[test]
    fn labels() {
        table(
            &LABEL_KEY,
            &["a", "crownlabs.polito.it/operator-selector", "A_b.c", "1"],
            &["", "/a", "a/", "a/b/c", "A.b/c", "a b", "<<"],
        );
        table(&LABEL_VALUE, &["", "production", "A_b.c", "1"], &["a b", "-a", "a=b", "a,b"]);
    }

    #[test]
    fn images() {
        table(
            &IMAGE_NAME,
            &["busybox", "crownlabs/tigervnc", "docker.io/a/b", "registry.example.com:5000/a", "a/b__c-d"],
            &["", "a:latest", "a/b:1", "a@sha256:00", "a/", "/a", "A/b", "a//b", "a b", "a/-b", "r:5000/a:1"],
        );
        table(
            &IMAGE,
            &[
                "busybox",
                "a/b:v1",
                "r:5000/a",
                "r:5000/a:1",
                &format!("r.example.org/a:1@sha256:{}", "0a".repeat(32)),
            ],
            &["", "a:", "a b", "A", "a@", "a@sha256:00", "a:1:2", "a/b:c/d"],
        );
        table(
            &REGISTRY,
            &["", "registry.example.com", "registry:5000", "registry.example.com:5000/vm/snapshots", "r/a"],
            &["https://r", "r/", "R", "r:0", "r:port", "r/A", "r/a:1", "/a"],
        );
        table(&OPTIONAL_NAME, &["", "registry-credentials", "a.b"], &["A", "-a", "a_b"]);
        table(&IMAGE_TAG, &["latest", "v1.4.2", "_a", "A-b"], &["", ".a", "-a", ":a", "a/b", "a b"]);
        assert!(!is_tag(&"a".repeat(129)));
    }

    #[test]
    fn log_filters() {
        table(
            &LOG_FILTER,
            &[
                "info",
                "WARN",
                "off",
                "info,crownlabs::runtime=debug",
                "info,hyper=off",
                "crownlabs::runtime",
                "info,crownlabs[reconcile{kind=a}]=trace",
                "crownlabs[reconcile]",
            ],
            &["", "inof", "info,hyper", "info=", "crownlabs=loud", "info,", "info, hyper=off", "warn;info"],
        );
    }

    #[test]
    fn password_hashes() {
        table(
            &PASSWORD_HASH,
            &["$6$salt$hash./9", "$6$rounds=4096$s$h", "$y$j9T$s$h", "!", "*"],
            &[
                "",
                "crownlabs",
                "$6$",
                "$6$salt",
                "$6$salt$ha sh",
                "$6$salt$ha:sh",
                "$6$salt$hash\n",
                "!$6$s$h",
            ],
        );
    }
}
