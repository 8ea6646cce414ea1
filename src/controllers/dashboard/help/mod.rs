//! The help for students: `docs/for-students.md` as a page, which needs no login and no other server.

mod markdown;

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};

use super::http::context::Context;
use super::paths;
use super::ui::layout;
use super::ui::view::View;

/// The document, in English.
const DOCUMENT: &str = include_str!("../../../../docs/for-students.md");

/// Serves the page.
pub async fn page(context: Context) -> Response {
    if let Some(answer) = context.chosen_language() {
        return answer;
    }
    context.page(StatusCode::OK, help(&context.view(paths::HELP, &[])))
}

/// Renders the page.
pub fn help(view: &View<'_>) -> Markup {
    let texts = view.texts();
    let content = html! {
        p.back { a href="/" { (texts.home) } }
        div.document lang="en" { (markdown::rendered(DOCUMENT)) }
    };
    layout::page(view, &texts.help, &Markup::default(), &content)
}
