//! The elements of pages.

use maud::{Markup, html};

use super::time;
use super::view::View;
use crate::api::condition::Condition;
use crate::api::shown::{self, cut, escaped, escaped_lines, shown};
use crate::api::usage::Share;
use crate::controllers::dashboard::action::entry::{Action, Place};
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::student::Blocked;
use crate::controllers::dashboard::texts::ActionTexts;

/// The maximum number of characters of a description.
const MOST_OF_DESCRIPTION: usize = 1_000;

/// Returns a longer text of another user, with its line breaks.
pub fn description(text: &str) -> String {
    escaped_lines(&cut(text, MOST_OF_DESCRIPTION)).into_owned()
}

/// Returns the id of an element. Names of Kubernetes objects and numbers are not changed.
pub fn id(what: &str, of: &str) -> String {
    let plain =
        |character: char| if character.is_ascii_alphanumeric() || character == '.' { character } else { '-' };
    format!("{what}-{}", of.chars().map(plain).collect::<String>())
}

/// The state of a machine, as a word with a mark, which is never the only sign.
pub fn badge(view: &View<'_>, standing: Standing) -> Markup {
    html! { span.badge.(standing.mark()) { (view.texts().standing.of(standing)) } }
}

/// A part of the name of a button that only screen readers need.
pub fn unseen(text: &str) -> Markup {
    html! { span.unseen { " " (escaped(text)) } }
}

/// The button of an action.
pub struct Button<'a> {
    /// The action.
    pub action: &'a Action,
    /// The path that receives its form.
    pub path: &'a str,
    /// The subject, for screen readers.
    pub about: &'a str,
    /// The part of its id that distinguishes it from other buttons of the action on the page.
    pub key: &'a str,
    /// The fields.
    pub fields: &'a [(&'a str, &'a str)],
    /// The condition that says why a machine may not start immediately.
    pub warning: Option<&'a Condition>,
}

impl Button<'_> {
    /// Returns the id of an element of the button.
    fn id(&self, element: &str) -> String {
        let word = self.action.name.rsplit('.').next().unwrap_or_default();
        id(&format!("{word}{element}"), self.key)
    }
}

/// The button of an action, as its place requires.
pub fn button(view: &View<'_>, button: &Button<'_>) -> Markup {
    let label = &view.action(button.action).label;
    match button.action.place {
        Place::Main => main_button(view, button, &Markup::default()),
        Place::Question => confirm(view, button),
        Place::Card | Place::Section | Place::Folded => submit(button, label, None, None, &Markup::default()),
    }
}

/// A form with one button, which has a label, a class, and the id of the element that describes it. `fields` are the
/// fields above the button.
fn submit(
    button: &Button<'_>,
    label: &str,
    class: Option<&str>,
    described: Option<&str>,
    fields: &Markup,
) -> Markup {
    html! {
        form method="post" action=(button.path) {
            (hidden(button.fields))
            (fields)
            button type="submit" class=[class] aria-describedby=[described] { (label) (unseen(button.about)) }
        }
    }
}

/// The main button of a card, with its warning and the fields above it.
pub fn main_button(view: &View<'_>, button: &Button<'_>, fields: &Markup) -> Markup {
    let label = &view.action(button.action).label;
    let Some(warning) = button.warning else { return submit(button, label, Some("main"), None, fields) };
    let id = button.id("-warning");
    html! {
        div.warned {
            (submit(button, label, Some("main"), Some(&id), fields))
            p id=(id) { (view.texts().may_wait) " " (sentence(view, warning)) }
        }
    }
}

