//! The router: the pages, the actions, and the other paths.

use std::sync::Arc;

use axum::extract::{Path, RawPathParams, State as Shared};
use axum::middleware::{from_fn, map_response};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use axum::{Router, body};
use http::StatusCode;

use super::action::entry::Action;
use super::action::handler::handle;
use super::app::App;
use super::http::assets;
use super::http::context::Context;
use super::http::fetch::reject_foreign;
use super::http::response::text;
use super::session::login;
use super::ui::state::State;
use super::{account, courses, help, home, live, machine, new, paths};

/// The name of a route in metrics, attached to its responses as an extension.
#[derive(Debug, Clone, Copy)]
pub struct RouteName(pub &'static str);

/// Returns all actions.
pub fn actions() -> impl Iterator<Item = &'static Action> {
    let of_machine = machine::actions::ACTIONS.iter().map(|of_machine| &of_machine.action);
    let others = [home::actions::ACTIONS, courses::actions::ACTIONS, account::actions::ACTIONS];
    of_machine.chain(others.into_iter().flatten().copied())
}

/// Returns the router of the dashboard.
pub fn router(app: Arc<App>) -> Router {
    let pages = Router::new()
        .route(paths::HOME, named("home", get(home::page)))
        .route(paths::MACHINE, named("machine", get(machine::page)))
        .route(paths::NEW, named("new", get(new::page)))
        .route(paths::COURSES, named("courses", get(courses::page)))
        .route(paths::ACCOUNT, named("account", get(account::page)))
        .route(paths::HELP, named("help", get(help::page)))
        .route(paths::FAVOURITES, named("action", post(home::favourites::change)))
        .route(paths::EVENTS, named("events", get(live::handler::events)))
        .route("/login", named("login", get(login::begin)))
        .route("/callback", named("callback", get(login::finish)))
        .route("/logout", named("logout", post(login::logout)))
        .route(paths::LOGGED_OUT, named("logged-out", get(login::logged_out)))
        .route("/healthz", named("health", get(async || text(StatusCode::OK, "ok\n"))))
        .route("/assets/{hash}/{file}", named("asset", get(asset)));
    let all = actions().fold(pages, |router, action| {
        let handler = move |same_origin, context, user, parameters: RawPathParams, form: body::Bytes| {
            handle(action, same_origin, context, user, parameters, form)
        };
        router.route(action.path, named("action", post(handler)))
    });
    all.method_not_allowed_fallback(async |context: Context| {
        let mut answer = context.state("", &State::NotFound);
        *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        answer
    })
    .fallback(async |context: Context| context.state("", &State::NotFound))
    .layer(from_fn(reject_foreign))
    .with_state(app)
}

fn named(name: &'static str, route: MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>> {
    route.layer(map_response(move |mut answer: Response| async move {
        answer.extensions_mut().insert(RouteName(name));
        answer
    }))
}

async fn asset(Shared(app): Shared<Arc<App>>, Path((hash, file)): Path<(String, String)>) -> Response {
    let path = format!("{hash}/{file}");
    app.brand.answer(&path).unwrap_or_else(|| assets::answer(&path))
}
