//! The page of a machine.

mod change;
mod model;

use maud::{Markup, html};

pub use model::Machine;
use model::Part;

use super::home;
use super::layout;
use super::parts;
use super::standing::Standing;
use super::time;
use super::view::View;
use crate::api::shown::{escaped, message, shown};
use crate::api::why::{Ender, Limit, Warned, Warning, Why};

/// The page of a machine.
pub fn machine(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    let card = &machine.card;
    let announced = html! { span { (shown(&card.title)) ": " ((words.standing)(card.standing)) ". " } };
    let content = html! {
        p.back { a href="/" { (words.home) } }
        div.top { h1 { (shown(&card.title)) } (parts::badge(view, card.standing)) }
        @if machine.why.waits.is_empty() { p { (home::because(view, card)) } }
        (home::actions(view, card))
        @if card.can_keep { p.hint { (words.keep) ": " (words.keep_hint) } }
        (why(view, machine))
        (next(view, machine))
        (environments(view, machine))
        (change::ports(view, machine))
        (change::name(view, machine))
        (change::images(view, machine))
        (facts(view, machine))
    };
    layout::page(view, &card.title, &announced, &content)
}

/// What it waits for, and what warnings say.
fn why(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    let why = &machine.why;
    let warnings = match &why.warnings {
        Ok(warnings) => warnings.iter().map(|of| warning(view, of)).collect(),
        Err(unknown) => vec![html! { (message(unknown)) }],
    };
    html! {
        @if why.is_behind { p.notice { (words.pending_change) } }
        @if !why.waits.is_empty() {
            section aria-labelledby="why" {
                h2 #why { (words.why) }
                ul.causes { @for cause in &why.waits { li { (parts::cause(view, cause)) } } }
            }
        }
        @if !warnings.is_empty() {
            section aria-labelledby="warnings" {
                h2 #warnings { (words.warnings) }
                ul.causes { @for warning in &warnings { li { p.said { (warning) } } } }
            }
        }
    }
}

/// A warning about an object: its words, how often it has come, and when last.
fn warning(view: &View<'_>, warning: &Warning) -> Markup {
    let Warning { about, reason, message: text, times, last } = warning;
    html! {
        (shown(&about.kind)) " " (shown(&about.name)) ": " (message(text)) " (" (shown(reason))
        @if *times > 1 { ", " (times) "\u{a0}×" }
        ")"
        @if let Some(last) = last { " " span.soft { (time::ago(view, last.0)) } }
    }
}

/// When it is stopped or deleted.
fn next(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    let Why { next, automation, limits, .. } = &machine.why;
    let is_anything_known = !next.is_empty() || !automation.is_empty() || limits.is_some();
    html! {
        @if is_anything_known {
            section aria-labelledby="next" {
                h2 #next { (words.next) }
                @for step in next {
                    (home::next(view, step))
                    @if let Some(Warned { times, last }) = step.warned.as_ref().filter(|_| machine.is_own) {
                        p.soft { ((words.warned)(*times)) " " (time::ago(view, last.0)) "." }
                    }
                }
                @if !automation.is_empty() {
                    ul.causes { @for condition in automation { li { (parts::cause(view, condition)) } } }
                }
                @match limits.as_deref() {
                    Some([]) => p { (words.next_nothing) },
                    limits => ul { @for limit in limits.into_iter().flatten() { li { (says(view, limit)) } } },
                }
            }
        }
    }
}

/// A time of its Template.
fn says(view: &View<'_>, limit: &Limit) -> String {
    let Limit { because, end, after } = limit;
    (view.words().template_says)(*end, *because, &time::duration(view, after))
}

/// Its environments, and how one gets into each.
fn environments(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    html! {
        @if !machine.environments.is_empty() {
            section aria-labelledby="environments" {
                h2 #environments { (words.environments) }
                ul.cards { @for part in &machine.environments { li { (environment(view, part)) } } }
            }
        }
    }
}

fn environment(view: &View<'_>, part: &Part) -> Markup {
    let words = view.words();
    html! {
        article {
            div.top { h3 { (shown(&part.name)) } (parts::badge(view, part.standing)) }
            @if let Some(url) = part.url.as_deref().filter(|_| part.standing == Standing::Ready) {
                p { a href=(url) target="_blank" rel="noopener noreferrer" { (words.open) (parts::unseen(&part.name)) } }
            }
            @if let Some(ssh) = &part.ssh {
                p {
                    (words.ssh) ": "
                    @match &ssh.command {
                        Some(command) => code { (command) },
                        None => { (words.no_ssh_yet) },
                    }
                }
                p.hint { (words.ssh_hint) }
                @if let Some(terminal) = &ssh.terminal {
                    p { a href=(terminal) target="_blank" rel="noopener noreferrer" { (words.web_ssh) (parts::unseen(&part.name)) } }
                }
            }
        }
    }
}

/// Its names and times.
fn facts(view: &View<'_>, machine: &Machine) -> Markup {
    let words = view.words();
    let card = &machine.card;
    html! {
        section aria-labelledby="facts" {
            h2 #facts { (words.facts) }
            dl {
                dt { (words.course) } dd { (shown(&card.course)) }
                dt { (words.template) } dd {
                    @if let Some(title) = &card.template { (shown(title)) " " }
                    span.soft { (shown(&machine.template)) }
                    @if machine.is_template_gone { " " (view.language.reason("TemplateNotFound").unwrap_or_default()) }
                }
                @if let Some(since) = &machine.why.since { dt { (words.state_since) } dd { (time::ago(view, since.0)) } }
                @if let Some(created) = machine.created { dt { (words.created) } dd { (time::ago(view, created)) } }
                @if !machine.ready_in.is_empty() { dt { (words.ready_in) } dd { (shown(&machine.ready_in)) } }
                @if let Some(used) = machine.last_use { dt { (words.last_use) } dd { (time::ago(view, used)) } }
                dt { (words.of_tenant) } dd { (shown(&machine.why.tenant)) }
                dt { (words.identity) } dd { (shown(&card.namespace)) "/" (shown(&card.name)) }
                dt { (words.enders) } dd { (enders(view, machine)) }
            }
        }
    }
}

/// Who may stop or delete it.
fn enders(view: &View<'_>, machine: &Machine) -> String {
    let words = view.words();
    let said = |ender: &Ender| match ender {
        Ender::Tenant(_) if machine.is_own => words.you.to_owned(),
        Ender::Tenant(name) => name.clone(),
        Ender::Managers(names) => format!("{} ({})", words.managers, names.join(", ")),
        Ender::UnknownManagers => words.managers.to_owned(),
        Ender::Administrators => words.administrators.to_owned(),
    };
    escaped(&machine.why.enders.iter().map(said).collect::<Vec<_>>().join(", ")).into_owned()
}
