//! By what a user is known to the API server.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::runtime::error::ApiError;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// What the API server knows a user by: his token, or his name and groups, which the account of the daemon impersonates.
#[derive(Clone)]
pub struct Credential {
    headers: HeaderMap,
    is_of_account: bool,
}

impl Credential {
    /// The token of a user, without `Bearer`.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] for what cannot be a token: sent as it is, it could count as no token, and the request as one of
    /// the anonymous user.
    pub fn token(token: &str) -> Result<Self, ApiError> {
        let no_token = || ApiError::Forbidden("this is no token".to_owned());
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(no_token());
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| no_token())?;
        bearer.set_sensitive(true);
        Ok(Self { headers: HeaderMap::from_iter([(AUTHORIZATION, bearer)]), is_of_account: false })
    }

    /// A user of this name and these groups. The groups that no header can carry are left out: that takes rights, and gives none.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] for a name that no user can have, or only one of the API server itself, which has a colon.
    pub fn impersonated(name: &str, groups: &[String]) -> Result<Self, ApiError> {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
            return Err(ApiError::Forbidden(format!(
                "the user name {name:?} cannot be used: expected letters, digits and marks of ASCII without a colon"
            )));
        }
        Ok(Self::of_account(name, groups.iter().map(String::as_str)))
    }

    /// The account of the daemon, or the user whom it impersonates.
    pub(super) fn of_account<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        let mut headers = HeaderMap::new();
        if let Ok(name) = HeaderValue::from_str(name)
            && !name.is_empty()
        {
            headers.insert(USER, name);
        }
        for group in groups.into_iter().filter_map(|group| HeaderValue::from_str(group).ok()) {
            headers.append(GROUP, group);
        }
        Self { headers, is_of_account: true }
    }

    /// The headers by which the API server knows the user.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether the request is one of the account of the daemon.
    pub(super) fn is_of_account(&self) -> bool {
        self.is_of_account
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credential(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_token_is_none() {
        for token in ["", " ", "two words", "a\tb", "a\nb", "t\u{f6}ken", "token\n"] {
            let error = Credential::token(token).expect_err("no token");
            assert_eq!(error, ApiError::Forbidden("this is no token".to_owned()), "{token:?}");
        }
    }

    #[test]
    fn a_token_is_shown_nowhere() {
        let credential = Credential::token("ey.J-h_b").expect("a token");
        assert_eq!(format!("{credential:?}"), "Credential(…)");
        assert_eq!(format!("{:?}", credential.headers()), r#"{"authorization": Sensitive}"#);
        assert_eq!(credential.headers()[AUTHORIZATION], "Bearer ey.J-h_b");
    }

    #[test]
    fn who_is_impersonated_has_a_name_of_people() {
        for name in [
            "",
            "a b",
            "a\r\nimpersonate-group: x",
            "t\u{f6}m",
            "system:admin",
            "system:serviceaccount:a:b",
            ":",
        ] {
            let error = Credential::impersonated(name, &[]).expect_err("nobody");
            assert!(matches!(&error, ApiError::Forbidden(why) if why.contains("cannot be used")), "{error}");
        }
        let groups =
            ["one", "two words", "t\u{f6}", "line\nimpersonate-group: system:masters"].map(str::to_owned);
        let credential = Credential::impersonated("ada.rossi@example.org", &groups).expect("a user");
        let all = |name| credential.headers().get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all(USER), ["ada.rossi@example.org"]);
        let group = |text: &'static str| HeaderValue::from_bytes(text.as_bytes()).expect("a value");
        assert_eq!(all(GROUP), ["one", "two words", "t\u{f6}"].map(group).iter().collect::<Vec<_>>());
    }
}
