//! The page of a class: the students of a course and their machines, as a table.

mod export;
pub mod filter;
pub mod memory;
pub mod model;
pub mod objects;
mod read;
#[cfg(test)]
pub mod tests;
pub mod view;

use std::sync::Arc;

use axum::extract::Path;
use axum::response::Response;
use jiff::Timestamp;

use self::filter::Filter;
use self::memory::Seen;
use self::model::Table;
use self::read::Asked;
use super::history::read::may_list;
use super::http::response::csv_file;
use super::page::{PageRequest, Unread};
use super::texts::texts;
use crate::api::why::Event;

/// Serves the page. While the API server does not respond, or too many pages are read, it shows its last content.
pub async fn page(request: PageRequest, Path(course): Path<String>) -> Response {
    let (app, context) = (&request.app, &request.user.context);
    let filter = Filter::of(&context.query);
    let (seen, old) = match shown(&request, &course, &filter, false).await {
        Ok(shown) => shown,
        Err(answer) => return answer,
    };
    let table = Table::of(&seen, &filter);
    let events = events(&request, &seen).await;
    request.answer(&seen.course.own, &app.settings, old, |view, _| {
        let history = seen.course.history(events, view.now);
        view::class(view, &seen, &table, &filter, &history)
    })
}

/// Reads the events about the course. Most managers may not, and send no request.
async fn events(request: &PageRequest, seen: &Seen) -> Result<Vec<Event>, String> {
    if !may_list(&seen.course.rules.rules) {
        return Ok(Vec::new());
    }
    let read = request.read(async |reads| Ok(reads.events_of(&seen.course).await)).await;
    read.unwrap_or_else(|_| Ok(Vec::new()))
}

/// Serves the table for spreadsheets.
pub async fn csv(request: PageRequest, Path(course): Path<String>) -> Response {
    let context = &request.user.context;
    let filter = Filter::of(&context.query);
    let seen = match read_class(&request, &course, &filter, true).await {
        Ok(seen) => seen,
        Err(error) => return request.failed(&error),
    };
    let table = export::export(texts(context.language), &Table::whole(&seen, &filter));
    request.user.answer(csv_file(&format!("{}.csv", seen.course.name()), table))
}

/// Reads a class for a page. While the API server does not respond, or too many pages are read, returns the last content
/// with its time.
///
/// # Errors
/// The response, if there is no content.
pub async fn shown(
    request: &PageRequest,
    course: &str,
    filter: &Filter,
    is_whole: bool,
) -> Result<(Arc<Seen>, Option<Timestamp>), Response> {
    let error = match read_class(request, course, filter, is_whole).await {
        Ok(seen) => return Ok((seen, None)),
        Err(error) => error,
    };
    let (user, context) = (&request.user.user, &request.user.context);
    // An open page keeps its content anyway.
    let is_away = error.is_away(context.now) && !context.is_by_script;
    let last = request.app.classes.get(user.number, course).filter(|_| is_away);
    let last = last.map(|seen| (Arc::clone(&seen), Some(seen.at)));
    last.ok_or_else(|| request.failed(&error))
}

/// Reads a class. `is_whole` says whether all machines are needed, and not only those that are shown first.
///
/// # Errors
/// See [`Unread`].
pub async fn read_class(
    request: &PageRequest,
    course: &str,
    filter: &Filter,
    is_whole: bool,
) -> Result<Arc<Seen>, Unread> {
    let PageRequest { app, user } = request;
    let context = &user.context;
    let asked = Asked {
        course,
        filter,
        now: context.now,
        is_update: context.is_by_script,
        is_whole,
        memory: &app.classes,
        broadcast: &app.broadcast,
    };
    request.read(async |reads| reads.class(&asked).await).await
}
