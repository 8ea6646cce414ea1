//! The HTML of the home page.

use maud::{Markup, html};

use super::model::Home;
use super::{quota, templates};
use crate::api::shown::shown;
use crate::controllers::dashboard::announcements::view::first_page;
use crate::controllers::dashboard::machine::buttons;
use crate::controllers::dashboard::machine::card::Card;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::sharing::view::with_me;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{layout, parts};

/// Renders the page.
pub fn home(view: &View<'_>, home: &Home) -> Markup {
    let texts = view.texts();
    let announced = html! {
        @for card in &home.cards {
            span id=(parts::id("said", &card.name)) aria-atomic="true" { (shown(&card.title)) ": " (texts.standing.of(card.standing)) ". " }
        }
    };
    let content = html! {
        h1 { (texts.home) }
        (first_page(view, &home.announcements))
        (quota::quota(view, home))
        (buttons::notify(view, &home.cards))
        @if home.cards.is_empty() {
            p.empty { (texts.no_machine) }
        } @else {
            ul.cards { @for card in &home.cards { li { (machine(view, card)) } } }
        }
        (with_me(view, &home.shared))
        (templates::section(view, home))
    };
    let title = match of_tab(home) {
        Some(standing) => format!("{} – {}", texts.standing.of(standing), texts.home),
        None => texts.home.clone(),
    };
    layout::page(view, &title, &announced, &content)
}

/// Returns the state in the title of the tab: of a machine that starts, or else of one that needs attention, or else of one
/// that is ready.
fn of_tab(home: &Home) -> Option<Standing> {
    let all = || home.cards.iter().map(|card| card.standing);
    let marked = |mark: &str| all().find(|standing| standing.mark() == mark);
    all().find(|standing| standing.is_start()).or_else(|| marked("bad")).or_else(|| marked("good"))
}

/// A machine.
fn machine(view: &View<'_>, card: &Card) -> Markup {
    let texts = view.texts();
    let heading = html! {
        h2 id=(parts::id("title", &card.name)) { a href=(card.path(paths::MACHINE)) { (shown(&card.title)) } }
    };
    html! {
        article id=(parts::id("machine", &card.name)) aria-labelledby=(parts::id("title", &card.name)) {
            (buttons::state(view, card, &heading))
            p.soft {
                @if let Some(template) = &card.template { (shown(template)) " " (texts.of_course) " " }
                (shown(&card.course))
            }
            p { (buttons::because(view, card)) }
            (buttons::progress(view, card))
            (buttons::last_run(view, card))
            (buttons::left(view, card))
            (buttons::actions(view, card))
        }
    }
}
