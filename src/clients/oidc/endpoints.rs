//! Where a provider is asked for what, as it says itself (`OpenID` Connect Discovery, 4.2).

use http::Uri;
use http::uri::Scheme;
use serde::Deserialize;

use super::{KEYS, plain};

/// The addresses of a provider.
#[derive(Debug, Clone, Deserialize)]
pub struct Endpoints {
    issuer: String,
    /// Where users log in.
    #[serde(rename = "authorization_endpoint")]
    pub authorization: String,
    /// Where tokens are.
    #[serde(rename = "token_endpoint")]
    pub token: String,
    /// Where sessions end; empty if that is nowhere.
    #[serde(rename = "end_session_endpoint", default)]
    pub end_session: String,
    /// Where its keys are; empty if that is nowhere.
    #[serde(rename = "jwks_uri", default)]
    pub keys: String,
}

impl Endpoints {
    /// Those of the document of an issuer; `None` if it is none.
    pub fn read(document: &[u8]) -> Option<Self> {
        serde_json::from_slice(document).ok()
    }

    /// The same, if they are those of this issuer, and tokens are safe on the way there.
    ///
    /// # Errors
    /// A sentence that says what is not so.
    pub fn checked(self, issuer: &str) -> Result<Self, String> {
        if self.issuer != issuer {
            let other = plain(&self.issuer);
            return Err(format!(
                "{KEYS}.issuerUrl is {issuer}, and the issuer calls itself {other}: write it so"
            ));
        }
        let others = [&self.end_session, &self.keys].into_iter().filter(|url| !url.is_empty());
        for url in [&self.authorization, &self.token].into_iter().chain(others) {
            if !is_safe(url) {
                let url = plain(url);
                return Err(format!(
                    "{KEYS}.issuerUrl: the issuer {issuer} names the address {url:?}; expected one that begins with https://, as \
                     Keycloak names them once its `hostname` is an https URL"
                ));
            }
        }
        Ok(self)
    }
}

/// Whether a browser and tokens may be sent to an address: by TLS, and parameters can be added at its end.
fn is_safe(url: &str) -> bool {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains('#');
    is_plain
        && url.parse::<Uri>().is_ok_and(|url| url.scheme() == Some(&Scheme::HTTPS) && url.host().is_some())
}
