//! Tests of the page of a link that starts a Template.

use serde_json::json;

use super::model::{New, existing, is_enrolled};
use crate::config::Language;
use crate::controllers::dashboard::courses::enrolment::Part;
use crate::controllers::dashboard::student::Known;
use crate::controllers::dashboard::student::Student;
use crate::controllers::dashboard::tests::fixtures::{
    Everything, instance, known, read, settings, template, tenant, view, workspace,
};
use crate::controllers::dashboard::ui::state::State;

/// The page of the student of the fixtures, in short.
fn page(course: &str, name: &str) -> Result<String, State> {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    match New::of(&view(Language::ENGLISH, "/new/net/web"), &student, course, name)? {
        New::Offer(offer, course) => Ok(format!("{} of {course}", offer.title)),
        New::Join(course) => Ok(format!("{:?} {}", course.part, course.title)),
    }
}

#[test]
fn a_link_offers_its_template_or_the_enrolment_in_its_course() {
    for (course, name, expected) in [
        ("net", "web", Ok("Web server of Computer networks".to_owned())),
        ("data", "gpu", Ok("Training on a GPU of Databases".to_owned())),
        // The Template exists in another course.
        ("data", "web", Err(State::NoTemplate)),
        ("net", "nothing", Err(State::NoTemplate)),
        ("nothing", "web", Err(State::NoTemplate)),
        // The user cannot see any Template of this course.
        ("old", "web", Err(State::CourseWaits)),
        ("os", "any", Ok(format!("{:?} Operating systems", Part::CanJoin))),
        ("sec", "any", Ok(format!("{:?} Security", Part::CanAsk))),
        ("ml", "any", Ok(format!("{:?} Machine learning", Part::Candidate))),
        // Only managers enrol users.
        ("drive", "drive", Err(State::NoTemplate)),
    ] {
        assert_eq!(page(course, name), expected, "{course}/{name}");
    }
}

#[test]
fn a_link_leads_to_the_newest_machine_of_its_template() {
    let net = ("workspace-net", "desktop");
    let machine = |name: &str, template, created: &str| {
        let mut machine = instance(name, "", template, false, json!({"phase": "Off"}));
        machine.metadata.creation_timestamp = read(json!(created));
        machine
    };
    let mut deleted = machine("deleted", net, "2026-11-25T00:00:00Z");
    deleted.metadata.deletion_timestamp = read(json!("2026-11-26T18:00:00Z"));
    let found = |instances| {
        let enrolled = tenant(&json!([{"name": "net", "role": "user"}]), 9);
        let templates =
            vec![template("net", "desktop", "", &json!({})), template("net", "web", "", &json!({}))];
        let known = Known::new(enrolled, instances, templates, vec![workspace("net", "", "", 3)], vec![]);
        let (settings, all) = (settings(), Everything(true));
        let student = Student::new(&known, &settings, &all, None);
        existing(&student, "net", "desktop").map(|machine| machine.name().to_owned())
    };
    let of_other = machine("other", ("workspace-net", "web"), "2026-11-26T00:00:00Z");
    let (old, new) =
        (machine("old", net, "2026-11-20T00:00:00Z"), machine("new", net, "2026-11-21T00:00:00Z"));
    assert_eq!(found(vec![deleted.clone(), of_other.clone()]), None);
    assert_eq!(found(vec![old, deleted, new, of_other]).as_deref(), Some("new"));
}

#[test]
fn users_and_managers_are_enrolled_and_the_personal_workspace_belongs_to_its_user() {
    let roles = json!([{"name": "a", "role": "user"}, {"name": "b", "role": "manager"}, {"name": "c", "role": "candidate"}]);
    let mut tenant = tenant(&roles, 9);
    let enrolled = ["a", "b", "c", "d", "personal"].map(|course| is_enrolled(&tenant, course));
    assert_eq!(enrolled, [true, true, false, false, false]);
    tenant.spec.create_personal_workspace = true;
    assert!(is_enrolled(&tenant, "personal"));
}
