//! The model of the courses page.

use super::actions;
use super::enrolment::{Part, enrolment};
use crate::api::Workspace;
use crate::api::names::CanonicalName;
use crate::api::tenant::{Role, TenantKind};
use crate::api::usage::{Share, Usage};
use crate::api::workspace::WorkspaceKind;
use crate::controllers::dashboard::action::entry::{Action, Right};
use crate::controllers::dashboard::student::Student;

/// The courses page.
#[derive(Debug, Clone, Default)]
pub struct Courses {
    /// The names and titles of the courses whose class the user can see, as a manager or an administrator.
    pub managed: Vec<(String, String)>,
    /// The courses that the user is in, or asked to join.
    pub mine: Vec<Course>,
    /// The courses that the user can join.
    pub others: Vec<Course>,
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
    /// The action that the user can do now: join it, ask to join it, or leave it.
    pub action: Option<&'static Action>,
}

impl Courses {
    /// Returns the page of a user.
    pub fn of(student: &Student<'_>) -> Self {
        let tenant = student.tenant();
        let action = |part| actions::of(part).filter(|action| student.may(&action.right, ""));
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
                action: action(part).filter(|_| is_open || part == Part::Candidate),
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
                action: action(part),
            })
        });
        Self { managed: managed(student), mine: sorted(mine), others: sorted(others) }
    }
}

/// Returns the names and titles of the courses whose class the user can see: those that they manage, or all of them for a
/// user who may change Workspaces.
pub fn managed(student: &Student<'_>) -> Vec<(String, String)> {
    // The rights in the whole cluster are among those of each namespace.
    let namespace = CanonicalName::of(student.tenant().name()).tenant_namespace();
    if !student.may(&Right::to::<TenantKind>("list"), &namespace) {
        return Vec::new();
    }
    let is_administrator = student.may(&Right::to::<WorkspaceKind>("patch"), &namespace);
    let tenant = &student.tenant().spec;
    let is_managed = |name: &str| is_administrator || tenant.role_in(name) == Some(&Role::Manager);
    let names = student.workspaces().map(Workspace::name).filter(|name| is_managed(name));
    let mut courses: Vec<(String, String)> =
        names.map(|name| (name.to_owned(), student.course(name))).collect();
    courses.sort_by_cached_key(|(name, title)| (title.to_lowercase(), name.clone()));
    courses
}

/// Collects courses, sorted by title.
fn sorted(courses: impl Iterator<Item = Course>) -> Vec<Course> {
    let mut courses: Vec<Course> = courses.collect();
    courses.sort_by_cached_key(|course| (course.title.to_lowercase(), course.name.clone()));
    courses
}

/// Returns the quota of each user of a course.
fn gives(workspace: &Workspace) -> Vec<Share> {
    let shares = workspace.spec.quota.shares(&Usage::default());
    shares.into_iter().filter(|share| share.limit.is_some()).collect()
}
