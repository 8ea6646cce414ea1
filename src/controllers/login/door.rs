//! The decision about a request, and the exchange of a code for a cookie.

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Bytes;
use jiff::Timestamp;
use metrics::counter;
use tokio::sync::watch;
use tracing::{info, warn};

use super::answer::{allowed, denied, exchanged, login};
use super::codes::UsedCodes;
use super::machines::{Entry, Machines};
use super::request::Original;
use crate::controllers::shared::machine_login::{Code, Pass};
use crate::controllers::shared::sealing::Keys;

/// The keys that seal codes and cookies; `None` until their file exists.
pub type SessionKeys = Arc<watch::Sender<Option<Arc<Keys>>>>;

/// Decides which requests pass.
pub struct Door {
    /// The domain of the hosts.
    pub base: String,
    /// The page of the dashboard that logs users in.
    pub sign_in: String,
    /// The machines.
    pub machines: Arc<Machines>,
    /// The keys that seal codes and cookies.
    pub keys: SessionKeys,
    /// The codes that were exchanged.
    pub codes: UsedCodes,
}

/// The decision about a request that exchanges no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request passes.
    Allowed,
    /// It does not.
    Denied,
    /// The browser has to log in.
    LogIn,
}

/// A peer who has logged in at their host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The label of the host.
    pub label: String,
    /// The login.
    pub pass: Pass,
}

/// The result of a request that the relay gets.
pub enum Visit {
    /// The login answers it.
    Answered(Response<Bytes>),
    /// The machine gets it.
    Allowed(Guest),
}

impl Door {
    /// Returns the response to a request of a gateway.
    pub async fn answer(&self, request: &Request<Bytes>, now: Timestamp) -> Response<Bytes> {
        let keys = self.keys.borrow().clone();
        let original = Original::read(request, &self.base);
        let (Some(original), Some(keys)) = (original, keys) else {
            return counted("denied", denied());
        };
        // The relay decides about the hosts of peers. An Envoy asks here, too, if its policy covers their route.
        if self.machines.is_of_peer(original.label) {
            return counted("allowed", allowed());
        }
        if let Some(code) = original.code() {
            return self.exchange(&original, &keys, &code, now).await;
        }
        let pass = Pass::read(request.headers(), &keys, original.label, now);
        match decide(&self.machines, &original, pass.as_ref()) {
            Decision::Allowed => counted("allowed", allowed()),
            Decision::Denied => counted("denied", denied()),
            Decision::LogIn => counted("login", login(&original, &self.sign_in)),
        }
    }

    /// Decides about a request that the relay gets from a browser.
    pub async fn visit(&self, request: &Request<()>, now: Timestamp) -> Visit {
        let keys = self.keys.borrow().clone();
        let original = Original::of_relay(request, &self.base);
        let original = original.filter(|original| self.machines.is_of_peer(original.label));
        let (Some(original), Some(keys)) = (original, keys) else {
            return Visit::Answered(counted("denied", denied()));
        };
        if let Some(code) = original.code() {
            return Visit::Answered(self.exchange(&original, &keys, &code, now).await);
        }
        let pass = Pass::read(request.headers(), &keys, original.label, now);
        match (decide_for_peer(&self.machines, &original, pass.as_ref(), now), pass) {
            (Decision::Allowed, Some(pass)) => {
                counter!("machine_login_requests_total", "result" => "allowed").increment(1);
                Visit::Allowed(Guest { label: original.label.to_owned(), pass })
            }
            (Decision::LogIn, _) => Visit::Answered(counted("login", login(&original, &self.sign_in))),
            (Decision::Allowed | Decision::Denied, _) => Visit::Answered(counted("denied", denied())),
        }
    }

    /// Exchanges a code for a cookie. A code of the dashboard leads to its page, also without a cookie: the login then
    /// begins again.
    async fn exchange(
        &self,
        original: &Original<'_>,
        keys: &Keys,
        code: &str,
        now: Timestamp,
    ) -> Response<Bytes> {
        let code = Code::open(keys, original.label, code);
        let Some(code) = code.filter(|_| original.is_navigation && !original.is_foreign) else {
            return counted("denied", denied_exchange(original, &self.sign_in));
        };
        let pass = Pass::of(&code, now);
        // Any user gets a code, and any page can open it in a window of another user, whose cookie it would replace.
        let entry = if self.machines.is_of_peer(original.label) {
            self.machines.entry_of_peer(&pass, original.label, now)
        } else {
            self.machines.entry(&pass, original.label)
        };
        if entry == Entry::Denied {
            return counted("denied", denied());
        }
        match self.redeem(original.label, &code, &pass, keys, now).await {
            Ok(cookie) => counted("exchanged", exchanged(original, &code.path, Some(&cookie))),
            Err(why) => {
                warn!(host = original.authority, "a login to a machine begins again: {why}");
                counted("refused", exchanged(original, &code.path, None))
            }
        }
    }

    /// Returns the cookie of the login that follows from a code, or the reason why there is none.
    async fn redeem(
        &self,
        label: &str,
        code: &Code,
        pass: &Pass,
        keys: &Keys,
        now: Timestamp,
    ) -> Result<String, String> {
        if !code.is_fresh(now) {
            return Err("the code has expired".to_owned());
        }
        Box::pin(self.codes.exchange(code, label, now)).await.map_err(|error| error.to_string())?;
        let cookie = pass.cookie(keys, label).ok_or_else(|| "the system has no random numbers".to_owned())?;
        info!(user = pass.user, label, "logged in to a machine");
        Ok(cookie)
    }
}

/// Decides about a request with this login, which exchanges no code.
pub fn decide(machines: &Machines, original: &Original<'_>, pass: Option<&Pass>) -> Decision {
    // The path of the login never reaches a machine, which could otherwise read codes.
    if original.is_foreign || original.is_of_login() || !machines.is_known(original.label) {
        return Decision::Denied;
    }
    decided(pass.map(|pass| machines.entry(pass, original.label)))
}

/// Decides about the request of a browser with this login at the host of a peer, which exchanges no code.
pub fn decide_for_peer(
    machines: &Machines,
    original: &Original<'_>,
    pass: Option<&Pass>,
    now: Timestamp,
) -> Decision {
    if original.is_foreign || original.is_of_login() {
        return Decision::Denied;
    }
    decided(pass.map(|pass| machines.entry_of_peer(pass, original.label, now)))
}

fn decided(entry: Option<Entry>) -> Decision {
    match entry {
        Some(Entry::Allowed) => Decision::Allowed,
        Some(Entry::Denied) => Decision::Denied,
        Some(Entry::Ended) | None => Decision::LogIn,
    }
}

/// The response to a code that cannot be read, or does not come from a redirect of the dashboard. With ingress-nginx,
/// the dashboard shows the reason.
fn denied_exchange(original: &Original<'_>, sign_in: &str) -> Response<Bytes> {
    if original.is_navigation && !original.is_foreign { login(original, sign_in) } else { denied() }
}

/// Counts a response.
fn counted(result: &'static str, answer: Response<Bytes>) -> Response<Bytes> {
    counter!("machine_login_requests_total", "result" => result).increment(1);
    answer
}
