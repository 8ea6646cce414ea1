//! The actions on courses.

use serde_json::{Value, json};

use crate::api::labels::selector_labels;
use crate::api::names::check_dns_label;
use crate::api::shown::is_control;
use crate::api::workspace::WorkspaceKind;
use crate::controllers::dashboard::action::entry::{
    Action, Field, Form, Input, NewObject, Patch, Place, Plan, Right, Target,
};
use crate::controllers::dashboard::admin::quota::{MACHINES, OPTIONAL, Problems, REQUIRED, members};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::ObjectKey;
use crate::runtime::plan::KindInfo;

const KIND: KindInfo = KindInfo::of::<WorkspaceKind>();
const TARGET: Target = Target { kind: KIND, key };
/// The name of a course. Its namespace has the prefix `workspace-`.
const NAME: &str = "[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?";
/// The maximum number of characters of a name.
const MOST_OF_NAME: usize = 53;
/// The maximum number of characters of a title.
const MOST_OF_TITLE: usize = 200;
/// The value of the field of a course whose students cannot enrol themselves. A form has no empty choice.
pub const CLOSED: &str = "closed";
/// The ways of enrolment.
const ENROLMENTS: &[&str] = &[CLOSED, "withApproval", "immediate"];
/// The problems of a quota.
const QUOTA: Problems = [Problem::QuotaCpu, Problem::QuotaMemory, Problem::QuotaDisk, Problem::QuotaMachines];

const fn field(name: &'static str, id: &'static str, input: Input) -> Field {
    Field { name, id, input }
}

const TITLE: Field = field("title", "course-title", Input::Line { max: MOST_OF_TITLE, pattern: "" });
const ENROLMENT: Field = field("enrolment", "course-enrolment", Input::OneOf(ENROLMENTS));
const CPU: Field = field("cpu", "quota-cpu", REQUIRED);
const MEMORY: Field = field("memory", "quota-memory", REQUIRED);
const INSTANCES: Field = field("instances", "quota-instances", MACHINES);
const DISK: Field = field("disk", "quota-disk", OPTIONAL);

/// Creates a course.
pub const CREATE: Action = Action {
    name: "admin.course.create",
    path: "/admin/create-course",
    page: paths::ADMIN_COURSES,
    right: Right::to::<WorkspaceKind>("create"),
    place: Place::Section,
    fields: &[
        field("course", "course-name", Input::Line { max: MOST_OF_NAME, pattern: NAME }),
        TITLE,
        ENROLMENT,
        CPU,
        MEMORY,
        INSTANCES,
        DISK,
    ],
    plan: Plan::Create(create),
};
/// Changes a course.
pub const EDIT: Action = Action {
    name: "admin.course.edit",
    path: "/admin/courses/{course}/edit",
    page: paths::ADMIN_COURSE,
    right: Right::to::<WorkspaceKind>("patch"),
    place: Place::Section,
    fields: &[TITLE, ENROLMENT, CPU, MEMORY, INSTANCES, DISK],
    plan: Plan::Patch(TARGET, edit),
};
/// Deletes a course.
pub const DELETE: Action = Action {
    name: "admin.course.delete",
    path: "/admin/courses/{course}/delete",
    page: paths::ADMIN_COURSES,
    right: Right::to::<WorkspaceKind>("delete"),
    place: Place::Question,
    fields: &[],
    plan: Plan::Delete(TARGET),
};

/// All actions on courses.
pub const ACTIONS: &[&Action] = &[&CREATE, &EDIT, &DELETE];

/// Returns the Workspace of the path.
fn key(form: &Form<'_>) -> Option<ObjectKey> {
    form.course().map(|name| ObjectKey::new("", name))
}

