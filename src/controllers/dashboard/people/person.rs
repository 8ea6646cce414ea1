//! The change of a person in a course, as a form or a line of a list asks for it.

use serde_json::{Value, json};

use super::step::Step;
use crate::api::names::check_object_name;
use crate::api::shown::{MOST, is_control};
use crate::api::tenant::is_email;
use crate::controllers::dashboard::action::json_patch::{append, remove};
use crate::controllers::dashboard::texts::Problem;

/// The maximum length of a user name: the personal namespace is `tenant-` and the name, and has at most 63 characters.
pub const MOST_OF_USER: usize = 56;

/// The roles that a form or a list can ask for.
pub const ROLES: &[&str] = &["user", "manager"];
/// Asks in a list to reject the request of a candidate.
pub const REJECT: &str = "reject";

/// A person, as a form or a line of a list names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name of the Tenant.
    pub user: String,
    /// The first name, for a new Tenant.
    pub first: String,
    /// The last name, for a new Tenant.
    pub last: String,
    /// The e-mail address, for a new Tenant; an existing one must have it, too, unless it is empty.
    pub email: String,
    /// The role in the course; `None` to reject a request.
    pub role: Option<&'static str>,
}

/// A change of a Tenant.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Creates it, with these members.
    Create(Value),
    /// Changes it with the operations of a JSON patch.
    Patch(Vec<Value>),
}

impl Person {
    /// Reads a person from texts. An empty role is that of a student.
    ///
    /// # Errors
    /// The problem with the first text that is invalid.
    pub fn parse(user: &str, first: &str, last: &str, email: &str, role: &str) -> Result<Self, Problem> {
        let [user, first, last, email, role] = [user, first, last, email, role].map(str::trim);
        if check_object_name(user).is_err() {
            return Err(Problem::PersonUser);
        }
        if user.len() > MOST_OF_USER {
            return Err(Problem::PersonUserLong);
        }
        let is_name = |text: &str| text.chars().count() <= MOST && !text.contains(is_control);
        if !is_name(first) || !is_name(last) {
            return Err(Problem::PersonName);
        }
        if !email.is_empty() && !is_email(email) {
            return Err(Problem::PersonEmail);
        }
        let known = ROLES.iter().copied().find(|known| *known == role || role.is_empty());
        if known.is_none() && role != REJECT {
            return Err(Problem::PersonRole);
        }
        let [user, first, last, email] = [user, first, last, email].map(str::to_owned);
        Ok(Self { user, first, last, email, role: known })
    }

    /// Plans the change of this person in a course. `own` is the name of the user who asks, and `found` the Tenant of the
    /// person, if it exists.
    ///
    /// # Errors
    /// The reason why the change is not possible.
    pub fn plan(
        &self,
        course: &str,
        own: &str,
        found: Option<&Value>,
    ) -> Result<(Step, Option<Change>), Problem> {
        let Some(tenant) = found else {
            return self.create(course).map(|body| (Step::New, Some(Change::Create(body))));
        };
        if !tenant["metadata"]["deletionTimestamp"].is_null() {
            return Err(Problem::PersonLeaving);
        }
        let stored = tenant["spec"]["email"].as_str().unwrap_or_default();
        if !self.email.is_empty() && !self.email.eq_ignore_ascii_case(stored) {
            return Err(Problem::PersonOther);
        }
        let (step, operations) = match (entry(tenant, course), self.role) {
            (None, None) => return Ok((Step::Unchanged, None)),
            (Some((position, "candidate")), None) => (Step::Rejected, remove("workspaces", position)),
            (Some(_), None) => return Err(Problem::PersonEnrolled),
            (None, Some(role)) => (Step::Enrolled, enrol(tenant, course, role)),
            (Some((_, before)), Some(role)) if before == role => return Ok((Step::Unchanged, None)),
            (Some((position, before)), Some(role)) => {
                let step = if before == "candidate" { Step::Approved } else { Step::Changed };
                (step, set(position, role))
            }
        };
        if self.user == own {
            return Err(Problem::PersonSelf);
        }
        Ok((step, Some(Change::Patch(operations))))
    }

    /// Returns the members of a new Tenant.
    fn create(&self, course: &str) -> Result<Value, Problem> {
        let Self { first, last, email, .. } = self;
        let role = self.role.ok_or(Problem::PersonUnknown)?;
        if first.is_empty() || last.is_empty() {
            return Err(Problem::PersonNoName);
        }
        if email.is_empty() {
            return Err(Problem::PersonNoEmail);
        }
        let entry = json!({"name": course, "role": role});
        Ok(json!({"spec": {"firstName": first, "lastName": last, "email": email, "workspaces": [entry]}}))
    }
}

