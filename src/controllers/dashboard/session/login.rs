//! Login and logout at the issuer.
//!
//! The issuer sends the browser back to `/callback` with the state of a login:
//!
//! | state | answer |
//! |---|---|
//! | of a login that this browser has begun | the login is completed, and its cookie ends |
//! | any other, with a session: *Back* after a login, a second tab | the home page |
//! | any other, without a session | the login begins again, once |

use axum::response::Response;
use http::HeaderMap;
use tracing::{info, warn};

use super::{Flash, LoginAttempt, LoginState, Logout, Session, nonce};
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

/// The error of the issuer (RFC 6749, 4.1.2.1) for a tab whose login ended in another tab.
const TRY_AGAIN: &str = "temporarily_unavailable";

/// Redirects to the issuer, which redirects back to [`finish`].
pub async fn begin(context: Context, headers: HeaderMap) -> Response {
    let path = Some(context.query.get("return")).filter(|path| paths::is_page(path)).unwrap_or(paths::HOME);
    redirect(&context, &headers, path, false).await
}

/// Completes a login after the issuer has redirected back: sets the cookie of the session, and redirects to the
/// requested page.
pub async fn finish(context: Context, headers: HeaderMap) -> Response {
    let state = LoginState::open(&context.keys, context.query.get("state"));
    let begun = state.as_ref().and_then(|state| {
        let login = LoginAttempt::of(state, &headers, &context.keys, context.now)?;
        Some((state, login))
    });
    let Some((state, login)) = begun else {
        return begin_again(&context, &headers, state.as_ref()).await;
    };
    let answer = match Box::pin(accept(&context, &headers, state, &login.values())).await {
        Ok(answer) => answer,
        // The user is logged in already, in another tab.
        Err(_) if context.session.is_some() => see_other(&state.path),
        Err(Failed::TryAgain) => begin_again(&context, &headers, Some(state)).await,
        Err(failed) => failed.answer(&context),
    };
    with_cookie(answer, &login.ended())
}

/// Returns the response to a state that belongs to no login of this browser.
async fn begin_again(context: &Context, headers: &HeaderMap, state: Option<&LoginState>) -> Response {
    match state {
        _ if context.session.is_some() => see_other(paths::HOME),
        Some(LoginState { is_again: true, .. }) => Failed::Stale.answer(context),
        state => {
            redirect(context, headers, state.map_or(paths::HOME, |state| state.path.as_str()), true).await
        }
    }
}

/// Ends the session: here, at the other replicas, and at the issuer. Redirects to the page that says what has ended.
pub async fn logout(_: SameOrigin, context: Context) -> Response {
    let place = match &context.session {
        Some(session) => Box::pin(context.app.users.log_out(session)).await.address(&context.keys),
        None => paths::HOME.to_owned(),
    };
    with_cookie(see_other(&place), &Session::ended())
}

/// Says what the last logout has ended.
pub async fn logged_out(context: Context) -> Response {
    match Logout::parse(&context.keys, context.query.get("of")) {
        Some(logout) if context.session.is_none() => context.state("", &state::State::LoggedOut(logout)),
        _ => see_other(paths::HOME),
    }
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    /// The issuer or the API server failed.
    #[error("{0}")]
    NoUser(#[from] NoUser),
    /// The browser did not begin this login, or the login took too long.
    #[error(
        "this login did not begin in this browser, or took more than ten minutes; the browser must accept cookies"
    )]
    Stale,
    /// The issuer asks to begin again.
    #[error("the issuer asked to log in again")]
    TryAgain,
    /// The issuer rejected the login.
    #[error("the issuer rejected the login: {0}")]
    Denied(String),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoRandom,
    /// The session does not fit into a cookie.
    #[error(
        "the refresh token is too long for the cookie of the session; ask an administrator to shorten it"
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

/// Redirects to the issuer, for a login that returns to a page.
async fn redirect(context: &Context, headers: &HeaderMap, path: &str, is_again: bool) -> Response {
    let Some(login) = LoginAttempt::begin(headers, &context.keys, context.now) else {
        return Failed::NoRandom.answer(context);
    };
    let state = login.state(path, is_again).seal(&context.keys);
    let values = Attempt { state, ..login.values() };
    match context.app.users.provider.authorize_url(&values, context.language.code()).await {
        Ok(url) => with_cookie(see_other(&url), &login.seal(&context.keys)),
        Err(error) => Failed::from(NoUser::from(error)).answer(context),
    }
}

async fn accept(
    context: &Context,
    headers: &HeaderMap,
    state: &LoginState,
    login: &Attempt,
) -> Result<Response, Failed> {
    let (query, users) = (&context.query, &context.app.users);
    match query.get("error") {
        "" => {}
        TRY_AGAIN => return Err(Failed::TryAgain),
        error => {
            let error = [error, query.get("error_description")].join(" ");
            return Err(Failed::Denied(error.trim_end().chars().take(300).collect()));
        }
    }
    let tokens = users.provider.exchange(query.get("code"), login, clock::now()).await;
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
    let answer = with_cookie(see_other(&state.path), &cookie);
    let session = cookie.split(';').next().map_or(0, str::len);
    Ok(match Flash::shortened(headers, &context.keys, context.now, session) {
        Some(flash) => with_cookie(answer, &flash),
        None => answer,
    })
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
