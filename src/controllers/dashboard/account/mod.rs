//! The account page.

pub mod actions;
pub mod model;
pub mod view;

use axum::response::Response;

use self::model::Account;
use super::page::PageRequest;
use super::ui::state::state;

/// Serves the page.
pub async fn page(request: PageRequest) -> Response {
    let own = match request.read(async |reads| reads.own().await).await {
        Ok(own) => own,
        Err(error) => return request.failed(&error),
    };
    request.answer(&own, &request.app.settings, None, |view, student| match own.lacks() {
        Some(lacks) => state(view, &lacks),
        None => view::account(view, &Account::of(view, student)),
    })
}
