//! The parts that the WebSockets of pages share: the request, its limits, and the end with the session.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::Response;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderValue, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use tracing::debug;

use super::app::App;
use super::http::response::text;
use super::http::socket::{self, End, accept};
use super::limits::sockets::{Over, Place};
use super::user::CurrentUser;
use super::user::users::User;

/// The longest message to a page that only learns why its socket ends, in bytes.
const SHORT: usize = 1 << 10;

/// The request of a page for a WebSocket, as an extractor. Only pages of the dashboard open one. If there is no user,
/// the socket only says so.
pub struct SocketRequest {
    answer: Response,
    upgrade: OnUpgrade,
    user: Result<CurrentUser, End>,
    app: Arc<App>,
}

/// The user and the session of an open socket, which has a place in the limits until this is dropped.
pub struct Life {
    /// The user.
    pub user: Arc<User>,
    /// The state of the dashboard.
    pub app: Arc<App>,
    session: String,
    place: Place,
}

impl FromRequest<Arc<App>> for SocketRequest {
    type Rejection = Response;

    async fn from_request(mut request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let (answer, upgrade) =
            accept(&mut request, &app.config.public_url).map_err(|(status, why)| text(status, why))?;
        let (mut parts, _) = request.into_parts();
        let user = CurrentUser::from_request_parts(&mut parts, app).await;
        let user = user.map_err(|rejection| match rejection.status() {
            // The redirect to the login.
            StatusCode::SEE_OTHER => End::SessionOver,
            _ => End::Away,
        });
        Ok(Self { answer, upgrade, user, app: Arc::clone(app) })
    }
}

impl SocketRequest {
    /// Returns the response, after which `serve` has the connection. `protocol` is the subprotocol; empty for none.
    pub fn open<F, S>(self, protocol: &'static str, serve: F) -> Response
    where
        F: FnOnce(Upgraded, Life) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let Self { mut answer, upgrade, user, app } = self;
        if !protocol.is_empty() {
            answer.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        let user = match user {
            Ok(user) => user,
            Err(end) => return refused(&app, answer, upgrade, end),
        };
        let Some(session) = user.context.session.as_ref().map(|session| session.id.clone()) else {
            return refused(&app, answer, upgrade, End::SessionOver);
        };
        let Some(place) = app.sockets.open(&session) else {
            return refused(&app, answer, upgrade, End::Full);
        };
        let life = Life { user: Arc::clone(&user.user), app, session, place };
        tokio::spawn(async move {
            match upgrade.await {
                Ok(connection) => serve(connection, life).await,
                Err(error) => debug!(%error, "a browser left before its socket began"),
            }
        });
        user.answer(answer)
    }
}

/// Returns the response to a request whose socket only says why it ends.
fn refused(app: &App, answer: Response, upgrade: OnUpgrade, end: End) -> Response {
    let Some(place) = app.sockets.refuse() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many connections are being refused\n");
    };
    tokio::spawn(async move {
        if let Ok(connection) = upgrade.await {
            socket::close(&mut socket::socket(connection, SHORT).await, end).await;
        }
        drop(place);
    });
    answer
}

impl Life {
    /// Completes when the socket has to end, although neither side has closed it: with the session, or with the replica.
    pub async fn over(&self) -> End {
        let has_ended = || self.app.users.has_ended(&self.user.name, &self.session);
        match self.place.over(has_ended).await {
            Over::Replica => End::Stopping,
            Over::Session => End::SessionOver,
        }
    }
}
