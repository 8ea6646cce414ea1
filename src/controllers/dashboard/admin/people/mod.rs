//! The people of the laboratory: a list with a search, and a page for each person.

pub mod actions;
mod read;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use super::frame::Administrator;
use crate::api::Tenant;
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::page::PageRequest;

/// A page of the list of people, or the result of a search.
#[derive(Debug, Clone)]
pub struct People {
    /// The people by user name.
    pub rows: Vec<Tenant>,
    /// The token of the next page; empty for the last one and for a search.
    pub next: String,
    /// The number of people that a search found; [`People::rows`] has the first of them.
    pub found: Option<usize>,
}

/// A person.
#[derive(Debug, Clone)]
pub struct Person {
    /// The Tenant.
    pub tenant: Tenant,
    /// Who did what with it, and when.
    pub history: History,
}

/// Serves the list.
pub async fn list(request: PageRequest) -> Result<Response, Response> {
    let settings = &request.app.settings;
    let query = &request.user.context.query;
    let (search, next) = (query.get("q").trim(), query.get("continue"));
    let read =
        request.read(async |reads| Box::pin(reads.all_people(&settings.namespace, search, next)).await).await;
    let (own, people) = read.map_err(|error| request.failed(&error))?;
    Ok(request.answer(&own, settings, None, |view, _| view::list(view, &people)))
}

/// Serves the page of a person.
pub async fn page(request: PageRequest, Path(name): Path<String>) -> Result<Response, Response> {
    let (settings, now) = (&request.app.settings, request.user.context.now);
    let read =
        request.read(async |reads| Box::pin(reads.one_person(&settings.namespace, &name, now)).await).await;
    let (own, person) = read.map_err(|error| request.failed(&error))?;
    Ok(request
        .answer(&own, settings, None, |view, student| view::page(view, &Administrator::of(student), &person)))
}
