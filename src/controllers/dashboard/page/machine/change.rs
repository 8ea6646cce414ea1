//! What can be changed of a machine: its public ports, its name, and images of it.

use maud::{Markup, html};

use super::model::{Images, Machine, Port, Ports};
use crate::api::shown::{self, shown};
use crate::controllers::dashboard::page::field::{Field, Input, field};
use crate::controllers::dashboard::page::home::Card;
use crate::controllers::dashboard::page::links;
use crate::controllers::dashboard::page::parts::{self, Button};
use crate::controllers::dashboard::page::view::View;

/// What the name of a port looks like.
const PORT_NAME: &str = "[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?";
/// What the name of an image looks like: a part of a name in a registry.
const IMAGE_NAME: &str = "[a-z0-9]+([._-][a-z0-9]+)*";

/// The public ports.
pub fn ports(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    let Some(ports) = &machine.ports else { return Markup::default() };
    html! {
        section aria-labelledby="ports" {
            h2 #ports { (words.ports) }
            p.hint { (words.ports_hint) }
            @if let Some((reason, message)) = &ports.trouble { p { (parts::sentence(view, reason, message)) } }
            @if ports.all.is_empty() {
                p.empty { (words.no_ports) }
            } @else {
                ul.rows { @for of in &ports.all { li { (port(view, &machine.card, ports, of)) } } }
            }
            @if ports.can_change { (add_port(view, &machine.card)) }
        }
    }
}

fn port(view: &View<'_>, card: &Card, ports: &Ports, port: &Port) -> Markup {
    let words = view.words();
    let action = links::path(&card.path(&["unexpose"]));
    let fields = [("uid", card.uid.as_str()), ("name", port.name.as_str())];
    let remove =
        Button { action: &action, label: words.remove, about: &port.name, class: "", fields: &fields };
    html! {
        div.row {
            p {
                strong { (shown(&port.name)) } " "
                @match &port.outside {
                    Some(outside) => { code { (shown(outside)) } " " ((words.port_line)(port.inside)) },
                    None => { ((words.port_line)(port.inside)) ". " (words.port_soon) },
                }
                " (" (shown(&port.protocol)) ")"
            }
            @if ports.can_change { (parts::button(&remove)) }
        }
    }
}

fn add_port(view: &View<'_>, card: &Card) -> Markup {
    let words = view.words();
    let action = links::path(&card.path(&["expose"]));
    let number = |least| Input::Number { least, most: 65_535 };
    let of =
        |name, id, label, hint, value, input| Field { action: &action, name, id, label, hint, value, input };
    let fields = [
        of(
            "name",
            "port-name",
            words.port_name,
            words.port_name_hint,
            "",
            Input::Line { most: 15, pattern: PORT_NAME },
        ),
        of("targetPort", "port-inside", words.port_inside, "", "", number(1)),
        of("port", "port-outside", words.port_outside, words.port_outside_hint, "0", number(0)),
        of("protocol", "port-protocol", words.protocol, "", "TCP", Input::OneOf(&["TCP", "UDP"])),
    ];
    let is_open = view.typed.is_some_and(|typed| typed.action == action);
    html! {
        details #add-port open[is_open] hx-nonce=(view.nonce) {
            summary.button { (words.add_port) }
            form.fields method="post" action=(action) {
                (parts::hidden(&[("uid", &card.uid)]))
                @for of in &fields { (field(view, of)) }
                button.main type="submit" { (words.add) }
            }
        }
    }
}

/// The name.
pub fn name(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    let card = &machine.card;
    let action = links::path(&card.path(&["rename"]));
    let of = Field {
        action: &action,
        name: "prettyName",
        id: "pretty-name",
        label: words.name,
        hint: words.rename_hint,
        value: &card.title,
        input: Input::Line { most: shown::MOST, pattern: "" },
    };
    html! {
        @if machine.can_rename {
            section aria-labelledby="rename" {
                h2 #rename { (words.rename) }
                form.fields method="post" action=(action) {
                    (parts::hidden(&[("uid", &card.uid)]))
                    (field(view, &of))
                    button type="submit" { (words.rename) }
                }
            }
        }
    }
}

/// The images.
pub fn images(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    let Some(images) = &machine.images else { return Markup::default() };
    html! {
        section aria-labelledby="save" {
            h2 #save { (words.save) }
            p.hint { (words.save_hint) }
            @if images.is_off { (save(view, &machine.card, images)) } @else { p { (words.save_running) } }
            @if !images.all.is_empty() {
                h3 { (words.snapshots) }
                ul.rows {
                    @for image in &images.all {
                        li {
                            p {
                                strong { (shown(&image.name)) } ": " ((words.snapshot)(&image.phase)) ". "
                                @if let Some((reason, message)) = &image.cause {
                                    (parts::sentence(view, reason, message)) " "
                                    span.soft { (shown::message(message)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn save(view: &View<'_>, card: &Card, images: &Images) -> Markup {
    let words = view.words();
    let action = links::path(&card.path(&["save"]));
    let of = Field {
        action: &action,
        name: "imageName",
        id: "image-name",
        label: words.image_name,
        hint: words.image_name_hint,
        value: "",
        input: Input::Line { most: 128, pattern: IMAGE_NAME },
    };
    let snapshot = format!("{}-{}", card.name, view.fresh);
    html! {
        form.fields method="post" action=(action) {
            (parts::hidden(&[("uid", &card.uid), ("name", &snapshot), ("environment", &images.environment)]))
            (field(view, &of))
            button type="submit" { (words.save_button) }
        }
    }
}
