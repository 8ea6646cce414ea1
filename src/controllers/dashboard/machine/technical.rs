//! The technical details of a machine of another user: its status in the words of Kubernetes. They need no right to
//! read events.

use maud::{Markup, html};

use crate::api::shown::{message, shown};
use crate::api::{Condition, Instance};
use crate::controllers::dashboard::ui::time;
use crate::controllers::dashboard::ui::view::View;

/// The status of a machine.
#[derive(Debug, Clone)]
pub struct Technical {
    /// The phase; empty if it is not known.
    pub phase: String,
    /// The phase and the step of each environment, after its name.
    pub environments: Vec<(String, String)>,
    /// The node; empty while the machine is stopped.
    pub node: String,
    /// The conditions. Those that do not hold come first.
    pub conditions: Vec<Condition>,
    /// Whether the status describes an earlier generation of the spec.
    pub is_behind: bool,
}

impl Technical {
    /// Returns the status of an Instance.
    pub fn of(instance: &Instance) -> Self {
        let status = &instance.status;
        let environments = status.environments.iter().map(|of| {
            let parts = [of.phase.to_string(), of.step.to_string()];
            let known: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            (of.name.to_string(), known.join(", "))
        });
        let mut conditions = status.conditions.clone();
        conditions.sort_by_key(|condition| condition.status == "True");
        Self {
            phase: status.phase.to_string(),
            environments: environments.collect(),
            node: status.node_name.to_string(),
            conditions,
            is_behind: status.observed_generation < instance.metadata.generation,
        }
    }
}

/// Renders the section.
pub fn technical(view: &View<'_>, of: &Technical) -> Markup {
    let texts = &view.texts().technical;
    html! {
        section aria-labelledby="technical" {
            h2 #technical { (texts.heading) }
            p.hint { (texts.hint) }
            @if of.is_behind { p.notice { (texts.behind) } }
            dl {
                @if !of.phase.is_empty() { dt { (texts.phase) } dd { (shown(&of.phase)) } }
                @if !of.environments.is_empty() {
                    dt { (texts.environments) }
                    @for (name, state) in &of.environments { dd { (shown(name)) ": " (shown(state)) } }
                }
                @if !of.node.is_empty() { dt { (texts.node) } dd { (shown(&of.node)) } }
            }
            @if !of.conditions.is_empty() { (conditions(view, &of.conditions)) }
        }
    }
}

/// The conditions, as a table that scrolls on its own.
fn conditions(view: &View<'_>, conditions: &[Condition]) -> Markup {
    let texts = &view.texts().technical;
    let heads = [&texts.kind, &texts.status, &texts.reason, &texts.message, &texts.since];
    html! {
        div.scroll role="region" aria-label=(texts.caption) tabindex="0" {
            table {
                caption { (texts.caption) }
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody {
                    @for Condition { type_, status, reason, message: text, last_transition_time: since, .. } in conditions {
                        tr {
                            th scope="row" { (shown(type_)) }
                            td { (shown(status)) }
                            td { (shown(reason)) }
                            td { (message(text)) }
                            td { (time::ago(view, since.0)) }
                        }
                    }
                }
            }
        }
    }
}
