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
use super::action::request::carry_out;
use super::app::App;
use super::http::assets;
use super::http::context::Context;
use super::http::csrf::SameOrigin;
use super::http::fetch::reject_foreign;
use super::http::response::text;
use super::page::PageRequest;
use super::session::login;
use super::ui::state::State;
use super::{
    account, admin, announcements, bulk, class, console, courses, exams, files, help, home, live, machine,
    machine_login, new, paths, people, sharing, templates, terminal, volumes,
};

/// The name of a route in metrics, attached to its responses as an extension.
#[derive(Debug, Clone, Copy)]
pub struct RouteName(pub &'static str);

/// Returns all actions.
pub fn actions() -> impl Iterator<Item = &'static Action> {
    let of_machine = machine::actions::ACTIONS.iter().map(|of_machine| &of_machine.action);
    let others = [
        home::actions::ACTIONS,
        courses::actions::ACTIONS,
        account::actions::ACTIONS,
        files::actions::ACTIONS,
        sharing::actions::ACTIONS,
        templates::actions::ACTIONS,
        people::actions::ACTIONS,
        volumes::actions::ACTIONS,
        exams::actions::ACTIONS,
        announcements::actions::ACTIONS,
        admin::courses::actions::ACTIONS,
        admin::people::actions::ACTIONS,
    ];
    of_machine.chain(others.into_iter().flatten().copied())
}

/// Returns the router of the dashboard.
pub fn router(app: Arc<App>) -> Router {
    let pages = Router::new()
        .route(paths::HOME, named("home", get(home::page)))
        .route(paths::MACHINE, named("machine", get(machine::page)))
        .route(paths::TERMINAL, named("terminal", get(terminal::page)))
        .route(paths::TERMINAL_SOCKET, named("terminal-socket", get(terminal::socket)))
        .route(paths::CONSOLE, named("console", get(console::page)))
        .route(paths::CONSOLE_SOCKET, named("console-socket", get(console::socket)))
        .route(paths::NEW, named("new", get(new::page)))
        .route(paths::COURSES, named("courses", get(courses::page)))
        .route(paths::PEOPLE, named("people", get(people::page)))
        .route(paths::ANNOUNCEMENTS, named("announcements", get(announcements::page)))
        .route(paths::PERSON, named("person", get(people::person)))
        .route(paths::IMPORT, named("import", get(people::import::page).post(people::import::sent)))
        .route(paths::COURSE, named("class", get(class::page)))
        .route(paths::CLASS_CSV, named("class-csv", get(class::csv)))
        .route(paths::CLASS_ACTION, named("class-action", get(bulk::page).post(bulk::start)))
        .route(paths::CLASS_ACTION_CSV, named("class-action-csv", get(bulk::csv)))
        .route(paths::VOLUMES, named("volumes", get(volumes::page)))
        .route(paths::EXAMS, named("exams", get(exams::page)))
        .route(paths::EXAMS_CSV, named("exams-csv", get(exams::csv)))
        .route(paths::FILES, named("files", get(files::page)))
        .route(paths::ACCOUNT, named("account", get(account::page)))
        .route(paths::HELP, named("help", get(help::page)))
        .route(paths::FAVOURITES, named("action", post(home::favourites::change)))
        .route(paths::EVENTS, named("events", get(live::handler::events)))
        .route("/login", named("login", get(login::begin)))
        .route(paths::MACHINE_LOGIN, named("machine-login", get(machine_login::enter)))
        .route("/callback", named("callback", get(login::finish)))
        .route("/logout", named("logout", post(login::logout)))
        .route(paths::LOGGED_OUT, named("logged-out", get(login::logged_out)))
        .route("/healthz", named("health", get(async || text(StatusCode::OK, "ok\n"))))
        .route("/assets/{hash}/{file}", named("asset", get(asset)));
    let pages = pages.merge(of_administrators()).merge(of_templates());
    let general = actions().filter(|action| !templates::actions::is_of_page(action));
    let all = general.fold(pages, |router, action| {
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

/// The pages of administrators.
fn of_administrators() -> Router<Arc<App>> {
    Router::new()
        .route(paths::ADMIN, named("admin", get(admin::overview::page)))
        .route(paths::ADMIN_COURSES, named("admin-courses", get(admin::courses::list)))
        .route(paths::ADMIN_COURSE, named("admin-course", get(admin::courses::page)))
        .route(paths::ADMIN_PEOPLE, named("admin-people", get(admin::people::list)))
        .route(paths::ADMIN_PERSON, named("admin-person", get(admin::people::page)))
        .route(paths::ADMIN_CLUSTER, named("admin-cluster", get(admin::cluster::page)))
}

/// The pages of Templates: in a course, and in the personal workspace.
fn of_templates() -> Router<Arc<App>> {
    let form = || get(templates::form).post(save_template);
    Router::new()
        .route(paths::TEMPLATES, named("templates", get(templates::list)))
        .route(paths::NEW_TEMPLATE, named("template-form", form()))
        .route(paths::TEMPLATE, named("template", get(templates::one)))
        .route(paths::EDIT_TEMPLATE, named("template-form", form()))
        .route(paths::OWN_TEMPLATES, named("templates", get(templates::list)))
        .route(paths::NEW_OWN_TEMPLATE, named("template-form", form()))
        .route(paths::OWN_TEMPLATE, named("template", get(templates::one)))
        .route(paths::EDIT_OWN_TEMPLATE, named("template-form", form()))
}

async fn save_template(
    same_origin: SameOrigin,
    request: PageRequest,
    parameters: RawPathParams,
    form: body::Bytes,
) -> Result<Response, Response> {
    templates::save::save(same_origin, request, parameters, form, carry_out).await
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
