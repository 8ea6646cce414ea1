//! The HTML of the sections about sharing.

use maud::{Markup, html};

use super::actions::{END, SHARE, USER, ZONE};
use super::model::{Door, SharedCard, Sharing};
use crate::api::connection::Connection;
use crate::api::shown::shown;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::time;
use crate::controllers::dashboard::ui::view::View;

/// The section on the page of a machine.
pub fn section(view: &View<'_>, of: &Sharing) -> Markup {
    let texts = &view.texts().sharing;
    if !of.is_shown() {
        return Markup::default();
    }
    html! {
        section aria-labelledby="sharing" {
            h2 #sharing { (texts.heading) }
            @if of.is_offered { p.hint { (texts.hint) } }
            @if of.peers.is_empty() {
                p.empty { (texts.nobody) }
            } @else {
                (peers(view, of))
            }
            @if of.is_offered { (new(view, of)) }
        }
    }
}

/// The people who are connected; nothing without one.
pub fn connected(view: &View<'_>, all: &[Connection]) -> Markup {
    html! {
        @if !all.is_empty() { ul.cards #connected { @for one in all { li { (connection(view, one)) } } } }
    }
}

/// A person who is connected.
fn connection(view: &View<'_>, one: &Connection) -> Markup {
    let texts = &view.texts().sharing;
    let who = texts.relation.of(one.relation).fill(&[("user", &shown(&one.user))]);
    html! {
        p.notice { strong { (who) } " (" (texts.way.of(one.way)) ", " (time::ago(view, one.since.0)) ")" }
    }
}

/// The people with whom the machine is shared.
fn peers(view: &View<'_>, of: &Sharing) -> Markup {
    let texts = &view.texts().sharing;
    let path = of.path(END.path);
    html! {
        ul.rows {
            @for peer in &of.peers {
                li {
                    div.row {
                        p {
                            strong { (shown(&peer.user)) } ": " (texts.access.of(peer.access)) ". "
                            span.soft { (texts.until) " " (time::exact(view, peer.until)) }
                        }
                        @if of.can_end {
                            (parts::button(view, &Button {
                                action: &END,
                                path: &path,
                                about: &peer.user,
                                key: &peer.user,
                                fields: &[("uid", &of.uid), (USER, &peer.user)],
                                warning: None,
                            }))
                        }
                    }
                }
            }
        }
    }
}

/// The form for a further person.
fn new(view: &View<'_>, of: &Sharing) -> Markup {
    let path = of.path(SHARE.path);
    let is_open = view.typed.is_some_and(|typed| typed.action == path);
    let question = view.action(&SHARE).question.as_ref().map(|question| question.fill(&[]));
    let hidden = [("uid", of.uid.as_str()), (ZONE, view.zone.iana_name().unwrap_or_default())];
    let values = [("access", "view"), ("until", "today")];
    let new = Form { action: &SHARE, path: &path, hidden: &hidden, values: &values, is_main: false };
    html! {
        details #share open[is_open] hx-nonce=(view.nonce) {
            summary.button { (question.unwrap_or_default()) }
            (form(view, &new))
        }
    }
}

/// The section of the first page; nothing without a shared machine.
pub fn with_me(view: &View<'_>, all: &[SharedCard]) -> Markup {
    let texts = &view.texts().sharing;
    if all.is_empty() {
        return Markup::default();
    }
    html! {
        section aria-labelledby="with-me" {
            h2 #with-me { (texts.with_me) }
            p.hint { (texts.with_me_hint) }
            ul.cards { @for one in all { li { (card(view, one)) } } }
        }
    }
}

fn card(view: &View<'_>, of: &SharedCard) -> Markup {
    let texts = &view.texts().sharing;
    let title = parts::id("shared", &of.id);
    html! {
        article aria-labelledby=(title) {
            h3 id=(title) { (shown(&of.title)) }
            p.soft { (view.texts().of_tenant) ": " (shown(&of.owner)) }
            p { (texts.mine.of(of.access)) " " (texts.until) " " (time::exact(view, of.until)) "." }
            @if of.doors.is_empty() { p { (texts.no_door) } }
            @for one in &of.doors { (door(view, &of.title, one)) }
        }
    }
}

/// The links that open an environment.
fn door(view: &View<'_>, title: &str, of: &Door) -> Markup {
    let texts = view.texts();
    let links = [(&of.desktop, &texts.sharing.desktop), (&of.terminal, &texts.to_terminal)];
    html! {
        @if !of.environment.is_empty() { p { (shown(&of.environment)) } }
        div.actions {
            @for (link, label) in links {
                @if let Some(link) = link {
                    a.button href=(link) target="_blank" rel="noopener noreferrer" {
                        (label) (parts::unseen(&format!("{title} {}", of.environment)))
                    }
                }
            }
        }
    }
}
