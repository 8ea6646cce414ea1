//! The elements of pages.

use maud::{Markup, html};

use super::time;
use super::view::View;
use crate::api::condition::Condition;
use crate::api::shown::{self, cut, escaped, escaped_lines, shown};
use crate::api::usage::Share;
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

/// The state of a machine, as a word with a mark: `good` if it can be used, `busy` during a change, `quiet` without a
/// change, `bad` if a person has to act. The mark is never the only sign.
pub fn badge(view: &View<'_>, standing: Standing) -> Markup {
    let mark = match standing {
        Standing::Ready => "good",
        Standing::New
        | Standing::Importing
        | Standing::Starting
        | Standing::Running
        | Standing::Stopping
        | Standing::Deleting => "busy",
        Standing::Off | Standing::Unknown => "quiet",
        Standing::Quota | Standing::Failed | Standing::Blocked => "bad",
    };
    html! { span.badge.(mark) { (view.texts().standing.of(standing)) } }
}

/// A part of the name of a button that only screen readers need.
pub fn unseen(text: &str) -> Markup {
    html! { span.unseen { " " (escaped(text)) } }
}

/// A button that sends fields.
pub struct Button<'a> {
    /// The path that receives them.
    pub action: &'a str,
    /// The label.
    pub label: &'a str,
    /// The subject, for screen readers.
    pub about: &'a str,
    /// The class: `main`, `danger`, or empty.
    pub class: &'a str,
    /// The fields.
    pub fields: &'a [(&'a str, &'a str)],
}

/// A form that is a button.
pub fn button(button: &Button<'_>) -> Markup {
    described(button, None)
}

/// A form that is a button, with the id of the element that describes it.
fn described(button: &Button<'_>, by: Option<&str>) -> Markup {
    let Button { action, label, about, class, fields } = button;
    html! {
        form method="post" action=(action) {
            (hidden(fields))
            button type="submit" class=[Some(*class).filter(|class| !class.is_empty())] aria-describedby=[by] {
                (label) (unseen(about))
            }
        }
    }
}

/// A button that starts a machine, with the warning that the machine may not start immediately.
pub fn start(view: &View<'_>, id: &str, button: &Button<'_>, warning: Option<&Condition>) -> Markup {
    let Some(warning) = warning else { return self::button(button) };
    html! {
        div.warned {
            (described(button, Some(id)))
            p id=(id) { (view.texts().may_wait) " " (sentence(view, warning)) }
        }
    }
}

/// Hidden fields.
pub fn hidden(fields: &[(&str, &str)]) -> Markup {
    html! { @for (name, value) in fields { input type="hidden" name=(name) value=(value); } }
}

/// A disabled button, with the reason why a machine cannot be started.
pub fn refused(view: &View<'_>, id: &str, label: &str, about: &str, blocked: &Blocked) -> Markup {
    let texts = view.texts();
    html! {
        div.refused {
            button type="button" disabled aria-describedby=(id) { (label) (unseen(about)) }
            p id=(id) {
                @match blocked {
                    Blocked::Away => { (texts.away) },
                    Blocked::NoNamespace => { (texts.no_namespace) },
                    Blocked::NoRight => { (texts.no_right) },
                    Blocked::Full(most) => { (texts.too_many_machines.fill(&[("count", &most.to_string())])) },
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
    let known = view.texts().reason(&condition.reason).map(str::to_owned);
    known.unwrap_or_else(|| shown::message(&condition.message))
}

/// A condition: its meaning, its time, and its message.
pub fn cause(view: &View<'_>, cause: &Condition) -> Markup {
    let Condition { reason, message, last_transition_time: since, .. } = cause;
    let meaning = view.texts().reason(reason);
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

/// A question before an action that cannot be undone, in a `details` element, which opens without scripts. The question
/// names the subject of the button.
pub fn confirm(view: &View<'_>, id: &str, texts: &ActionTexts, button: &Button<'_>) -> Markup {
    let ActionTexts { label, question, consequence, confirm, .. } = texts;
    let yes = Button { label: confirm.as_deref().unwrap_or(label), class: "danger", ..*button };
    html! {
        details.confirm id=(id) hx-nonce=(view.nonce) {
            summary.button.(yes.class) { (label) (unseen(yes.about)) }
            div.question {
                @if let Some(question) = question {
                    p { strong { (question.fill(&[("name", &shown(yes.about))])) } " " (consequence.as_deref().unwrap_or_default()) }
                }
                (self::button(&yes))
            }
        }
    }
}