/// A question before an action that cannot be undone, in a `details` element, which opens without scripts, above the
/// page. It names the subject of the button. The script closes it when the user cancels; without scripts, the page is
/// loaded again.
fn confirm(view: &View<'_>, button: &Button<'_>) -> Markup {
    let ActionTexts { label, question, consequence, confirm, .. } = view.action(button.action);
    html! {
        details.confirm id=(button.id("")) name="confirm" hx-nonce=(view.nonce) {
            summary.button.danger { (label) (unseen(button.about)) }
            div.question {
                @if let Some(question) = question {
                    p { strong { (question.fill(&[("name", &shown(button.about))])) } " " (consequence.as_deref().unwrap_or_default()) }
                }
                div.actions {
                    (submit(button, confirm.as_deref().unwrap_or(label), Some("danger"), None, &Markup::default()))
                    a.button.cancel href=(view.own_path()) { (view.texts().cancel) }
                }
            }
        }
    }
}

/// A text to copy, with its button.
pub fn copied(view: &View<'_>, text: &str, what: &str) -> Markup {
    html! { span.copied { code { (shown(text)) } " " (copy(view, &shown(text), what)) } }
}

/// The button that copies a text. The script shows it, and says that the text was copied. `what` is for screen readers.
pub fn copy(view: &View<'_>, text: &str, what: &str) -> Markup {
    let texts = view.texts();
    html! {
        button.plain.copy type="button" data-copy=(text) data-done=(texts.copied) { (texts.copy) (unseen(what)) }
        // An update keeps the message.
        output hx-morph-skip hx-nonce=(view.nonce) {}
    }
}

/// Hidden fields.
pub fn hidden(fields: &[(&str, &str)]) -> Markup {
    html! { @for (name, value) in fields { input type="hidden" name=(name) value=(value); } }
}

/// The disabled button of an action, with the reason why a machine cannot be started.
pub fn refused(view: &View<'_>, button: &Button<'_>, blocked: &Blocked) -> Markup {
    let (texts, id) = (view.texts(), button.id("-blocked"));
    let label = &view.action(button.action).label;
    html! {
        div.refused {
            button type="button" disabled aria-describedby=(id) { (label) (unseen(button.about)) }
            p id=(id) {
                @match blocked {
                    Blocked::Away => { (texts.away) },
                    Blocked::NoNamespace => { (texts.no_namespace) },
                    Blocked::NoRight => { (texts.no_right) },
                    Blocked::Template(condition) => { (sentence(view, condition)) },
                    Blocked::Refused(refusal, holders) => {
                        (escaped(&texts.refusal(refusal)))
                        @if !holders.is_empty() { " " (texts.used_by) ": " (names(holders)) "." }
                    },
                }
            }
        }
    }
}

/// Returns the names of machines, as a list.
fn names(names: &[String]) -> String {
    names.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ")
}

/// Returns the meaning of the reason of a condition, or its message if the texts do not have the reason.
pub fn sentence(view: &View<'_>, condition: &Condition) -> String {
    let known = view.texts().meaning(condition).map(str::to_owned);
    known.unwrap_or_else(|| shown::message(&condition.message))
}

/// A condition: its meaning, its time, and its message.
pub fn cause(view: &View<'_>, cause: &Condition) -> Markup {
    let Condition { reason, message, last_transition_time: since, .. } = cause;
    let meaning = view.texts().meaning(cause);
    let said = shown::message(message);
    html! {
        p {
            (meaning.unwrap_or(said.as_str())) " "
            span.soft { (time::ago(view, since.0)) }
        }
        @if meaning.is_some() && !said.is_empty() {
            p.said { span.soft { (view.texts().details) ": " } (said) " (" (escaped(reason)) ")" }
        }
    }
}

/// The usage of a quota, as a table.
pub fn quota_table(view: &View<'_>, caption: &str, shares: &[Share]) -> Markup {
    let texts = view.texts();
    html! {
        table {
            caption { (caption) }
            thead { tr { th scope="col" { (texts.what) } th scope="col" { (texts.used) } th scope="col" { (texts.granted) } } }
            tbody {
                @for share in shares {
                    tr {
                        th scope="row" { (escaped(texts.measure(&share.measure))) }
                        td { (texts.quantity(&share.measure, &share.used)) }
                        td {
                            @match &share.limit {
                                Some(limit) => { (texts.quantity(&share.measure, limit)) },
                                None => { (texts.unlimited) },
                            }
                        }
                    }
                }
            }
        }
    }
}
