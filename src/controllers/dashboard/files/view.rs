//! The HTML of the page.

use maud::{Markup, html};

use super::actions::OPEN;
use super::model::Files;
use crate::api::shown::{escaped, shown};
use crate::api::usage::Measure;
use crate::controllers::dashboard::home::model::Offer;
use crate::controllers::dashboard::machine::buttons;
use crate::controllers::dashboard::machine::card::{Card, Opening};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::layout;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;

/// Renders the page.
pub fn files(view: &View<'_>, files: &Files) -> Markup {
    let texts = view.texts();
    let announced = html! {
        @if let Some(card) = &files.machine {
            span #said aria-atomic="true" { (shown(&card.title)) ": " (texts.standing.of(card.standing)) ". " }
        }
    };
    let content = html! {
        h1 { (texts.my_files) }
        p { (drive(view, &files.size)) }
        @match (&files.machine, &files.offer) {
            (Some(card), _) => { (machine(view, card, files.is_asked)) },
            (None, Some(offer)) => div.actions { (open(view, offer)) },
            (None, None) => p.empty { (texts.files_absent) },
        }
    };
    layout::page(view, &texts.my_files, &announced, &content)
}

/// The sentences about `MyDrive` and its size, which is empty if it is not known.
pub fn drive(view: &View<'_>, size: &str) -> Markup {
    let texts = view.texts();
    html! {
        (texts.drive_hint)
        @if !size.is_empty() { " " (escaped(&texts.drive_size.fill(&[("size", &amount(view, size))]))) }
    }
}

/// The machine that opens the files. If it starts, or was just started (`is_asked`), the script leaves the page for the machine
/// when it becomes ready.
fn machine(view: &View<'_>, card: &Card, is_asked: bool) -> Markup {
    let is_start = card.standing.is_start();
    let url = card.openings.first().map(Opening::url);
    let heading = html! { h2 { a href=(card.path(paths::MACHINE)) { (shown(&card.title)) } } };
    html! {
        article data-waits[is_start || is_asked] data-opens=[url] {
            (buttons::state(view, card, &heading))
            p { (buttons::because(view, card)) }
            (buttons::progress(view, card))
            @if is_start { p { (view.texts().files_wait) } }
            (buttons::actions(view, card))
        }
    }
}

/// The button that creates this machine.
fn open(view: &View<'_>, offer: &Offer) -> Markup {
    let button = Button {
        action: &OPEN,
        path: OPEN.path,
        about: "",
        key: "files",
        fields: &[("name", &offer.instance)],
        warning: offer.warning.as_ref(),
    };
    match &offer.blocked {
        None => parts::button(view, &button),
        Some(blocked) => parts::refused(view, &button, blocked),
    }
}

/// Returns a size from the configuration, such as `1Gi`, in words, or unchanged if it is invalid.
fn amount(view: &View<'_>, text: &str) -> String {
    let quantity = text.parse().ok();
    quantity.map_or_else(|| text.to_owned(), |size| view.texts().quantity(&Measure::Disk, &size))
}
