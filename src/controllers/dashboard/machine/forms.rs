//! The HTML of the forms on the page of a machine: its public ports, its name, and its images.

use maud::{Markup, html};

use super::actions::{EXPOSE, MachineAction, RENAME, SAVE, UNEXPOSE};
use super::card::Card;
use super::model::Machine;
use super::ports::Port;
use crate::api::shown::{self, shown};
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;

/// Returns the form of an action, if the page offers it.
fn offered(
    view: &View<'_>,
    card: &Card,
    action: &'static MachineAction,
    hidden: &[(&str, &str)],
    values: &[(&str, &str)],
) -> Option<Markup> {
    card.offer(action)?;
    let path = card.path(action.action.path);
    let hidden = [&[("uid", card.uid.as_str())], hidden].concat();
    let is_main = action.action.name == EXPOSE.action.name;
    Some(form(view, &Form { action: &action.action, path: &path, hidden: &hidden, values, is_main }))
}

/// The public ports.
pub fn ports(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let Some(ports) = &machine.ports else { return Markup::default() };
    html! {
        section aria-labelledby="ports" {
            h2 #ports { (texts.ports) }
            p.hint { (texts.ports_hint) }
            @if let Some(trouble) = &ports.trouble { p { (parts::sentence(view, trouble)) } }
            @if ports.all.is_empty() {
                p.empty { (texts.no_ports) }
            } @else {
                ul.rows { @for (at, of) in ports.all.iter().enumerate() { li { (port(view, &machine.card, at, of)) } } }
            }
            (add_port(view, &machine.card))
        }
    }
}

/// A public port, which is at this position in the spec.
fn port(view: &View<'_>, card: &Card, at: usize, port: &Port) -> Markup {
    let texts = view.texts();
    let (at, same) = (at.to_string(), port.same.to_string());
    let line = texts.port_line.fill(&[("port", &port.inside.to_string())]);
    let remove = Button {
        action: &UNEXPOSE.action,
        path: &card.path(UNEXPOSE.action.path),
        about: &port.name,
        key: &port.name,
        fields: &[("uid", &card.uid), ("entry", &port.entry), ("at", &at), ("same", &same)],
        warning: None,
    };
    html! {
        div.row {
            p {
                strong { (shown(&port.name)) } " "
                @match &port.outside {
                    Some(outside) => { (parts::copied(view, outside, &port.name)) " " (line) },
                    None => { (line) @if port.fault.is_none() { ". " (texts.port_soon) } },
                }
                " (" (shown(&port.protocol)) ")"
                @if let Some(fault) = port.fault { " " span.error { (texts.problems.of(fault)) } }
            }
            @if card.offer(&UNEXPOSE).is_some() { (parts::button(view, &remove)) }
        }
    }
}

fn add_port(view: &View<'_>, card: &Card) -> Markup {
    let is_open = view.typed.is_some_and(|typed| typed.action == card.path(EXPOSE.action.path));
    let question = view.action(&EXPOSE.action).question.as_ref().map(|question| question.fill(&[]));
    html! {
        @if let Some(form) = offered(view, card, &EXPOSE, &[], &[("port", "0"), ("protocol", "TCP")]) {
            details #add-port open[is_open] hx-nonce=(view.nonce) {
                summary.button { (question.unwrap_or_default()) }
                (form)
            }
        }
    }
}

/// The name.
pub fn name(view: &View<'_>, machine: &Machine) -> Markup {
    let card = &machine.card;
    html! {
        @if let Some(form) = offered(view, card, &RENAME, &[], &[("prettyName", &card.title)]) {
            section aria-labelledby="rename" {
                h2 #rename { (view.action(&RENAME.action).label) }
                (form)
            }
        }
    }
}

/// The images.
pub fn images(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let Some(images) = &machine.images else { return Markup::default() };
    let snapshot = format!("{}-{}", machine.card.name, view.fresh);
    let hidden = [("name", snapshot.as_str()), ("environment", images.environment.as_str())];
    html! {
        section aria-labelledby="save" {
            h2 #save { (view.action(&SAVE.action).label) }
            p.hint { (texts.save_hint) }
            @match offered(view, &machine.card, &SAVE, &hidden, &[]) {
                Some(form) => { (form) },
                None => p { (texts.save_running) },
            }
            @if !images.all.is_empty() {
                h3 { (texts.snapshots) }
                ul.rows {
                    @for image in &images.all {
                        li {
                            p {
                                strong { (shown(&image.name)) } ": " (texts.snapshot.of((&image.phase).into())) ". "
                                @if let Some(cause) = &image.cause {
                                    (parts::sentence(view, cause)) " "
                                    span.soft { (shown::message(&cause.message)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
