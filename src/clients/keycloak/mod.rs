//! Keycloak's admin API, as far as Tenants and Workspaces need it (05 §10): accounts, and the roles of
//! one client. `docs/keycloak.md` says how a realm is set up for it.
//!
//! Every call is one request; what has been done already is told from what is found, so calls can be
//! repeated. Writes pass only while the lease is held. No secret and nothing of a person is in an
//! error or a log.

mod error;
mod operation;
mod roles;
mod settings;
#[cfg(test)]
mod tests;
mod token;
mod users;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Bytes;
use metrics::{counter, histogram};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clients::http::{Answer, HttpClient, HttpError, SetupError};
use crate::runtime::gate::Gate;
use error::Refusal;
use settings::Endpoints;
use token::{Token, Tokens};

pub use error::KeycloakError;
pub use operation::Operation;
pub use roles::{Role, description};
pub use settings::Settings;
pub use users::{ActionMail, RequiredAction, User, UserUpdate, Wanted, difference};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The way to a realm. Clones share connections, token and what is known of the roles' client.
#[derive(Clone)]
pub struct Keycloak {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    endpoints: Endpoints,
    http: HttpClient,
    gate: Gate,
    tokens: Tokens,
    /// The identifier of the client that holds the roles, once known.
    roles_client: Mutex<Option<String>>,
}

/// Without what is inside: a token is a secret.
impl fmt::Debug for Keycloak {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Keycloak({}, realm {})", self.shared.settings.url, self.shared.settings.realm)
    }
}

impl Keycloak {
    /// The way to a realm; writes pass only through `gate`. Nothing is sent yet.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be used, or the URL is none.
    pub fn new(settings: Settings, gate: Gate) -> Result<Self, KeycloakSetupError> {
        let endpoints = Endpoints::of(&settings);
        let url: Uri = endpoints.token.parse()?;
        let http = HttpClient::new(&url, settings.ca_file.clone(), settings.timeout)?;
        let (tokens, roles_client) = (Tokens::default(), Mutex::default());
        Ok(Self { shared: Arc::new(Shared { settings, endpoints, http, gate, tokens, roles_client }) })
    }

    fn endpoints(&self) -> &Endpoints {
        &self.shared.endpoints
    }

    /// Asks for something and reads the answer.
    async fn read<T: DeserializeOwned>(&self, operation: Operation, url: &str) -> Result<T, KeycloakError> {
        let answer = self.call(operation, Method::GET, url, Bytes::new()).await?;
        decoded(operation, &self.succeeded(operation, answer)?)
    }

    /// Asks for something by name; `None` if the answer is that it does not exist.
    async fn find<T: DeserializeOwned>(
        &self,
        operation: Operation,
        url: &str,
        absent: &str,
    ) -> Result<Option<T>, KeycloakError> {
        let answer = self.call(operation, Method::GET, url, Bytes::new()).await?;
        if is_absent(&answer, absent) {
            return Ok(None);
        }
        decoded(operation, &self.succeeded(operation, answer)?).map(Some)
    }

    /// Sends something.
    async fn write<T: Serialize + ?Sized>(
        &self,
        operation: Operation,
        method: Method,
        url: &str,
        body: &T,
    ) -> Result<Answer, KeycloakError> {
        // Plain data: serialisation has no case that fails.
        let body = serde_json::to_vec(body).unwrap_or_default();
        let answer = self.call(operation, method, url, body.into()).await?;
        self.succeeded(operation, answer)
    }

    /// Removes something; what does not exist is removed already.
    async fn remove(&self, operation: Operation, url: &str, absent: &str) -> Result<(), KeycloakError> {
        let answer = self.call(operation, Method::DELETE, url, Bytes::new()).await?;
        if is_absent(&answer, absent) {
            return Ok(());
        }
        self.succeeded(operation, answer).map(drop)
    }

    fn succeeded(&self, operation: Operation, answer: Answer) -> Result<Answer, KeycloakError> {
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(KeycloakError::from_answer(&answer, operation, &self.shared.settings.client_id))
    }

    /// One call with the token, and once more with a new one if the first is not accepted (it may have
    /// been revoked, or the server restarted).
    async fn call(
        &self,
        operation: Operation,
        method: Method,
        url: &str,
        body: Bytes,
    ) -> Result<Answer, KeycloakError> {
        let token = self.token().await?;
        let answer = self.send(operation, &method, url, body.clone(), &token).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        self.shared.tokens.drop_token(&token).await;
        let token = self.token().await?;
        self.send(operation, &method, url, body, &token).await
    }

    async fn send(
        &self,
        operation: Operation,
        method: &Method,
        url: &str,
        body: Bytes,
        token: &Token,
    ) -> Result<Answer, KeycloakError> {
        // The last look before the bytes go out: the token may have taken a while.
        if method != Method::GET && !self.shared.gate.is_open() {
            return Err(KeycloakError::NotLeader);
        }
        self.exchange(operation, method, url, &token.header, JSON, body).await
    }

