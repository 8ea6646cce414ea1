//! The address of the client, whom proxies may stand before.

use std::net::IpAddr;

use http::HeaderMap;

use crate::config::Network;

/// The header in which each proxy appends the address that it was called from.
const FORWARDED: &str = "x-forwarded-for";

/// The values of the header, in the order in which they were received; `None` without one.
pub fn forwarded(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(FORWARDED).iter();
    // What is no text is kept as an entry that is no address.
    let texts: Vec<&str> = values.map(|value| value.to_str().unwrap_or("?")).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// The address of the client; `None` if it is not known. `peer` has opened the connection.
///
/// Whoever sends a request writes into the header what it likes: only what a proxy has appended is true. Of a peer that is no
/// proxy, the header is not read. Otherwise it is believed only if every hop is a known proxy, but the first, which is the
/// client: an entry of somebody else means that the client itself has sent a header, or that a proxy is not known. Without
/// known proxies, the peer counts as the only one.
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

    /// The client of a request of `peer`; an empty text stands for none.
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
            // Somebody who connects without a proxy is who it is, whatever it sends.
            ("203.0.113.1", Some("10.1.1.1"), "203.0.113.1"),
            ("203.0.113.1", None, "203.0.113.1"),
            ("10.1.1.1", None, ""),
            ("10.1.1.1", Some("203.0.113.1"), "203.0.113.1"),
            // The outer proxy has appended the client, the inner one the outer one.
            ("10.1.1.1", Some("203.0.113.1, 192.0.2.80"), "203.0.113.1"),
            // The client has forged the entries before its own.
            ("10.1.1.1", Some("198.51.100.1, 203.0.113.1, 192.0.2.80"), ""),
            ("10.1.1.1", Some("198.51.100.1, 203.0.113.1"), ""),
            ("10.1.1.1", Some("10.2.2.2, 203.0.113.1"), ""),
            ("10.1.1.1", Some("garbage, 203.0.113.1"), ""),
            ("10.1.1.1", Some("203.0.113.1, garbage, 192.0.2.80"), ""),
            // A proxy that asks by itself.
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
