//! The address of the client, which may be behind proxies.

use std::net::IpAddr;

use http::HeaderMap;

use crate::config::Network;

/// The header with the addresses of the client and the proxies. Each proxy appends its peer's address.
const FORWARDED: &str = "x-forwarded-for";

/// The values of the header in the order of arrival; `None` if it is missing.
pub fn forwarded(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(FORWARDED).iter();
    // A value that is not text is kept as an entry that is not an address.
    let texts: Vec<&str> = values.map(|value| value.to_str().unwrap_or("?")).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// The address of the client, or `None` if it is unknown. `peer` is the address that opened the connection.
///
/// A client can put anything into the header, so only entries that a known proxy has appended can be trusted. If the
/// peer is not a known proxy, the header is ignored and the peer is the client. Otherwise the first entry is the
/// client, and every further entry must be a known proxy. Any other entry means that the client sent a header itself,
/// or that a proxy is unknown, and then the client is unknown. If no proxies are configured, the peer counts as the
/// only proxy.
pub fn client(peer: IpAddr, forwarded: Option<&str>, proxies: &[Network]) -> Option<IpAddr> {
    let is_proxy = |address: IpAddr| proxies.iter().any(|network| network.contains(address));
    if !proxies.is_empty() && !is_proxy(peer) {
        return Some(peer.to_canonical());
    }
    let address = |entry: &str| entry.trim_matches([' ', '\t']).parse::<IpAddr>().ok();
    let mut entries = forwarded?.split(',');
    let client = address(entries.next()?)?;
    entries.all(|entry| address(entry).is_some_and(is_proxy)).then(|| client.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The client of a request from `peer`, or an empty text if it is unknown.
    fn found(peer: &str, header: Option<&str>, proxies: &[&str]) -> String {
        let proxies: Vec<Network> = proxies.iter().map(|text| text.parse().expect("a network")).collect();
        let client = client(peer.parse().expect("an address"), header, &proxies);
        client.map(|address| address.to_string()).unwrap_or_default()
    }

    #[test]
    fn without_known_proxies_the_one_entry_counts() {
        for (header, expected) in [
            (None, ""),
            (Some(""), ""),
            (Some("192.0.2.1"), "192.0.2.1"),
            (Some(" 192.0.2.1\t"), "192.0.2.1"),
            (Some("2001:db8::1"), "2001:db8::1"),
            (Some("::ffff:192.0.2.1"), "192.0.2.1"),
            // A forged entry before the one that the proxy has appended.
            (Some("10.0.0.1, 192.0.2.1"), ""),
            (Some("192.0.2.1, 192.0.2.1"), ""),
            (Some("garbage,192.0.2.1"), ""),
            (Some("192.0.2.1,"), ""),
            (Some("192.0.2.1, unknown"), ""),
            (Some("192.0.2.1:80"), ""),
            (Some("[2001:db8::1]"), ""),
            (Some("192.0.2.1 10.0.0.1"), ""),
            (Some("192.0.2"), ""),
            (Some("0x7f000001"), ""),
            (Some("010.0.0.1"), ""),
        ] {
            assert_eq!(found("10.9.9.9", header, &[]), expected, "{header:?}");
        }
    }

    #[test]
    fn with_known_proxies_the_header_is_believed_as_far_as_they_go() {
        let proxies = ["10.0.0.0/8", "192.0.2.80/32"];
        for (peer, header, expected) in [
            // A client that connects without a proxy is identified by its own address, whatever it sends.
            ("203.0.113.1", Some("10.1.1.1"), "203.0.113.1"),
            ("203.0.113.1", None, "203.0.113.1"),
            ("10.1.1.1", None, ""),
            ("10.1.1.1", Some("203.0.113.1"), "203.0.113.1"),
            // The outer proxy has appended the client, and the inner one has appended the outer one.
            ("10.1.1.1", Some("203.0.113.1, 192.0.2.80"), "203.0.113.1"),
            // The client has forged the entries before its own.
            ("10.1.1.1", Some("198.51.100.1, 203.0.113.1, 192.0.2.80"), ""),
            ("10.1.1.1", Some("198.51.100.1, 203.0.113.1"), ""),
            ("10.1.1.1", Some("10.2.2.2, 203.0.113.1"), ""),
            ("10.1.1.1", Some("garbage, 203.0.113.1"), ""),
            ("10.1.1.1", Some("203.0.113.1, garbage, 192.0.2.80"), ""),
            // The proxy itself is the client.
            ("10.1.1.1", Some("10.2.2.2, 192.0.2.80"), "10.2.2.2"),
        ] {
            assert_eq!(found(peer, header, &proxies), expected, "{peer} {header:?}");
        }
    }

    #[test]
    fn the_values_of_several_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(forwarded(&headers), None);
        headers.append(FORWARDED, HeaderValue::from_static("192.0.2.1"));
        headers.append(FORWARDED, HeaderValue::from_static("192.0.2.2, 192.0.2.3"));
        assert_eq!(forwarded(&headers).as_deref(), Some("192.0.2.1,192.0.2.2, 192.0.2.3"));
        headers.append(FORWARDED, HeaderValue::from_bytes(b"\xff").expect("a value"));
        assert_eq!(forwarded(&headers).as_deref(), Some("192.0.2.1,192.0.2.2, 192.0.2.3,?"));
    }
}
