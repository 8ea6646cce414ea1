//! The HTML of the pages of courses.

use maud::{Markup, html};

use super::actions::{CLOSED, CREATE, DELETE, EDIT};
use super::{Course, Courses};
use crate::api::Workspace;
use crate::api::quantity::RawQuantity;
use crate::api::shown::{escaped, message, shown};
use crate::api::usage::Usage;
use crate::api::why::waits;
use crate::api::workspace::AutoEnroll;
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::admin::frame::{Administrator, Tab, frame, group};
use crate::controllers::dashboard::admin::overview::view::number;
use crate::controllers::dashboard::admin::read::{Count, Part};
use crate::controllers::dashboard::course::Tab as CourseTab;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::links;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;

/// The initial values of a new course.
const VALUES: [(&str, &str); 4] =
    [("enrolment", "withApproval"), ("cpu", "4"), ("memory", "8Gi"), ("instances", "2")];

/// Renders the list, with the form for a new course.
pub fn list(view: &View<'_>, administrator: &Administrator<'_>, selector: &str, courses: &Courses) -> Markup {
    let texts = view.texts();
    let hidden = [("selector", selector)];
    let new = Form { action: &CREATE, path: CREATE.path, hidden: &hidden, values: &VALUES, is_main: true };
    let content = html! {
        section aria-labelledby="courses" {
            h2 #courses { (texts.courses) }
            @if courses.rows.is_empty() { p.empty { (texts.admin.no_courses) } }
            @else { (group(&texts.courses, &rows(view, &courses.rows))) }
            (more(view, paths::ADMIN_COURSES, &courses.next))
        }
        @if administrator.may(&CREATE.right) {
            section aria-labelledby="new" {
                h2 #new { (texts.admin.new_course) }
                p.hint { (texts.admin.new_course_hint) }
                (form(view, &new))
            }
        }
    };
    frame(view, Tab::Courses, "", &content)
}

/// The links to the first and the next page of a list.
pub fn more(view: &View<'_>, path: &str, next: &str) -> Markup {
    let texts = &view.texts().admin;
    let query = format!("continue={}", links::encoded(next));
    html! {
        @if !next.is_empty() || view.query.contains("continue=") {
            p {
                @if view.query.contains("continue=") { a href=(path) { (texts.first_page) } " " }
                @if !next.is_empty() { a href=(links::queried(path, &query)) { (texts.next_page) } }
            }
        }
    }
}

fn rows(view: &View<'_>, courses: &[Workspace]) -> Markup {
    let texts = view.texts();
    html! {
        table {
            thead {
                tr {
                    th scope="col" { (texts.course) }
                    th scope="col" { (texts.name) }
                    th scope="col" { (texts.admin.enrolment) }
                    th scope="col" { (texts.admin.quota_each) }
                    th scope="col" { (texts.admin.state) }
                }
            }
            tbody {
                @for course in courses {
                    tr id=(parts::id("row", course.name())) {
                        th scope="row" { a href=(path(paths::ADMIN_COURSE, course.name())) { (shown(title(course))) } }
                        td { (shown(course.name())) }
                        td { (enrolment(view, course)) }
                        td { (escaped(&quota(view, course))) }
                        td { (state(view, course)) }
                    }
                }
            }
        }
    }
}

/// Returns the path of a page or an action of a course.
fn path(pattern: &str, course: &str) -> String {
    paths::fill(pattern, |_| links::encoded(course))
}

fn title(course: &Workspace) -> &str {
    let title = course.spec.pretty_name.as_str();
    if title.trim().is_empty() { course.name() } else { title }
}

/// Returns the value of the field with the way of enrolment.
fn way(course: &Workspace) -> &str {
    if course.spec.auto_enroll == AutoEnroll::Disabled { CLOSED } else { course.spec.auto_enroll.as_str() }
}

fn enrolment(view: &View<'_>, course: &Workspace) -> String {
    let way = way(course);
    let words = view.action(&EDIT).fields.get("enrolment").and_then(|field| field.values.get(way));
    shown(words.map_or(way, String::as_str)).into_owned()
}

/// Returns the quota of each person, in one sentence.
fn quota(view: &View<'_>, course: &Workspace) -> String {
    let texts = view.texts();
    let shares = course.spec.quota.shares(&Usage::default());
    let words = shares.iter().filter_map(|share| Some(texts.named(&share.measure, share.limit.as_ref()?)));
    words.collect::<Vec<_>>().join(", ")
}

/// The state of a course: why it is not ready, if it is not.
fn state(view: &View<'_>, course: &Workspace) -> Markup {
    let texts = &view.texts().admin;
    let waits = waits(&course.status.conditions);
    html! {
        @if course.is_terminating() { (texts.terminating) }
        @else if let Some(wait) = waits.first() { span.error { (message(&wait.message)) } }
        @else { (texts.works) }
    }
}

/// Renders the page of a course.
pub fn page(view: &View<'_>, administrator: &Administrator<'_>, course: &Course) -> Markup {
    let texts = view.texts();
    let workspace = &course.workspace;
    let (name, spec) = (workspace.name(), &workspace.spec);
    let instances = spec.quota.instances.to_string();
    let values = [
        ("title", spec.pretty_name.as_str()),
        ("enrolment", way(workspace)),
        ("cpu", spec.quota.cpu.as_str()),
        ("memory", spec.quota.memory.as_str()),
        ("instances", instances.as_str()),
        ("disk", spec.quota.disk.as_ref().map_or("", RawQuantity::as_str)),
    ];
    let hidden = [("uid", workspace.uid())];
    let edit = path(EDIT.path, name);
    let edit = Form { action: &EDIT, path: &edit, hidden: &hidden, values: &values, is_main: true };
    let may = |action: &Action| administrator.may(&action.right) && !workspace.is_terminating();
    let content = html! {
        section aria-labelledby="course" {
            h2 #course { (shown(title(workspace))) }
            p { (state(view, workspace)) }
            p { a href=(CourseTab::Class.path(name)) { (texts.admin.to_course) } }
            @if may(&EDIT) {
                p.hint { (texts.admin.edit_hint) }
                (form(view, &edit))
            }
        }
        section aria-labelledby="lost" {
            h2 #lost { (texts.admin.lost) }
            (losses(view, course))
            @if may(&DELETE) { div.actions { (delete(view, workspace)) } }
        }
    };
    frame(view, Tab::Courses, title(workspace), &content)
}

/// What a deletion of a course would lose.
fn losses(view: &View<'_>, course: &Course) -> Markup {
    let texts = &view.texts().admin;
    let of = |part: &Part<Count>| match part {
        Ok(count) => html! { (number(*count)) },
        Err(reason) => html! { (message(reason)) },
    };
    let all = [
        (&texts.lost_people, &course.people),
        (&texts.lost_templates, &course.templates),
        (&texts.lost_volumes, &course.volumes),
        (&texts.lost_machines, &course.machines),
    ];
    html! { dl { @for (name, part) in all { dt { (name) } dd { (of(part)) } } } }
}

fn delete(view: &View<'_>, workspace: &Workspace) -> Markup {
    let fields = [("uid", workspace.uid())];
    let path = path(DELETE.path, workspace.name());
    let button = Button {
        action: &DELETE,
        path: &path,
        about: title(workspace),
        key: workspace.name(),
        fields: &fields,
        warning: None,
    };
    parts::button(view, &button)
}
