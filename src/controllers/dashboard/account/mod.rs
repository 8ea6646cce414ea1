//! The account page.

pub mod actions;
pub mod model;
mod pasted;
pub mod view;

use axum::response::Response;

use self::model::Account;
use super::page::PageRequest;
use super::ui::state::state;

/// Serves the page.
pub async fn page(request: PageRequest) -> Result<Response, Response> {
    let read = request.read(async |reads| reads.own().await).await;
    let own = read.map_err(|error| request.failed(&error))?;
    Ok(request.answer(&own, &request.app.settings, None, |view, student| match own.lacks() {
        Some(lacks) => state(view, &lacks),
        None => view::account(view, &Account::of(view, student)),
    }))
}
