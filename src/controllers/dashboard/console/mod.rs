//! The console of a virtual machine: its screen and keyboard, as `KubeVirt` has them. It works for every image, and while
//! the machine boots.
//!
//! | file | content |
//! |---|---|
//! | `view.rs` | the page |
//! | `screen.rs` | the connection to the screen, with the credential of the user |
//! | `relay.rs` | the bytes between the page and the machine |
//!
//! The API server decides who sees a screen: the request for it is one of the user.

mod relay;
mod screen;
pub mod view;

use axum::extract::{Path, RawQuery};
use axum::response::Response;
use http::HeaderMap;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tracing::info;

use self::relay::relay;
use self::screen::{Asked, PROTOCOL, handshake};
use self::view::Console;
use super::http::fields::Fields;
use super::http::socket::{close, socket as socket_on};
use super::page::PageRequest;
use super::page_socket::{Life, SocketRequest};
use super::paths;
use super::student::read::OneMachine;
use super::ui::state::State;
use crate::api::openings::Way;

/// The longest message to a page that only learns why there is no screen, in bytes.
const SHORT: usize = 1 << 10;

/// The namespace and the name of a machine, and the name of its environment.
type Names = (String, String, String);

/// Serves the page.
pub async fn page(request: PageRequest, Path((namespace, name, environment)): Path<Names>) -> Response {
    let user = &request.user;
    let state = |of: &State| user.answer(user.context.state(&user.user.name, of));
    let Some(key) = paths::machine(&namespace, &name) else { return state(&State::NotFound) };
    let read = request.read(async |reads| reads.machine(&key).await.map(Box::new)).await;
    let OneMachine { instance, own, .. } = match read {
        Ok(machine) => *machine,
        Err(error) => return request.failed(&error),
    };
    match Console::of(&own.known, &own.rules, &request.app.settings, &instance, &environment) {
        Ok(console) => request.answer_console(|view| view::console(view, &console)),
        Err(of) => state(&of),
    }
}

/// Serves the WebSocket of the page. With the parameter `takeover`, another viewer of the screen is disconnected.
pub async fn socket(
    Path((namespace, name, environment)): Path<Names>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request: SocketRequest,
) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let asked = Asked {
        machine: paths::machine(&namespace, &name),
        environment,
        is_takeover: query.get("takeover") == "true",
        handshake: handshake(&headers),
    };
    request.open(PROTOCOL, |connection, life| serve(connection, life, asked))
}

/// Serves a screen until its end. A page that gets no screen learns the reason.
async fn serve(connection: Upgraded, life: Life, asked: Asked) {
    let opened = tokio::select! {
        opened = Box::pin(asked.open(&life)) => opened,
        end = life.over() => Err(end),
    };
    let screen = match opened {
        Ok(screen) => screen,
        Err(end) => return close(&mut socket_on(connection, SHORT).await, end).await,
    };
    let (user, machine, begin) = (&life.user.name, asked.shown(), Instant::now());
    info!(user, machine, is_takeover = asked.is_takeover, "opened a console");
    let _recorded = screen.relation.map(|relation| {
        life.app.consoles.begin(&screen.machine, &asked.environment, user, (relation, Way::Console))
    });
    // The bytes may end within a message, so no reason can be sent any more. The page asks to connect again.
    tokio::select! {
        () = Box::pin(relay(TokioIo::new(connection), TokioIo::new(screen.connection))) => {}
        _ = life.over() => {}
    }
    info!(user, machine, seconds = begin.elapsed().as_secs(), "closed a console");
}