/// Returns the position and the role of the entry of a course in a Tenant; `None` if the Tenant is not in the course.
pub fn entry<'t>(tenant: &'t Value, course: &str) -> Option<(usize, &'t str)> {
    let mut entries = tenant["spec"]["workspaces"].as_array()?.iter().enumerate();
    let (position, entry) = entries.find(|(_, entry)| entry["name"] == course)?;
    Some((position, entry["role"].as_str().unwrap_or_default()))
}

/// Plans the change of a Tenant from one of the roles `from` in a course to another role, or out of the course. Returns
/// `None` if that has happened already.
///
/// # Errors
/// [`Problem::Changed`] if the Tenant has a role that the page did not show.
pub fn change(
    tenant: &Value,
    course: &str,
    from: &[&str],
    to: Option<&str>,
) -> Result<Option<Value>, Problem> {
    match (entry(tenant, course), to) {
        (None, None) => Ok(None),
        (Some((_, role)), Some(to)) if role == to => Ok(None),
        (Some((position, role)), Some(to)) if from.contains(&role) => Ok(Some(set(position, to).into())),
        (Some((position, role)), None) if from.contains(&role) => {
            Ok(Some(remove("workspaces", position).into()))
        }
        _ => Err(Problem::Changed),
    }
}

fn enrol(tenant: &Value, course: &str, role: &str) -> Vec<Value> {
    let is_empty = tenant["spec"]["workspaces"].as_array().is_none_or(Vec::is_empty);
    append("workspaces", is_empty, json!({"name": course, "role": role}))
}

