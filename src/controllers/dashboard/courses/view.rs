//! The HTML of the courses page.

use maud::{Markup, html};

use super::enrolment::Part;
use super::model::{Course, Courses};
use crate::api::shown::{escaped, shown};
use crate::api::usage::Share;
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::course::Tab;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{layout, links};

/// Renders the page.
pub fn courses(view: &View<'_>, courses: &Courses) -> Markup {
    let texts = view.texts();
    let announced = html! {
        @for course in &courses.mine {
            span id=(parts::id("said", &course.name)) aria-atomic="true" { (shown(&course.title)) ": " (explanation(view, course.part)) " " }
        }
    };
    let content = html! {
        h1 { (texts.courses) }
        @if !courses.managed.is_empty() {
            section aria-labelledby="managed" {
                h2 #managed { (texts.course_pages.managed) }
                ul.rows {
                    @for (name, title) in &courses.managed {
                        li { a href=(Tab::Class.path(name)) { (shown(title)) } }
                    }
                }
            }
        }
        section aria-labelledby="mine" {
            h2 #mine { (texts.my_courses) }
            @if courses.mine.is_empty() { p.empty { (texts.no_courses) } }
            ul.cards { @for of in &courses.mine { li { (course(view, of, 3)) } } }
        }
        section aria-labelledby="others" {
            h2 #others { (texts.other_courses) }
            @if courses.others.is_empty() { p.empty { (texts.no_other_courses) } }
            ul.cards { @for of in &courses.others { li { (course(view, of, 3)) } } }
        }
    };
    layout::page(view, &texts.courses, &announced, &content)
}

/// Returns the sentence about the relation of the user to a course.
fn explanation(view: &View<'_>, part: Part) -> &'static str {
    let texts = view.texts();
    match part {
        Part::User => &texts.role_user,
        Part::Manager => &texts.role_manager,
        Part::Candidate => &texts.role_candidate,
        Part::CanJoin => &texts.join_hint,
        Part::CanAsk => &texts.ask_hint,
    }
}

/// A course, with a heading of this level.
pub fn course(view: &View<'_>, course: &Course, level: u8) -> Markup {
    let texts = view.texts();
    html! {
        article id=(parts::id("course", &course.name)) {
            @if level == 2 { h2 { (shown(&course.title)) } } @else { h3 { (shown(&course.title)) } }
            p { (explanation(view, course.part)) }
            @if course.is_failing { p.error { (texts.failing) } }
            @if !course.gives.is_empty() { p.soft { (texts.gives) ": " (escaped(&gives(view, &course.gives))) "." } }
            @if let Some(action) = course.action { div.actions { (change(view, course, action)) } }
        }
    }
}

/// Returns the quota of each user of a course, in one sentence.
fn gives(view: &View<'_>, shares: &[Share]) -> String {
    let texts = view.texts();
    let one = |share: &Share| Some(texts.named(&share.measure, share.limit.as_ref()?));
    shares.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// The button of an action on a course.
fn change(view: &View<'_>, course: &Course, action: &Action) -> Markup {
    let path = paths::fill(action.path, |_| links::encoded(&course.name));
    let (about, key) = (course.title.as_str(), course.name.as_str());
    parts::button(view, &Button { action, path: &path, about, key, fields: &[], warning: None })
}
