//! The shared volumes of a course: create, delete, their state and the Templates that mount them.

pub mod actions;
pub mod model;
mod read;
pub mod state;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use self::model::Volumes;
use self::read::OfCourse;
use super::page::PageRequest;

/// Serves the page.
pub async fn page(request: PageRequest, Path(name): Path<String>) -> Result<Response, Response> {
    let read = request.read(async |reads| reads.volumes(&name).await.map(Box::new)).await;
    let OfCourse { course, volumes, templates } = *read.map_err(|error| request.failed(&error))?;
    let page = Volumes::of(&course.namespace, &volumes, &templates, &course.rules);
    Ok(request
        .answer(&course.own, &request.app.settings, None, |view, _| view::volumes(view, &course, &page)))
}
