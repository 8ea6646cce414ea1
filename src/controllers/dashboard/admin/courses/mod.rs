//! The courses of the laboratory: a list with a form for a new one, and a page for each to edit and delete it.

pub mod actions;
mod read;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use super::frame::Administrator;
use super::read::{Count, Part};
use crate::api::Workspace;
use crate::controllers::dashboard::page::PageRequest;

/// A page of the list of courses.
#[derive(Debug, Clone)]
pub struct Courses {
    /// The courses by name.
    pub rows: Vec<Workspace>,
    /// The token of the next page; empty for the last one.
    pub next: String,
}

/// A course, with what its deletion would lose.
#[derive(Debug, Clone)]
pub struct Course {
    /// The Workspace.
    pub workspace: Workspace,
    /// Its enrolments, which would end.
    pub people: Part<Count>,
    /// Its Templates, which would be deleted.
    pub templates: Part<Count>,
    /// Its shared volumes, which would be deleted with their files.
    pub volumes: Part<Count>,
    /// The machines of its Templates, which could not be started again.
    pub machines: Part<Count>,
}

/// Serves the list.
pub async fn list(request: PageRequest) -> Result<Response, Response> {
    let settings = &request.app.settings;
    let next = request.user.context.query.get("continue");
    let read = request.read(async |reads| Box::pin(reads.all_courses(&settings.namespace, next)).await).await;
    let (own, courses) = read.map_err(|error| request.failed(&error))?;
    Ok(request.answer(&own, settings, None, |view, student| {
        view::list(view, &Administrator::of(student), &settings.selector, &courses)
    }))
}

/// Serves the page of a course.
pub async fn page(request: PageRequest, Path(name): Path<String>) -> Result<Response, Response> {
    let settings = &request.app.settings;
    let read = request.read(async |reads| Box::pin(reads.one_course(&settings.namespace, &name)).await).await;
    let (own, course) = read.map_err(|error| request.failed(&error))?;
    Ok(request
        .answer(&own, settings, None, |view, student| view::page(view, &Administrator::of(student), &course)))
}
