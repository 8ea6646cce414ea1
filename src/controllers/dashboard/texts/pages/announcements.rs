//! The texts of Announcements.

use crate::controllers::dashboard::texts::declare::catalogue;

catalogue! {
    /// The texts of Announcements.
    pub struct AnnouncementTexts;
    String: heading, course_hint, for_everyone, everyone_hint, none, until, over, no_end;
}
