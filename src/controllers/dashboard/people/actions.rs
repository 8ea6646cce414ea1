//! The actions on the people of a course.

use serde_json::Value;

use super::person::{Change, MOST_OF_USER, Person, ROLES, change};
use super::step::Step;
use crate::api::names::check_object_name;
use crate::api::shown::MOST;
use crate::api::tenant::TenantKind;
use crate::controllers::dashboard::action::entry::{
    Action, Field, Form, Input, Patch, Place, Plan, Right, Target,
};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::ObjectKey;
use crate::runtime::plan::KindInfo;

/// The kind of the people.
pub const KIND: KindInfo = KindInfo::of::<TenantKind>();
/// The right of all actions. The webhook decides which entries a user may change.
pub const RIGHT: Right = Right::to::<TenantKind>("patch");
/// The person of a form, whom the hidden field `who` names.
const PERSON: Target = Target { kind: KIND, key: who };

/// Approves the request of a candidate.
pub const APPROVE: Action =
    action("people.approve", "/courses/{course}/people/approve", Place::Main, Plan::Patch(PERSON, approve));
/// Rejects the request of a candidate.
pub const REJECT: Action =
    action("people.reject", "/courses/{course}/people/reject", Place::Card, Plan::Patch(PERSON, reject));
/// Makes a student a manager.
pub const PROMOTE: Action = action(
    "people.promote",
    "/courses/{course}/people/promote",
    Place::Question,
    Plan::Patch(PERSON, promote),
);
/// Makes a manager a student.
pub const DEMOTE: Action =
    action("people.demote", "/courses/{course}/people/demote", Place::Question, Plan::Patch(PERSON, demote));
/// Removes a person from the course.
pub const REMOVE: Action =
    action("people.remove", "/courses/{course}/people/remove", Place::Question, Plan::Patch(PERSON, remove));
/// Adds a person, with a new Tenant if there is none.
pub const ADD: Action = Action {
    fields: &[
        Field { name: "user", id: "person-user", input: Input::Line { max: MOST_OF_USER, pattern: "" } },
        Field { name: "role", id: "person-role", input: Input::OneOf(ROLES) },
        Field { name: "first", id: "person-first", input: Input::OptionalLine { max: MOST } },
        Field { name: "last", id: "person-last", input: Input::OptionalLine { max: MOST } },
        Field { name: "email", id: "person-email", input: Input::OptionalLine { max: 320 } },
    ],
    ..action(
        "people.add",
        "/courses/{course}/people/add",
        Place::Section,
        Plan::CreateOrPatch { kind: KIND, key: user, create: new, patch: enrol },
    )
};

/// All actions on the people of a course.
pub const ACTIONS: &[&Action] = &[&APPROVE, &REJECT, &PROMOTE, &DEMOTE, &REMOVE, &ADD];

const fn action(name: &'static str, path: &'static str, place: Place, plan: Plan) -> Action {
    Action { name, path, page: paths::PEOPLE, right: RIGHT, place, fields: &[], plan }
}

fn who(form: &Form<'_>) -> Option<ObjectKey> {
    Some(form.get("who")).filter(|name| check_object_name(name).is_ok()).map(|name| ObjectKey::new("", name))
}

fn approve(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    to(tenant, form, "candidate", Some("user"))
}

fn reject(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    to(tenant, form, "candidate", None)
}

fn promote(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    to(tenant, form, "user", Some("manager"))
}

fn demote(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    to(tenant, form, "manager", Some("user"))
}

fn remove(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    let course = form.course().ok_or(Problem::Form)?;
    change(tenant, course, ROLES, None)
}

fn to(tenant: &Value, form: &Form<'_>, from: &str, role: Option<&str>) -> Patch<Value> {
    change(tenant, form.course().ok_or(Problem::Form)?, &[from], role)
}

fn user(form: &Form<'_>) -> Result<ObjectKey, Problem> {
    person(form).map(|person| ObjectKey::new("", person.user))
}

fn new(form: &Form<'_>) -> Result<Value, Problem> {
    match added(None, form)? {
        Some(Change::Create(body)) => Ok(body),
        Some(Change::Patch(_)) | None => Err(Problem::Form),
    }
}

