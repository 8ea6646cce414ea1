//! The endpoints of a provider, from its own description (`OpenID` Connect Discovery, 4.2).

use http::Uri;
use http::uri::Scheme;
use serde::Deserialize;

use super::{KEYS, plain};

/// The endpoints of a provider.
#[derive(Debug, Clone, Deserialize)]
pub struct Endpoints {
    issuer: String,
    /// The login page.
    #[serde(rename = "authorization_endpoint")]
    pub authorization: String,
    /// The token endpoint.
    #[serde(rename = "token_endpoint")]
    pub token: String,
    /// The endpoint that ends sessions; empty if the provider has none.
    #[serde(rename = "end_session_endpoint", default)]
    pub end_session: String,
    /// The URL of its keys; empty if the provider names none.
    #[serde(rename = "jwks_uri", default)]
    pub keys: String,
}

impl Endpoints {
    /// Returns the endpoints after checking that they belong to this issuer, and that tokens are safe on the way
    /// there.
    ///
    /// # Errors
    /// A sentence about the check that failed.
    pub fn checked(self, issuer: &str) -> Result<Self, String> {
        if self.issuer != issuer {
            let other = plain(&self.issuer);
            return Err(format!(
                "{KEYS}.issuerUrl is {issuer}, and the issuer calls itself {other}: use that URL"
            ));
        }
        let others = [&self.end_session, &self.keys].into_iter().filter(|url| !url.is_empty());
        for url in [&self.authorization, &self.token].into_iter().chain(others) {
            if !is_safe(url) {
                let url = plain(url);
                return Err(format!(
                    "{KEYS}.issuerUrl: the issuer {issuer} names the address {url:?}; expected a URL that begins with https://, as \
                     Keycloak names them once its `hostname` is an https URL"
                ));
            }
        }
        Ok(self)
    }
}

/// Whether a browser and tokens may be sent to a URL: it uses TLS, and parameters can be appended.
fn is_safe(url: &str) -> bool {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains('#');
    is_plain
        && url.parse::<Uri>().is_ok_and(|url| url.scheme() == Some(&Scheme::HTTPS) && url.host().is_some())
}
