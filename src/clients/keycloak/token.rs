//! The token of the service account or the user. It is kept until shortly before it expires. Then one caller renews
//! it while the other callers wait for the same result.

use std::future::ready;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::HeaderValue;
use keycloak::{KeycloakError as CrateError, KeycloakTokenSupplier};
use serde::Deserialize;

use super::error::KeycloakError;
use super::operation::Operation;
use super::settings::encoded;
use crate::config::KeycloakConfig;
use crate::config::file::read_secret;

/// A token that expires sooner than this is not used for a new call.
const MARGIN: Duration = Duration::from_secs(30);

/// A token. It has no `Debug`, because it is a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// The text after `Bearer`.
    pub text: String,
    /// Expiry time.
    expires: Instant,
}

/// The crate requests a token during each call and can only return its own errors there. So the token is fetched
/// before the call, and only handed over here. The signature comes from `async_trait`.
impl KeycloakTokenSupplier for Token {
    fn get<'a, 'b, 'f>(&'a self, _url: &'b str) -> BoxFuture<'f, Result<String, CrateError>>
    where
        Self: 'f,
        'a: 'f,
        'b: 'f,
    {
        Box::pin(ready(Ok(self.text.clone())))
    }
}

/// The response of the token endpoint. It has no `Debug`, because it is a secret.
#[derive(Deserialize)]
struct Grant {
    access_token: String,
    expires_in: u64,
}

impl Token {
    /// Parses the token in the response to a request that was sent at `asked`.
    pub(super) fn read(body: &[u8], asked: Instant) -> Result<Self, KeycloakError> {
        let bad = |problem: &str| KeycloakError::BadAnswer {
            operation: Operation::Token,
            problem: problem.to_owned(),
        };
        // The message of the decoder may repeat data of the response.
        let grant: Grant = serde_json::from_slice(body).map_err(|_| bad("it is not a token"))?;
        if grant.access_token.is_empty() {
            return Err(bad("the token is empty"));
        }
        if HeaderValue::from_str(&grant.access_token).is_err() {
            return Err(bad("the token is not text"));
        }
        let length = Duration::from_secs(grant.expires_in);
        // If the number of seconds is too large for the clock, the token is kept for a year.
        let expires = asked.checked_add(length).unwrap_or(asked + Duration::from_hours(8_760));
        Ok(Self { text: grant.access_token, expires })
    }

    /// Whether the token lasts long enough for a new call.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.expires.saturating_duration_since(now) >= MARGIN
    }
}

