//! The HTML of the home page.

use maud::{Markup, html};

use super::model::Home;
use super::templates;
use crate::api::shown::shown;
use crate::controllers::dashboard::machine::buttons::{actions, because, next};
use crate::controllers::dashboard::machine::card::Card;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{layout, parts};

/// Renders the page.
pub fn home(view: &View<'_>, home: &Home) -> Markup {
    let texts = view.texts();
    let announced = html! {
        @for card in &home.cards {
            span { (shown(&card.title)) ": " (texts.standing.of(card.standing)) ". " }
        }
    };
    let content = html! {
        h1 { (texts.home) }
        @if home.cards.is_empty() {
            p.empty { (texts.no_machine) }
        } @else {
            ul.cards { @for card in &home.cards { li { (machine(view, card)) } } }
        }
        (templates::section(view, home))
    };
    layout::page(view, &texts.home, &announced, &content)
}

/// A machine.
fn machine(view: &View<'_>, card: &Card) -> Markup {
    let texts = view.texts();
    html! {
        article id=(parts::id("machine", &card.name)) aria-labelledby=(parts::id("title", &card.name)) {
            div.top {
                h2 id=(parts::id("title", &card.name)) { a href=(card.path(paths::MACHINE)) { (shown(&card.title)) } }
                (parts::badge(view, card.standing))
            }
            p.soft {
                @if let Some(template) = &card.template { (shown(template)) " " (texts.of_course) " " }
                (shown(&card.course))
            }
            p { (because(view, card)) }
            @if let Some(step) = &card.next { (next(view, step)) }
            (actions(view, card))
        }
    }
}