    async fn token(&self) -> Result<Token, KeycloakError> {
        self.shared.tokens.get(async || self.renew().await).await
    }

    /// A new token, by the client's own credentials.
    async fn renew(&self) -> Result<Token, KeycloakError> {
        let Settings { client_id, client_secret_file, realm, .. } = &self.shared.settings;
        let credentials = token::basic(client_id, client_secret_file)?;
        let form = format!("grant_type=client_credentials&client_id={}", settings::encoded(client_id));
        let url = &self.endpoints().token;
        let asked = Instant::now();
        let answer =
            self.exchange(Operation::Token, &Method::POST, url, &credentials, FORM, form.into()).await?;
        match answer.status {
            StatusCode::OK => Token::read(&answer.body, asked),
            // An unknown client is 401, one that may not is 400 or 401.
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
                let said = Refusal::of(&answer).said(answer.status);
                Err(KeycloakError::Unauthorized { client: client_id.clone(), said })
            }
            StatusCode::NOT_FOUND => Err(KeycloakError::NotFound(format!(
                "there is no Keycloak realm {realm:?} at {url}; check url, realm and compatibilityMode"
            ))),
            _ => Err(KeycloakError::from_answer(&answer, Operation::Token, client_id)),
        }
    }

    /// One request and its answer, counted.
    async fn exchange(
        &self,
        operation: Operation,
        method: &Method,
        url: &str,
        authorization: &HeaderValue,
        content_type: HeaderValue,
        body: Bytes,
    ) -> Result<Answer, KeycloakError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.parse().map_err(|_| KeycloakError::BadAnswer {
            operation,
            problem: "an identifier in it does not fit into a URL".to_owned(),
        })?;
        request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        request.headers_mut().insert(header::CONTENT_TYPE, content_type);
        request.headers_mut().insert(header::ACCEPT, JSON);
        let begin = Instant::now();
        let answer = self.shared.http.send(request).await;
        count(operation, method, answer.as_ref().ok().map(|answer| answer.status), begin.elapsed());
        answer.map_err(|problem| match problem {
            HttpError::TooLong => KeycloakError::BadAnswer { operation, problem: problem.to_string() },
            problem => KeycloakError::Unreachable { url: self.shared.settings.url.clone(), problem },
        })
    }

    /// The identifier of the client that holds the roles.
    async fn roles_client(&self) -> Result<String, KeycloakError> {
        if let Some(known) = &*self.known_roles_client() {
            return Ok(known.clone());
        }
        let name = &self.shared.settings.roles_client_id;
        let found = self.find_client(name).await?;
        *self.known_roles_client() = Some(found.clone());
        Ok(found)
    }

    /// Asks for it again next time if it may be another client's now: it was deleted and made again.
    fn forget_roles_client_if_gone<T>(&self, result: Result<T, KeycloakError>) -> Result<T, KeycloakError> {
        if matches!(result, Err(KeycloakError::NotFound(_))) {
            *self.known_roles_client() = None;
        }
        result
    }

    fn known_roles_client(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        // Whole even if a holder panicked: it is replaced in one step.
        self.shared.roles_client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is no way to a realm.
#[derive(Debug, thiserror::Error)]
pub enum KeycloakSetupError {
    /// The URL is none.
    #[error("integrations.keycloak.url: {0}")]
    Url(#[from] http::uri::InvalidUri),
    /// The authorities' certificates cannot be read.
    #[error("integrations.keycloak: {0}")]
    Certificates(#[from] SetupError),
}

/// Whether the answer is Keycloak's that the thing does not exist. A 404 of another server, or because
/// of another part of the path, is none.
fn is_absent(answer: &Answer, absent: &str) -> bool {
    answer.status == StatusCode::NOT_FOUND && Refusal::of(answer).is(absent)
}

fn decoded<T: DeserializeOwned>(operation: Operation, answer: &Answer) -> Result<T, KeycloakError> {
    // The words of the decoder may repeat what it read.
    serde_json::from_slice(&answer.body).map_err(|_| KeycloakError::BadAnswer {
        operation,
        problem: "it is not in the form that we know".to_owned(),
    })
}

/// `keycloak_*`: `code` is `<error>` where there is no answer, as in `rest_client_requests_total`.
fn count(operation: Operation, method: &Method, status: Option<StatusCode>, took: Duration) {
    let code = status.map_or_else(|| "<error>".to_owned(), |status| status.as_str().to_owned());
    let (method, operation) = (method.as_str().to_owned(), operation.label());
    histogram!("keycloak_request_duration_seconds", "operation" => operation).record(took);
    counter!("keycloak_requests_total", "method" => method, "operation" => operation, "code" => code)
        .increment(1);
}
