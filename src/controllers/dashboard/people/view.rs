//! The HTML of the people of a course.

use form_urlencoded::Serializer;
use maud::{Markup, html};

use super::actions::{ADD, APPROVE, REJECT};
use super::model::{People, Row};
use super::person::{REJECT as REJECTED, ROLES};
use crate::api::shown::{escaped, shown};
use crate::api::tenant::Role;
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::course::{Course, Tab};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::links::{encoded, queried};
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;

/// Renders the page.
pub fn people(view: &View<'_>, course: &Course, people: &People) -> Markup {
    let texts = &view.texts().people;
    let announced = html! {
        span #said-candidates aria-atomic="true" { (texts.candidates) ": " (people.asking) }
    };
    let content = html! {
        (candidates(view, course, people))
        (enrolled(view, course, people))
        @if people.can_change { (add(view, course)) }
    };
    frame(view, course, Tab::People, &announced, &content)
}

/// Returns the path of a page or an action of a course.
pub fn of_course(pattern: &str, course: &Course) -> String {
    paths::fill(pattern, |_| encoded(course.name()))
}

/// Returns the path of the page of a person.
pub fn of_person(course: &Course, user: &str) -> String {
    let part = |parameter: &str| encoded(if parameter == "course" { course.name() } else { user });
    paths::fill(paths::PERSON, part)
}

/// Returns the word for a role; an unknown role is shown itself.
pub fn role(texts: &'static Texts, role: Option<&Role>) -> String {
    let texts = &texts.people;
    match role {
        Some(Role::User) => texts.student.clone(),
        Some(Role::Manager) => texts.manager.clone(),
        Some(Role::Candidate) => texts.candidate.clone(),
        Some(Role::Other(other)) => shown(other).into_owned(),
        None => texts.outside.clone(),
    }
}

fn candidates(view: &View<'_>, course: &Course, people: &People) -> Markup {
    let texts = &view.texts().people;
    let more = people.asking - people.candidates.len();
    html! {
        section aria-labelledby="candidates" {
            h2 #candidates { (texts.candidates) " (" (people.asking) ")" }
            @if people.asking == 0 { p.empty { (texts.no_candidates) } }
            @if people.can_change && people.at_once.len() > 1 {
                div.actions {
                    (all(course, people, ROLES[0], &texts.approve_all))
                    (all(course, people, REJECTED, &texts.reject_all))
                }
            }
            ul.rows { @for of in &people.candidates { li { (candidate(view, course, people, of)) } } }
            @if more > 0 { p.soft { (texts.more.of(&more.to_string())) } }
        }
    }
}

/// The button that approves or rejects all candidates: it sends a list, whose changes are shown before they are made.
fn all(course: &Course, people: &People, role: &str, label: &str) -> Markup {
    let rows = people.at_once.iter().map(|user| format!("{user},{role}\n"));
    let list = std::iter::once("user,role\n".to_owned()).chain(rows).collect::<String>();
    let fields = [("list", list.as_str())];
    html! {
        form method="post" action=(of_course(paths::IMPORT, course)) {
            (parts::hidden(&fields))
            button type="submit" { (label) " (" (people.at_once.len()) ")" }
        }
    }
}

fn candidate(view: &View<'_>, course: &Course, people: &People, row: &Row) -> Markup {
    html! {
        div.row id=(parts::id("candidate", &row.user)) {
            (named(course, row))
            @if people.can_change {
                div.actions { (button(view, course, row, &APPROVE)) (button(view, course, row, &REJECT)) }
            }
        }
    }
}

/// The button of an action on a person.
pub fn button(view: &View<'_>, course: &Course, row: &Row, action: &Action) -> Markup {
    let path = of_course(action.path, course);
    let fields = [("uid", row.uid.as_str()), ("who", row.user.as_str())];
    let button =
        Button { action, path: &path, about: &row.name, key: &row.user, fields: &fields, warning: None };
    parts::button(view, &button)
}

/// The name of a person, with the link to their page, the user name and the address.
fn named(course: &Course, row: &Row) -> Markup {
    html! {
        div {
            p { a href=(of_person(course, &row.user)) { (shown(&row.name)) } }
            p.soft { (shown(&row.user)) " · " (shown(&row.email)) }
        }
    }
}

fn enrolled(view: &View<'_>, course: &Course, people: &People) -> Markup {
    let all = view.texts();
    let texts = &all.people;
    let is_searched = !view.search.is_empty();
    html! {
        section aria-labelledby="enrolled" {
            h2 #enrolled { (texts.enrolled) " (" (people.found) ")" }
            @if people.found + people.asking > 10 || is_searched { (search(view)) }
            @if is_searched { p { a href=(view.path) { (all.show_all) } } }
            @if people.found == 0 { p.empty { @if is_searched { (texts.none_found) } @else { (texts.no_people) } } }
            ul.rows {
                @for row in &people.enrolled {
                    li {
                        div.row id=(parts::id("row", &row.user)) {
                            (named(course, row))
                            p { (escaped(&role(all, row.role.as_ref()))) @if row.is_own { " (" (all.you) ")" } }
                        }
                    }
                }
            }
            (pages(view, people))
        }
    }
}

/// The search, a form that requests the page again.
fn search(view: &View<'_>) -> Markup {
    let texts = view.texts();
    html! {
        form.search role="search" method="get" action=(view.path) {
            label for="search" { (texts.people.search) }
            input type="search" id="search" name="q" value=(view.search) maxlength="100" hx-morph-skip hx-nonce=(view.nonce);
            button type="submit" { (texts.search) }
        }
    }
}

/// The links to the page before and after.
fn pages(view: &View<'_>, people: &People) -> Markup {
    let texts = &view.texts().people;
    let People { page, pages, .. } = people;
    let link = |page: usize| {
        let mut query = Serializer::new(String::new());
        if !view.search.is_empty() {
            query.append_pair("q", view.search);
        }
        queried(view.path, &query.append_pair("page", &page.to_string()).finish())
    };
    html! {
        @if *pages > 1 {
            nav aria-label=(texts.pages) {
                ul {
                    @if *page > 1 { li { a href=(link(page - 1)) { (texts.previous) } } }
                    li { (texts.page_of.fill(&[("page", &page.to_string()), ("pages", &pages.to_string())])) }
                    @if page < pages { li { a href=(link(page + 1)) { (texts.next) } } }
                }
            }
        }
    }
}

fn add(view: &View<'_>, course: &Course) -> Markup {
    let texts = &view.texts().people;
    let path = of_course(ADD.path, course);
    html! {
        section aria-labelledby="add" {
            h2 #add { (texts.add) }
            p.hint { (texts.add_hint) }
            (form(view, &Form { action: &ADD, path: &path, hidden: &[], values: &[], is_main: true }))
            p { a href=(of_course(paths::IMPORT, course)) { (texts.import) } }
        }
    }
}
