//! Tests of the home page with personal workspaces.

use serde_json::json;

use super::fixtures::{Everything, NAMESPACE, read, settings, template, tenant, view, workspace};
use crate::api::Tenant;
use crate::api::quota::Rule;
use crate::config::Language;
use crate::controllers::dashboard::home::model::Home;
use crate::controllers::dashboard::student::{Known, Settings, Student};
use crate::controllers::dashboard::texts::texts;

/// The home page of a student of one course who has a Template of their own.
fn home(tenant: Tenant, personal_workspaces: bool) -> Home {
    let mut own = template("personal", "own", "Own desktop", &json!({}));
    own.metadata.namespace = NAMESPACE.into();
    let templates = vec![own, template("net", "desktop", "Desktop", &json!({}))];
    let workspaces = vec![workspace("net", "Networks", "", 3)];
    let known = Known::new(tenant, Vec::new(), templates, workspaces, Vec::new());
    let rule = Rule { require_enrolment: true, personal_workspaces };
    let (settings, all) = (Settings { rule, ..settings() }, Everything(true));
    Home::of(&view(Language::ENGLISH, "/"), &Student::new(&known, &settings, &all, None))
}

/// The titles of the courses, each with the names of its Templates.
fn listed(home: &Home) -> Vec<(&str, Vec<&str>)> {
    let courses = home.courses.iter().map(|course| {
        let names = course.offers.iter().map(|offer| offer.name.as_str()).collect();
        (course.title.as_str(), names)
    });
    courses.collect()
}

#[test]
fn own_templates_are_listed_in_the_personal_workspace_with_its_quota() {
    let enrolled = || tenant(&json!([{"name": "net", "role": "user"}]), 9);
    let mut with_quota = enrolled();
    with_quota.spec.personal_workspace = read(json!({"cpu": 4, "memory": "8Gi", "instances": 2}));
    let mut older = enrolled();
    older.spec.create_personal_workspace = true;
    let personal = texts(Language::ENGLISH).personal.as_str();
    for (tenant, limits) in [(with_quota.clone(), 3), (older, 0)] {
        let home = home(tenant, true);
        assert_eq!(listed(&home), [("Networks", vec!["desktop"]), (personal, vec!["own"])]);
        assert_eq!((home.courses[1].amounts.len(), &home.courses[1].offers[0].blocked), (limits, &None));
        assert!(home.has_personal);
    }
    // The status of the Tenant says that personal workspaces are enabled.
    let mut created = with_quota.clone();
    created.status.personal_workspace_created = Some(true);
    assert_eq!(listed(&home(created, false)), [("Networks", vec!["desktop"]), (personal, vec!["own"])]);
    for (tenant, personal_workspaces) in [(with_quota, false), (enrolled(), true)] {
        let home = home(tenant, personal_workspaces);
        assert_eq!((listed(&home), home.has_personal), (vec![("Networks", vec!["desktop"])], false));
    }
}
