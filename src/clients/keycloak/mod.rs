//! Keycloak's admin API, as far as Tenants and Workspaces need it: accounts, and the roles of one client.
//! `docs/keycloak.md` describes the setup of a realm.
//!
//! Changes are calls of the crate `keycloak`. The crate reads responses of any length, and rejects an object if any
//! of its fields differs from the crate's types. So objects are read by separate requests on the same connections,
//! with a limit for their size, and decoded into the few fields that are used. This module adds one token for all
//! calls, a second attempt when the token is rejected, the check of the lease, metrics, and error messages for
//! administrators.
//!
//! Calls are idempotent: each call finds out what has been done already. Changes are sent only while the lease is
//! held. Errors and logs contain no secrets and no personal data.

mod error;
mod failing;
mod operation;
mod roles;
mod settings;
pub mod telemetry;
#[cfg(test)]
mod tests;
mod token;
mod users;

use std::sync::Arc;
use std::time::Instant;

use ::keycloak::{DefaultResponse, KeycloakAdmin, KeycloakError as CrateError};
use anyhow::anyhow;
use http::{StatusCode, Uri};
use metrics::{counter, histogram};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::clients::http::{Answer, HttpClient, HttpError};
use crate::config::KeycloakConfig;
use crate::runtime::gate::Gate;
use crate::runtime::outages::{Outages, System};
use crate::runtime::single_flight::SingleFlight;
use error::Refusal;
use failing::Failing;
use settings::Account;
use token::{Login, Token};

pub use error::KeycloakError;
pub use operation::Operation;
pub use roles::{Role, description};
pub use users::{ActionMail, RequiredAction, User, UserUpdate, WantedUser, difference, is_reserved};

/// The limit for a response in bytes, far above Keycloak's responses.
const LONGEST_ANSWER: usize = 4 << 20;

/// The crate's client. It is created for each attempt, with the token of that attempt.
type Admin = KeycloakAdmin<Token>;

/// The result of a call of the crate that changes something.
type Changed = Result<DefaultResponse, CrateError>;

/// A client of one realm. Clones share connections, the token and the identifier of the client that holds the roles.
#[derive(Clone, derive_more::Debug)]
#[debug("Keycloak({}, realm {})", shared.config.url, shared.config.realm)] // leaves out the token
pub struct Keycloak {
    shared: Arc<Shared>,
    outages: Outages,
}

struct Shared {
    config: KeycloakConfig,
    /// The URL before `/realms` and `/admin`.
    base: String,
    http: HttpClient,
    gate: Gate,
    /// The token of the service account or the user.
    token: SingleFlight<Token, KeycloakError>,
    /// The identifier of the client that holds the roles, after the first request for it.
    roles_client: Mutex<Option<String>>,
    failing: Failing,
}

impl Keycloak {
    /// A client of a realm. It sends changes only while `gate` is open. Nothing is sent yet.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be used, or the URL is invalid.
    pub fn new(config: &KeycloakConfig, gate: Gate) -> anyhow::Result<Self> {
        let (base, config) = (settings::base(config), config.clone());
        let url: Uri = base.parse().map_err(|error| anyhow!("integrations.keycloak.url: {error}"))?;
        let http = HttpClient::new(&url, &config.ca_file, config.timeout.get(), LONGEST_ANSWER)
            .map_err(|error| anyhow!("integrations.keycloak.caFile: {error}"))?;
        let (token, roles_client, failing) = (SingleFlight::default(), Mutex::default(), Failing::default());
        let shared = Arc::new(Shared { config, base, http, gate, token, roles_client, failing });
        Ok(Self { shared, outages: Outages::default() })
    }

    /// Returns the client, which then reports operations that fail for every object to `outages`.
    #[must_use]
    pub fn reporting_to(self, outages: &Outages) -> Self {
        Self { outages: outages.clone(), ..self }
    }

    fn realm(&self) -> &str {
        &self.shared.config.realm
    }

