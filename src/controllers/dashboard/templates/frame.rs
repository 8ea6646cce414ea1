//! The frame of the pages about Templates.

use maud::{Markup, html};

use super::place::Place;
use crate::api::shown::shown;
use crate::controllers::dashboard::course::{Tab, view};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::layout;
use crate::controllers::dashboard::ui::view::View;

/// Renders a page: the heading of its place, and the content, whose headings begin at level 2.
pub fn frame(view: &View<'_>, place: &Place, content: &Markup) -> Markup {
    if let Some(course) = place.course() {
        return view::frame(view, course, Tab::Templates, &Markup::default(), content);
    }
    let texts = &view.texts().templates;
    let is_list = view.path == paths::OWN_TEMPLATES;
    let content = html! {
        @if is_list { p.back { a href=(paths::HOME) { (view.texts().home) } } }
        @else { p.back { a href=(paths::OWN_TEMPLATES) { (texts.own) } } }
        h1 { (shown(&texts.own)) }
        (content)
    };
    layout::page(view, &texts.own, &Markup::default(), &content)
}
