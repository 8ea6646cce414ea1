//! The client of the `OpenID` Connect provider for logins at the dashboard: authorization code with PKCE, refresh
//! tokens, and the end of a session. `docs/keycloak.md` describes the setup of the client in the provider.
//!
//! The ID token comes directly from the provider through TLS. This module checks its issuer, client, expiry and
//! login. The API server verifies its signature each time it is used; this module does so only if the API server does
//! not get the token. URLs, errors and logs contain no tokens.

mod attempt;
mod claims;
mod endpoints;
mod error;
mod health;
mod keys;
mod secret;
#[cfg(test)]
pub mod tests;
mod token_user;

use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Uri};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::RequestBuilder;
use serde::Deserialize;

pub use self::attempt::{Attempt, SECRET_BYTES};
use self::claims::Claims;
use self::endpoints::Endpoints;
pub use self::error::Error;
use self::error::{Refusal, Result};
use self::health::{Health, Part};
use self::keys::{Keys, Signed};
pub use self::secret::Secret;
pub use self::token_user::TokenUser;
use crate::clients::http::{Answer, HttpClient, HttpError};
use crate::runtime::files::{self, FileCell, WatchedFile};
use crate::runtime::outages::{Outages, System};
use crate::runtime::single_flight::SingleFlight;

/// The time limit for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The limit for a response in bytes. Responses with tokens have a few thousand.
const LONGEST: usize = 64 << 10;
/// The requested scopes. The client in the provider determines further scopes.
const SCOPE: &str = "openid";
/// The prefix of the keys of the configuration.
const KEYS: &str = "controllers.dashboard";

/// The settings of the client of a provider.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL of the issuer, as in tokens.
    pub issuer: String,
    /// The name of the client.
    pub client_id: String,
    /// The file with the secret of the client.
    pub client_secret_file: String,
    /// The file with the certificates of the authorities; empty for the authorities of the operating system.
    pub ca_file: String,
    /// The URL that the provider redirects users to.
    pub redirect_uri: String,
}

/// The tokens of a session.
#[derive(Debug)]
pub struct Tokens {
    /// Authenticates the user to the API server.
    pub id_token: Secret,
    /// Requests the next tokens; `None` if the provider sends no refresh token.
    pub refresh_token: Option<Secret>,
    /// Expiry time of the ID token.
    pub expires: Timestamp,
    /// The e-mail address of the user, if the provider reports that it is not confirmed.
    pub unconfirmed: Option<String>,
}

/// A provider. Clones share connections and cached data.
#[derive(Clone)]
pub struct Provider {
    shared: Arc<Shared>,
    outages: Outages,
}

struct Shared {
    settings: Settings,
    http: HttpClient,
    secret: FileCell<Secret>,
    /// The description that the provider publishes.
    endpoints: SingleFlight<Endpoints, Error>,
    /// The keys that the provider signs tokens with.
    keys: SingleFlight<Keys, Error>,
    health: Health,
}

/// The response of the token endpoint. It has no `Debug`, because it is a secret.
#[derive(Deserialize)]
struct Grant {
    id_token: Option<Secret>,
    refresh_token: Option<Secret>,
}

impl Provider {
    /// Creates the client of a provider, and the watched file with its secret. Nothing is sent yet.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be used, or the URL is invalid.
    pub fn new(settings: Settings) -> anyhow::Result<(Self, WatchedFile)> {
        let url: Uri =
            settings.issuer.parse().map_err(|error| anyhow::anyhow!("{KEYS}.issuerUrl: {error}"))?;
        let http = HttpClient::new(&url, &settings.ca_file, TIMEOUT, LONGEST)
            .map_err(|error| anyhow::anyhow!("{KEYS}.caFile: {error}"))?;
        let secret = FileCell::default();
        let file = secret.watch(
            "controllers.dashboard.clientSecretFile",
            &settings.client_secret_file,
            |content| files::secret(content).map(|secret| Secret::from(secret.to_owned())),
            "Users cannot log in at the dashboard",
        );
        let (endpoints, keys) = (SingleFlight::default(), SingleFlight::default());
        let health = Health::default();
        let shared = Arc::new(Shared { settings, http, secret, endpoints, keys, health });
        Ok((Self { shared, outages: Outages::default() }, file))
    }

    /// Returns the client, which then reports outages to `outages`.
    #[must_use]
    pub fn reporting_to(self, outages: &Outages) -> Self {
        Self { outages: outages.clone(), ..self }
    }

    /// The URL of the issuer.
    pub fn issuer(&self) -> &str {
        &self.shared.settings.issuer
    }

