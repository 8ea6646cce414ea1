//! Keycloak's admin API, as far as Tenants and Workspaces need it: accounts, and the roles of one client.
//! `docs/keycloak.md` says how a realm is set up for it.
//!
//! Changes are calls of the crate `keycloak`. It reads answers to their end however long they are, and
//! refuses an object when any of its members is not as the crate knows it; so what we read is asked for
//! by requests of our own on the same connections, bounded and decoded into the few members that we use.
//! On top of both: one token for all calls, a second attempt when it is refused, the lease, metrics, and
//! errors in words for an administrator.
//!
//! A call can always be repeated: what has been done already is seen from what is found. Changes are sent
//! only while the lease is held. Neither a secret nor anything about a person is in an error or a log.

mod error;
mod operation;
mod roles;
mod settings;
pub mod telemetry;
#[cfg(test)]
mod tests;
mod token;
mod users;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::keycloak::{DefaultResponse, KeycloakAdmin, KeycloakError as CrateError};
use anyhow::anyhow;
use http::{StatusCode, Uri};
use metrics::{counter, histogram};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::clients::http::{Answer, HttpClient, HttpError};
use crate::config::KeycloakConfig;
use crate::runtime::gate::Gate;
use error::Refusal;
use settings::Account;
use token::{Login, Token, Tokens};

pub use error::KeycloakError;
pub use operation::Operation;
pub use roles::{Role, description};
pub use users::{ActionMail, RequiredAction, User, UserUpdate, WantedUser, difference, is_reserved};

/// The crate's client. It is made for each attempt, with the token of that attempt.
type Admin = KeycloakAdmin<Token>;

/// The result of a changing call of the crate.
type Changed = Result<DefaultResponse, CrateError>;

/// A client of one realm. Clones share connections, the token and the identifier of the roles' client.
#[derive(Clone, derive_more::Debug)]
#[debug("Keycloak({}, realm {})", shared.config.url, shared.config.realm)] // leaves out the token
pub struct Keycloak {
    shared: Arc<Shared>,
}

struct Shared {
    config: KeycloakConfig,
    /// The URL before `/realms` and `/admin`.
    base: String,
    http: HttpClient,
    gate: Gate,
    tokens: Tokens,
    /// The identifier of the client that holds the roles, once it was asked for.
    roles_client: Mutex<Option<String>>,
}

impl Keycloak {
    /// A client of a realm, which sends changes only while `gate` is open. Nothing is sent yet.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be used, or the URL is not one.
    pub fn new(config: &KeycloakConfig, gate: Gate) -> anyhow::Result<Self> {
        let (base, config) = (settings::base(config), config.clone());
        let url: Uri = base.parse().map_err(|error| anyhow!("integrations.keycloak.url: {error}"))?;
        let ca_file = (!config.ca_file.is_empty()).then(|| PathBuf::from(&config.ca_file));
        let http = HttpClient::new(&url, ca_file, config.timeout.get())
            .map_err(|error| anyhow!("integrations.keycloak: {error}"))?;
        let (tokens, roles_client) = (Tokens::default(), Mutex::default());
        Ok(Self { shared: Arc::new(Shared { config, base, http, gate, tokens, roles_client }) })
    }

    fn realm(&self) -> &str {
        &self.shared.config.realm
    }

    /// Reads something; `None` if it does not exist. `path` is below the realm, each segment encoded.
    async fn read<T: DeserializeOwned>(
        &self,
        operation: Operation,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, KeycloakError> {
        let Shared { http, base, .. } = &*self.shared;
        let url = format!("{base}/admin/realms/{}/{path}", settings::encoded(self.realm()));
        let request = |token: Token| http.send(http.client().get(&url).query(query).bearer_auth(token.text));
        let Some(answer) = self.call(operation, request).await? else { return Ok(None) };
        // The words of the decoder may repeat what it read.
        serde_json::from_slice(&answer.body).map_err(|_| KeycloakError::BadAnswer {
            operation,
            problem: "it is not in the form that we know".to_owned(),
        })
    }

    /// Changes something by a call of the crate. `None` if what was to be deleted does not exist.
    async fn write<F: Future<Output = Changed>>(
        &self,
        operation: Operation,
        change: impl Fn(Admin) -> F,
    ) -> Result<Option<Answer>, KeycloakError> {
        let Shared { http, base, .. } = &*self.shared;
        let request = |token: Token| {
            let changed = change(KeycloakAdmin::new(base, token, http.client().clone()));
            async move { answer_of_crate(http, changed.await) }
        };
        self.call(operation, request).await
    }

    /// One request with the token, and a second one with a new token if the first is refused: it may have
    /// been revoked, or the server restarted. `None` if the object does not exist, where that is no error.
    async fn call<F: Future<Output = Result<Answer, HttpError>>>(
        &self,
        operation: Operation,
        request: impl Fn(Token) -> F,
    ) -> Result<Option<Answer>, KeycloakError> {
        let token = self.token().await?;
        let mut answer = self.exchange(operation, request(token.clone())).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            self.shared.tokens.drop_token(&token).await;
            answer = self.exchange(operation, request(self.token().await?)).await?;
        }
        if answer.status.is_success() {
            return Ok(Some(answer));
        }
        // A 404 in other words is another server's, or because of another part of the path.
        let is_absent = |words| answer.status == StatusCode::NOT_FOUND && Refusal::of(&answer).is(words);
        if operation.absent().is_some_and(is_absent) {
            return Ok(None);
        }
        let error = KeycloakError::from_answer(&answer, operation, &Account::of(&self.shared.config));
        if matches!(error, KeycloakError::NotFound(_)) {
            // It may be the client with the roles that was deleted, and perhaps made again.
            *self.shared.roles_client.lock() = None;
        }
        Err(error)
    }

