//! The `OpenID` Connect provider by which users log in at the dashboard: authorization code with PKCE, refresh tokens, and the end
//! of a session. `docs/keycloak.md` says how its client is set up.
//!
//! The ID token comes from the provider itself, by TLS. Its issuer, client, time, and that it is for this login are checked here; its
//! signature by the API server each time it is used, or here if the API server does not see it. No token is in a URL, an error or a
//! log.

mod attempt;
mod claims;
mod endpoints;
mod keys;
mod secret;
#[cfg(test)]
pub mod tests;
mod token_user;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Uri};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

pub use self::attempt::Attempt;
use self::claims::Claims;
use self::endpoints::Endpoints;
use self::keys::{Keys, Signed};
pub use self::secret::Secret;
pub use self::token_user::TokenUser;
use crate::clients::http::{Answer, HttpClient, HttpError};
use crate::runtime::files::{FileCell, WatchedFile};
use crate::runtime::single_flight::SingleFlight;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer. Tokens have a few thousand.
const LONGEST: usize = 64 << 10;
/// The scopes that are asked for; others are of the client's settings.
const SCOPE: &str = "openid";
/// What the keys of the configuration begin with.
const KEYS: &str = "controllers.dashboard";

/// A client of a provider.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL of the issuer, as tokens have it.
    pub issuer: String,
    /// The name of the client.
    pub client_id: String,
    /// The file with its secret.
    pub client_secret_file: String,
    /// The file with the certificates of the authorities; empty for those of the operating system.
    pub ca_file: String,
    /// The URL to which the provider sends users back.
    pub redirect_uri: String,
}

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The session, or the code of a login, is over.
    #[error("{0}")]
    Ended(String),
    /// The provider is not set up for this client, or is another one; the sentence says what to look at.
    #[error("{0}")]
    Refused(String),
    /// The provider does not answer, or is not able to.
    #[error("{0}")]
    Away(String),
}

/// The tokens of a session.
#[derive(Debug)]
pub struct Tokens {
    /// By which the API server knows the user.
    pub id_token: Secret,
    /// By which the next tokens are asked for; `None` if the provider sends none.
    pub refresh_token: Option<Secret>,
    /// When the ID token runs out.
    pub expires: Timestamp,
    /// The e-mail address of the user, if the provider says that it is not confirmed.
    pub unconfirmed: Option<String>,
}

/// A provider. Clones share connections and what is known of it.
#[derive(Clone)]
pub struct Provider(Arc<Shared>);

struct Shared {
    settings: Settings,
    http: HttpClient,
    secret: FileCell<Secret>,
    /// Its description of itself.
    endpoints: SingleFlight<Endpoints, Error>,
    /// The keys by which it signs tokens.
    keys: SingleFlight<Keys, Error>,
}

/// The answer of the token endpoint. It has no `Debug`, because it is a secret.
#[derive(Deserialize)]
struct Grant {
    id_token: Option<Secret>,
    refresh_token: Option<Secret>,
}

/// A refusal of the token endpoint (RFC 6749, 5.2).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    error: String,
}

impl Provider {
    /// A provider, and the file that is to be watched for it. Nothing is sent yet.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be used, or the URL is none.
    pub fn new(settings: Settings) -> anyhow::Result<(Self, WatchedFile)> {
        let url: Uri =
            settings.issuer.parse().map_err(|error| anyhow::anyhow!("{KEYS}.issuerUrl: {error}"))?;
        let ca_file = (!settings.ca_file.is_empty()).then(|| PathBuf::from(&settings.ca_file));
        let http = HttpClient::new(&url, ca_file, TIMEOUT)
            .map_err(|error| anyhow::anyhow!("{KEYS}.caFile: {error}"))?;
        let http = http.with_longest_answer(LONGEST);
        let secret = FileCell::default();
        let file = secret.watch(
            "controllers.dashboard.clientSecretFile",
            &settings.client_secret_file,
            |content| {
                let text = std::str::from_utf8(content).ok()?.trim();
                (!text.is_empty()).then(|| Secret::from(text.to_owned()))
            },
            "controllers.dashboard.clientSecretFile has no secret: nobody can log in at the dashboard",
        );
        Ok((
            Self(Arc::new(Shared {
                settings,
                http,
                secret,
                endpoints: SingleFlight::default(),
                keys: SingleFlight::default(),
            })),
            file,
        ))
    }

