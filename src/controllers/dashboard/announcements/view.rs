//! The HTML of Announcements.

use std::sync::Arc;

use maud::{Markup, html};

use super::actions::{PUBLISH, PUBLISH_FOR_EVERYONE, WITHDRAW, WITHDRAW_FROM_EVERYONE};
use super::model::{Published, is_current};
use crate::api::Announcement;
use crate::api::announcement::MOST_OF_TEXT;
use crate::api::shown::{cut, escaped_lines, shown};
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::course::{Course, Tab};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::Rights;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{links, time};
use crate::runtime::clock;

/// The number of days that an Announcement is shown, unless its author chooses another one.
const DAYS: &str = "7";

/// The part of the first page; nothing without a current Announcement.
pub fn first_page(view: &View<'_>, all: &[Published]) -> Markup {
    if all.is_empty() {
        return Markup::default();
    }
    html! {
        section.announcements aria-labelledby="announcements" {
            h2 #announcements { (view.texts().announcements.heading) }
            @for of in all { (announcement(view, &of.announcement, of.course.as_deref())) }
        }
    }
}

/// An Announcement. It is plain text.
fn announcement(view: &View<'_>, of: &Announcement, course: Option<&str>) -> Markup {
    let created = of.metadata.creation_timestamp.as_ref();
    html! {
        article.notice id=(parts::id("announcement", of.uid())) {
            h3 { (shown(&of.spec.title)) }
            p.description { (escaped_lines(&cut(&of.spec.text, MOST_OF_TEXT))) }
            p.soft {
                @if let Some(course) = course { (shown(course)) ", " }
                @if let Some(created) = created { (time::ago(view, created.0)) }
            }
        }
    }
}

/// The place of a section: the namespace of the Announcements, with the actions and their paths.
struct Section<'a> {
    namespace: &'a str,
    publish: (&'static Action, String),
    withdraw: (&'static Action, String),
}

/// Renders the page of a course.
pub fn of_course(view: &View<'_>, rights: &dyn Rights, course: &Course, all: &[Arc<Announcement>]) -> Markup {
    let path = |action: &Action| paths::fill(action.path, |_| links::encoded(course.name()));
    let of = Section {
        namespace: &course.namespace,
        publish: (&PUBLISH, path(&PUBLISH)),
        withdraw: (&WITHDRAW, path(&WITHDRAW)),
    };
    let texts = &view.texts().announcements;
    let content = html! {
        section aria-labelledby="announcements" {
            h2 #announcements { (texts.heading) }
            p.hint { (texts.course_hint) }
            (section(view, rights, &of, all))
        }
    };
    frame(view, course, Tab::Announcements, &Markup::default(), &content)
}

/// The section for everyone, on the page of administrators.
pub fn for_everyone(
    view: &View<'_>,
    rights: &dyn Rights,
    namespace: &str,
    all: &[Arc<Announcement>],
) -> Markup {
    let of = Section {
        namespace,
        publish: (&PUBLISH_FOR_EVERYONE, PUBLISH_FOR_EVERYONE.path.to_owned()),
        withdraw: (&WITHDRAW_FROM_EVERYONE, WITHDRAW_FROM_EVERYONE.path.to_owned()),
    };
    let texts = &view.texts().announcements;
    html! {
        section aria-labelledby="announcements" {
            h2 #announcements { (texts.for_everyone) }
            p.hint { (texts.everyone_hint) }
            (section(view, rights, &of, all))
        }
    }
}

fn section(view: &View<'_>, rights: &dyn Rights, of: &Section<'_>, all: &[Arc<Announcement>]) -> Markup {
    let (publish, path) = &of.publish;
    let name = format!("announcement-{}", view.fresh);
    let at = clock::rfc3339(view.now);
    let hidden = [("namespace", of.namespace), ("name", name.as_str()), ("at", at.as_str())];
    let values = [("days", DAYS)];
    let new = Form { action: publish, path, hidden: &hidden, values: &values, is_main: true };
    html! {
        @if all.is_empty() { p.empty { (view.texts().announcements.none) } }
        ul.rows { @for one in all { li { (row(view, rights, of, one)) } } }
        @if rights.may(of.namespace, &publish.right) { (form(view, &new)) }
    }
}

/// An Announcement with its end, and the button that withdraws it.
fn row(view: &View<'_>, rights: &dyn Rights, of: &Section<'_>, one: &Announcement) -> Markup {
    let texts = &view.texts().announcements;
    let (withdraw, path) = &of.withdraw;
    let fields = [("uid", one.uid()), ("namespace", one.namespace()), ("name", one.name())];
    let button = Button {
        action: withdraw,
        path,
        about: &one.spec.title,
        key: one.name(),
        fields: &fields,
        warning: None,
    };
    html! {
        (announcement(view, one, None))
        p.soft {
            @match &one.spec.until {
                None => { (texts.no_end) },
                Some(until) if is_current(one, view.now) => { (texts.until) " " (time::ago(view, until.0)) },
                Some(until) => { (texts.over) " " (time::ago(view, until.0)) },
            }
        }
        @if rights.may(of.namespace, &withdraw.right) { div.actions { (parts::button(view, &button)) } }
    }
}