    async fn token(&self) -> Result<Token, KeycloakError> {
        self.shared.tokens.get(async || self.renew().await).await
    }

    /// A new token, by the credentials of the client or the user.
    async fn renew(&self) -> Result<Token, KeycloakError> {
        let Shared { http, base, config, .. } = &*self.shared;
        let (login, realm) = (Login::read(config)?, settings::login_realm(config));
        let url = format!("{base}/realms/{}/protocol/openid-connect/token", settings::encoded(realm));
        let mut request = http.client().post(&url).form(&login.form);
        if let Some((name, secret)) = login.basic {
            request = request.basic_auth(name, Some(secret));
        }
        let asked = Instant::now();
        let answer = self.exchange(Operation::Token, http.send(request)).await?;
        match answer.status {
            StatusCode::OK => Token::read(&answer.body, asked),
            // An unknown client or a wrong password is 401; a client without a service account, or without direct access
            // grants, is 400 or 401.
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
                let said = Refusal::of(&answer).said(answer.status);
                Err(KeycloakError::Unauthorized { account: Account::of(config), said })
            }
            StatusCode::NOT_FOUND => Err(KeycloakError::NotFound(format!(
                "there is no Keycloak realm {realm:?} at {url}; check url, {} and compatibilityMode",
                if config.login_realm.is_empty() { "realm" } else { "loginRealm" }
            ))),
            _ => Err(KeycloakError::from_answer(&answer, Operation::Token, &Account::of(config))),
        }
    }

    /// One request and its answer, counted. A change is sent only while the lease is held.
    async fn exchange(
        &self,
        operation: Operation,
        request: impl Future<Output = Result<Answer, HttpError>>,
    ) -> Result<Answer, KeycloakError> {
        // Asked last of all: the token may have taken a while.
        if operation.is_change() && !self.shared.gate.is_open() {
            return Err(KeycloakError::NotLeader);
        }
        let begin = Instant::now();
        let answer = request.await;
        count(operation, answer.as_ref().ok().map(|answer| answer.status), begin.elapsed());
        answer.map_err(|problem| match problem {
            HttpError::TooLong(_) => KeycloakError::BadAnswer { operation, problem: problem.to_string() },
            problem => KeycloakError::Unreachable { url: self.shared.config.url.clone(), problem },
        })
    }

    /// Asks the server something that changes nothing: whether it answers at all.
    pub async fn ask(&self) -> Result<(), KeycloakError> {
        self.find_client(settings::roles_client(&self.shared.config)).await.map(drop)
    }

    /// The identifier of the client that holds the roles.
    async fn roles_client(&self) -> Result<String, KeycloakError> {
        if let Some(known) = &*self.shared.roles_client.lock() {
            return Ok(known.clone());
        }
        let name = settings::roles_client(&self.shared.config);
        let found = self.find_client(name).await?;
        *self.shared.roles_client.lock() = Some(found.clone());
        Ok(found)
    }
}

/// The answer to a call of the crate. It has read the body of a refusal, and left that of a success.
fn answer_of_crate(http: &HttpClient, changed: Changed) -> Result<Answer, HttpError> {
    match changed {
        Ok(response) => Ok(Answer::without_body(response.as_ref())),
        Err(CrateError::HttpFailure { status, text, .. }) => {
            // It was a StatusCode before.
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            Ok(Answer { status, location: None, body: text.into() })
        }
        Err(CrateError::ReqwestFailure(error)) => Err(http.error(error)),
    }
}

/// Counts a request. The label `code` is `<error>` where there is no answer, as in
/// `rest_client_requests_total`.
fn count(operation: Operation, status: Option<StatusCode>, took: Duration) {
    let code = status.map_or_else(|| "<error>".to_owned(), |status| status.as_str().to_owned());
    let (method, operation) = (operation.method().as_str().to_owned(), operation.label());
    histogram!("keycloak_request_duration_seconds", "operation" => operation).record(took);
    counter!("keycloak_requests_total", "method" => method, "operation" => operation, "code" => code)
        .increment(1);
}
