//! By what a user is known to the API server.

use std::fmt;

use http::HeaderValue;

use crate::runtime::error::ApiError;

/// What the API server knows a user by: his token.
#[derive(Clone)]
pub struct Credential(HeaderValue);

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
        Ok(Self(bearer))
    }

    /// The header `Authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
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
        assert_eq!(format!("{credential:?} {:?}", credential.header()), "Credential(…) Sensitive");
        assert_eq!(credential.header(), "Bearer ey.J-h_b");
    }
}