/// Returns the title, the way of enrolment and the quota.
fn spec(form: &Form<'_>) -> Result<Value, Problem> {
    let title = form.get(TITLE.name).trim();
    if title.is_empty() || title.chars().count() > MOST_OF_TITLE || title.contains(is_control) {
        return Err(Problem::CourseTitle);
    }
    let enrolment = Some(form.get(ENROLMENT.name)).filter(|way| ENROLMENTS.contains(way));
    let enrolment = enrolment.ok_or(Problem::Form)?;
    let enrolment = if enrolment == CLOSED { "" } else { enrolment };
    Ok(json!({"prettyName": title, "autoEnroll": enrolment, "quota": members(form, true, QUOTA)?}))
}

fn create(form: &Form<'_>) -> Result<NewObject, Problem> {
    let name = form.get("course").trim();
    if check_dns_label(name).is_err() || name.len() > MOST_OF_NAME {
        return Err(Problem::CourseName);
    }
    // The page has written the labels of the objects that the daemon manages.
    let labels = selector_labels(form.get("selector")).ok_or(Problem::Form)?;
    let mut spec = spec(form)?;
    // The schema of a new object allows no null.
    if let Some(quota) = spec["quota"].as_object_mut() {
        quota.retain(|_, amount| !amount.is_null());
    }
    let body = json!({"metadata": {"labels": labels}, "spec": spec});
    Ok(NewObject { kind: KIND, key: ObjectKey::new("", name), body })
}

fn edit(_: &Value, form: &Form<'_>) -> Patch<Value> {
    Ok(Some(json!({"spec": spec(form)?})))
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::controllers::dashboard::http::fields::Fields;

    const QUOTA_FIELDS: &str = "cpu=8&memory=16Gi&instances=3";

    fn form(fields: &str) -> Form<'static> {
        let fields = format!("selector=a.org%2Fb%3Dc&{fields}&{QUOTA_FIELDS}");
        Form { fields: Fields::parse(fields.as_bytes()), ..Form::default() }
    }

    #[test]
    fn a_course_gets_the_labels_of_the_daemon_and_no_empty_limit() {
        let new = create(&form("course=tea&title=Tea+%26+more&enrolment=closed&disk=")).expect("a course");
        assert_eq!((new.kind, new.key), (KIND, ObjectKey::new("", "tea")));
        let quota = json!({"cpu": "8", "memory": "16Gi", "instances": 3});
        let spec = json!({"prettyName": "Tea & more", "autoEnroll": "", "quota": quota});
        assert_eq!(new.body, json!({"metadata": {"labels": {"a.org/b": "c"}}, "spec": spec}));
    }

    #[test]
    fn each_wrong_field_has_its_own_problem() {
        for (fields, problem) in [
            ("course=Tea&title=T&enrolment=closed", Problem::CourseName),
            ("course=&title=T&enrolment=closed", Problem::CourseName),
            (&*format!("course={}&title=T&enrolment=closed", "a".repeat(54)), Problem::CourseName),
            ("course=tea&title=+&enrolment=closed", Problem::CourseTitle),
            ("course=tea&title=a%0ab&enrolment=closed", Problem::CourseTitle),
            ("course=tea&title=T&enrolment=", Problem::Form),
        ] {
            assert_eq!(create(&form(fields)).err(), Some(problem), "{fields}");
        }
        let without =
            Form { fields: Fields::parse(b"course=tea&title=T&enrolment=closed"), ..Form::default() };
        assert_eq!(create(&without).err(), Some(Problem::Form), "the labels of the daemon are missing");
    }

    #[test]
    fn a_limit_of_the_disk_can_be_removed() {
        let patch =
            edit(&json!({}), &form("title=T&enrolment=immediate&disk=")).expect("a patch").expect("a change");
        assert_eq!(
            (&patch["spec"]["quota"]["disk"], &patch["spec"]["autoEnroll"]),
            (&Value::Null, &json!("immediate"))
        );
        assert!(patch["spec"]["quota"].as_object().is_some_and(|quota| quota.contains_key("disk")));
    }
}
