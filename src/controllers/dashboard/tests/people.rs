//! The pages about the people of a course, for the rules of all pages.

use std::sync::Arc;

use maud::Markup;
use serde_json::json;

use super::fixtures::{instance, read, tenant, workspace};
use crate::api::Tenant;
use crate::api::denial::{Cause, DenialReason};
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::people::actions::RIGHT;
use crate::controllers::dashboard::people::import::send::{Done, Row as Line};
use crate::controllers::dashboard::people::import::view::{Checked, checked, form};
use crate::controllers::dashboard::people::model::{OfPerson, People, Row};
use crate::controllers::dashboard::people::person_view::person;
use crate::controllers::dashboard::people::step::Step;
use crate::controllers::dashboard::people::view::people;
use crate::controllers::dashboard::student::read::{NamespaceRules, Own};
use crate::controllers::dashboard::student::{Known, Rights};
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::ui::view::View;
use crate::runtime::error::ApiError;

/// Returns a course for one of its managers.
pub fn course() -> Course {
    of_title("Computer networks")
}

fn of_title(title: &str) -> Course {
    let manager = tenant(&json!([{"name": "net", "role": "manager"}]), 9);
    let rules = NamespaceRules { namespace: "workspace-net".to_owned(), rules: Arc::default() };
    let known = Known::new(manager, vec![], vec![], vec![], vec![]);
    Course {
        own: Own { known, without_tenant: None, rules: rules.clone(), topics: vec![] },
        workspace: Arc::new(workspace("net", title, "withApproval", 3)),
        namespace: "workspace-net".to_owned(),
        rules,
        recorded: read(json!({})),
    }
}

/// Returns a person with this role, whose names and address are this text.
fn of_role(user: &str, text: &str, role: &str) -> Tenant {
    read(json!({
        "metadata": {"name": user, "uid": user, "resourceVersion": "1"},
        "spec": {"firstName": text, "lastName": text, "email": text, "workspaces": [{"name": "net", "role": role}]},
    }))
}

/// Returns the pages with their names. A user with these rights sees them, and other users have written this text.
pub fn pages(view: &View<'_>, rights: &dyn Rights, text: &str) -> Vec<(&'static str, Markup)> {
    let course = of_title(text);
    let can_change = rights.may(&course.namespace, &RIGHT);
    let mut tenants: Vec<Tenant> = ["eva", "leo"].map(|user| of_role(user, text, "candidate")).to_vec();
    tenants.extend([of_role("ada.rossi", text, "manager"), of_role("bob", text, "user")]);
    let all = People::of(&tenants, "net", "ada.rossi", "", 1, can_change);
    let machine = instance("net-1", text, ("workspace-net", "desktop"), true, json!({"phase": "Failed"}));
    let of = |role: &str| {
        let row = Row::of(&of_role("bob", text, role), "net", "ada.rossi");
        let machines = vec![machine.clone()];
        let person_of = OfPerson::of(row, Some(&machines), &[], &course.namespace, can_change);
        person(view, &course, &person_of, &History::default())
    };
    let fault = (Problem::ListColumns, text.to_owned());
    let checked = |is_made: bool| checked(view, &course, &Checked { text, rows: &lines(text), is_made });
    vec![
        ("people", people(view, &course, &all)),
        ("person-candidate", of("candidate")),
        ("person-user", of("user")),
        ("person-manager", of("manager")),
        ("list", form(view, &course, "", None)),
        ("list-fault", form(view, &course, text, Some(&fault))),
        ("list-changes", checked(false)),
        ("list-results", checked(true)),
    ]
}

/// Returns a line of a list with each result.
fn lines(text: &str) -> Vec<Line> {
    let denied = ApiError::Denied {
        message: text.to_owned(),
        causes: vec![Cause::new(DenialReason::NotManager, text)],
    };
    let steps = [Step::New, Step::Enrolled, Step::Approved, Step::Changed, Step::Rejected, Step::Unchanged];
    let steps = steps.into_iter().map(|step| Ok(Done::Step(step)));
    let failures = [denied, ApiError::Forbidden(text.to_owned())].into_iter().map(|error| Err(error.into()));
    let others = [Ok(Done::Late), Err(Problem::PersonUser.into())];
    let line = |(line, result)| {
        let (user, name) = (text.to_owned(), text.to_owned());
        Line { line, user, name, role: Some("manager"), result }
    };
    (2..).zip(steps.chain(failures).chain(others)).map(line).collect()
}
