//! Logging in and out at the issuer.

use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::body::Bytes;
use tracing::{info, warn};

use super::act::Acting;
use super::route::Fields;
use super::session::{self, Keys, LoginAttempt, Session};
use super::users::{NoUser, Users};
use crate::clients::oidc::Attempt;
use crate::runtime::clock;

/// Why nobody was logged in.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The issuer, or the API server, has not done its part.
    #[error("{0}")]
    NoUser(#[from] NoUser),
    /// The issuer sends back somebody whom this browser has not sent, or too late.
    #[error("this login has not begun here, or took more than ten minutes")]
    Stale,
    /// The issuer says why it did not log him in.
    #[error("the issuer has not logged in the user: {0}")]
    Denied(String),
    /// The system has no random numbers.
    #[error("this machine has no random numbers")]
    NoRandom,
    /// The session does not fit into a cookie.
    #[error(
        "the session has more than the 4,096 bytes that a cookie may have: the refresh token is too long"
    )]
    TooLong,
}

/// Sends the browser to the issuer, from where it returns to a path.
///
/// # Errors
/// If the issuer cannot be asked where to.
pub async fn begin(users: &Users, keys: &Keys, path: &str) -> Result<Response<Bytes>, Failed> {
    let attempt = Attempt::random().ok_or(Failed::NoRandom)?;
    let url = users.provider().authorize_url(&attempt).await.map_err(NoUser::from)?;
    let begun = |path: &str| {
        LoginAttempt { attempt: attempt.clone(), path: path.to_owned() }.seal(keys, clock::now())
    };
    // A path that does not fit into a cookie is not returned to.
    let cookie = begun(path).or_else(|_| begun("/")).map_err(|_| Failed::TooLong)?;
    Ok(with_cookie(see_other(&url), &cookie))
}

/// Takes a user whom the issuer sends back: the browser gets its session, and goes on to where it wanted.
///
/// # Errors
/// See [`Failed`].
pub async fn finish(
    users: &Users,
    keys: &Keys,
    headers: &HeaderMap,
    query: &Fields,
) -> Result<Response<Bytes>, Failed> {
    let begun = LoginAttempt::read(headers, keys, clock::now()).ok_or(Failed::Stale)?;
    if !begun.attempt.is_of(query.get("state")) {
        return Err(Failed::Stale);
    }
    if !query.get("error").is_empty() {
        let error = [query.get("error"), query.get("error_description")].join(" ");
        return Err(Failed::Denied(error.trim_end().chars().take(300).collect()));
    }
    let tokens = users.provider().exchange(query.get("code"), &begun.attempt, clock::now()).await;
    let tokens = tokens.map_err(NoUser::from)?;
    let id = session::nonce().ok_or(Failed::NoRandom)?;
    let user = users.logged_in(&id, &tokens).await?;
    let Some(refresh_token) = tokens.refresh_token else {
        return Err(NoUser::NotSetUp("the issuer sends no refresh token for its client".to_owned()).into());
    };
    let session = Session { id, refresh_token, visited: clock::now() };
    let cookie = session.seal(keys).map_err(|_| Failed::TooLong)?;
    info!(user = user.name, "logged in at the dashboard");
    if let Err(error) = (Acting { client: users.client(), user: &user }).logged_in().await {
        // The page says what there is to say about it.
        warn!(user = user.name, %error, "the time of the login was not written into the Tenant");
    }
    let answer = with_cookie(see_other(&begun.path), &cookie);
    Ok(with_cookie(answer, &LoginAttempt::ended()))
}

/// Ends a session here and at the issuer.
pub async fn end(users: &Users, session: &Session) {
    users.forget(session);
    if let Err(error) = users.provider().logout(&session.refresh_token).await {
        warn!(%error, "the issuer has not ended a session; it ends by itself");
    }
}

/// An answer that sends the browser to another place, which it reads.
pub fn see_other(place: &str) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let place = HeaderValue::try_from(place).unwrap_or(HeaderValue::from_static("/"));
    answer.headers_mut().insert(LOCATION, place);
    answer
}

/// The same answer, with a cookie.
pub fn with_cookie<B>(mut answer: Response<B>, cookie: &str) -> Response<B> {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}
