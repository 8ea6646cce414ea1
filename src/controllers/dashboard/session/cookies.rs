//! The form of cookies in headers.

use http::HeaderMap;
use http::header::COOKIE;
use jiff::SignedDuration;

use super::TooLong;

/// The most bytes of a cookie that browsers keep.
pub const LONGEST: usize = 4_096;
/// What all cookies have. A name that begins with `__Host-` has it or is refused by the browser, so that no machine at a host beside
/// can have set it.
const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Lax";

/// A cookie for `Set-Cookie`; without an age, it lasts until the browser ends.
///
/// # Errors
/// If it is too long.
pub fn cookie(name: &str, value: &str, age: Option<SignedDuration>) -> Result<String, TooLong> {
    let age = age.map_or_else(String::new, |age| format!("Max-Age={}; ", age.as_secs()));
    let cookie = format!("{name}={value}; {age}{ATTRIBUTES}");
    if cookie.len() > LONGEST { Err(TooLong) } else { Ok(cookie) }
}

/// The cookie that removes another.
pub fn deleted(name: &str) -> String {
    format!("{name}=; Max-Age=0; {ATTRIBUTES}")
}

/// A cookie that scripts may read, for a year, such as the language.
pub fn plain(name: &str, value: &str) -> String {
    format!("{name}={value}; Max-Age=31536000; Path=/; Secure; SameSite=Lax")
}

/// The values of the cookies with a name that a browser sends. What another host has put into the same line, such as a machine for
/// the domain above both, hides none of ours: a value that is no text is left out alone. Only ASCII spaces are trimmed: a browser
/// does not know a name as one with `__Host-` if other white space is before it.
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
    fn a_cookie_of_another_host_hides_none_and_is_none_of_ours() {
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

    #[test]
    fn a_cookie_is_for_its_own_host_by_https_alone() {
        assert_eq!(cookie("n", "v", None).as_deref(), Ok("n=v; Path=/; Secure; HttpOnly; SameSite=Lax"));
        assert_eq!(deleted("n"), "n=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax");
        assert_eq!(cookie("n", &"v".repeat(LONGEST), None), Err(TooLong));
    }
}
