//! Login and logout at the issuer.

use axum::response::Response;
use http::HeaderMap;
use tracing::{info, warn};

use super::{LoginAttempt, Session, nonce};
use crate::api::tenant::TenantKind;
use crate::clients::oidc::Attempt;
use crate::controllers::dashboard::http::context::Context;
use crate::controllers::dashboard::http::csrf::SameOrigin;
use crate::controllers::dashboard::http::response::{see_other, with_cookie};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::state;
use crate::controllers::dashboard::user::users::{NoUser, User};
use crate::controllers::dashboard::user::without_user;
use crate::runtime::client::{Patch, UserClient};
use crate::runtime::error::ApiError;
use crate::runtime::{ObjectKey, clock};

/// Redirects to the issuer, which redirects back to [`finish`].
pub async fn begin(context: Context) -> Response {
    let path = Some(context.query.get("return")).filter(|path| paths::is_page(path)).unwrap_or(paths::HOME);
    redirect(&context, path).await.unwrap_or_else(|failed| failed.answer(&context))
}

/// Completes a login after the issuer has redirected back: sets the cookie of the session, and redirects to the
/// requested page.
pub async fn finish(context: Context, headers: HeaderMap) -> Response {
    let answer = accept(&context, &headers).await.unwrap_or_else(|failed| failed.answer(&context));
    with_cookie(answer, &LoginAttempt::ended())
}

/// Ends the session here and at the issuer.
pub async fn logout(_: SameOrigin, context: Context) -> Response {
    if let Some(session) = &context.session {
        let users = &context.app.users;
        users.forget(session);
        if let Err(error) = users.provider.logout(&session.refresh_token).await {
            warn!(%error, "the issuer did not end a session; it expires there");
        }
    }
    with_cookie(context.state("", &state::State::LoggedOut), &Session::ended())
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    /// The issuer or the API server failed.
    #[error("{0}")]
    NoUser(#[from] NoUser),
    /// The browser did not begin this login, or the login took too long.
    #[error("this login did not begin in this browser, or took more than ten minutes")]
    Stale,
    /// The issuer rejected the login.
    #[error("the issuer rejected the login: {0}")]
    Denied(String),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoRandom,
    /// The session does not fit into a cookie.
    #[error(
        "the session has more than the 4,096 bytes that a cookie may have: the refresh token is too long"
    )]
    TooLong,
}

impl Failed {
    fn answer(&self, context: &Context) -> Response {
        match self {
            Self::NoUser(no_user) => without_user(context, no_user),
            failed => context.state("", &state::State::LoginFailed(failed.to_string())),
        }
    }
}

async fn redirect(context: &Context, path: &str) -> Result<Response, Failed> {
    let attempt = Attempt::random().ok_or(Failed::NoRandom)?;
    let url = context.app.users.provider.authorize_url(&attempt).await.map_err(NoUser::from)?;
    let begun = |path: &str| {
        LoginAttempt { attempt: attempt.clone(), path: path.to_owned() }.seal(&context.keys, clock::now())
    };
    // A path that does not fit into a cookie is dropped.
    let cookie = begun(path).or_else(|| begun(paths::HOME)).ok_or(Failed::TooLong)?;
    Ok(with_cookie(see_other(&url), &cookie))
}

async fn accept(context: &Context, headers: &HeaderMap) -> Result<Response, Failed> {
    let (query, users) = (&context.query, &context.app.users);
    let begun = LoginAttempt::read(headers, &context.keys, clock::now()).ok_or(Failed::Stale)?;
    if !begun.attempt.is_of(query.get("state")) {
        return Err(Failed::Stale);
    }
    if !query.get("error").is_empty() {
        let error = [query.get("error"), query.get("error_description")].join(" ");
        return Err(Failed::Denied(error.trim_end().chars().take(300).collect()));
    }
    let tokens = users.provider.exchange(query.get("code"), &begun.attempt, clock::now()).await;
    let tokens = tokens.map_err(NoUser::from)?;
    let id = nonce().ok_or(Failed::NoRandom)?;
    let user = users.logged_in(&id, &tokens).await?;
    let Some(refresh_token) = tokens.refresh_token else {
        return Err(NoUser::NotSetUp("the issuer sends no refresh token for its client".to_owned()).into());
    };
    let session = Session { id, refresh_token, visited: clock::now() };
    let cookie = session.seal(&context.keys).ok_or(Failed::TooLong)?;
    info!(user = user.name, "logged in at the dashboard");
    if let Err(error) = record(&users.client, &user).await {
        // The next page reads the Tenant, too, and shows the error.
        warn!(user = user.name, %error, "the time of the login was not written into the Tenant");
    }
    Ok(with_cookie(see_other(&begun.path), &cookie))
}

/// Writes the time of the login into the Tenant, at most once per hour.
///
/// # Errors
/// The error of the API server.
pub async fn record(client: &UserClient, user: &User) -> Result<(), ApiError> {
    let (credential, key) = (&user.credential, ObjectKey::new("", user.name.as_str()));
    let tenant = client.get::<TenantKind>(credential, &key).await?;
    let now = clock::now();
    let last = tenant.spec.last_login.as_ref();
    if last.is_some_and(|last| now.duration_since(last.0).as_secs().abs() < 3_600) {
        return Ok(());
    }
    let patch = serde_json::json!({"spec": {"lastLogin": clock::rfc3339(now)}});
    client.patch::<TenantKind>(credential, &key, Patch::Merge(&patch)).await.map(drop)
}
