//! The first page: the machines of a user, and the Templates of his courses.

mod model;
mod templates;

use maud::{Markup, html};

#[cfg(test)]
pub use model::new_name;
pub use model::{Card, Home, Offer, Start};

use super::layout;
use super::links;
use super::parts::{self, Button};
use super::time;
use super::view::View;
use crate::api::shown::shown;
use crate::api::why::{Next, Step};

/// The first page.
pub fn home(view: &View<'_>, home: &Home) -> Markup {
    let words = view.words();
    let announced = html! {
        @for card in &home.cards {
            span { (shown(&card.title)) ": " ((words.standing)(card.standing)) ". " }
        }
    };
    let content = html! {
        h1 { (words.home) }
        @if home.cards.is_empty() {
            p.empty { (words.no_machine) }
        } @else {
            ul.cards { @for card in &home.cards { li { (machine(view, card)) } } }
        }
        (templates::section(view, home))
    };
    layout::page(view, words.home, &announced, &content)
}

/// A machine.
fn machine(view: &View<'_>, card: &Card) -> Markup {
    let words = view.words();
    html! {
        article id=(parts::id("machine", &card.name)) aria-labelledby=(parts::id("title", &card.name)) {
            div.top {
                h2 id=(parts::id("title", &card.name)) { a href=(links::path(&card.path(&[]))) { (shown(&card.title)) } }
                (parts::badge(view, card.standing))
            }
            p.soft {
                @if let Some(template) = &card.template { (shown(template)) " " (words.of_course) " " }
                (shown(&card.course))
            }
            p { (because(view, card)) }
            @if let Some(step) = &card.next { (next(view, step)) }
            (actions(view, card))
        }
    }
}

/// Why a machine is as it is, in one sentence.
pub fn because(view: &View<'_>, card: &Card) -> String {
    let causes = card.cause.as_ref();
    let cause = causes.map(|(reason, message)| parts::sentence(view, reason, message));
    cause.unwrap_or_else(|| (view.words().because)(card.standing).to_owned())
}

/// What happens to a machine, and when.
pub fn next(view: &View<'_>, step: &Step) -> Markup {
    let words = view.words();
    let Step { because, end, next, .. } = step;
    html! {
        @match next {
            Next::Warning(at) => p.soft { ((words.warning_due)(*end, *because)) " " (time::ago(view, at.0)) "." },
            Next::End(at) => p.deadline { strong { ((words.until)(*end, *because)) " " (time::due(view, at.0)) "." } },
        }
    }
}

/// What can be done with a machine.
pub fn actions(view: &View<'_>, card: &Card) -> Markup {
    let words = view.words();
    let (title, uid) = (card.title.as_str(), [("uid", card.uid.as_str())]);
    let to = |action: &str| links::path(&card.path(&[action]));
    let plain = |action: &str, label, class| {
        parts::button(&Button { action: &to(action), label, about: title, class, fields: &uid })
    };
    html! {
        div.actions {
            @if let Some(url) = &card.connect {
                a.button.main href=(url) target="_blank" rel="noopener noreferrer" { (words.connect) (parts::unseen(title)) }
            }
            @match &card.start {
                Start::No => {},
                Start::Yes => { (plain("start", words.start, "main")) },
                Start::Blocked(blocked) => { (parts::refused(view, &parts::id("blocked", &card.name), words.start, title, blocked)) },
            }
            @if card.can_stop { (plain("stop", words.stop, "")) }
            @if card.can_keep { (plain("keep", words.keep, "")) }
            @if card.can_delete { (delete(view, card, &to("delete"))) }
        }
    }
}

fn delete(view: &View<'_>, card: &Card, action: &str) -> Markup {
    let words = view.words();
    let title = card.title.as_str();
    let question =
        html! { p { strong { ((words.delete_question)(&shown(title))) } " " (words.delete_data) } };
    let fields = [("uid", card.uid.as_str())];
    let yes = Button { action, label: words.delete_yes, about: title, class: "danger", fields: &fields };
    parts::confirm(view, &parts::id("delete", &card.name), words.delete, title, &question, &yes)
}
