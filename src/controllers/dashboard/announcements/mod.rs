//! Announcements: their reads, their part of the first page, the page for a course, and the section for everyone, which
//! is on the page of administrators.

pub mod actions;
pub mod model;
mod read;
#[cfg(test)]
mod tests;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use super::live::broadcast::Topic;
use super::page::PageRequest;

/// Serves the page of a course.
pub async fn page(request: PageRequest, Path(name): Path<String>) -> Result<Response, Response> {
    let read = request.read(async |reads| {
        let mut course = reads.course(&name).await?;
        let found = reads.announcements(&course.namespace).await?;
        course.own.topics.push(Topic::Announcements(course.namespace.clone()));
        Ok((course, found))
    });
    let (course, found) = read.await.map_err(|error| request.failed(&error))?;
    let settings = &request.app.settings;
    Ok(request
        .answer(&course.own, settings, None, |view, _| view::of_course(view, &course.rules, &course, &found)))
}
