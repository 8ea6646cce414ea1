//! What the pages are made of.

use std::borrow::Cow;

use maud::{Markup, html};

use super::amounts;
use super::standing::{Standing, Tone};
use super::student::Blocked;
use super::time;
use super::view::View;
use crate::api::condition::Condition;
use crate::api::shown::{cut, escaped, escaped_lines};
use crate::api::usage::Share;

/// How many characters of a description are shown.
const MOST_OF_DESCRIPTION: usize = 1_000;

/// A longer text of others, in lines as they wrote them.
pub fn description(text: &str) -> String {
    escaped_lines(&cut(text, MOST_OF_DESCRIPTION)).into_owned()
}

/// The id of an element about something: the names of Kubernetes, and numbers, stay as they are.
pub fn id(what: &str, of: &str) -> String {
    let plain =
        |character: char| if character.is_ascii_alphanumeric() || character == '.' { character } else { '-' };
    format!("{what}-{}", of.chars().map(plain).collect::<String>())
}

/// The state of a machine: a word, and a mark beside it.
pub fn badge(view: &View<'_>, standing: Standing) -> Markup {
    let tone = match standing.tone() {
        Tone::Good => "badge good",
        Tone::Busy => "badge busy",
        Tone::Quiet => "badge quiet",
        Tone::Bad => "badge bad",
    };
    html! { span class=(tone) { ((view.words().standing)(standing)) } }
}

/// A part of the name of a button that only who does not see what is around it needs.
pub fn unseen(text: &str) -> Markup {
    html! { span.unseen { " " (escaped(text)) } }
}

/// A button that sends fields.
pub struct Button<'a> {
    /// Where they are sent.
    pub action: &'a str,
    /// What it says.
    pub label: &'a str,
    /// What it is about, for who does not see that.
    pub about: &'a str,
    /// Its class: `main`, `danger`, or empty.
    pub class: &'a str,
    /// The fields.
    pub fields: &'a [(&'a str, &'a str)],
}

/// A form of a button alone.
pub fn button(button: &Button<'_>) -> Markup {
    let Button { action, label, about, class, fields } = button;
    html! {
        form method="post" action=(action) {
            (hidden(fields))
            button type="submit" class=[Some(*class).filter(|class| !class.is_empty())] { (label) (unseen(about)) }
        }
    }
}

/// Fields that nobody sees.
pub fn hidden(fields: &[(&str, &str)]) -> Markup {
    html! { @for (name, value) in fields { input type="hidden" name=(name) value=(value); } }
}

/// A button that cannot be pressed, and why.
pub fn refused(view: &View<'_>, id: &str, label: &str, about: &str, blocked: &Blocked) -> Markup {
    html! {
        div.refused {
            button type="button" disabled aria-describedby=(id) { (label) (unseen(about)) }
            p id=(id) { (why_not(view, blocked)) }
        }
    }
}

/// Why something cannot be started.
pub fn why_not(view: &View<'_>, blocked: &Blocked) -> Markup {
    let words = view.words();
    html! {
        @match blocked {
            Blocked::Away => { (words.away) },
            Blocked::NoNamespace => { (words.no_namespace) },
            Blocked::NoRight => { (words.no_right) },
            Blocked::Full(most) => { ((words.too_many_machines)(*most)) },
            Blocked::Template { reason, message } => { (sentence(view, reason, message)) },
            Blocked::Refused(refusal, holders) => {
                (escaped(&(words.refusal)(refusal)))
                @if !holders.is_empty() { " " (words.used_by) ": " (names(holders)) "." }
            },
        }
    }
}

/// Names of machines, one after the other.
fn names(names: &[String]) -> String {
    names.iter().map(|name| crate::api::shown::shown(name)).collect::<Vec<Cow<'_, str>>>().join(", ")
}

/// What a reason means; the sentence of its condition where that is not known.
pub fn sentence(view: &View<'_>, reason: &str, message: &str) -> String {
    let known = view.language.reason(reason).map(str::to_owned);
    known.unwrap_or_else(|| crate::api::shown::message(message))
}

/// A condition: what it means, since when, and what it says itself.
pub fn cause(view: &View<'_>, cause: &Condition) -> Markup {
    let Condition { reason, message, last_transition_time: since, .. } = cause;
    let meaning = view.language.reason(reason);
    let said = crate::api::shown::message(message);
    html! {
        p {
            (meaning.unwrap_or(&said)) " "
            span.soft { (time::ago(view, since.0)) }
        }
        @if meaning.is_some() && !said.is_empty() {
            p.said { span.soft { (view.words().details) ": " } (said) " (" (escaped(reason)) ")" }
        }
    }
}

/// How much of a quota is used, as a table.
pub fn quota_table(view: &View<'_>, caption: &str, shares: &[Share]) -> Markup {
    let words = view.words();
    html! {
        table {
            caption { (caption) }
            thead { tr { th scope="col" { (words.what) } th scope="col" { (words.used) } th scope="col" { (words.granted) } } }
            tbody {
                @for share in shares {
                    tr {
                        th scope="row" { (escaped(&(words.measure)(&share.measure))) }
                        td { (amounts::amount(words, &share.measure, &share.used)) }
                        td {
                            @match &share.limit {
                                Some(limit) => { (amounts::amount(words, &share.measure, limit)) },
                                None => { (words.unlimited) },
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A question before something is done that cannot be undone, in a part of the page that opens. It needs no script.
pub fn confirm(
    view: &View<'_>,
    id: &str,
    label: &str,
    about: &str,
    question: &Markup,
    yes: &Button<'_>,
) -> Markup {
    html! {
        details.confirm id=(id) hx-nonce=(view.nonce) {
            summary.button.(yes.class) { (label) (unseen(about)) }
            div.question { (question) (button(yes)) }
        }
    }
}
