//! The users of the sessions, with their tokens until these expire. Tokens are in memory only: another replica, or this one after a
//! restart, gets a token for the session of the browser.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashlink::LruCache;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::join;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::ended::EndedSessions;
use crate::api::tenant::TenantKind;
use crate::clients::oidc::{self, Provider, Secret, TokenUser};
use crate::config::Identity;
use crate::controllers::dashboard::live::watches::TenantSignal;
use crate::controllers::dashboard::session::{Logout, Session};
use crate::runtime::client::{Credential, Patch, Rules, UserClient};
use crate::runtime::error::ApiError;
use crate::runtime::single_flight::SingleFlight;
use crate::runtime::store::Store;
use crate::runtime::{ObjectKey, clock};

/// The maximum number of sessions whose token is kept. Above it, the session that was used longest ago loses its token.
const MOST: usize = 20_000;
/// A token that expires earlier is replaced before it is used.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// How long the rules of a user are cached.
const RULES_FOR: Duration = Duration::from_mins(5);
/// The maximum time of each part of a logout. A user is waiting for it.
const LOGOUT_LIMIT: Duration = Duration::from_secs(5);
/// The maximum number of namespaces whose rules are cached for one user.
const MOST_NAMESPACES: usize = 64;

/// A user with a token that the API server has accepted.
pub struct User {
    /// The credential of all requests.
    pub credential: Credential,
    /// The name of the user and of the Tenant.
    pub name: String,
    /// The email address, if the issuer says that it is not confirmed.
    pub unconfirmed: Option<String>,
    /// When the token expires.
    expires: Timestamp,
    rules: Mutex<HashMap<String, (Instant, Arc<Rules>)>>,
    /// The number of this user and token in this process.
    pub number: u64,
}

/// Why a session has no user.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoUser {
    /// The session expired: the user has to log in again.
    #[error("the session expired: {0}")]
    Ended(String),
    /// The user has logged out.
    #[error("the user has logged out")]
    LoggedOut,
    /// The issuer does not respond.
    #[error("{0}")]
    IssuerAway(String),
    /// The set-up of the login is wrong, which an administrator has to correct.
    #[error("{0}")]
    NotSetUp(String),
    /// The API server does not accept the tokens of the issuer.
    #[error("the API server does not accept the tokens of the issuer: {0}")]
    Refused(String),
    /// The API server does not respond, or is overloaded.
    #[error("{0}")]
    ApiAway(ApiError),
}

impl From<oidc::Error> for NoUser {
    fn from(error: oidc::Error) -> Self {
        match error {
            oidc::Error::Ended(why) => Self::Ended(why),
            oidc::Error::Refused(why) => Self::NotSetUp(why),
            oidc::Error::Away(why) => Self::IssuerAway(why),
        }
    }
}

/// The user of a session. One request replaces an expired token while the others wait.
type SessionUser = SingleFlight<Arc<User>, NoUser>;

/// The users of the sessions.
pub struct Users {
    /// The client of the API server, which sends requests as a user.
    pub client: UserClient,
    /// The client of the issuer.
    pub provider: Provider,
    identity: Identity,
    sessions: Mutex<LruCache<String, Arc<SessionUser>>>,
    ended: EndedSessions,
}

/// A user, with the next refresh token of the session if the issuer sent one.
pub struct Found {
    /// The user.
    pub user: Arc<User>,
    /// The next refresh token.
    pub next: Option<Secret>,
}

impl Users {
    /// Creates the users, without any sessions.
    pub fn new(client: UserClient, provider: Provider, identity: Identity) -> Self {
        let sessions = Mutex::new(LruCache::new(MOST));
        let ended = EndedSessions::new(Arc::new(Store::new(true)));
        Self { client, provider, identity, sessions, ended }
    }

    /// Returns the users, who log out at every replica through the annotations of these Tenants.
    #[must_use]
    pub fn with_tenants(self, tenants: Arc<Store<TenantSignal>>) -> Self {
        Self { ended: EndedSessions::new(tenants), ..self }
    }

    /// Returns the user of a session, with a token that has not expired.
    ///
    /// # Errors
    /// See [`NoUser`].
    pub async fn of(&self, session: &Session) -> Result<Found, NoUser> {
        if self.ended.own(&session.id).is_some() {
            return Err(NoUser::LoggedOut);
        }
        let known = Arc::clone(self.sessions.lock().entry(session.id.clone()).or_insert_with(Arc::default));
        let mut next = None;
        let refresh = async || {
            let found = Box::pin(self.refresh(session)).await?;
            next = found.next;
            Ok(found.user)
        };
        let user = known.get(|user| clock::now() + MARGIN < user.expires, refresh).await?;
        if self.ended.names(&user.name, &session.id) {
            self.end(session, true);
            return Err(NoUser::LoggedOut);
        }
        Ok(Found { user, next })
    }

    /// Gets a new token.
    async fn refresh(&self, session: &Session) -> Result<Found, NoUser> {
        let tokens = self.provider.refresh(&session.refresh_token, clock::now()).await?;
        let user = Arc::new(self.accepted(&tokens).await?);
        let next = tokens.refresh_token.filter(|next| *next != session.refresh_token);
        Ok(Found { user, next })
    }