    /// The URL to which a browser is sent to log in.
    ///
    /// # Errors
    /// When the provider does not say where.
    pub async fn authorize_url(&self, attempt: &Attempt) -> Result<String, Error> {
        let Settings { client_id, redirect_uri, .. } = &self.0.settings;
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
        ] {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(name);
            url.push('=');
            url.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
        Ok(url)
    }

    /// The tokens for a code with which the provider has sent a user back.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn exchange(&self, code: &str, attempt: &Attempt, now: Timestamp) -> Result<Tokens, Error> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.0.settings.redirect_uri),
            ("code_verifier", &attempt.verifier),
        ];
        self.tokens(&form, Some(&attempt.nonce), now).await
    }

    /// The next tokens of a session.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn refresh(&self, refresh_token: &Secret, now: Timestamp) -> Result<Tokens, Error> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())];
        self.tokens(&form, None, now).await
    }

    /// Ends a session at the provider, also one that is over already.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn logout(&self, refresh_token: &Secret) -> Result<(), Error> {
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

    /// The user of an ID token that this provider has signed. Its other claims were checked when it came.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn user(&self, id_token: &Secret) -> Result<TokenUser, Error> {
        let signed = Signed::of(id_token.expose());
        let signed = signed.ok_or_else(|| self.strange("its ID token is no signed JSON Web Token"))?;
        // The provider signs with a new key: it is asked for its keys once more.
        let keys =
            self.0.keys.get(|keys| keys.have_signed(&signed), async || self.ask_for_keys().await).await?;
        if !keys.have_signed(&signed) {
            return Err(self.strange("none of its keys has signed its ID token"));
        }
        TokenUser::of(&signed).ok_or_else(|| {
            self.strange("its ID token has no preferred_username, or groups that are no list of texts")
        })
    }

    async fn ask_for_keys(&self) -> Result<Keys, Error> {
        let url = self.endpoints().await?.keys;
        if url.is_empty() {
            return Err(self.strange("it names no jwks_uri"));
        }
        let answer = self.0.http.send(self.0.http.client().get(&url)).await;
        let answer = self.able(answer.map_err(|error| self.away(&error))?)?;
        let document = Some(&answer).filter(|answer| answer.status == StatusCode::OK);
        document
            .and_then(|answer| Keys::read(&answer.body))
            .ok_or_else(|| self.strange(&format!("{url} has no JSON Web Key Set ({})", answer.status)))
    }

    async fn tokens(
        &self,
        form: &[(&str, &str)],
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<Tokens, Error> {
        let answer = self.post(&self.endpoints().await?.token, form).await?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(&answer));
        }
        // The words of the decoder may repeat what it read.
        let grant: Grant =
            serde_json::from_slice(&answer.body).map_err(|_| self.strange("it has no tokens"))?;
        let missing = "it has no ID token, which a client with the scope openid gets";
        let id_token = grant.id_token.ok_or_else(|| self.strange(missing))?;
        let claims = Claims::of(id_token.expose());
        let claims = claims.ok_or_else(|| self.strange("its ID token is no signed JSON Web Token"))?;
        let Settings { issuer, client_id, .. } = &self.0.settings;
        let expires = claims.checked(issuer, client_id, nonce, now).map_err(Error::Refused)?;
        let unconfirmed = claims.unconfirmed().map(str::to_owned);
        Ok(Tokens { id_token, refresh_token: grant.refresh_token, expires, unconfirmed })
    }

    /// Sends a form as the client.
    async fn post(&self, url: &str, form: &[(&str, &str)]) -> Result<Answer, Error> {
        let Shared { settings, http, secret, .. } = &*self.0;
        let missing = || {
            let file = &settings.client_secret_file;
            let client = &settings.client_id;
            Error::Refused(format!(
                "{KEYS}.clientSecretFile: {file} has no secret; expected that of the client {client}"
            ))
        };
        let secret = secret.get().ok_or_else(missing)?;
        let request = http.client().post(url).form(form);
        // Both are encoded before they are joined (RFC 6749, 2.3.1).
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let request = request.basic_auth(encoded(&settings.client_id), Some(encoded(secret.expose())));
        let answer = http.send(request).await.map_err(|error| self.away(&error))?;
        self.able(answer)
    }

    /// An answer of a provider that is able to answer.
    fn able(&self, answer: Answer) -> Result<Answer, Error> {
        let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        if answer.status.is_server_error() || later.contains(&answer.status) {
            return Err(Error::Away(format!(
                "the issuer {} cannot answer now: {}",
                self.0.settings.issuer, answer.status
            )));
        }
        Ok(answer)
    }

    /// What a refusal means.
    fn refusal(&self, answer: &Answer) -> Error {
        let Refusal { error } = serde_json::from_slice(&answer.body).unwrap_or_default();
        match error.as_str() {
            "invalid_grant" => {
                Error::Ended("the issuer has ended the session, or the login took too long".to_owned())
            }
            "invalid_client" | "unauthorized_client" => Error::Refused(format!(
                "the issuer does not know the client {}, or its secret is another one: check {KEYS}.clientId, the content of \
                 {KEYS}.clientSecretFile, and that the client has the standard flow",
                self.0.settings.client_id
            )),
            _ => self.strange(format!("it is {} {}", answer.status, plain(&error)).trim_end()),
        }
    }

    /// What it means that there is no answer.
    fn away(&self, error: &HttpError) -> Error {
        match error {
            HttpError::TooLong(_) | HttpError::Redirect(_) => self.strange(&error.to_string()),
            error => {
                let words = error.to_string();
                let ca_file = if words.contains("invalid peer certificate") {
                    format!("; {KEYS}.caFile has to have the certificate of its authority, in PEM")
                } else {
                    String::new()
                };
                Error::Away(format!(
                    "the issuer {} does not answer: {words}{ca_file}",
                    self.0.settings.issuer
                ))
            }
        }
    }

    /// What an answer means that is none.
    fn strange(&self, why: &str) -> Error {
        let issuer = &self.0.settings.issuer;
        Error::Refused(format!("{KEYS}.issuerUrl: an answer of the issuer {issuer} cannot be used: {why}"))
    }

    /// Where the provider is asked for what.
    async fn endpoints(&self) -> Result<Endpoints, Error> {
        self.0.endpoints.get(|_| true, async || self.discover().await).await
    }

    /// Asks the provider where it is asked for what.
    async fn discover(&self) -> Result<Endpoints, Error> {
        let Shared { settings, http, .. } = &*self.0;
        let url = format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
        let answer = http.send(http.client().get(&url)).await.map_err(|error| self.away(&error))?;
        let answer = self.able(answer)?;
        let document = Some(&answer).filter(|answer| answer.status == StatusCode::OK);
        let found = document.and_then(|answer| Endpoints::read(&answer.body)).ok_or_else(|| {
            Error::Refused(format!(
                "{KEYS}.issuerUrl: {url} describes no OpenID provider ({}); expected the URL of a realm, such as \
                 https://auth.example.com/realms/crownlabs",
                answer.status
            ))
        })?;
        found.checked(&settings.issuer).map_err(Error::Refused)
    }
}

/// What another has written, as far as it can stand in a sentence.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(200).collect()
}
