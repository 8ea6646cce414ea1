//! The actions on people.
//!
//! The webhook lets only administrators change these members of another user's Tenant. Managers may patch Tenants, too,
//! but not delete them: so the pages offer these actions to users who may delete Tenants.

#![expect(clippy::unnecessary_wraps, reason = "all plans have one type")]

use serde_json::{Value, json};

use crate::api::names::check_dns_label;
use crate::api::tenant::TenantKind;
use crate::controllers::dashboard::action::entry::{
    Action, Field, Form, Input, Patch, Place, Plan, Right, Target,
};
use crate::controllers::dashboard::action::json_patch::{append, remove};
use crate::controllers::dashboard::admin::quota::{MACHINES, OPTIONAL, Problems, REQUIRED, members};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::plan::KindInfo;
use crate::runtime::{ObjectKey, clock};

const TARGET: Target = Target { kind: KindInfo::of::<TenantKind>(), key };
/// The right of administrators, see above.
const RIGHT: Right = Right::to::<TenantKind>("delete");
/// The maximum number of characters of the name of a course.
const MOST_OF_NAME: usize = 53;
/// The roles in a course.
const ROLES: &[&str] = &["user", "manager"];
/// The problems of the quota of a person. It has no disk.
const QUOTA: Problems = [Problem::QuotaCpu, Problem::QuotaMemory, Problem::QuotaDisk, Problem::QuotaMachines];
/// The problems of the quota of the personal workspace.
const PERSONAL: Problems = [Problem::OwnCpu, Problem::OwnMemory, Problem::OwnDisk, Problem::OwnMachines];

