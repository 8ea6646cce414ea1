//! The HTML of a history, which is folded.

use maud::{Markup, html};

use super::model::{Entry, History, What};
use crate::api::shown::{message, shown};
use crate::controllers::dashboard::ui::time;
use crate::controllers::dashboard::ui::view::View;

/// Renders the section with a history; nothing if the history is empty.
pub fn history(view: &View<'_>, history: &History) -> Markup {
    let texts = &view.texts().history;
    html! {
        @if !history.is_empty() {
            section aria-labelledby="history" {
                details.fold #past hx-nonce=(view.nonce) {
                    summary { h2 #history { (texts.heading) } }
                    p.hint { (texts.hint) }
                    ul.rows { @for of in &history.entries { li { (entry(view, of)) } } }
                    @if let Some(unknown) = &history.unknown { p.said { (texts.no_events) ": " (message(unknown)) } }
                }
            }
        }
    }
}

/// An entry: its time, what happened, and the program.
fn entry(view: &View<'_>, Entry { at, by, what }: &Entry) -> Markup {
    let texts = &view.texts().history;
    html! {
        span.soft { (time::ago(view, *at)) } ": "
        @match what {
            What::Did(did) => { (texts.did.of(*did)) },
            What::Wrote(fields) => { (texts.wrote.fill(&[("fields", &shown(&fields.join(", ")))])) },
            What::Became { type_, status, reason } => {
                (texts.became.fill(&[("type", &shown(type_)), ("status", &shown(status)), ("reason", &shown(reason))]))
            },
            What::Event(event) => {
                (shown(&event.reason)) ": " (message(&event.message))
                @if event.times > 1 { " (" (event.times) "\u{a0}×)" }
            },
        }
        @if let Some(by) = by { " " span.soft { (texts.by.fill(&[("program", &shown(by))])) } }
    }
}
