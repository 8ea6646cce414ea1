//! What a logout has ended, in the address of the page that says so.

use crate::controllers::dashboard::paths;
use crate::controllers::shared::sealing::Keys;

/// The purpose of the seal.
const PURPOSE: &str = "logout";

/// What a logout has ended, besides the cookie of the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logout {
    /// Whether no replica accepts the session any more, or will do so in a few seconds.
    pub is_everywhere: bool,
    /// Whether the session at the issuer has ended, too.
    pub is_at_issuer: bool,
}

impl Logout {
    /// Returns the address of the page about it. It is sealed, so that no link of another site leads to a page that
    /// reports a logout.
    pub fn address(self, keys: &Keys) -> String {
        let parts = [u8::from(self.is_everywhere), u8::from(self.is_at_issuer)];
        format!("{}?of={}", paths::LOGGED_OUT, keys.seal(PURPOSE, &parts))
    }

    /// Reads the query of an address; `None` if the dashboard has not written it.
    pub fn parse(keys: &Keys, of: &str) -> Option<Self> {
        let [is_everywhere, is_at_issuer] = <[u8; 2]>::try_from(keys.open(PURPOSE, of)?).ok()?;
        Some(Self { is_everywhere: is_everywhere == 1, is_at_issuer: is_at_issuer == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_if_the_dashboard_has_written_it() {
        let keys = Keys::parse(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").expect("a key");
        for [is_everywhere, is_at_issuer] in [[false, false], [false, true], [true, false], [true, true]] {
            let logout = Logout { is_everywhere, is_at_issuer };
            let address = logout.address(&keys);
            let of = address.strip_prefix("/logged-out?of=").expect("the path");
            assert_eq!(Logout::parse(&keys, of), Some(logout));
            assert_eq!(Logout::parse(&keys, &of[1..]), None);
        }
        assert_eq!(Logout::parse(&keys, &keys.seal("other", &[1, 1])), None, "for another purpose");
        assert_eq!(Logout::parse(&keys, &keys.seal(PURPOSE, &[1])), None);
    }
}
