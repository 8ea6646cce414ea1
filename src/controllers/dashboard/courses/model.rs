//! The model of the courses page.

use crate::api::Workspace;
use crate::api::tenant::{Role, TenantKind};
use crate::api::usage::{Share, Usage};
use crate::api::workspace::AutoEnroll;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::student::Student;

/// The courses page.
#[derive(Debug, Clone, Default)]
pub struct Courses {
    /// The courses that the user is in, or asked to join.
    pub mine: Vec<Course>,
    /// The courses that the user can join.
    pub others: Vec<Course>,
}

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

/// A course.
#[derive(Debug, Clone)]
pub struct Course {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The relation of the user to it.
    pub part: Part,
    /// Whether the enrolment fails.
    pub is_failing: bool,
    /// The quota of each of its users.
    pub gives: Vec<Share>,
    /// Whether the user can join it, ask to join it, or leave it now.
    pub can_change: bool,
}

impl Courses {
    /// Returns the page of a user.
    pub fn of(student: &Student<'_>) -> Self {
        let tenant = student.tenant();
        let can_change = student.may(&Right::to::<TenantKind>("patch"), "");
        let mine = tenant.spec.workspaces.iter().filter_map(|entry| {
            let part = match entry.role {
                Role::User => Part::User,
                Role::Manager => Part::Manager,
                Role::Candidate => Part::Candidate,
                Role::Other(_) => return None,
            };
            // A user who leaves a course without enrolment cannot return, and only an administrator makes a manager.
            let workspace = student.workspaces().find(|workspace| workspace.name() == entry.name);
            let is_open = workspace.is_some_and(|workspace| enrolment(workspace).is_some());
            Some(Course {
                name: entry.name.clone(),
                title: student.course(&entry.name),
                part,
                is_failing: tenant.status.failing_workspaces.contains(&entry.name),
                gives: workspace.map_or_else(Vec::new, gives),
                can_change: can_change && part != Part::Manager && (is_open || part == Part::Candidate),
            })
        });
        let others = student.workspaces().filter_map(|workspace| {
            let part = enrolment(workspace).filter(|_| tenant.spec.role_in(workspace.name()).is_none())?;
            Some(Course {
                name: workspace.name().to_owned(),
                title: student.course(workspace.name()),
                part,
                is_failing: false,
                gives: gives(workspace),
                can_change,
            })
        });
        Self { mine: sorted(mine), others: sorted(others) }
    }
}

/// Collects courses, sorted by title.
fn sorted(courses: impl Iterator<Item = Course>) -> Vec<Course> {
    let mut courses: Vec<Course> = courses.collect();
    courses.sort_by_cached_key(|course| (course.title.to_lowercase(), course.name.clone()));
    courses
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

/// Returns the quota of each user of a course.
fn gives(workspace: &Workspace) -> Vec<Share> {
    let shares = workspace.spec.quota.shares(&Usage::default());
    shares.into_iter().filter(|share| share.limit.is_some()).collect()
}
