//! The enrolment of a user in a course.

use crate::api::Workspace;
use crate::api::workspace::AutoEnroll;

/// The relation of a user to a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A student.
    User,
    /// A manager.
    Manager,
    /// Asked to join; a manager decides.
    Candidate,
    /// Not enrolled; can join.
    CanJoin,
    /// Not enrolled; can ask to join.
    CanAsk,
}

/// Returns how users enrol themselves in a course; `None` if they cannot.
pub fn enrolment(workspace: &Workspace) -> Option<Part> {
    let is_there = !workspace.is_terminating() && workspace.malformed.is_none();
    match workspace.spec.auto_enroll {
        AutoEnroll::Immediate if is_there => Some(Part::CanJoin),
        AutoEnroll::WithApproval if is_there => Some(Part::CanAsk),
        _ => None,
    }
}
