//! The page *My files*: the machine that opens `MyDrive`.

pub mod actions;
pub mod model;
pub mod view;

use axum::response::Response;

use self::actions::OPEN;
use self::model::Files;
use super::action::result::Outcome;
use super::machine::actions::START;
use super::page::PageRequest;
use super::ui::state::{State, state};

/// Serves the page.
pub async fn page(request: PageRequest) -> Result<Response, Response> {
    let (user, settings) = (&request.user, &request.app.settings);
    if settings.drive_template.is_none() {
        return Err(user.answer(user.context.state(&user.user.name, &State::NotFound)));
    }
    let read = request.read(async |reads| reads.own().await).await;
    let own = read.map_err(|error| request.failed(&error))?;
    let outcome = user.context.flash.as_ref().map(|flash| &flash.outcome);
    let is_asked = |action: &String| [OPEN.name, START.action.name].contains(&action.as_str());
    let is_asked = matches!(outcome, Some(Outcome::Done(action)) if is_asked(action));
    Ok(request.answer(&own, settings, None, |view, student| match own.lacks() {
        Some(lacks) => state(view, &lacks),
        None => view::files(view, &Files { is_asked, ..Files::of(view, student) }),
    }))
}