    /// Checks whether the provider publishes its keys, and whether it accepts this client, with a request
    /// that contains an invalid refresh token.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn ask(&self) -> Result<()> {
        let endpoints = self.endpoints().await?;
        self.reported(Part::Keys, self.ask_for_keys().await)?;
        let form = [("grant_type", "refresh_token"), ("refresh_token", "none")];
        let answer = self.post(&endpoints.token, &form).await?;
        match self.refusal(&answer) {
            Error::Ended(_) => Ok(()),
            error => Err(error),
        }
    }

    /// Reports the result of a request to a part as an outage or its end.
    fn reported<T>(&self, part: Part, result: Result<T>) -> Result<T> {
        let health = self.shared.health.record(part, &result);
        self.outages.record(System::Issuer, self.issuer(), &health);
        result
    }

    /// The URL of the login page for a browser, in a language (BCP 47) if the provider has it.
    ///
    /// # Errors
    /// When the provider does not publish the URL.
    pub async fn authorize_url(&self, attempt: &Attempt, language: &str) -> Result<String> {
        let Settings { client_id, redirect_uri, .. } = &self.shared.settings;
        let challenge = attempt.challenge();
        let mut url = self.endpoints().await?.authorization;
        for (name, value) in [
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", redirect_uri),
            ("scope", SCOPE),
            ("state", &attempt.state),
            ("nonce", &attempt.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("ui_locales", language),
        ] {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(name);
            url.push('=');
            url.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
        Ok(url)
    }

    /// Exchanges the code of a login for tokens.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn exchange(&self, code: &str, attempt: &Attempt, now: Timestamp) -> Result<Tokens> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.shared.settings.redirect_uri),
            ("code_verifier", &attempt.verifier),
        ];
        self.tokens(&form, Some(&attempt.nonce), now).await
    }

    /// Requests the next tokens of a session.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn refresh(&self, refresh_token: &Secret, now: Timestamp) -> Result<Tokens> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())];
        self.tokens(&form, None, now).await
    }

    /// Ends a session at the provider. The session may have ended already.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn logout(&self, refresh_token: &Secret) -> Result<()> {
        let endpoint = self.endpoints().await?.end_session;
        if endpoint.is_empty() {
            return Err(self.strange("it names no end_session_endpoint"));
        }
        let answer = self.post(&endpoint, &[("refresh_token", refresh_token.expose())]).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        match self.refusal(&answer) {
            Error::Ended(_) => Ok(()),
            error => Err(error),
        }
    }

    /// Returns the user of an ID token after verifying the signature of this provider. The other claims were checked
    /// when the token was received.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn user(&self, id_token: &Secret) -> Result<TokenUser> {
        let signed = Signed::of(id_token.expose());
        let signed = signed.ok_or_else(|| self.strange("its ID token is not a signed JSON Web Token"))?;
        // If the signing key is unknown, it may be new. The keys are requested once more.
        let ask = async || self.reported(Part::Keys, self.ask_for_keys().await);
        let keys = self.shared.keys.get(|keys| keys.have_signed(&signed), ask).await?;
        if !keys.have_signed(&signed) {
            return Err(self.strange("none of its keys has signed its ID token"));
        }
        TokenUser::of(&signed).ok_or_else(|| {
            self.strange("its ID token has no preferred_username, or its groups are not a list of strings")
        })
    }

    async fn ask_for_keys(&self) -> Result<Keys> {
        let url = self.endpoints().await?.keys;
        if url.is_empty() {
            return Err(self.strange("it names no jwks_uri"));
        }
        let answer = self.send(self.shared.http.client.get(&url)).await?;
        let document = Some(&answer).filter(|answer| answer.status == StatusCode::OK);
        document
            .and_then(|answer| serde_json::from_slice(&answer.body).ok())
            .ok_or_else(|| self.strange(&format!("{url} has no JSON Web Key Set ({})", answer.status)))
    }

    async fn tokens(&self, form: &[(&str, &str)], nonce: Option<&str>, now: Timestamp) -> Result<Tokens> {
        let answer = self.post(&self.endpoints().await?.token, form).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(&answer));
        }
        // The message of the decoder may repeat data of the response.
        let grant: Grant =
            serde_json::from_slice(&answer.body).map_err(|_| self.strange("it contains no tokens"))?;
        let missing = "it contains no ID token, although the client requested the scope openid";
        let id_token = grant.id_token.ok_or_else(|| self.strange(missing))?;
        let claims = Claims::of(id_token.expose());
        let claims = claims.ok_or_else(|| self.strange("its ID token is not a signed JSON Web Token"))?;
        let expires = claims.checked(&self.shared.settings, nonce, now).map_err(Error::Refused)?;
        let unconfirmed = claims.unconfirmed().map(str::to_owned);
        Ok(Tokens { id_token, refresh_token: grant.refresh_token, expires, unconfirmed })
    }

    /// Sends a form with the credentials of the client, and reports whether the provider accepts the client.
    async fn post(&self, url: &str, form: &[(&str, &str)]) -> Result<Answer> {
        let result = async {
            let answer = self.send(self.form(url, form)?).await?;
            match self.refusal(&answer) {
                // No login succeeds until this is corrected.
                error @ Error::Refused(_) if !answer.status.is_success() => Err(error),
                _ => Ok(answer),
            }
        };
        self.reported(Part::Tokens, result.await)
    }

    /// Builds a request with a form and the credentials of the client.
    fn form(&self, url: &str, form: &[(&str, &str)]) -> Result<RequestBuilder> {
        let Shared { settings, http, secret, .. } = &*self.shared;
        let Settings { client_id: client, client_secret_file: file, .. } = settings;
        let missing = || {
            Error::Refused(format!(
                "{KEYS}.clientSecretFile: {file} contains no secret; expected the secret of the client {client}"
            ))
        };
        let secret = secret.get().ok_or_else(missing)?;
        // Both are encoded before they are joined (RFC 6749, 2.3.1).
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let request = http.client.post(url).form(form);
        Ok(request.basic_auth(encoded(client), Some(encoded(secret.expose()))))
    }

    /// Sends a request. Fails if the provider is unavailable.
    async fn send(&self, request: RequestBuilder) -> Result<Answer> {
        let answer = self.shared.http.send(request).await.map_err(|error| self.away(&error))?;
        if answer.is_unavailable() {
            let (issuer, status) = (self.issuer(), answer.status);
            return Err(Error::Away(format!("the issuer {issuer} is unavailable: {status}")));
        }
        Ok(answer)
    }

    /// Maps an error response to an `Error`.
    fn refusal(&self, answer: &Answer) -> Error {
        let Refusal { error } = serde_json::from_slice(&answer.body).unwrap_or_default();
        match error.as_str() {
            "invalid_grant" => {
                Error::Ended("the issuer has ended the session, or the login took too long".to_owned())
            }
            "invalid_client" | "unauthorized_client" => Error::Refused(format!(
                "the issuer does not know the client {}, or its secret differs: check {KEYS}.clientId, the content of \
                 {KEYS}.clientSecretFile, and that the client has the standard flow",
                self.shared.settings.client_id
            )),
            _ => self.strange(format!("it is {} {}", answer.status, plain(&error)).trim_end()),
        }
    }

    /// Maps a transport failure to an `Error`.
    fn away(&self, error: &HttpError) -> Error {
        match error {
            HttpError::TooLong(_) | HttpError::Redirect(_) => self.strange(&error.to_string()),
            error => {
                let words = error.to_string().replace("; caFile must", &format!("; {KEYS}.caFile must"));
                Error::Away(format!("the issuer {} cannot be reached: {words}", self.issuer()))
            }
        }
    }

    /// The error for a response that cannot be used.
    fn strange(&self, why: &str) -> Error {
        let issuer = self.issuer();
        Error::Refused(format!("{KEYS}.issuerUrl: an answer of the issuer {issuer} cannot be used: {why}"))
    }

    /// Returns the endpoints of the provider, from the cache if possible.
    async fn endpoints(&self) -> Result<Endpoints> {
        let ask = async || self.reported(Part::Description, self.discover().await);
        self.shared.endpoints.get(|_| true, ask).await
    }

    /// Requests the endpoints of the provider.
    async fn discover(&self) -> Result<Endpoints> {
        let Shared { settings, http, .. } = &*self.shared;
        let url = format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
        let answer = self.send(http.client.get(&url)).await?;
        let document = Some(&answer).filter(|answer| answer.status == StatusCode::OK);
        let found = document.and_then(|answer| serde_json::from_slice(&answer.body).ok());
        let found: Endpoints = found.ok_or_else(|| {
            Error::Refused(format!(
                "{KEYS}.issuerUrl: {url} is not an OpenID provider's description ({}); expected the URL of a realm, such as \
                 https://auth.example.com/realms/crownlabs",
                answer.status
            ))
        })?;
        found.checked(&settings.issuer).map_err(Error::Refused)
    }
}

/// Shortens and filters a text of another program for use in a sentence.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(200).collect()
}
