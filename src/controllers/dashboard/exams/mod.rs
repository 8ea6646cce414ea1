//! The exams of a course: the last status check, the time left, the upload and its receipt of each machine.

pub mod actions;
pub mod export;
pub mod facts;
pub mod model;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use self::model::Exams;
use super::class::filter::Filter;
use super::class::{read_class, shown};
use super::http::response::csv_file;
use super::page::PageRequest;

/// Serves the page. While the API server does not respond, it shows its last content.
pub async fn page(request: PageRequest, Path(course): Path<String>) -> Result<Response, Response> {
    let page: usize = request.user.context.query.get("page").parse().unwrap_or(1);
    let (seen, old) = shown(&request, &course, &Filter::default(), true).await?;
    let exams = Exams::of(&seen, page.saturating_sub(1), &seen.course.rules);
    Ok(request
        .answer(&seen.course.own, &request.app.settings, old, |view, _| view::exams(view, &seen, &exams)))
}

/// Serves the table for spreadsheets.
pub async fn csv(request: PageRequest, Path(course): Path<String>) -> Result<Response, Response> {
    let read = read_class(&request, &course, &Filter::default(), true).await;
    let seen = read.map_err(|error| request.failed(&error))?;
    let table = export::export(&Exams::whole(&seen));
    Ok(request.user.answer(csv_file(&format!("{}-exams.csv", seen.course.name()), table)))
}
