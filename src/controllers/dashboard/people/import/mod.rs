//! A list of people: its form, the changes that it asks for, and their results. The list is in the form only, so that a
//! reload or another replica continues with it.

mod csv;
pub mod list;
pub mod send;
pub mod view;

use axum::body::Bytes;
use axum::extract::Path;
use axum::response::Response;

use self::list::read;
use self::send::Requests;
use self::view::{Checked, checked, form};
use crate::controllers::dashboard::app::permit;
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::http::context::RETRY;
use crate::controllers::dashboard::http::csrf::SameOrigin;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::page::{PageRequest, Unread};
use crate::controllers::dashboard::people::actions::RIGHT;
use crate::controllers::dashboard::student::Rights;
use crate::controllers::dashboard::ui::state::State;
use crate::runtime::error::ApiError;

/// Serves the form, to users who may send it.
pub async fn page(request: PageRequest, Path(name): Path<String>) -> Result<Response, Response> {
    let course = course(&request, &name).await?;
    if !course.rules.may(&course.namespace, &RIGHT) {
        let why = "a list of people needs the right to patch tenants.crownlabs.polito.it";
        return Err(request.failed(&Unread::Api(ApiError::Forbidden(why.to_owned()))));
    }
    Ok(request.answer_form(|view| form(view, &course, "", None)))
}

/// Serves the changes that a list asks for, or makes them (`made`) and serves their results.
pub async fn sent(
    _: SameOrigin,
    request: PageRequest,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Response> {
    let course = course(&request, &name).await?;
    let fields = Fields::parse(&body);
    let (text, is_made) = (fields.get("list"), !fields.get("made").is_empty());
    let lines = match read(text) {
        Ok(lines) => lines,
        Err(fault) => return Ok(request.answer_form(|view| form(view, &course, text, Some(&fault)))),
    };
    let (user, app) = (&request.user, &request.app);
    let Some(_permit) = permit(&app.forms).await else {
        return Err(user.answer(user.context.state(&user.user.name, &State::TooMany(RETRY))));
    };
    let requests = Requests { client: &app.users.client, user: &user.user, course: course.name(), is_made };
    let rows = Box::pin(requests.of(lines)).await;
    Ok(request.answer_form(|view| checked(view, &course, &Checked { text, rows: &rows, is_made })))
}

/// Reads the course of a request.
async fn course(request: &PageRequest, name: &str) -> Result<Box<Course>, Response> {
    let read = request.read(async |reads| reads.course(name).await.map(Box::new)).await;
    read.map_err(|error| request.failed(&error))
}
