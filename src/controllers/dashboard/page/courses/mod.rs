//! The page of the courses: join, ask, leave.

mod model;

use maud::{Markup, html};

pub use model::{Course, Courses, Part};

use super::parts::{self, Button};
use super::view::View;
use super::{amounts, layout, links};
use crate::api::shown::{escaped, shown};
use crate::api::usage::Share;

/// The page of the courses.
pub fn courses(view: &View<'_>, courses: &Courses) -> Markup {
    let words = view.words();
    let announced = html! {
        @for course in &courses.mine { span { (shown(&course.title)) ": " (said(view, course.part)) " " } }
    };
    let content = html! {
        h1 { (words.courses) }
        section aria-labelledby="mine" {
            h2 #mine { (words.my_courses) }
            @if courses.mine.is_empty() { p.empty { (words.no_courses) } }
            ul.cards { @for of in &courses.mine { li { (course(view, of)) } } }
        }
        section aria-labelledby="others" {
            h2 #others { (words.other_courses) }
            @if courses.others.is_empty() { p.empty { (words.no_other_courses) } }
            ul.cards { @for of in &courses.others { li { (course(view, of)) } } }
        }
    };
    layout::page(view, words.courses, &announced, &content)
}

/// What a user is in a course, or can become.
fn said(view: &View<'_>, part: Part) -> &'static str {
    let words = view.words();
    match part {
        Part::User => words.role_user,
        Part::Manager => words.role_manager,
        Part::Candidate => words.role_candidate,
        Part::CanJoin => words.join_hint,
        Part::CanAsk => words.ask_hint,
    }
}

fn course(view: &View<'_>, course: &Course) -> Markup {
    let words = view.words();
    html! {
        article id=(parts::id("course", &course.name)) {
            h3 { (shown(&course.title)) }
            p { (said(view, course.part)) }
            @if course.is_failing { p.error { (words.failing) } }
            @if !course.gives.is_empty() { p.soft { (words.gives) ": " (escaped(&gives(view, &course.gives))) "." } }
            @if course.can_change { div.actions { (change(view, course)) } }
        }
    }
}

/// What a course gives, in one sentence.
fn gives(view: &View<'_>, shares: &[Share]) -> String {
    let words = view.words();
    let one = |share: &Share| Some(amounts::named(words, &share.measure, share.limit.as_ref()?));
    shares.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// Join, ask, withdraw or leave.
fn change(view: &View<'_>, course: &Course) -> Markup {
    let words = view.words();
    let to = |action: &str| links::path(&["courses", &course.name, action]);
    let (join, leave) = (to("join"), to("leave"));
    let plain = |action: &str, label, class| {
        parts::button(&Button { action, label, about: &course.title, class, fields: &[] })
    };
    html! {
        @match course.part {
            Part::CanJoin => { (plain(&join, words.join, "main")) },
            Part::CanAsk => { (plain(&join, words.ask, "main")) },
            Part::Candidate => { (plain(&leave, words.withdraw, "")) },
            Part::User | Part::Manager => {
                @let question = html! { p { (words.leave_question) } };
                @let yes = Button { action: &leave, label: words.leave, about: &course.title, class: "danger", fields: &[] };
                (parts::confirm(view, &parts::id("leave", &course.name), words.leave, &course.title, &question, &yes))
            },
        }
    }
}
