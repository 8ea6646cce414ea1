//! The HTML of a person of a course.

use maud::{Markup, html};

use super::actions::{APPROVE, DEMOTE, PROMOTE, REJECT, REMOVE};
use super::model::{Machine, OfPerson};
use super::view::{button, role};
use crate::api::shown::{escaped, shown};
use crate::api::tenant::Role;
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::course::{Course, Tab};
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::history::view::history;
use crate::controllers::dashboard::machine::buttons::{next, says};
use crate::controllers::dashboard::machine::left::Left;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::links::of_machine;
use crate::controllers::dashboard::ui::parts;
use crate::controllers::dashboard::ui::view::View;

/// Renders the page.
pub fn person(view: &View<'_>, course: &Course, person: &OfPerson, past: &History) -> Markup {
    let texts = view.texts();
    let row = &person.row;
    let role = role(texts, row.role.as_ref());
    let announced = html! { span #said-role aria-atomic="true" { (escaped(&role)) } };
    let content = html! {
        section aria-labelledby="person" {
            h2 #person { (shown(&row.name)) }
            dl {
                dt { (texts.user_name) } dd { (shown(&row.user)) @if row.is_own { " (" (texts.you) ")" } }
                dt { (texts.email) } dd { (shown(&row.email)) }
                dt { (texts.people.role) } dd { (escaped(&role)) }
            }
        }
        (machines(view, person))
        @if person.can_change && !row.is_own {
            div.actions { @for action in actions(row.role.as_ref()) { (button(view, course, row, action)) } }
        }
        (history(view, past))
    };
    frame(view, course, Tab::People, &announced, &content)
}

/// Returns the actions on a person with this role.
fn actions(role: Option<&Role>) -> &'static [&'static Action] {
    match role {
        Some(Role::Candidate) => &[&APPROVE, &REJECT],
        Some(Role::User) => &[&PROMOTE, &REMOVE],
        Some(Role::Manager) => &[&DEMOTE, &REMOVE],
        Some(Role::Other(_)) | None => &[],
    }
}

/// The machines of the course, with their deadlines, which a removal does not change.
fn machines(view: &View<'_>, person: &OfPerson) -> Markup {
    let texts = &view.texts().people;
    let has_machines = person.machines.as_ref().is_some_and(|machines| !machines.is_empty());
    html! {
        section aria-labelledby="machines" {
            h2 #machines { (texts.machines) }
            @match &person.machines {
                None => p.empty { (texts.hidden_machines) },
                Some(machines) if machines.is_empty() => p.empty { (texts.no_machines) },
                Some(machines) => ul.rows { @for of in machines { li { (machine(view, of)) } } },
            }
            @if person.more > 0 { p.soft { (texts.more.of(&person.more.to_string())) } }
            @if has_machines && person.row.role.is_some() { p.hint { (texts.removal_hint) } }
        }
    }
}

fn machine(view: &View<'_>, machine: &Machine) -> Markup {
    html! {
        div.row id=(parts::id("machine", &machine.name)) {
            div {
                p { a href=(of_machine(paths::MACHINE, &machine.namespace, &machine.name)) { (shown(&machine.title)) } }
                @match &machine.left {
                    None => {},
                    Some(Left::Step(step)) => { (next(view, step)) },
                    Some(Left::Limit(limit)) => p.soft { (says(view, limit)) },
                    Some(Left::Unlimited) => p.soft { (view.texts().next_nothing) },
                }
            }
            (parts::badge(view, machine.standing))
        }
    }
}