    /// Reads an object; `None` if it does not exist. `path` is relative to the realm, with each segment encoded.
    async fn read<T: DeserializeOwned>(
        &self,
        operation: Operation,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, KeycloakError> {
        let Shared { http, base, .. } = &*self.shared;
        let url = format!("{base}/admin/realms/{}/{path}", settings::encoded(self.realm()));
        let request = |token: Token| http.send(http.client.get(&url).query(query).bearer_auth(token.text));
        let Some(answer) = self.call(operation, request).await? else { return Ok(None) };
        // The message of the decoder may repeat data of the response.
        serde_json::from_slice(&answer.body)
            .map_err(|_| KeycloakError::BadAnswer { operation, problem: "it has an unknown form".to_owned() })
    }

    /// Changes an object by a call of the crate. Returns `None` if the object to be deleted does not exist.
    async fn write<F: Future<Output = Changed>>(
        &self,
        operation: Operation,
        change: impl Fn(Admin) -> F,
    ) -> Result<Option<Answer>, KeycloakError> {
        let Shared { http, base, .. } = &*self.shared;
        let request = |token: Token| {
            let changed = change(KeycloakAdmin::new(base, token, http.client.clone()));
            async move { answer_of_crate(http, changed.await) }
        };
        self.call(operation, request).await
    }

    /// Sends a request with the token, and reports an operation that fails for every object. Returns `None`
    /// if the object does not exist and the operation allows that.
    async fn call<F: Future<Output = Result<Answer, HttpError>>>(
        &self,
        operation: Operation,
        request: impl Fn(Token) -> F,
    ) -> Result<Option<Answer>, KeycloakError> {
        let result = self.send(operation, request).await;
        self.shared.failing.record(operation, &result);
        if let Err(error) = &result
            && error.is_of_the_operation()
        {
            self.outages.failed(System::Keycloak, self.url(), error);
        }
        result
    }

    /// Sends a request with the token. If the token is rejected, sends it again with a new token, because the
    /// token may have been revoked or the server restarted.
    async fn send<F: Future<Output = Result<Answer, HttpError>>>(
        &self,
        operation: Operation,
        request: impl Fn(Token) -> F,
    ) -> Result<Option<Answer>, KeycloakError> {
        let token = self.token(None).await?;
        let mut answer = self.exchange(operation, request(token.clone())).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            let next = self.token(Some(&token)).await?;
            answer = self.exchange(operation, request(next)).await?;
        }
        if answer.status.is_success() {
            return Ok(Some(answer));
        }
        // Another 404 comes from another server, or is about another part of the path.
        let is_absent = |words| answer.status == StatusCode::NOT_FOUND && Refusal::of(&answer).is(words);
        if operation.absent().is_some_and(is_absent) {
            return Ok(None);
        }
        let error = KeycloakError::from_answer(&answer, operation, &Account::of(&self.shared.config));
        if matches!(error, KeycloakError::NotFound(_)) {
            // The client with the roles may have been deleted, and perhaps created again.
            *self.shared.roles_client.lock() = None;
        }
        Err(error)
    }

    /// Returns the cached token while it is fresh and was not rejected. Otherwise requests a new one.
    async fn token(&self, rejected: Option<&Token>) -> Result<Token, KeycloakError> {
        let is_usable = |token: &Token| token.is_fresh(Instant::now()) && Some(token) != rejected;
        self.shared.token.get(is_usable, async || self.renew().await).await
    }

    /// Requests a new token with the credentials of the client or the user.
    async fn renew(&self) -> Result<Token, KeycloakError> {
        let Shared { http, base, config, .. } = &*self.shared;
        let (login, realm) = (Login::read(config)?, settings::login_realm(config));
        let url = format!("{base}/realms/{}/protocol/openid-connect/token", settings::encoded(realm));
        let mut request = http.client.post(&url).form(&login.form);
        if let Some((name, secret)) = login.basic {
            request = request.basic_auth(name, Some(secret));
        }
        let asked = Instant::now();
        let answer = self.exchange(Operation::Token, http.send(request)).await?;
        match answer.status {
            StatusCode::OK => Token::read(&answer.body, asked),
            // An unknown client or a wrong password causes 401. A client without a service account, or without direct
            // access grants, causes 400 or 401.
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

    /// Sends one request, and counts it. A change is sent only while the lease is held.
    async fn exchange(
        &self,
        operation: Operation,
        request: impl Future<Output = Result<Answer, HttpError>>,
    ) -> Result<Answer, KeycloakError> {
        // Checked last, because fetching the token may have taken some time.
        if operation.is_change() && !self.shared.gate.is_open() {
            return Err(KeycloakError::NotLeader);
        }
        let begin = Instant::now();
        let answer = request.await;
        let (method, name, _) = operation.row();
        histogram!("keycloak_request_duration_seconds", "operation" => name).record(begin.elapsed());
        // Without a response, the label `code` is `<error>`, as in `rest_client_requests_total`.
        let code = answer.as_ref().map_or("<error>", |answer| answer.status.as_str()).to_owned();
        counter!("keycloak_requests_total", "method" => method.to_string(), "operation" => name, "code" => code)
            .increment(1);
        answer.map_err(|problem| match problem {
            HttpError::TooLong(_) => KeycloakError::BadAnswer { operation, problem: problem.to_string() },
            problem => KeycloakError::Unreachable { url: self.shared.config.url.clone(), problem },
        })
    }

    /// The URL of the server.
    pub fn url(&self) -> &str {
        &self.shared.config.url
    }

    /// Sends a request that changes nothing, to check whether the server responds. Also fails while an
    /// operation fails for every object.
    pub async fn ask(&self) -> Result<(), KeycloakError> {
        self.find_client(settings::roles_client(&self.shared.config)).await?;
        self.shared.failing.error().map_or(Ok(()), Err)
    }

    /// Returns the identifier of the client that holds the roles.
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

/// Converts the result of a call of the crate. The crate reads the body of an error response, and does not read the
/// body of a success.
fn answer_of_crate(http: &HttpClient, changed: Changed) -> Result<Answer, HttpError> {
    match changed {
        Ok(response) => Ok(Answer::without_body(response.as_ref())),
        Err(CrateError::HttpFailure { status, text, .. }) => {
            // The crate converted a `StatusCode`, so this cannot fail.
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            Ok(Answer { status, location: None, body: text.into() })
        }
        Err(CrateError::ReqwestFailure(error)) => Err(http.error(error)),
    }
}
