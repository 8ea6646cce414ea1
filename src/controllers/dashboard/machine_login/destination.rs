//! The address of a machine that a login leads to. Any site can write it into a link.

use crate::controllers::shared::machine_host::label_of;
use crate::controllers::shared::machine_login::{CODE, EXCHANGE};

/// The maximum length of the path and query that a login returns to. The header of the response contains it.
const MOST: usize = 500;
/// The maximum length of the exchange, with the code of such a path.
const MOST_OF_EXCHANGE: usize = 2_000;

/// The address of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination<'a> {
    /// The label of its host.
    pub label: &'a str,
    /// The path and query. A query that is too long is left out.
    pub target: &'a str,
    authority: &'a str,
}

impl<'a> Destination<'a> {
    /// Reads an address; `None` if it is not an address of a machine directly below `base`. A machine has the port of
    /// the dashboard at `dashboard`, such as `https://labs.example.com:8443`.
    pub fn parse(address: &'a str, base: &str, dashboard: &str) -> Option<Self> {
        let rest = address.strip_prefix("https://")?;
        let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let own = dashboard.strip_prefix("https://").unwrap_or_default();
        let port = own.find(':').map_or("", |at| &own[at..]);
        let label = label_of(authority.strip_suffix(port)?, base)?;
        let target = if target.is_empty() { "/" } else { target };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#');
        if !target.starts_with('/') || !target.bytes().all(is_plain) {
            return None;
        }
        let is_exchange = target.strip_prefix(EXCHANGE).is_some_and(|rest| rest.starts_with('?'));
        if is_exchange {
            return (target.len() <= MOST_OF_EXCHANGE).then_some(Self { label, target, authority });
        }
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let target = if target.len() > MOST { path } else { target };
        (target.len() <= MOST).then_some(Self { label, target, authority })
    }

    /// Returns the code, if the address is that of an exchange.
    pub fn code(&self) -> Option<String> {
        let query = self.target.strip_prefix(EXCHANGE)?.strip_prefix('?')?;
        let mut fields = form_urlencoded::parse(query.as_bytes());
        Some(fields.find(|(name, _)| name == CODE).map(|(_, code)| code.into_owned()).unwrap_or_default())
    }

    /// Returns the URL of another path of the machine.
    pub fn url_of(&self, target: &str) -> String {
        format!("https://{}{target}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "machines.example.com";
    const LABEL: &str = "abcdefghijklmnopqrstuvwxyz";

    fn parsed(address: &str) -> Option<Destination<'_>> {
        Destination::parse(address, BASE, "https://labs.example.com")
    }

    #[test]
    fn an_address_of_a_machine_is_read() {
        let host = format!("https://{LABEL}.{BASE}");
        for (rest, target) in [
            ("", "/"),
            ("/", "/"),
            ("/instance/1/app/?a=b%20c&d", "/instance/1/app/?a=b%20c&d"),
            ("//evil.example.org/", "//evil.example.org/"),
        ] {
            let address = format!("{host}{rest}");
            let found = parsed(&address).expect("a machine");
            assert_eq!((found.label, found.target, found.code()), (LABEL, target, None), "{rest}");
            assert_eq!(found.url_of(found.target), format!("{host}{target}"), "it stays at the host");
        }
        let long = format!("{host}/app?{}", "a".repeat(MOST));
        assert_eq!(parsed(&long).map(|found| found.target), Some("/app"));
        let too_long = format!("{host}/{}", "a".repeat(MOST));
        assert_eq!(parsed(&too_long), None);
    }

    #[test]
    fn no_other_address_is_read() {
        for address in [
            String::new(),
            "/".to_owned(),
            format!("http://{LABEL}.{BASE}/"),
            format!("//{LABEL}.{BASE}/"),
            format!("HTTPS://{LABEL}.{BASE}/"),
            format!("https://{BASE}/"),
            format!("https://exam.{BASE}/"),
            format!("https://x.{LABEL}.{BASE}/"),
            format!("https://{LABEL}.{BASE}.example.org/"),
            format!("https://{LABEL}.{BASE}:8443/"),
            format!("https://{LABEL}.{BASE}@example.org/"),
            format!("https://user@{LABEL}.{BASE}/"),
            format!("https://example.org/{LABEL}.{BASE}/"),
            format!("https://example.org\\.{LABEL}.{BASE}/"),
            format!("https://{LABEL}.{BASE}\\@example.org/"),
            format!("https://{LABEL}.{BASE}?a"),
            format!("https://{LABEL}.{BASE}/\\x"),
            format!("https://{LABEL}.{BASE}/#x"),
            format!("https://{LABEL}.{BASE}/\u{e9}"),
            format!("https://{LABEL}.{BASE}/\r\nset-cookie: a"),
            format!("javascript://{LABEL}.{BASE}/"),
        ] {
            assert_eq!(parsed(&address), None, "{address}");
        }
    }

    #[test]
    fn a_machine_has_the_port_of_the_dashboard() {
        let with_port = format!("https://{LABEL}.{BASE}:8443/a");
        let without = format!("https://{LABEL}.{BASE}/a");
        let other = format!("https://{LABEL}.{BASE}:18443/a");
        let read = |address: &str| {
            let found = Destination::parse(address, BASE, "https://labs.example.com:8443");
            found.map(|found| found.url_of("/b"))
        };
        assert_eq!(read(&with_port), Some(format!("https://{LABEL}.{BASE}:8443/b")));
        assert_eq!([read(&without), read(&other)], [None, None]);
    }

    #[test]
    fn an_exchange_has_a_code() {
        let code =
            |rest: &str| parsed(&format!("https://{LABEL}.{BASE}{rest}")).and_then(|found| found.code());
        assert_eq!(code("/_crownlabs/login?code=a-b_c"), Some("a-b_c".to_owned()));
        assert_eq!(code("/_crownlabs/login?x"), Some(String::new()));
        assert_eq!(code("/_crownlabs/login"), None);
        let long = "a".repeat(1_900);
        assert_eq!(code(&format!("/_crownlabs/login?code={long}")), Some(long));
    }
}
