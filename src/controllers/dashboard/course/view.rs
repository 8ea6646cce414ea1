//! The HTML that all pages of a course share.

use maud::{Markup, html};

use super::{Course, Tab};
use crate::api::shown::shown;
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::ui::layout;
use crate::controllers::dashboard::ui::view::View;

/// Renders a page of a course: its title, its tabs, and the content, whose headings begin at level 2. See
/// [`layout::page`] for `announced`.
pub fn frame(view: &View<'_>, course: &Course, tab: Tab, announced: &Markup, content: &Markup) -> Markup {
    let texts = view.texts();
    let title = format!("{} – {}", name(texts, tab), course.title());
    let content = html! {
        h1 { (shown(course.title())) }
        nav.tabs aria-label=(texts.course_pages.tabs) {
            ul {
                @for other in Tab::ALL {
                    @let path = other.path(course.name());
                    // A page below a tab belongs to it, and its link leads back.
                    @let current = (other == tab).then_some(if path == view.path { "page" } else { "true" });
                    li { a href=(path) aria-current=[current] { (name(texts, other)) } }
                }
            }
        }
        (content)
    };
    layout::page(view, &title, announced, &content)
}

/// Returns the name of a tab.
fn name(texts: &'static Texts, tab: Tab) -> &'static str {
    let texts = &texts.course_pages;
    match tab {
        Tab::Class => &texts.class,
        Tab::People => &texts.people,
        Tab::Templates => &texts.templates,
        Tab::Volumes => &texts.volumes,
        Tab::Exams => &texts.exams,
        Tab::Announcements => &texts.announcements,
    }
}
