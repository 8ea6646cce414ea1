//! The home page: the machines of the user, and the Templates for new ones.

pub mod actions;
pub mod favourites;
pub mod last_seen;
pub mod model;
mod quota;
pub mod templates;
pub mod view;

use std::sync::Arc;

use axum::response::Response;

use self::model::Home;
use super::page::PageRequest;
use super::ui::state::state;

/// Serves the page. While the API server does not respond, or too many pages are read, it shows its last
/// content.
pub async fn page(request: PageRequest) -> Response {
    let (app, user) = (&request.app, &request.user);
    let context = &user.context;
    let read = request.read(async |reads| {
        let mut own = reads.own().await?;
        Box::pin(reads.announce(&app.announced, &mut own)).await?;
        let shared = app.shared.with(&own.known.tenant, context.now);
        own.known.share(shared);
        Ok(own)
    });
    let (own, old) = match read.await {
        Ok(own) => {
            let own = Arc::new(own);
            app.last_seen.keep(user.user.number, context.now, &own);
            (own, None)
        }
        Err(error) => {
            // An open page keeps its content anyway.
            let is_away = error.is_away(context.now) && !context.is_by_script;
            match app.last_seen.get(user.user.number).filter(|_| is_away) {
                Some((since, own)) => (own, Some(since)),
                None => return request.failed(&error),
            }
        }
    };
    request.answer(&own, &app.settings, old, |view, student| match own.lacks_for_home() {
        Some(lacks) => state(view, &lacks),
        None => view::home(view, &Home::of(view, student)),
    })
}