fn enrol(tenant: &Value, form: &Form<'_>) -> Patch<Value> {
    match added(Some(tenant), form)? {
        Some(Change::Patch(operations)) => Ok(Some(operations.into())),
        Some(Change::Create(_)) | None => Ok(None),
    }
}

fn person(form: &Form<'_>) -> Result<Person, Problem> {
    let [user, first, last, email, role] =
        ["user", "first", "last", "email", "role"].map(|field| form.get(field));
    // Only a list rejects people.
    let person = Person::parse(user, first, last, email, role)?;
    if person.role.is_none() { Err(Problem::PersonRole) } else { Ok(person) }
}

/// Plans to add a person. The role of a person in the course changes on the page of the person, which shows it.
fn added(tenant: Option<&Value>, form: &Form<'_>) -> Result<Option<Change>, Problem> {
    let course = form.course().ok_or(Problem::Form)?;
    match person(form)?.plan(course, "", tenant)? {
        (Step::Changed, _) => Err(Problem::PersonEnrolled),
        (_, change) => Ok(change),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::dashboard::http::fields::Fields;

    fn form(fields: &str) -> Form<'static> {
        let parameters = Fields(vec![("course".to_owned(), "tea".to_owned())]);
        Form { parameters, fields: Fields::parse(fields.as_bytes()), ..Form::default() }
    }

    fn tenant(role: &str) -> Value {
        let entries = json!([{"name": "net", "role": "user"}, {"name": "tea", "role": role}]);
        json!({"metadata": {"name": "bob", "uid": "u1"}, "spec": {"email": "bob@example.org", "workspaces": entries}})
    }

    #[test]
    fn each_action_changes_its_roles_only() {
        let set = |role: &str| json!([{"op": "replace", "path": "/spec/workspaces/1/role", "value": role}]);
        let gone = json!([{"op": "remove", "path": "/spec/workspaces/1"}]);
        for (plan, from, expected) in [
            (approve as fn(&Value, &Form<'_>) -> Patch<Value>, &["candidate"][..], set("user")),
            (reject, &["candidate"], gone.clone()),
            (promote, &["user"], set("manager")),
            (demote, &["manager"], set("user")),
            (remove, &["user", "manager"], gone),
        ] {
            for role in ["candidate", "user", "manager"] {
                let planned = plan(&tenant(role), &form("who=bob"));
                let is_set = expected[0]["value"] == role;
                let wanted = match from.contains(&role) {
                    true => Ok(Some(expected.clone())),
                    false if is_set => Ok(None),
                    false => Err(Problem::Changed),
                };
                assert_eq!(planned, wanted, "{role}: {expected}");
            }
        }
    }

    #[test]
    fn the_hidden_field_names_the_person() {
        assert_eq!(who(&form("who=ada.rossi")), Some(ObjectKey::new("", "ada.rossi")));
        for fields in ["", "who=", "who=..", "who=a%2Fb", "who=Ada"] {
            assert_eq!(who(&form(fields)), None, "{fields}");
        }
    }

    #[test]
    fn a_person_is_added_once_and_keeps_the_role() {
        let fields = "user=bob&first=Bob&last=Bianchi&email=bob%40example.org&role=user";
        let entry = json!([{"name": "tea", "role": "user"}]);
        let spec = json!({"firstName": "Bob", "lastName": "Bianchi", "email": "bob@example.org", "workspaces": entry});
        assert_eq!(new(&form(fields)), Ok(json!({"spec": spec})));
        assert_eq!(user(&form(fields)), Ok(ObjectKey::new("", "bob")));
        let approved = json!([{"op": "replace", "path": "/spec/workspaces/1/role", "value": "user"}]);
        for (role, expected) in
            [("candidate", Ok(Some(approved))), ("user", Ok(None)), ("manager", Err(Problem::PersonEnrolled))]
        {
            assert_eq!(enrol(&tenant(role), &form(fields)), expected, "{role}");
        }
        assert_eq!(new(&form("user=bob&role=user")), Err(Problem::PersonNoName));
        for (fields, expected) in [
            ("", Problem::PersonUser),
            ("user=Bob&role=user", Problem::PersonUser),
            ("user=bob&role=reject", Problem::PersonRole),
        ] {
            assert_eq!(user(&form(fields)), Err(expected), "{fields}");
        }
    }
}
