//! Links: paths of this server, and addresses of machines.

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::controllers::dashboard::paths;

/// The characters that are encoded in a part of a path.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns a part of a path, encoded. `.` and `..` would lead to another path, so they are dropped.
pub fn encoded(part: &str) -> String {
    match part {
        "." | ".." => String::new(),
        part => utf8_percent_encode(part, PART).to_string(),
    }
}

/// Returns a path of a machine for a pattern of the router, such as `/machines/tenant-ada/desktop`.
pub fn of_machine(pattern: &str, namespace: &str, name: &str) -> String {
    paths::fill(pattern, |parameter| encoded(if parameter == "namespace" { namespace } else { name }))
}

/// Returns a path of an environment of a machine for a pattern of the router.
pub fn of_environment(pattern: &str, namespace: &str, name: &str, environment: &str) -> String {
    paths::fill(pattern, |parameter| {
        encoded(match parameter {
            "namespace" => namespace,
            "environment" => environment,
            _ => name,
        })
    })
}

/// Returns the path of the login that returns to a page.
pub fn login_at(path: &str) -> String {
    format!("/login?return={}", utf8_percent_encode(path, NON_ALPHANUMERIC))
}

/// Returns a path with an encoded query, if there is one.
pub fn queried(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Returns an address that a page may link to: `http` or `https` with a host. A user may have written the status of an Instance.
pub fn web(address: &str) -> Option<&str> {
    let uri: Uri = address.parse().ok()?;
    let is_web = uri.scheme_str().is_some_and(|scheme| matches!(scheme, "http" | "https"));
    let has_host = uri.host().is_some_and(|host| !host.is_empty());
    let is_plain =
        address.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\'));
    (is_web && has_host && is_plain).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_are_linked() {
        for good in ["https://labs.example.org/a/b?c=d#e", "http://10.0.0.1:8080/", "https://[2001:db8::1]/x"]
        {
            assert_eq!(web(good), Some(good));
        }
        for bad in [
            "",
            "/relative",
            "//host/x",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " javascript:alert(1)",
            "java\tscript:alert(1)",
            "data:text/html,x",
            "ftp://host/",
            "https://",
            "https:\\\\host",
            "https://host/\"onload=x",
            "https://host/\u{202e}x",
            "http://ho st/",
        ] {
            assert_eq!(web(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn names_are_encoded_in_paths() {
        assert_eq!(of_machine(paths::MACHINE, "tenant-ada", "a.b"), "/machines/tenant-ada/a.b");
        assert_eq!([queried("/", ""), queried("/", "q=a%26b+c")], ["/", "/?q=a%26b+c"]);
        assert_eq!(of_machine(paths::MACHINE, "..", "a/b?c#d\"<"), "/machines//a%2Fb%3Fc%23d%22%3C");
        let console = |name, environment| of_environment(paths::CONSOLE, "tenant-ada", name, environment);
        assert_eq!(console("vm", "main"), "/machines/tenant-ada/vm/main/console");
        assert_eq!(console("b&c", ".."), "/machines/tenant-ada/b%26c//console");
    }
}
