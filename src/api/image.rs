//! Names of container images, by the grammar of the OCI distribution specification.

use std::net::{IpAddr, SocketAddr};

use super::names::{check_dns_label, check_object_name};

/// Whether a text is the name of a repository: components separated by slashes. A component consists of
/// lower-case letters and digits, with one dot, one or two underscores, or any number of dashes between them.
pub fn is_repository(text: &str) -> bool {
    text.split('/').all(is_component)
}

/// Whether a text is one component of the name of a repository.
fn is_component(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |run: &str| matches!(run, "." | "_" | "__") || run.bytes().all(|byte| byte == b'-');
    let inner = text.trim_matches(is_plain);
    // `inner` is empty, or begins and ends with a separator.
    let bounded = text.starts_with(is_plain) && text.ends_with(is_plain);
    bounded && inner.split(is_plain).filter(|run| !run.is_empty()).all(is_separator)
}

/// Whether a text is a tag: at most 128 letters, digits, underscores, dots and dashes. It does not begin with a dot
/// or a dash.
pub fn is_tag(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// Whether a text is a DNS name. IP addresses are excluded: the API server rejects them as the host of an Ingress.
pub fn is_host(text: &str) -> bool {
    check_object_name(text).is_ok()
        && text.split('.').all(|label| check_dns_label(label).is_ok())
        && text.parse::<IpAddr>().is_err()
}

/// Whether a text is a host with a port, or an IP address with one.
pub fn is_host_port(text: &str) -> bool {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return address.port() != 0;
    }
    text.rsplit_once(':')
        .is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok_and(|port| port != 0))
}

/// Whether the text is the name of an image without a tag: a repository of the OCI distribution specification, with
/// an optional registry before it.
pub fn is_image_name(text: &str) -> bool {
    let (registry, repository) = match text.split_once('/') {
        Some((first, rest)) if is_host_port(first) => (Some(first), rest),
        _ => (None, text),
    };
    let length = registry.map_or(0, str::len) + repository.len();
    length <= 255 && is_repository(repository)
}

/// Whether a text is an image: its name, optionally with a tag, a digest or both.
pub fn is_image(text: &str) -> bool {
    let (text, digest) = text.split_once('@').map_or((text, None), |(text, digest)| (text, Some(digest)));
    let (name, tag) = match text.rsplit_once(':') {
        // If a slash follows, the colon belongs to the port of the registry.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (text, None),
    };
    let is_digest = |digest: &str| {
        let hash = digest.split_once(':').map_or("", |(_, hash)| hash);
        hash.len() >= 32 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    is_image_name(name) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_follow_the_grammar_of_registries() {
        for text in ["a", "0", "ab", "a.b", "a_b", "a__b", "a-b", "a---b", "a.b_c-d", "dir/a.b", "a/b/c"] {
            assert!(is_repository(text), "{text}");
        }
        for text in [
            "", "A", "a..b", "a___b", "a._b", "a-.b", ".a", "a.", "-a", "a-", "_a", "a_", "/a", "a/", "a//b",
            "a:b", "a@b", "a b", "ä", "a/../b", "..",
        ] {
            assert!(!is_repository(text), "{text}");
        }
    }
}
