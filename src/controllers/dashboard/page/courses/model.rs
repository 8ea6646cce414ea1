//! What the page of the courses shows.

use crate::api::Workspace;
use crate::api::tenant::{Role, TenantKind};
use crate::api::usage::{Limits, Share, Usage};
use crate::api::workspace::AutoEnroll;
use crate::controllers::dashboard::page::student::Student;

/// The page of the courses.
#[derive(Debug, Clone, Default)]
pub struct Courses {
    /// Those that the user is in, or asks to be.
    pub mine: Vec<Course>,
    /// Those that he can join.
    pub others: Vec<Course>,
}

/// What a user is in a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// He takes it.
    User,
    /// He manages it.
    Manager,
    /// He has asked to be in it.
    Candidate,
    /// He can be in it as soon as he asks.
    CanJoin,
    /// He can ask to be in it.
    CanAsk,
}

/// A course.
#[derive(Debug, Clone)]
pub struct Course {
    /// Its name.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// What the user is in it.
    pub part: Part,
    /// Whether the laboratory does not enrol him.
    pub is_failing: bool,
    /// What it gives to each of its users.
    pub gives: Vec<Share>,
    /// Whether the user can change it now: join, ask, leave.
    pub can_change: bool,
}

impl Courses {
    /// The page of a user.
    pub fn of(student: &Student<'_>) -> Self {
        let tenant = student.tenant();
        let can_change = student.may::<TenantKind>("", "patch");
        let find = |name: &str| student.workspaces().find(|workspace| workspace.name() == name);
        let mine = tenant.spec.workspaces.iter().filter_map(|entry| {
            let part = match entry.role {
                Role::User => Part::User,
                Role::Manager => Part::Manager,
                Role::Candidate => Part::Candidate,
                Role::Other(_) => return None,
            };
            // Who leaves a course that nobody can join does not come back; and a manager is one by somebody else.
            let workspace = find(&entry.name);
            let is_open = workspace.is_some_and(|workspace| joins(workspace).is_some());
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
            let part = joins(workspace).filter(|_| tenant.spec.role_in(workspace.name()).is_none())?;
            Some(Course {
                name: workspace.name().to_owned(),
                title: student.course(workspace.name()),
                part,
                is_failing: false,
                gives: gives(workspace),
                can_change,
            })
        });
        let sorted = |courses: &mut Vec<Course>| {
            courses.sort_by_cached_key(|course| (course.title.to_lowercase(), course.name.clone()));
        };
        let (mut mine, mut others): (Vec<_>, Vec<_>) = (mine.collect(), others.collect());
        sorted(&mut mine);
        sorted(&mut others);
        Self { mine, others }
    }
}

/// How a user comes into a course by himself; `None` if he does not.
fn joins(workspace: &Workspace) -> Option<Part> {
    let is_there = !workspace.is_terminating() && workspace.malformed.is_none();
    match workspace.spec.auto_enroll {
        AutoEnroll::Immediate if is_there => Some(Part::CanJoin),
        AutoEnroll::WithApproval if is_there => Some(Part::CanAsk),
        _ => None,
    }
}

/// What a course gives to each of its users.
fn gives(workspace: &Workspace) -> Vec<Share> {
    let shares = Limits::from(&workspace.spec.quota).shares(&Usage::default());
    shares.into_iter().filter(|share| share.limit.is_some()).collect()
}
