//! The HTML that all pages of administrators share.

use maud::{Markup, html};

use crate::api::shown::message;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::{Rights, Student};
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::ui::layout;
use crate::controllers::dashboard::ui::view::View;

/// The pages of administrators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// The overview.
    Overview,
    /// The courses.
    Courses,
    /// The people.
    People,
    /// The nodes and the image lists.
    Cluster,
}

impl Tab {
    /// All tabs, in their order.
    const ALL: [Self; 4] = [Self::Overview, Self::Courses, Self::People, Self::Cluster];

    const fn path(self) -> &'static str {
        match self {
            Self::Overview => paths::ADMIN,
            Self::Courses => paths::ADMIN_COURSES,
            Self::People => paths::ADMIN_PEOPLE,
            Self::Cluster => paths::ADMIN_CLUSTER,
        }
    }

    fn name(self, texts: &'static Texts) -> &'static str {
        match self {
            Self::Overview => &texts.admin.overview,
            Self::Courses => &texts.courses,
            Self::People => &texts.course_pages.people,
            Self::Cluster => &texts.admin.cluster,
        }
    }
}

/// The rights of the user of a page. Rights in the whole cluster are among those in the namespace of the installation.
#[derive(Clone, Copy)]
pub struct Administrator<'a> {
    /// The rights.
    pub rights: &'a dyn Rights,
    /// The namespace of the installation.
    pub namespace: &'a str,
}

impl<'a> Administrator<'a> {
    /// Returns the rights of the user of a page.
    pub fn of(student: &Student<'a>) -> Self {
        Self { rights: student.rights, namespace: &student.settings.namespace }
    }

    /// Whether the user has a right in the whole cluster.
    pub fn may(&self, right: &Right) -> bool {
        self.rights.may(self.namespace, right)
    }
}

/// Renders a page: the tabs and the content, whose headings begin at level 2. `title` names the page below a tab; it is
/// empty for the page of the tab itself.
pub fn frame(view: &View<'_>, tab: Tab, title: &str, content: &Markup) -> Markup {
    let texts = view.texts();
    let name = if title.is_empty() { tab.name(texts) } else { title };
    let whole = format!("{name} – {}", texts.admin.heading);
    let content = html! {
        h1 { (texts.admin.heading) }
        nav.tabs aria-label=(texts.admin.tabs) {
            ul {
                @for other in Tab::ALL {
                    // A page below a tab belongs to it, and its link leads back.
                    @let current = (other == tab).then_some(if other.path() == view.path { "page" } else { "true" });
                    li { a href=(other.path()) aria-current=[current] { (other.name(texts)) } }
                }
            }
        }
        (content)
    };
    layout::page(view, &whole, &Markup::default(), &content)
}

/// The sentence about a part of a page that could not be read, with the reason.
pub fn unread(view: &View<'_>, reason: &str) -> Markup {
    html! { p.error { (view.texts().admin.not_read) " " (message(reason)) } }
}

/// A group with a table. On narrow screens, only the group scrolls. Its name is the caption. It is no landmark, because the
/// section around it has the same name.
pub fn group(caption: &str, table: &Markup) -> Markup {
    html! { div.scroll role="group" aria-label=(caption) tabindex="0" { (table) } }
}
