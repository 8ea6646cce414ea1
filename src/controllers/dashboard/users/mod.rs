//! Who uses the dashboard now: a user's token, until it runs out, and what it says. Tokens are in memory only; another replica, and
//! this one after a restart, gets one for the session of the browser.

mod kept;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashlink::LruCache;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::kept::Kept;
use crate::clients::oidc::{self, Provider, Secret, TokenUser};
use crate::config::Identity;
use crate::controllers::dashboard::read::Own;
use crate::controllers::dashboard::session::Session;
use crate::runtime::client::{Credential, Rules, UserClient};
use crate::runtime::clock;
use crate::runtime::error::ApiError;
use crate::runtime::single_flight::SingleFlight;

/// The most sessions whose token is kept. Of more, the one that was used longest ago needs a new one.
const MOST: usize = 20_000;
/// A token that is to last less is replaced before it is used.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// How long it is known what a user may do.
const RULES_FOR: Duration = Duration::from_mins(5);
/// The most namespaces of which that is known for one user.
const MOST_NAMESPACES: usize = 64;

/// A user with a token that the API server has accepted.
pub struct User {
    /// With it, all requests are sent.
    pub credential: Credential,
    /// The name, which is that of his Tenant.
    pub name: String,
    /// His e-mail address, if the issuer says that it is not confirmed.
    pub unconfirmed: Option<String>,
    /// When the token runs out.
    expires: Timestamp,
    rules: Mutex<HashMap<String, (Instant, Arc<Rules>)>>,
    /// No other user of this process has it, and neither has the same one with his next token.
    number: u64,
}

/// Why a session has no user.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoUser {
    /// The session is over: he has to log in again.
    #[error("the session is over: {0}")]
    Ended(String),
    /// The issuer does not answer.
    #[error("{0}")]
    IssuerAway(String),
    /// The login is not set up as it has to be: an administrator has to look at it.
    #[error("{0}")]
    NotSetUp(String),
    /// The API server does not accept the tokens of the issuer.
    #[error("the API server does not accept the tokens of the issuer: {0}")]
    Refused(String),
    /// The API server does not answer, or has too much to do.
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

/// The user of a session, whose token is replaced by one of its requests while the others wait.
type SessionUser = SingleFlight<Arc<User>, NoUser>;

/// The users of the sessions.
pub struct Users {
    client: UserClient,
    provider: Provider,
    identity: Identity,
    sessions: Mutex<LruCache<String, Arc<SessionUser>>>,
    kept: Kept,
}

/// A user, and the refresh token that takes the place of that of the session, if the issuer has sent one.
pub struct Found {
    /// The user.
    pub user: Arc<User>,
    /// The next refresh token.
    pub next: Option<Secret>,
}

impl Users {
    /// Nobody yet.
    pub fn new(client: UserClient, provider: Provider, identity: Identity) -> Self {
        let sessions = Mutex::new(LruCache::new(MOST));
        Self { client, provider, identity, sessions, kept: Kept::default() }
    }

    /// The issuer.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The API server, in the name of users.
    pub fn client(&self) -> &UserClient {
        &self.client
    }

    /// The user of a session, with a token that lasts.
    ///
    /// # Errors
    /// See [`NoUser`].
    pub async fn of(&self, session: &Session) -> Result<Found, NoUser> {
        let known = Arc::clone(self.sessions.lock().entry(session.id.clone()).or_insert_with(Arc::default));
        let mut next = None;
        let refresh = async || {
            let found = Box::pin(self.refresh(session)).await?;
            next = found.next;
            Ok(found.user)
        };
        let user = known.get(|user| user.lasts(clock::now()), refresh).await?;
        Ok(Found { user, next })
    }

    /// The same, with a new token.
    async fn refresh(&self, session: &Session) -> Result<Found, NoUser> {
        let tokens = self.provider.refresh(&session.refresh_token, clock::now()).await?;
        let user = Arc::new(self.accepted(&tokens).await?);
        // An issuer that sends the same token again has sent no new one.
        let next = tokens.refresh_token.filter(|next| *next != session.refresh_token);
        Ok(Found { user, next })
    }

    /// The user who has just logged in with the session of this name.
    ///
    /// # Errors
    /// See [`NoUser`].
    pub async fn logged_in(&self, session: &str, tokens: &oidc::Tokens) -> Result<Arc<User>, NoUser> {
        let user = Arc::new(self.accepted(tokens).await?);
        let known = Arc::new(SingleFlight::known(Arc::clone(&user)));
        self.sessions.lock().insert(session.to_owned(), known);
        Ok(user)
    }

    /// Forgets the token of a session.
    pub fn forget(&self, session: &Session) {
        self.sessions.lock().remove(&session.id);
    }

    /// The user of a token, who is the one whom the API server takes him for.
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

    /// What a user may do in a namespace.
    ///
    /// # Errors
    /// What the API server answers.
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

    /// Keeps what was read for the first page of a user, to be shown again while the API server does not answer.
    pub fn keep(&self, user: &User, now: Timestamp, own: &Arc<Own>) {
        self.kept.keep(user.number, now, own);
    }

    /// What was kept, and since when.
    pub fn kept(&self, user: &User) -> Option<(Timestamp, Arc<Own>)> {
        self.kept.get(user.number)
    }
}

impl User {
    /// A user of a token, of whom nothing is known yet.
    pub fn new(credential: Credential, name: String, expires: Timestamp) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { credential, name, unconfirmed: None, expires, rules: Mutex::default(), number }
    }

    fn lasts(&self, now: Timestamp) -> bool {
        now + MARGIN < self.expires
    }
}

#[cfg(test)]
mod tests;
