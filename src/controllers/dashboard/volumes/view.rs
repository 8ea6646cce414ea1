//! The HTML of the page.

use maud::{Markup, html};

use super::actions::{CREATE, DELETE};
use super::model::{Volume, Volumes};
use crate::api::shown::{self, shown};
use crate::api::usage::Measure;
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::course::{Course, Tab};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::links::encoded;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;

/// Renders the page.
pub fn volumes(view: &View<'_>, course: &Course, page: &Volumes) -> Markup {
    let texts = &view.texts().volumes;
    let announced = html! {
        @for of in &page.volumes {
            span id=(parts::id("said", &of.name)) aria-atomic="true" { (shown(&of.title)) ": " (texts.state.of(of.state)) " " }
        }
    };
    let content = html! {
        h2 { (view.texts().course_pages.volumes) }
        p.soft { (texts.about) }
        @if page.volumes.is_empty() {
            p.empty { (texts.empty) }
        } @else {
            ul.cards { @for of in &page.volumes { li { (volume(view, course, of)) } } }
        }
        @if page.can_create && view.old.is_none() { (create(view, course)) }
    };
    frame(view, course, Tab::Volumes, &announced, &content)
}

fn volume(view: &View<'_>, course: &Course, volume: &Volume) -> Markup {
    let texts = &view.texts().volumes;
    let heading = parts::id("shared", &volume.name);
    html! {
        article aria-labelledby=(heading) {
            h3 id=(heading) { (shown(&volume.title)) }
            p { span.badge.(volume.state.mark()) { (texts.state.of(volume.state)) } " " (size(view, volume)) }
            @if let Some(cause) = &volume.cause { p.said { (shown::message(&cause.message)) } }
            @if volume.used_by.is_empty() {
                p.soft { (texts.unused) }
            } @else {
                p { (texts.used_by) ":" }
                ul { @for (name, title) in &volume.used_by { li { (template(course, name, title)) } } }
            }
            @if volume.can_delete && view.old.is_none() { div.actions { (delete(view, course, volume)) } }
        }
    }
}

fn size(view: &View<'_>, volume: &Volume) -> String {
    match &volume.size {
        Ok(size) => view.texts().quantity(&Measure::Disk, size),
        Err(text) => shown(text).into_owned(),
    }
}

/// The link to a Template of the course.
fn template(course: &Course, name: &str, title: &str) -> Markup {
    let part = |parameter: &str| encoded(if parameter == "course" { course.name() } else { name });
    html! { a href=(paths::fill(paths::TEMPLATE, part)) { (shown(title)) } }
}

/// The button that deletes a volume. A volume that Templates mount would only be marked, so the button says what to do
/// first.
fn delete(view: &View<'_>, course: &Course, volume: &Volume) -> Markup {
    let fields = [
        ("uid", volume.uid.as_str()),
        ("namespace", course.namespace.as_str()),
        ("name", volume.name.as_str()),
    ];
    let path = of_course(DELETE.path, course);
    let button = Button {
        action: &DELETE,
        path: &path,
        about: &volume.title,
        key: &volume.name,
        fields: &fields,
        warning: None,
    };
    if volume.used_by.is_empty() {
        return parts::button(view, &button);
    }
    let id = parts::id("in-use", &volume.name);
    html! {
        div.refused {
            button type="button" disabled aria-describedby=(id) {
                (view.action(&DELETE).label) (parts::unseen(&volume.title))
            }
            p id=(id) { (view.texts().volumes.in_use) }
        }
    }
}

/// The form of a new volume. Its name is hidden, so a form that is sent twice creates one volume.
fn create(view: &View<'_>, course: &Course) -> Markup {
    let (path, name) = (of_course(CREATE.path, course), format!("volume-{}", view.fresh));
    let hidden = [("namespace", course.namespace.as_str()), ("name", name.as_str())];
    let fields =
        Form { action: &CREATE, path: &path, hidden: &hidden, values: &[("size", "10")], is_main: true };
    html! {
        section aria-labelledby="new-volume" {
            h3 #new-volume { (view.texts().volumes.new) }
            (form(view, &fields))
        }
    }
}

/// Returns the path of an action of a course.
fn of_course(pattern: &str, course: &Course) -> String {
    paths::fill(pattern, |_| encoded(course.name()))
}
