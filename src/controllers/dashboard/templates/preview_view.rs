//! The HTML of the preview of a Template, which its page shows, too: the card that students see, its cost, its changes,
//! and its machines.

use maud::{Markup, html};

use super::changes::{Changed, Changes};
use super::cost::{Cost, Need};
use super::used::{Counts, Used};
use crate::api::condition::VALID;
use crate::api::shown::{message, shown};
use crate::api::{Condition, Template};
use crate::controllers::dashboard::home::actions::CREATE;
use crate::controllers::dashboard::home::model::Offer;
use crate::controllers::dashboard::home::templates::description;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::{Student, template_title, warning};
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{links, parts};

/// The maximum number of machines in a list.
const MOST_MACHINES: usize = 20;

/// The card of a Template, as students see it.
pub fn card(view: &View<'_>, student: &Student<'_>, template: &Template) -> Markup {
    let offer = Offer::of(view, student, template, &CREATE);
    html! {
        article.alone {
            p { strong { (shown(template_title(template))) } }
            (description(view, &offer))
        }
    }
}

/// Whether machines can be made from a Template: its fault, or the reason why they may wait.
pub fn state(view: &View<'_>, template: &Template) -> Markup {
    let is_fault = |condition: &&Condition| condition.type_ == VALID && condition.status == "False";
    let conditions = &template.status.conditions;
    html! {
        @if let Some(fault) = conditions.iter().find(is_fault) {
            p.error { (parts::sentence(view, fault)) }
            p.said { (message(&fault.message)) }
        } @else if let Some(wait) = warning(template) {
            p { (view.texts().may_wait) " " (parts::sentence(view, wait)) }
        } @else if conditions.is_empty() {
            p.soft { (view.texts().templates.unchecked) }
        } @else {
            p.soft { (view.texts().templates.usable) }
        }
    }
}

/// The number of machines of a Template.
pub fn counts(texts: &Texts, counts: Counts) -> String {
    let machines = texts.amount_instances.of(&counts.all.to_string());
    match counts.all {
        0 => texts.templates.unused.clone(),
        _ => texts.templates.used.fill(&[("machines", &machines), ("running", &counts.running.to_string())]),
    }
}

/// The cost of a Template.
pub fn cost(view: &View<'_>, cost: &Cost) -> Markup {
    let texts = view.texts();
    html! {
        p { (texts.templates.per_machine) }
        ul.size { @for share in &cost.machine { li { (shown(&texts.named(&share.measure, &share.used))) } } }
        @if !cost.class.is_empty() {
            ul { @for need in &cost.class { li.error[need.is_short()] { (shown(&class(texts, cost.students, need))) } } }
        }
    }
}

/// Returns the sentence about a resource that a class reserves.
fn class(texts: &Texts, students: usize, need: &Need) -> String {
    let [students, amount] =
        [texts.templates.students.of(&students.to_string()), texts.named(&need.measure, &need.amount)];
    let values = [("students", students.as_str()), ("amount", amount.as_str())];
    match &need.free {
        None => texts.templates.class_needs.fill(&values),
        Some(free) => {
            let free = texts.quantity(&need.measure, free);
            texts.templates.class_has.fill(&[&values[..], &[("free", free.as_str())]].concat())
        }
    }
}

/// The changes of a stored Template, with the machines that they do not affect.
pub fn changes(view: &View<'_>, changes: &Changes, machines: Option<&[Used]>) -> Markup {
    let texts = &view.texts().templates;
    let count = machines.map(<[Used]>::len);
    html! {
        @if changes.is_empty() { p { (texts.no_changes) } }
        @if !changes.of_all.is_empty() {
            p { (texts.for_all) } (fields(view, &changes.of_all))
        }
        @if !changes.of_new.is_empty() {
            p { (texts.for_new) } (fields(view, &changes.of_new))
            @if count != Some(0) { p { (texts.not_touched) } (list(view, machines)) }
        }
        @if !changes.added.is_empty() { p { (texts.environments_added) ": " (names(&changes.added)) "." } }
        @if !changes.removed.is_empty() { p { (texts.environments_removed) ": " (names(&changes.removed)) "." } }
    }
}

/// The names of changed fields.
fn fields(view: &View<'_>, changed: &[Changed]) -> Markup {
    let fields = &view.texts().templates.fields;
    html! {
        ul {
            @for (name, environment) in changed {
                li {
                    (fields.get(*name).map_or(*name, |texts| texts.label.as_str()))
                    @if let Some(environment) = environment { " (" (shown(environment)) ")" }
                }
            }
        }
    }
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ")
}

/// The machines of a Template.
pub fn list(view: &View<'_>, machines: Option<&[Used]>) -> Markup {
    let texts = &view.texts().templates;
    let Some(machines) = machines else { return html! { p.soft { (texts.use_unknown) } } };
    let more = machines.len().saturating_sub(MOST_MACHINES);
    html! {
        ul {
            @for Used { namespace, name, .. } in machines.iter().take(MOST_MACHINES) {
                li {
                    a href=(links::of_machine(paths::MACHINE, namespace, name)) { (shown(namespace)) "/" (shown(name)) }
                }
            }
        }
        @if more > 0 { p.soft { (texts.more.of(&more.to_string())) } }
    }
}