const fn action(
    name: &'static str,
    path: &'static str,
    place: Place,
    fields: &'static [Field],
    plan: fn(&Value, &Form<'_>) -> Patch<Value>,
) -> Action {
    let plan = Plan::Patch(TARGET, plan);
    Action { name, path, page: paths::ADMIN_PERSON, right: RIGHT, place, fields, plan }
}

const fn field(name: &'static str, id: &'static str, input: Input) -> Field {
    Field { name, id, input }
}

/// Keeps the personal namespace, as a login does.
pub const KEEP: Action = action("admin.person.keep", "/admin/people/{user}/keep", Place::Card, &[], keep);
/// Replaces the quota of the courses.
pub const LIMIT: Action = action(
    "admin.person.limit",
    "/admin/people/{user}/limit",
    Place::Section,
    &[
        field("cpu", "quota-cpu", REQUIRED),
        field("memory", "quota-memory", REQUIRED),
        field("instances", "quota-instances", MACHINES),
    ],
    limit,
);
/// Restores the quota of the courses, also of a person who was disabled.
pub const RESTORE: Action =
    action("admin.person.restore", "/admin/people/{user}/restore", Place::Card, &[], restore);
/// Disables a person: the quota is zero.
pub const DISABLE: Action =
    action("admin.person.disable", "/admin/people/{user}/disable", Place::Question, &[], disable);
/// Gives a personal workspace, or changes its quota.
pub const GIVE: Action = action(
    "admin.person.give",
    "/admin/people/{user}/give",
    Place::Section,
    &[
        field("cpu", "own-cpu", REQUIRED),
        field("memory", "own-memory", REQUIRED),
        field("instances", "own-instances", MACHINES),
        field("disk", "own-disk", OPTIONAL),
    ],
    give,
);
/// Takes the personal workspace away.
pub const TAKE: Action = action("admin.person.take", "/admin/people/{user}/take", Place::Question, &[], take);
/// Enrols a person in a course, or changes the role.
pub const ENROL: Action = action(
    "admin.person.enrol",
    "/admin/people/{user}/enrol",
    Place::Section,
    &[
        field("course", "enrol-course", Input::Line { max: MOST_OF_NAME, pattern: "" }),
        field("role", "enrol-role", Input::OneOf(ROLES)),
    ],
    enrol,
);
/// Removes a person from a course.
pub const REMOVE: Action =
    action("admin.person.remove", "/admin/people/{user}/remove", Place::Question, &[], removal);

/// All actions on people.
pub const ACTIONS: &[&Action] = &[&KEEP, &LIMIT, &RESTORE, &DISABLE, &GIVE, &TAKE, &ENROL, &REMOVE];

/// Returns the Tenant of the path.
fn key(form: &Form<'_>) -> Option<ObjectKey> {
    let key = ObjectKey::new("", form.parameters.get("user"));
    key.check().is_ok().then_some(key)
}

/// Returns the entries of the courses of a Tenant.
fn entries(tenant: &Value) -> &[Value] {
    tenant["spec"]["workspaces"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the position of the entry of a course, and the entry.
fn entry<'t>(tenant: &'t Value, course: &str) -> Option<(usize, &'t Value)> {
    entries(tenant).iter().enumerate().find(|(_, entry)| entry["name"] == course)
}

fn keep(_: &Value, _: &Form<'_>) -> Patch<Value> {
    Ok(Some(json!({"spec": {"lastLogin": clock::rfc3339(clock::now())}})))
}

fn limit(_: &Value, form: &Form<'_>) -> Patch<Value> {
    Ok(Some(json!({"spec": {"quota": members(form, false, QUOTA)?}})))
}

fn restore(tenant: &Value, _: &Form<'_>) -> Patch<Value> {
    let has_own = !tenant["spec"]["quota"].is_null();
    Ok(has_own.then(|| json!({"spec": {"quota": null}})))
}

fn disable(_: &Value, _: &Form<'_>) -> Patch<Value> {
    Ok(Some(json!({"spec": {"quota": {"cpu": "0", "memory": "0", "instances": 0}}})))
}

fn give(_: &Value, form: &Form<'_>) -> Patch<Value> {
    Ok(Some(json!({"spec": {"personalWorkspace": members(form, true, PERSONAL)?}})))
}

fn take(tenant: &Value, _: &Form<'_>) -> Patch<Value> {
    let spec = &tenant["spec"];
    let has_one = !spec["personalWorkspace"].is_null() || spec["createPersonalWorkspace"] == true;
    Ok(has_one.then(|| json!({"spec": {"personalWorkspace": null, "createPersonalWorkspace": null}})))
}

fn enrol(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    let (course, role) = (form.get("course").trim(), form.get("role"));
    if check_dns_label(course).is_err() {
        return Err(Problem::EnrolCourse);
    }
    if !ROLES.contains(&role) {
        return Err(Problem::Form);
    }
    let operations = match entry(tenant, course) {
        None => append("workspaces", entries(tenant).is_empty(), json!({"name": course, "role": role})),
        Some((_, entry)) if entry["role"] == role => return Ok(None),
        Some((at, _)) => {
            vec![json!({"op": "replace", "path": format!("/spec/workspaces/{at}/role"), "value": role})]
        }
    };
    Ok(Some(operations.into()))
}

fn removal(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    let found = entry(tenant, form.get("course"));
    Ok(found.map(|(at, _)| remove("workspaces", at).into()))
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::controllers::dashboard::http::fields::Fields;

    fn form(fields: &str) -> Form<'static> {
        Form { fields: Fields::parse(fields.as_bytes()), ..Form::default() }
    }

    fn tenant() -> Value {
        let courses = json!([{"name": "tea", "role": "candidate"}, {"name": "net", "role": "user"}]);
        json!({"spec": {"workspaces": courses, "quota": {"cpu": "1"}}})
    }

    #[test]
    fn a_person_is_enrolled_once_and_a_role_is_replaced() {
        let enrolled = |fields: &str| enrol(&tenant(), &form(fields));
        let added =
            json!([{"op": "add", "path": "/spec/workspaces/-", "value": {"name": "os", "role": "user"}}]);
        assert_eq!(enrolled("course=os&role=user"), Ok(Some(added)));
        let replaced = json!([{"op": "replace", "path": "/spec/workspaces/0/role", "value": "manager"}]);
        assert_eq!(enrolled("course=tea&role=manager"), Ok(Some(replaced)));
        assert_eq!(enrolled("course=net&role=user"), Ok(None));
        assert_eq!(enrolled("course=Net&role=user"), Err(Problem::EnrolCourse));
        assert_eq!(enrolled("course=net&role=root"), Err(Problem::Form));
        let first =
            json!([{"op": "add", "path": "/spec/workspaces", "value": [{"name": "os", "role": "user"}]}]);
        assert_eq!(enrol(&json!({"spec": {}}), &form("course=os&role=user")), Ok(Some(first)));
    }

    #[test]
    fn a_person_is_removed_from_a_course_once() {
        let removed = json!([{"op": "remove", "path": "/spec/workspaces/1"}]);
        assert_eq!(removal(&tenant(), &form("course=net")), Ok(Some(removed)));
        assert_eq!(removal(&tenant(), &form("course=os")), Ok(None));
    }

    #[test]
    fn a_restored_quota_is_restored_once() {
        assert_eq!(restore(&tenant(), &form("")), Ok(Some(json!({"spec": {"quota": null}}))));
        assert_eq!(restore(&json!({"spec": {}}), &form("")), Ok(None));
        assert_eq!(take(&tenant(), &form("")), Ok(None));
        assert!(
            take(&json!({"spec": {"createPersonalWorkspace": true}}), &form(""))
                .is_ok_and(|patch| patch.is_some())
        );
    }
}