fn set(position: usize, role: &str) -> Vec<Value> {
    vec![json!({"op": "replace", "path": format!("/spec/workspaces/{position}/role"), "value": role})]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(role: &str) -> Person {
        Person::parse("bob", "Bob", "Bianchi", "bob@example.org", role).expect("a person")
    }

    /// A Tenant with these entries, such as `tea:user`.
    fn tenant(entries: &[&str]) -> Value {
        let entries = entries.iter().filter_map(|entry| entry.split_once(':'));
        let entries: Vec<Value> = entries.map(|(name, role)| json!({"name": name, "role": role})).collect();
        json!({"metadata": {"name": "bob"}, "spec": {"email": "Bob@example.org", "workspaces": entries}})
    }

    #[test]
    fn the_texts_of_a_person_are_trimmed_and_checked() {
        let ada = Person::parse(" ada.rossi ", "Ada ", " Rossi", " ada@example.org", "").expect("a person");
        let texts = [&ada.user, &ada.first, &ada.last, &ada.email].map(String::as_str);
        assert_eq!((texts, ada.role), (["ada.rossi", "Ada", "Rossi", "ada@example.org"], Some("user")));
        let (long, name) = ("a".repeat(57), "x".repeat(201));
        for (user, first, email, role, expected) in [
            ("bob", "", "", "manager", Ok(Some("manager"))),
            ("bob", "", "", "reject", Ok(None)),
            ("", "", "", "", Err(Problem::PersonUser)),
            ("Bob", "", "", "", Err(Problem::PersonUser)),
            ("../bob", "", "", "", Err(Problem::PersonUser)),
            (&long[1..], "", "", "", Ok(Some("user"))),
            (&*long, "", "", "", Err(Problem::PersonUserLong)),
            ("bob", &name[1..], "", "", Ok(Some("user"))),
            ("bob", &*name, "", "", Err(Problem::PersonName)),
            ("bob", "B\u{202e}b", "", "", Err(Problem::PersonName)),
            ("bob", "", "bob", "", Err(Problem::PersonEmail)),
            ("bob", "", "", "teacher", Err(Problem::PersonRole)),
            ("bob", "", "", "candidate", Err(Problem::PersonRole)),
        ] {
            let parsed = Person::parse(user, first, "", email, role).map(|person| person.role);
            assert_eq!(parsed, expected, "{user} {first} {email} {role}");
        }
    }

    #[test]
    fn the_change_depends_on_the_current_role() {
        for (entries, role, expected) in [
            (&["a:user"][..], "user", Ok(Step::Enrolled)),
            (&["a:user", "tea:user"], "user", Ok(Step::Unchanged)),
            (&["tea:user"], "manager", Ok(Step::Changed)),
            (&["tea:manager"], "user", Ok(Step::Changed)),
            (&["tea:candidate"], "user", Ok(Step::Approved)),
            (&["tea:candidate"], "manager", Ok(Step::Approved)),
            (&["tea:candidate"], "reject", Ok(Step::Rejected)),
            (&["a:candidate"], "reject", Ok(Step::Unchanged)),
            (&["tea:user"], "reject", Err(Problem::PersonEnrolled)),
        ] {
            let planned = person(role).plan("tea", "ada", Some(&tenant(entries)));
            assert_eq!(
                planned.as_ref().map(|(step, _)| *step).map_err(|error| *error),
                expected,
                "{entries:?}"
            );
            let has_change = planned.is_ok_and(|(_, change)| change.is_some());
            assert_eq!(has_change, expected.is_ok_and(|step| step != Step::Unchanged), "{entries:?}");
        }
    }

    #[test]
    fn only_the_entry_of_the_course_is_changed() {
        let of = |entries: &[&str], role: &str| {
            let (_, change) = person(role).plan("tea", "ada", Some(&tenant(entries))).expect("a change");
            change.expect("a change")
        };
        let entry = json!({"name": "tea", "role": "user"});
        for (entries, role, expected) in [
            (&[][..], "user", json!({"op": "add", "path": "/spec/workspaces", "value": [entry]})),
            (&["a:user"], "user", json!({"op": "add", "path": "/spec/workspaces/-", "value": entry})),
            (
                &["a:user", "tea:candidate"],
                "manager",
                json!({"op": "replace", "path": "/spec/workspaces/1/role", "value": "manager"}),
            ),
            (&["a:user", "tea:candidate"], "reject", json!({"op": "remove", "path": "/spec/workspaces/1"})),
        ] {
            assert_eq!(of(entries, role), Change::Patch(vec![expected]), "{entries:?}");
        }
    }

    #[test]
    fn a_person_with_another_address_or_in_deletion_and_the_user_are_not_changed() {
        let mut leaving = tenant(&[]);
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let other = Person { email: "robert@example.org".to_owned(), ..person("user") };
        for (person, own, tenant, expected) in [
            (&person("user"), "ada", &leaving, Problem::PersonLeaving),
            (&other, "ada", &tenant(&[]), Problem::PersonOther),
            (&person("user"), "bob", &tenant(&["tea:manager"]), Problem::PersonSelf),
        ] {
            assert_eq!(person.plan("tea", own, Some(tenant)), Err(expected));
        }
        let unchanged = person("manager").plan("tea", "bob", Some(&tenant(&["tea:manager"])));
        assert_eq!(unchanged, Ok((Step::Unchanged, None)));
        let without = Person { email: String::new(), ..person("user") };
        assert!(without.plan("tea", "ada", Some(&tenant(&[]))).is_ok());
    }

    #[test]
    fn a_new_person_needs_names_and_an_address() {
        let expected = json!({"spec": {
            "firstName": "Bob", "lastName": "Bianchi", "email": "bob@example.org",
            "workspaces": [{"name": "tea", "role": "manager"}],
        }});
        let planned = person("manager").plan("tea", "ada", None);
        assert_eq!(planned, Ok((Step::New, Some(Change::Create(expected)))));
        for (person, expected) in [
            (Person { first: String::new(), ..person("user") }, Problem::PersonNoName),
            (Person { last: String::new(), ..person("user") }, Problem::PersonNoName),
            (Person { email: String::new(), ..person("user") }, Problem::PersonNoEmail),
            (person("reject"), Problem::PersonUnknown),
        ] {
            assert_eq!(person.plan("tea", "ada", None), Err(expected));
        }
    }

    #[test]
    fn a_role_changes_only_from_the_one_that_the_page_has_shown() {
        let of = |entries: &[&str], to: Option<&str>| change(&tenant(entries), "tea", &["candidate"], to);
        let set = json!([{"op": "replace", "path": "/spec/workspaces/1/role", "value": "user"}]);
        let gone = json!([{"op": "remove", "path": "/spec/workspaces/0"}]);
        for (entries, to, expected) in [
            (&["a:user", "tea:candidate"][..], Some("user"), Ok(Some(set))),
            (&["tea:user"], Some("user"), Ok(None)),
            (&["tea:manager"], Some("user"), Err(Problem::Changed)),
            (&["a:user"], Some("user"), Err(Problem::Changed)),
            (&["tea:candidate"], None, Ok(Some(gone))),
            (&["a:user"], None, Ok(None)),
            (&["tea:user"], None, Err(Problem::Changed)),
        ] {
            assert_eq!(of(entries, to), expected, "{entries:?}");
        }
    }
}
