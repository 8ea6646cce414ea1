//! The actions of the courses page.

use serde_json::json;

use super::enrolment::{Part, enrolment};
use crate::api::Workspace;
use crate::api::tenant::{Tenant, TenantKind};
use crate::controllers::dashboard::action::entry::{Action, Enrolment, Form, Place, Plan, Right};
use crate::controllers::dashboard::action::json_patch::{append, remove};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;

/// Joins a course that everyone can join.
pub const JOIN: Action = action("course.join", "/courses/{course}/join", Place::Main, Plan::Enrol(enrol));
/// Asks to join a course that requires the approval of a manager.
pub const ASK: Action = action("course.ask", "/courses/{course}/ask", Place::Main, Plan::Enrol(enrol));
/// Withdraws the request to join a course.
pub const WITHDRAW: Action =
    action("course.withdraw", "/courses/{course}/withdraw", Place::Card, Plan::PatchTenant(leave));
/// Leaves a course.
pub const LEAVE: Action =
    action("course.leave", "/courses/{course}/leave", Place::Question, Plan::PatchTenant(leave));

/// All actions of the page.
pub const ACTIONS: &[&Action] = &[&JOIN, &ASK, &WITHDRAW, &LEAVE];

const fn action(name: &'static str, path: &'static str, place: Place, plan: Plan) -> Action {
    let right = Right::to::<TenantKind>("patch");
    Action { name, path, page: paths::COURSES, right, place, fields: &[], plan }
}

/// Returns the action that changes the relation of a user to a course.
pub const fn of(part: Part) -> Option<&'static Action> {
    match part {
        Part::CanJoin => Some(&JOIN),
        Part::CanAsk => Some(&ASK),
        Part::Candidate => Some(&WITHDRAW),
        Part::User => Some(&LEAVE),
        Part::Manager => None,
    }
}

/// Plans an enrolment. The current Workspace decides whether a manager has to approve, not the page, which may be
/// older.
fn enrol(tenant: &Tenant, workspace: &Workspace) -> Result<Enrolment, Problem> {
    let (done, role) = match enrolment(workspace) {
        Some(Part::CanJoin) => (JOIN.name, "user"),
        Some(Part::CanAsk) => (ASK.name, "candidate"),
        _ => return Err(Problem::Closed),
    };
    let entries = &tenant.spec.workspaces;
    let is_enrolled = entries.iter().any(|entry| entry.name == workspace.name());
    let entry = json!({"name": workspace.name(), "role": role});
    let operations = (!is_enrolled).then(|| append("workspaces", entries.is_empty(), entry));
    Ok(Enrolment { done, operations })
}

fn leave(tenant: &Tenant, form: &Form<'_>) -> Result<Option<Vec<serde_json::Value>>, Problem> {
    let course = form.course().ok_or(Problem::Form)?;
    let position = tenant.spec.workspaces.iter().position(|entry| entry.name == course);
    Ok(position.map(|position| remove("workspaces", position)))
}
