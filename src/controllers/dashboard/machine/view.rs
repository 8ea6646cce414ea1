//! The HTML of the page of a machine.

use maud::{Markup, html};

use super::model::Machine;
use super::technical::technical;
use super::{buttons, connect, forms};
use crate::api::shown::{escaped, message, shown};
use crate::api::why::{Ender, Warned, Warning, Why};
use crate::controllers::dashboard::history::view::history;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::sharing::view as sharing;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{layout, links, parts, time};

/// Renders the page.
pub fn machine(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let card = &machine.card;
    let announced = html! { span #said aria-atomic="true" { (shown(&card.title)) ": " (texts.standing.of(card.standing)) ". " } };
    let content = html! {
        (back(view, machine))
        (buttons::state(view, card, &html! { h1 { (shown(&card.title)) } }))
        @if let Some(of) = &machine.sharing { (sharing::connected(view, &of.connections)) }
        @if machine.why.waits.is_empty() { p { (buttons::because(view, card)) } }
        (buttons::progress(view, card))
        (buttons::last_run(view, card))
        (buttons::notify(view, [card]))
        (buttons::actions(view, card))
        (buttons::hints(view, card))
        (why(view, machine))
        @if let Some(of) = &machine.technical { (technical(view, of)) }
        (next(view, machine))
        (connect::connect(view, machine))
        @if let Some(of) = &machine.sharing { (sharing::section(view, of)) }
        (forms::ports(view, machine))
        (forms::name(view, machine))
        (forms::images(view, machine))
        (facts(view, machine))
        (history(view, &machine.history))
    };
    let title = format!("{} – {}", texts.standing.of(card.standing), card.title);
    layout::page(view, &title, &announced, &content)
}

/// The link to the page with the other machines: of the user, or of the class.
fn back(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    html! {
        p.back {
            @match &machine.class {
                Some(course) => a href=(paths::fill(paths::COURSE, |_| links::encoded(course))) { (texts.course_pages.class) ": " (shown(&machine.card.course)) },
                None => a href="/" { (texts.home) },
            }
        }
    }
}

/// The conditions that it waits for, and the warnings.
fn why(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let why = &machine.why;
    let warnings = match &why.warnings {
        Ok(warnings) => warnings.iter().map(|of| warning(view, of)).collect(),
        Err(unknown) => vec![html! { (message(unknown)) }],
    };
    html! {
        @if why.is_behind { p.notice { (texts.pending_change) } }
        @if !why.waits.is_empty() {
            section aria-labelledby="why" {
                h2 #why { @if machine.card.standing.is_unready() { (texts.why) } @else { (texts.wrong) } }
                ul.causes { @for cause in &why.waits { li { (parts::cause(view, cause)) } } }
            }
        }
        @if !warnings.is_empty() {
            section aria-labelledby="warnings" {
                h2 #warnings { (texts.warnings) }
                ul.causes { @for warning in &warnings { li { p.said { (warning) } } } }
            }
        }
    }
}

/// A warning about an object: its message, how often it occurred, and when it last occurred.
fn warning(view: &View<'_>, warning: &Warning) -> Markup {
    let Warning { about, reason, message: text, times, last } = warning;
    html! {
        (shown(&about.kind)) " " (shown(&about.name)) ": " (message(text)) " (" (shown(reason))
        @if *times > 1 { ", " (times) "\u{a0}×" }
        ")"
        @if let Some(last) = last { " " span.soft { (time::ago(view, last.0)) } }
    }
}

/// The deadlines for its stop and its deletion.
fn next(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let Why { next, automation, limits, .. } = &machine.why;
    let is_anything_known = !next.is_empty() || !automation.is_empty() || limits.is_some();
    html! {
        @if is_anything_known {
            section aria-labelledby="next" {
                div.row { h2 #next { (texts.next) } (buttons::keep(view, &machine.card)) }
                @for step in next {
                    (buttons::next(view, step))
                    @if let Some(Warned { times, last }) = step.warned.as_ref().filter(|_| machine.is_own) {
                        p.soft { (texts.warned.of(&times.unsigned_abs().to_string())) " " (time::ago(view, last.0)) "." }
                    }
                }
                @if !automation.is_empty() {
                    ul.causes { @for condition in automation { li { (parts::cause(view, condition)) } } }
                }
                @match limits.as_deref() {
                    Some([]) => p { (texts.next_nothing) },
                    limits => ul { @for limit in limits.into_iter().flatten() { li { (buttons::says(view, limit)) } } },
                }
            }
        }
    }
}

/// Its names and times.
fn facts(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let card = &machine.card;
    html! {
        section aria-labelledby="facts" {
            details.fold #about hx-nonce=(view.nonce) {
                summary { h2 #facts { (texts.facts) } }
                dl {
                    dt { (texts.course) } dd { (shown(&card.course)) }
                    dt { (texts.template) } dd {
                        @if let Some(title) = &card.template { (shown(title)) " " }
                        span.soft { (shown(&machine.template)) }
                        @if machine.is_template_gone { " " (texts.reason("TemplateNotFound").unwrap_or_default()) }
                    }
                    @if let Some(since) = &machine.why.since { dt { (texts.state_since) } dd { (time::ago(view, since.0)) } }
                    @if let Some(created) = machine.created { dt { (texts.created) } dd { (time::ago(view, created)) } }
                    @if !machine.ready_in.is_empty() { dt { (texts.ready_in) } dd { (shown(&machine.ready_in)) } }
                    @if let Some(used) = machine.last_use { dt { (texts.last_use) } dd { (time::ago(view, used)) } }
                    dt { (texts.of_tenant) } dd { (shown(&machine.why.tenant)) }
                    dt { (texts.identity) } dd { (shown(&card.namespace)) "/" (shown(&card.name)) }
                    dt { (texts.enders) } dd { (enders(view, machine)) }
                }
            }
        }
    }
}

/// Returns the list of users who may stop or delete it.
fn enders(view: &View<'_>, machine: &Machine) -> String {
    let texts = view.texts();
    let said = |ender: &Ender| match ender {
        Ender::Tenant(_) if machine.is_own => texts.you.clone(),
        Ender::Tenant(name) => name.clone(),
        Ender::Managers(names) => format!("{} ({})", texts.managers, names.join(", ")),
        Ender::UnknownManagers => texts.managers.clone(),
        Ender::Administrators => texts.administrators.clone(),
    };
    escaped(&machine.why.enders.iter().map(said).collect::<Vec<_>>().join(", ")).into_owned()
}
