//! The texts that the pages of a course share.

use crate::controllers::dashboard::texts::declare::catalogue;

catalogue! {
    /// The tabs of a course.
    pub struct CoursePages;
    String: tabs, class, people, templates, volumes, exams, announcements, managed;
}
