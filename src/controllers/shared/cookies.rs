//! The format of cookies of one host.

use http::HeaderMap;
use http::header::COOKIE;

/// The attributes of all cookies. Browsers accept a name that begins with `__Host-` only with these attributes, and
/// only from the host itself, so a machine on a sibling host cannot set it.
pub const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Lax";

/// Returns the values of all cookies with a name. The header can contain cookies of other hosts, for example of a
/// machine that sets them for the parent domain. They do not hide the cookies of this host: a value that is not text
/// is skipped. Only ASCII spaces are trimmed, because a browser does not protect a name with `__Host-` after other
/// white space.
pub fn given<'h>(headers: &'h HeaderMap, name: &'h str) -> impl Iterator<Item = &'h str> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let value = pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok()
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn all_cookies_of_a_name_are_found() {
        let mut headers = HeaderMap::new();
        for line in ["a=1; b=2;c=3", "  b=4=5 ;=;x;", "ab=6; b="] {
            headers.append(COOKIE, HeaderValue::from_static(line));
        }
        headers.append(COOKIE, HeaderValue::from_bytes(b"b=\xff").expect("a value"));
        assert_eq!(given(&headers, "b").collect::<Vec<_>>(), ["2", "4=5", ""]);
    }

    #[test]
    fn cookies_of_another_host_neither_hide_nor_replace_ours() {
        let line =
            "a=\u{e9}; \u{2000}__Host-n=1; __Host-n=2; =__Host-n=3; \"__Host-n=4; __host-n=5; __Host-n =6"
                .as_bytes();
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_bytes(&[b"a=\xff; ", line].concat()).expect("a value"));
        assert_eq!(given(&headers, "__Host-n").collect::<Vec<_>>(), ["2"]);
        let many = "__Host-n=x; ".repeat(1_400);
        headers.insert(COOKIE, HeaderValue::try_from(format!("{many}__Host-n=y")).expect("a value"));
        assert_eq!(given(&headers, "__Host-n").last(), Some("y"));
    }
}
