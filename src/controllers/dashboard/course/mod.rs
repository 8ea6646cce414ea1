//! The frame of the pages of a course, for its managers and for administrators: its reads, its heading and its tabs.

mod read;
pub mod view;

use std::sync::Arc;

use jiff::Timestamp;

use super::history::model::{History, Recorded};
use super::paths;
use super::student::read::{NamespaceRules, Own};
use super::ui::links;
use crate::api::Workspace;
use crate::api::why::Event;

/// A course, as the user may read it. Its pages do not require that the user has a Tenant.
pub struct Course {
    /// The user's Tenant with the Workspace, and the rights in the namespace of the course. Pages add their topics.
    pub own: Own,
    /// The Workspace.
    pub workspace: Arc<Workspace>,
    /// The namespace of its Templates and volumes.
    pub namespace: String,
    /// The rights of the user in that namespace. Rights in the whole cluster are among them.
    pub rules: NamespaceRules,
    /// The fields that tell its history.
    pub recorded: Recorded,
}

impl Course {
    /// Returns the name.
    pub fn name(&self) -> &str {
        self.workspace.name()
    }

    /// Returns the title.
    pub fn title(&self) -> &str {
        let title = self.workspace.spec.pretty_name.as_str();
        if title.trim().is_empty() { self.name() } else { title }
    }

    /// Returns who did what with it, from the object and these events.
    pub fn history(&self, events: Result<Vec<Event>, String>, now: Timestamp) -> History {
        History::of(&self.recorded, &self.workspace.status.conditions, &[], events, now)
    }
}

/// The pages of a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// The machines of its students.
    Class,
    /// Its people.
    People,
    /// Its Templates.
    Templates,
    /// Its shared volumes.
    Volumes,
    /// Its exams.
    Exams,
    /// Its Announcements.
    Announcements,
}

impl Tab {
    /// All tabs, in their order.
    const ALL: [Self; 6] =
        [Self::Class, Self::People, Self::Templates, Self::Volumes, Self::Exams, Self::Announcements];

    /// Returns the path of the page of a course.
    pub fn path(self, course: &str) -> String {
        let pattern = match self {
            Self::Class => paths::COURSE,
            Self::People => paths::PEOPLE,
            Self::Templates => paths::TEMPLATES,
            Self::Volumes => paths::VOLUMES,
            Self::Exams => paths::EXAMS,
            Self::Announcements => paths::ANNOUNCEMENTS,
        };
        paths::fill(pattern, |_| links::encoded(course))
    }
}
