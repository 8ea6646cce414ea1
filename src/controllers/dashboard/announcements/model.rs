//! The order of Announcements, and those that are shown: pure functions.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::Announcement;
use crate::controllers::dashboard::student::Student;

/// The maximum number of Announcements on the first page. Older ones are left out.
const MOST_SHOWN: usize = 10;

/// An Announcement on the first page.
#[derive(Debug, Clone)]
pub struct Published {
    /// The title of its course; `None` if it is for everyone.
    pub course: Option<String>,
    /// The Announcement.
    pub announcement: Arc<Announcement>,
}

impl Published {
    /// Returns the Announcements that the first page of a user shows now.
    pub fn all(student: &Student<'_>, now: Timestamp) -> Vec<Self> {
        let course = |namespace: &str| {
            let is_of = |of: &&crate::api::Workspace| of.status.namespace.name == namespace;
            student.workspaces().find(is_of).map(|of| student.course(of.name()))
        };
        let shown = student.announcements().iter().filter(|of| is_current(of, now)).take(MOST_SHOWN);
        shown.map(|of| Self { course: course(of.namespace()), announcement: Arc::clone(of) }).collect()
    }
}

/// Whether an Announcement is shown: it has a title, and its time has not passed.
pub fn is_current(of: &Announcement, now: Timestamp) -> bool {
    !of.spec.title.is_empty() && of.spec.until.as_ref().is_none_or(|until| until.0 > now)
}

/// Sorts Announcements, the newest one first.
pub fn sorted(all: impl IntoIterator<Item = Arc<Announcement>>) -> Vec<Arc<Announcement>> {
    let mut all: Vec<Arc<Announcement>> = all.into_iter().collect();
    all.sort_by_cached_key(|of| {
        let created = of.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (Reverse(created), of.name().to_owned())
    });
    all
}
