//! The actions on a class: the question before an action, and its progress.

mod model;
#[cfg(test)]
pub mod tests;
mod view;
mod words;

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Path;
use axum::response::Response;
use http::StatusCode;
use tokio::time::Instant;

use self::model::{Asked, CHECKED, Chosen, Found};
use super::app::permit;
use super::http::context::{Context, RETRY};
use super::http::csrf::SameOrigin;
use super::http::fields::Fields;
use super::http::response::{csv_file, see_other, with_refresh};
use super::live::broadcast::Topic;
use super::page::PageRequest;
use super::student::read::Reads;
use super::texts::texts;
use super::ui::links::login_at;
use super::ui::state::State as Page;
use super::user::CurrentUser;
use crate::api::Template;
use crate::api::template::TemplateKind;
use crate::class::cluster::AsUser;
use crate::class::model::{ActionId, Totals};
use crate::class::plan::Action;
use crate::class::read::read;
use crate::class::run::{check, run};
use crate::runtime::clock;
use crate::runtime::error::ApiError;

/// The time within which changes are sent. The page then continues with the next ones.
const RUN: Duration = Duration::from_secs(8);
/// The time within which the API server is asked what it would refuse.
const CHECK: Duration = Duration::from_secs(2);

/// How the rows of an action are completed.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The changes are checked, unless an open page is updated.
    Check(usize),
    /// The changes are made.
    Run {
        /// Whether failed uploads are requested again.
        is_retry: bool,
    },
}

/// Serves the question before an action, or its progress.
pub async fn page(request: PageRequest, Path((course, verb)): Path<(String, String)>) -> Response {
    let (context, name) = (&request.user.context, &request.user.user.name);
    let asked = match Asked::of(&course, &verb, &context.query, texts(context.language)) {
        Ok(asked) => asked,
        Err(state) => return request.user.answer(context.state(name, &state)),
    };
    let step = Step::Check(if context.is_by_script { 0 } else { CHECKED });
    let mut found = match found(&request, &asked, step).await {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    if Totals::of(&found.rows).running > 0 {
        found.course.own.topics.push(Topic::Class(course));
    }
    request.answer(&found.course.own, &request.app.settings, None, |view, _| view::page(view, &asked, &found))
}

/// Serves the result as a table for spreadsheets.
pub async fn csv(request: PageRequest, Path((course, verb)): Path<(String, String)>) -> Response {
    let context = &request.user.context;
    let texts = texts(context.language);
    let asked = match Asked::of(&course, &verb, &context.query, texts) {
        Ok(asked) => asked,
        Err(state) => return request.user.answer(context.state(&request.user.user.name, &state)),
    };
    match found(&request, &asked, Step::Check(CHECKED)).await {
        Ok(found) => {
            let name = format!("{course}-{verb}.csv");
            request.user.answer(csv_file(&name, words::csv(texts, asked.verb, &found.rows)))
        }
        Err(answer) => answer,
    }
}

/// Reads the rows. A page that cannot be read is loaded again with its query.
async fn found(request: &PageRequest, asked: &Asked, step: Step) -> Result<Found, Response> {
    let id = asked.id.clone().or_else(|| ActionId::new(clock::now()));
    let Some(id) = id else {
        let context = &request.user.context;
        return Err(context.state(&request.user.user.name, &Page::Broken("no random numbers".to_owned())));
    };
    let read = request.read(async |reads| rows(&reads, asked, id, step).await.map(Box::new)).await;
    read.map(|found| *found).map_err(|error| {
        let answer = request.failed(&error);
        let is_away = error.is_away(request.user.context.now);
        if is_away { with_refresh(answer, RETRY, &asked.path()) } else { answer }
    })
}

/// Carries out an action, or continues it, and leads to its progress. A form that is sent twice has no further effect.
pub async fn start(
    Path((course, verb)): Path<(String, String)>,
    _: SameOrigin,
    context: Context,
    user: Result<CurrentUser, Response>,
    body: Bytes,
) -> Response {
    let app = &context.app;
    let user = match user {
        Ok(user) => user,
        Err(rejection) if rejection.status() == StatusCode::SEE_OTHER => {
            return see_other(&login_at(&model::class_path(&course)));
        }
        Err(rejection) => return rejection,
    };
    let fields = Fields::parse(&body);
    let (asked, id) = match Asked::of(&course, &verb, &fields, texts(context.language)) {
        Ok(asked) => match asked.id.clone() {
            Some(id) => (asked, id),
            None => return user.answer(context.state(&user.user.name, &Page::NotFound)),
        },
        Err(state) => return user.answer(context.state(&user.user.name, &state)),
    };
    let mut to_do = None;
    if id.is_open(context.now)
        && let Some(_permit) = permit(&app.forms).await
    {
        let reads = Reads { users: &app.users, user: &user.user };
        let step = Step::Run { is_retry: fields.get("retry") == "1" };
        // The page reports an error when it reads the rows again.
        to_do = Box::pin(rows(&reads, &asked, id, step)).await.ok().map(|found| found.to_do);
    }
    user.answer(see_other(&Asked { to_do, ..asked }.path()))
}

/// Reads the rows of an action, and completes them.
async fn rows(reads: &Reads<'_>, asked: &Asked, id: ActionId, step: Step) -> Result<Found, ApiError> {
    let course = reads.course(&asked.course).await?;
    let mut templates: Vec<Template> = reads.list::<TemplateKind>(&course.namespace).await?;
    templates.sort_by(|one, other| one.name().cmp(other.name()));
    let template = match asked.template_of(&templates)? {
        Chosen::Open => {
            return Ok(Found { course, templates, chosen: Chosen::Open, id, rows: Vec::new(), to_do: 0 });
        }
        Chosen::All => None,
        Chosen::One(template) => Some(template),
    };
    let (client, credential) = (reads.users.client.clone(), reads.user.credential.clone());
    let cluster = AsUser { client, credential };
    let class = Box::pin(read(&cluster, &asked.course, &course.namespace, &asked.people)).await?;
    let action = Action {
        verb: asked.verb,
        id: &id,
        course: &asked.course,
        template,
        is_retry: matches!(step, Step::Run { is_retry: true }),
        now: clock::now(),
    };
    let rows = action.rows(&class);
    let to_do = Totals::of(&rows).to_do;
    let rows = match step {
        Step::Check(most) => check(&cluster, rows, most, Instant::now() + CHECK).await,
        Step::Run { .. } => run(&cluster, &action, rows, Instant::now() + RUN).await,
    };
    let chosen = template.map_or(Chosen::All, |template| Chosen::One(template.clone()));
    Ok(Found { course, templates, chosen, id, rows, to_do })
}
