//! The claims of an ID token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{KEYS, Settings, plain};

/// The tolerated difference between the clocks of the provider and the daemon.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// The claims of an ID token that are checked.
#[derive(Debug, Deserialize)]
pub struct Claims {
    iss: String,
    aud: Audience,
    azp: Option<String>,
    exp: i64,
    nonce: Option<String>,
    // The type of these fields varies: some providers do not follow the standard.
    email: Option<Value>,
    email_verified: Option<Value>,
}

/// The audience of a token.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// The header of a token, which describes its signature.
#[derive(Deserialize)]
struct Header {
    alg: String,
}

impl Claims {
    /// Parses the claims of a token; `None` if the text is not a signed JSON Web Token.
    pub fn of(token: &str) -> Option<Self> {
        let parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let [header, claims, signature]: [Vec<u8>; 3] = parts.collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let Header { alg } = serde_json::from_slice(&header).ok()?;
        if signature.is_empty() || alg.eq_ignore_ascii_case("none") {
            return None;
        }
        serde_json::from_slice(&claims).ok()
    }

    /// The e-mail address of the user, if the issuer reports that it is not confirmed.
    pub fn unconfirmed(&self) -> Option<&str> {
        let is_unconfirmed = self.email_verified.as_ref().and_then(Value::as_bool) == Some(false);
        self.email.as_ref().filter(|_| is_unconfirmed)?.as_str()
    }

    /// Returns the expiry time of the token after checking that it comes from this issuer, is for this client, has
    /// not expired and, if there is a nonce, belongs to this login.
    ///
    /// # Errors
    /// A sentence about the check that failed.
    pub fn checked(
        &self,
        settings: &Settings,
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<Timestamp, String> {
        let Settings { issuer, client_id: client, .. } = settings;
        if self.iss != *issuer {
            let other = plain(&self.iss);
            return Err(format!(
                "{KEYS}.issuerUrl is {issuer}, but the ID token has the issuer {other}: the provider needs one URL for all clients, in \
                 Keycloak its `hostname`"
            ));
        }
        let others = match &self.aud {
            Audience::One(one) => std::slice::from_ref(one),
            Audience::Several(several) => several.as_slice(),
        };
        let is_authorized = self.azp.as_ref().map_or(others.len() == 1, |azp| azp == client);
        if !others.iter().any(|one| one == client) || !is_authorized {
            return Err(format!(
                "the ID token is not for the client {client}: check {KEYS}.clientId, and the mappers of this client that change the \
                 claims aud and azp"
            ));
        }
        let expires = Timestamp::from_second(self.exp)
            .map_err(|_| "the ID token has an invalid expiry time".to_owned())?;
        if now.duration_since(expires) >= LEEWAY {
            return Err(
                "the ID token has expired: check the clocks of the issuer and of this machine".to_owned()
            );
        }
        if nonce.is_some_and(|nonce| self.nonce.as_deref() != Some(nonce)) {
            return Err("the ID token belongs to another login".to_owned());
        }
        Ok(expires)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://auth.example.com/realms/labs";

    fn token(claims: &Value) -> String {
        format!("eyJhbGciOiJSUzI1NiJ9.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn checked(changes: &Value) -> Result<Timestamp, String> {
        let mut claims = json!({"iss": ISSUER, "aud": "labs", "exp": 1_000, "nonce": "n", "sub": "1"});
        json_patch::merge(&mut claims, changes);
        let now = Timestamp::from_second(900).expect("a time");
        let settings = Settings {
            issuer: ISSUER.to_owned(),
            client_id: "labs".to_owned(),
            client_secret_file: String::new(),
            ca_file: String::new(),
            redirect_uri: String::new(),
        };
        Claims::of(&token(&claims)).expect("claims").checked(&settings, Some("n"), now)
    }

    #[test]
    fn a_token_is_valid_for_its_issuer_client_login_and_time_only() {
        assert_eq!(checked(&json!({})).map(Timestamp::as_second), Ok(1_000));
        assert!(checked(&json!({"aud": ["other", "labs"], "azp": "labs"})).is_ok());
        assert!(checked(&json!({"exp": 841})).is_ok(), "clocks differ a little");
        assert!(checked(&json!({"exp": Timestamp::MAX.as_second()})).is_ok(), "the latest possible time");
        for (changes, why) in [
            (json!({"iss": "https://auth.example.com/realms/labs/"}), "issuer"),
            (json!({"aud": "other"}), "client"),
            (json!({"aud": ["labs", "other"]}), "client"),
            (json!({"aud": ["labs", "other"], "azp": "other"}), "client"),
            (json!({"aud": []}), "client"),
            (json!({"azp": "other"}), "client"),
            (json!({"exp": 840}), "has expired"),
            (json!({"exp": i64::MAX}), "expiry"),
            (json!({"nonce": "m"}), "login"),
            (json!({"nonce": null}), "login"),
        ] {
            let error = checked(&changes).expect_err("refused");
            assert!(error.contains(why), "{changes}: {error}");
        }
    }

    #[test]
    fn an_address_is_unconfirmed_if_the_issuer_says_so() {
        let address = "ada@example.org";
        for (claims, expected) in [
            (json!({"email": address, "email_verified": false}), Some(address)),
            (json!({"email": address, "email_verified": true}), None),
            (json!({"email": address}), None),
            (json!({"email": address, "email_verified": "false"}), None),
            (json!({"email": [address], "email_verified": false}), None),
            (json!({"email_verified": false}), None),
        ] {
            let mut all = json!({"iss": ISSUER, "aud": "labs", "exp": 1_000});
            json_patch::merge(&mut all, &claims);
            assert_eq!(Claims::of(&token(&all)).expect("claims").unconfirmed(), expected, "{claims}");
        }
    }

    #[test]
    fn invalid_tokens_have_no_claims() {
        let part = |json: &str| URL_SAFE_NO_PAD.encode(json);
        let (header, claims) = (part(r#"{"alg":"RS256"}"#), part(r#"{"iss":"","aud":"","exp":1}"#));
        assert!(Claims::of(&format!("{header}.{claims}.c2ln")).is_some());
        for text in [
            String::new(),
            claims.clone(),
            format!("{header}.{claims}"),
            format!("{header}.{claims}.c2ln.c2ln"),
            format!("{header}.{claims}."),
            format!("{header}.{claims}.!"),
            format!("{header}.{claims}=.c2ln"),
            format!(".{claims}.c2ln"),
            format!("{}.{claims}.c2ln", part("{}")),
            format!("{}.{claims}.c2ln", part(r#"{"alg":"None"}"#)),
            format!("{header}.e30.c2ln"),
            format!("{header}.{}.c2ln", part("[]")),
            format!("{header}.{}.c2ln", part(r#"{"iss":"","aud":"","exp":1.5}"#)),
            format!("{header}.{}.c2ln", part(r#"{"iss":"","aud":"","exp":1,"exp":2}"#)),
            format!("{header}.{}.c2ln", part(r#"{"iss":"","aud":"","exp":1} {}"#)),
        ] {
            assert!(Claims::of(&text).is_none(), "{text}");
        }
    }
}
