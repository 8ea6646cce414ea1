//! The people of a course: its students, its managers and its candidates.

pub mod actions;
pub mod import;
pub mod model;
pub mod person;
pub mod person_view;
mod read;
pub mod step;
#[cfg(test)]
mod tests;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use self::actions::RIGHT;
use self::model::{OfPerson, People, Row};
use self::read::OnePerson;
use super::history::model::{Did, History};
use super::page::PageRequest;
use super::student::Rights;
use super::ui::state::State;
use crate::api::names::check_object_name;

/// Serves the people of a course.
pub async fn page(request: PageRequest, Path(name): Path<String>) -> Result<Response, Response> {
    let read = request.read(async |reads| reads.people(&name).await.map(Box::new)).await;
    let (course, tenants) = *read.map_err(|error| request.failed(&error))?;
    let (app, user, query) = (&request.app, &request.user.user, &request.user.context.query);
    let page = query.get("page").parse().unwrap_or(1);
    let can_change = course.rules.may(&course.namespace, &RIGHT);
    Ok(request.answer(&course.own, &app.settings, None, |view, _| {
        let people = People::of(&tenants, course.name(), &user.name, view.search, page, can_change);
        view::people(view, &course, &people)
    }))
}

/// Serves a person of a course.
pub async fn person(
    request: PageRequest,
    Path((course, user)): Path<(String, String)>,
) -> Result<Response, Response> {
    if check_object_name(&user).is_err() {
        return Err(request.user.context.state(&request.user.user.name, &State::NotFound));
    }
    let read = request.read(async |reads| reads.person(&course, &user).await.map(Box::new)).await;
    let OnePerson { course, tenant, instances, templates, recorded, events } =
        *read.map_err(|error| request.failed(&error))?;
    let row = Row::of(&tenant, course.name(), &request.user.user.name);
    let can_change = course.rules.may(&course.namespace, &RIGHT);
    let person = OfPerson::of(row, instances.as_deref(), &templates, &course.namespace, can_change);
    let logins: Vec<_> = tenant.spec.last_login.iter().map(|time| (time.0, Did::LoggedIn)).collect();
    Ok(request.answer(&course.own, &request.app.settings, None, |view, _| {
        let history = History::of(&recorded, &tenant.status.conditions, &logins, events, view.now);
        person_view::person(view, &course, &person, &history)
    }))
}