/// The request for a token, with its credentials.
pub(super) struct Login {
    /// The form of the request.
    pub form: Vec<(&'static str, String)>,
    /// Name and secret of the client for HTTP Basic, each encoded as in a form (RFC 6749, §2.3.1). The name of a
    /// client without a secret is in the form.
    pub basic: Option<(String, String)>,
}

impl Login {
    /// Reads the credentials of the client (RFC 6749, §4.4), or name and password of the user (§4.3). The files are
    /// read at each renewal, so that rotated credentials are used at once.
    pub(super) fn read(config: &KeycloakConfig) -> Result<Self, KeycloakError> {
        let grant = if config.username.is_empty() { "client_credentials" } else { "password" };
        let mut form = vec![("grant_type", grant.to_owned()), ("client_id", config.client_id.clone())];
        if !config.username.is_empty() {
            form.push(("username", config.username.clone()));
            form.push(("password", secret("passwordFile", &config.password_file)?));
        }
        let is_public = !config.username.is_empty() && config.client_secret_file.is_empty();
        let secret = || secret("clientSecretFile", &config.client_secret_file);
        let basic = if is_public { None } else { Some((encoded(&config.client_id), encoded(&secret()?))) };
        Ok(Self { form, basic })
    }
}

/// Reads the secret in the file that a key names.
fn secret(key: &'static str, file: &str) -> Result<String, KeycloakError> {
    let unusable = |problem| KeycloakError::SecretUnreadable { key, path: file.to_owned(), problem };
    // The file is small and local: reading it here takes less time than a switch to another thread.
    read_secret(Path::new(file)).map_err(unusable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(token: &str, seconds: u64) -> Vec<u8> {
        format!("{{\"access_token\":\"{token}\",\"expires_in\":{seconds},\"token_type\":\"Bearer\"}}").into()
    }

    #[test]
    fn a_token_is_used_until_30_seconds_are_left() {
        let asked = Instant::now();
        let token = Token::read(&grant("t", 300), asked).ok().unwrap();
        assert_eq!(token.text, "t");
        assert!(token.is_fresh(asked + Duration::from_secs(270)));
        assert!(!token.is_fresh(asked + Duration::from_millis(270_001)));
        assert!(!token.is_fresh(asked + Duration::from_mins(15)));
        let endless = Token::read(&grant("t", u64::MAX), asked).ok().unwrap();
        assert!(endless.is_fresh(asked + Duration::from_hours(24)));
    }

    #[test]
    fn responses_without_a_token_are_rejected() {
        let asked = Instant::now();
        for body in [&b"<html>hunter2"[..], b"{}", b"{\"access_token\":\"hunter2\"}", &grant("", 300)] {
            let error = Token::read(body, asked).err().unwrap();
            assert_eq!(error.reason(), "KeycloakBadAnswer");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let error = Token::read(&grant("a\\nb", 300), asked).err().unwrap();
        assert_eq!(error.reason(), "KeycloakBadAnswer");
    }

    #[test]
    fn the_secret_is_read_from_its_file_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let config = |client: &str| KeycloakConfig {
            client_id: client.to_owned(),
            client_secret_file: file.display().to_string(),
            ..KeycloakConfig::default()
        };
        let fault = || Login::read(&config("operator")).err().unwrap();
        assert_eq!((fault().reason().as_str(), fault().is_outage()), ("KeycloakSecretUnreadable", true));
        let begin = format!("integrations.keycloak.clientSecretFile: {} cannot be used: ", file.display());
        assert_eq!(fault().to_string(), format!("{begin}it does not exist; create it, or correct the path"));
        std::fs::write(&file, "\n").unwrap();
        assert_eq!(fault().to_string(), format!("{begin}it is empty; write the value into it"));
        std::fs::write(&file, b"\xff").unwrap();
        assert_eq!(
            fault().to_string(),
            format!("{begin}line 1 is not encoded in UTF-8; save the file as UTF-8")
        );
        let basic = |client: &str| Login::read(&config(client)).ok().unwrap().basic.unwrap();
        std::fs::write(&file, "one\n").unwrap();
        assert_eq!(basic("operator"), ("operator".to_owned(), "one".to_owned()));
        std::fs::write(&file, "t w:+o").unwrap();
        assert_eq!(basic("op:er"), ("op%3Aer".to_owned(), "t%20w%3A%2Bo".to_owned()));
    }

    #[test]
    fn a_user_logs_in_with_a_client_with_or_without_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let mut config = KeycloakConfig {
            client_id: "admin-cli".to_owned(),
            username: "labs".to_owned(),
            password_file: file("password"),
            ..KeycloakConfig::default()
        };
        let error = Login::read(&config).err().unwrap().to_string();
        let begin = format!("integrations.keycloak.passwordFile: {} cannot be used: ", config.password_file);
        assert!(error.starts_with(&begin), "{error}");
        std::fs::write(&config.password_file, "p&w\r\n").unwrap();
        let login = Login::read(&config).ok().unwrap();
        let form: Vec<_> = login.form.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(form, ["grant_type=password", "client_id=admin-cli", "username=labs", "password=p&w"]);
        assert_eq!(login.basic, None);
        config.client_secret_file = file("secret");
        std::fs::write(&config.client_secret_file, "one").unwrap();
        let basic = Login::read(&config).ok().unwrap().basic;
        assert_eq!(basic, Some(("admin-cli".to_owned(), "one".to_owned())));
    }
}