    /// Adds the user of a new session.
    ///
    /// # Errors
    /// See [`NoUser`].
    pub async fn logged_in(&self, session: &str, tokens: &oidc::Tokens) -> Result<Arc<User>, NoUser> {
        let user = Arc::new(self.accepted(tokens).await?);
        let known = Arc::new(SingleFlight::known(Arc::clone(&user)));
        self.sessions.lock().insert(session.to_owned(), known);
        Ok(user)
    }

    /// Whether a user has ended a session, as far as this replica knows.
    pub fn has_ended(&self, user: &str, session: &str) -> bool {
        self.ended.own(session).is_some() || self.ended.names(user, session)
    }

    /// Whether requests are sent with the account of the dashboard, which impersonates the users.
    pub fn are_impersonated(&self) -> bool {
        self.identity == Identity::Impersonate
    }

    /// Returns the names of the Tenants in which each word of a text occurs, see [`EndedSessions::names_like`].
    pub fn names_like(&self, text: &str) -> Vec<String> {
        self.ended.names_like(text)
    }

    /// Ends a session: at every replica, and at the issuer.
    pub async fn log_out(&self, session: &Session) -> Logout {
        let logout = match timeout(LOGOUT_LIMIT, self.of(session)).await {
            Ok(Ok(Found { user, next })) => {
                let token = next.as_ref().unwrap_or(&session.refresh_token);
                let (is_everywhere, is_at_issuer) =
                    join!(self.name_ended(&user, session), self.end_at_issuer(token));
                Logout { is_everywhere, is_at_issuer }
            }
            // Without a token, nothing can be written into the Tenant.
            _ => Logout {
                is_everywhere: self.ended.own(&session.id) == Some(true),
                is_at_issuer: self.end_at_issuer(&session.refresh_token).await,
            },
        };
        self.end(session, logout.is_everywhere);
        logout
    }

    /// Rejects a session from now on, and forgets its token. `is_named`: whether its Tenant names it.
    fn end(&self, session: &Session, is_named: bool) {
        self.ended.add(&session.id, is_named);
        self.sessions.lock().remove(&session.id);
    }

    /// Writes into the Tenant of a user that a session has ended. Returns whether the API server has confirmed it.
    async fn name_ended(&self, user: &User, session: &Session) -> bool {
        let patch = self.ended.patch(&user.name, &session.id, clock::now());
        let tenant = ObjectKey::new("", user.name.as_str());
        let written = self.client.patch::<TenantKind>(&user.credential, &tenant, Patch::Merge(&patch));
        let written = timeout(LOGOUT_LIMIT, written).await;
        let error = written.map_or_else(
            |_| Some("the API server did not respond in time".to_owned()),
            |written| written.err().map(|error| error.to_string()),
        );
        if let Some(error) = &error {
            let user = user.name.as_str();
            warn!(
                user,
                error,
                "a logout was not written into the Tenant; other replicas may accept the session until its token expires"
            );
        }
        error.is_none()
    }

    /// Ends the session of a refresh token at the issuer. Returns whether the issuer has confirmed it.
    async fn end_at_issuer(&self, refresh_token: &Secret) -> bool {
        let ended = timeout(LOGOUT_LIMIT, self.provider.logout(refresh_token)).await;
        let error = ended.map_or_else(
            |_| Some("it did not respond in time".to_owned()),
            |ended| ended.err().map(|error| error.to_string()),
        );
        if let Some(error) = &error {
            warn!(error, "the issuer did not end a session; it expires there");
        }
        error.is_none()
    }

    /// Returns the user of a token. The API server determines the name.
    async fn accepted(&self, tokens: &oidc::Tokens) -> Result<User, NoUser> {
        let refused = |error: ApiError| match error {
            ApiError::Forbidden(why) if self.identity == Identity::Token => NoUser::Refused(why),
            ApiError::Forbidden(why) => NoUser::NotSetUp(why),
            error => NoUser::ApiAway(error),
        };
        let credential = match self.identity {
            Identity::Token => Credential::token(tokens.id_token.expose()),
            Identity::Impersonate => {
                let TokenUser { name, groups } = self.provider.user(&tokens.id_token).await?;
                Credential::impersonated(&name, &groups)
            }
        };
        let credential = credential.map_err(refused)?;
        let name = self.client.name(&credential).await.map_err(refused)?;
        let unconfirmed = tokens.unconfirmed.clone();
        Ok(User { unconfirmed, ..User::new(credential, name, tokens.expires) })
    }

    /// Returns the rules of a user in a namespace.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn rules(&self, user: &User, namespace: &str) -> Result<Arc<Rules>, ApiError> {
        if let Some((since, rules)) = user.rules.lock().get(namespace)
            && since.elapsed() < RULES_FOR
        {
            return Ok(Arc::clone(rules));
        }
        let rules = Arc::new(self.client.rules(&user.credential, namespace).await?);
        let mut known = user.rules.lock();
        known.retain(|_, (since, _)| since.elapsed() < RULES_FOR);
        if known.len() < MOST_NAMESPACES {
            known.insert(namespace.to_owned(), (Instant::now(), Arc::clone(&rules)));
        }
        drop(known);
        Ok(rules)
    }
}

impl User {
    /// Creates a user with a token.
    pub fn new(credential: Credential, name: String, expires: Timestamp) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { credential, name, unconfirmed: None, expires, rules: Mutex::default(), number }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
