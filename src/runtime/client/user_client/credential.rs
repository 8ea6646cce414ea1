//! The credentials that authenticate a user to the API server.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::PassedIdentity;
use crate::runtime::error::ApiError;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// The credential of a user: their token, or their name and groups, which the daemon's account impersonates.
#[derive(Clone, derive_more::Debug)]
#[debug("Credential(…)")]
pub struct Credential {
    /// The headers that authenticate the user.
    pub(super) headers: HeaderMap,
    /// Whether the request is sent with the account of the daemon.
    pub(super) is_of_account: bool,
}

impl Credential {
    /// Creates a credential from the token of a user, without `Bearer`.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] if the text cannot be a token. The API server might treat it as a missing token, and the
    /// request as anonymous.
    pub fn token(token: &str) -> Result<Self, ApiError> {
        let no_token = || ApiError::Forbidden("this is not a valid token".to_owned());
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(no_token());
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| no_token())?;
        bearer.set_sensitive(true);
        Ok(Self { headers: HeaderMap::from_iter([(AUTHORIZATION, bearer)]), is_of_account: false })
    }

    /// Creates a credential for a user with this name and these groups. Groups that cannot be sent in a header are left
    /// out, which can only reduce permissions.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`] if the name is invalid, or contains a colon like the names that the API server reserves.
    pub fn impersonated(name: &str, groups: &[String]) -> Result<Self, ApiError> {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
            return Err(ApiError::Forbidden(format!(
                "the user name {name:?} cannot be used: expected printable ASCII characters without spaces or colons"
            )));
        }
        Ok(Self::of_account(name, groups.iter().map(String::as_str)))
    }

    /// Creates a credential from the identity that another server has passed.
    ///
    /// # Errors
    /// As for [`Credential::token`] and [`Credential::impersonated`].
    pub fn passed(identity: &PassedIdentity) -> Result<Self, ApiError> {
        let mut credential = Self::token(&identity.token)?;
        if let Some(name) = &identity.user {
            credential.headers.extend(Self::impersonated(name, &identity.groups)?.headers);
        }
        Ok(credential)
    }

    /// Returns the credential of the account that impersonates the user; without impersonation, of the user.
    pub(super) fn without_impersonation(&self) -> Self {
        let mut account = self.clone();
        account.headers.remove(USER);
        account.headers.remove(GROUP);
        account
    }

    /// Returns the token of a user; `None` for a user that the daemon's account impersonates.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
    }

    /// Returns the name and the groups of a user that the daemon's account impersonates.
    pub(super) fn impersonates(&self) -> Option<(String, Vec<String>)> {
        // Groups can have other characters than those of ASCII.
        let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).ok();
        let name = text(self.headers.get(USER)?)?;
        Some((name, self.headers.get_all(GROUP).iter().filter_map(text).collect()))
    }

    /// Creates a credential for the account of the daemon, or for the user that it impersonates.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_token_is_rejected() {
        for token in ["", " ", "two words", "a\tb", "a\nb", "t\u{f6}ken", "token\n"] {
            let error = Credential::token(token).expect_err("not a token");
            assert_eq!(error, ApiError::Forbidden("this is not a valid token".to_owned()), "{token:?}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let credential = Credential::token("ey.J-h_b").expect("a token");
        assert_eq!(format!("{credential:?}"), "Credential(…)");
        assert_eq!(format!("{:?}", credential.headers), r#"{"authorization": Sensitive}"#);
        assert_eq!(credential.headers[AUTHORIZATION], "Bearer ey.J-h_b");
    }

    #[test]
    fn an_impersonated_name_is_never_a_system_name() {
        for name in [
            "",
            "a b",
            "a\r\nimpersonate-group: x",
            "t\u{f6}m",
            "system:admin",
            "system:serviceaccount:a:b",
            ":",
        ] {
            let error = Credential::impersonated(name, &[]).expect_err("an invalid name");
            assert!(matches!(&error, ApiError::Forbidden(why) if why.contains("cannot be used")), "{error}");
        }
        let groups =
            ["one", "two words", "t\u{f6}", "line\nimpersonate-group: system:masters"].map(str::to_owned);
        let credential = Credential::impersonated("ada.rossi@example.org", &groups).expect("a user");
        let all = |name| credential.headers.get_all(name).iter().collect::<Vec<_>>();
        assert_eq!(all(USER), ["ada.rossi@example.org"]);
        let group = |text: &'static str| HeaderValue::from_bytes(text.as_bytes()).expect("a value");
        assert_eq!(all(GROUP), ["one", "two words", "t\u{f6}"].map(group).iter().collect::<Vec<_>>());
        let passed = ["one", "two words", "t\u{f6}"].map(str::to_owned).to_vec();
        assert_eq!(credential.impersonates(), Some(("ada.rossi@example.org".to_owned(), passed)));
    }
}
