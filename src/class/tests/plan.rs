//! The rows of an action.

use jiff::SignedDuration;

use super::*;
use crate::class::model::{Change, Refusal, State, Totals, Unchanged, Verb};
use crate::class::plan::Action;
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;

const ID: &str = "crownlabs.polito.it/class-action";

/// Returns the state of the only row.
fn state(verb: Verb, class: &Class) -> State {
    of(verb, class, false).1
}

/// Returns the name of the machine and the state of the only row.
fn of(verb: Verb, class: &Class, is_retry: bool) -> (String, State) {
    let (id, template) = (id(), template());
    let action = Action {
        verb,
        id: &id,
        course: "tea",
        template: Some(&template),
        is_retry,
        now: created("10:00:30"),
    };
    let [row] = action.rows(class).try_into().expect("one row");
    (row.machine.map(|key| key.name.to_string()).unwrap_or_default(), row.state)
}

/// Annotates a machine with an action.
fn by(id: &ActionId) -> Value {
    json!({"metadata": {"annotations": {ID: id.to_string()}}})
}

fn merged(parts: &[Value]) -> Value {
    let mut all = json!({});
    for part in parts {
        json_patch::merge(&mut all, part);
    }
    all
}

fn stopped() -> Value {
    json!({"spec": {"running": false}})
}

fn leaving() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-03-04T09:30:00Z"}})
}

/// The name of Ada's new machine.
fn own() -> String {
    format!("desktop-{}", id().suffix("ada"))
}

#[test]
fn a_person_without_a_machine_gets_one_with_a_name_of_the_action() {
    let (name, state) = of(Verb::Start, &class(&[]), false);
    assert_eq!(name, own());
    let (key, body) = match state {
        State::ToDo(Change::Create(key, body)) => (key, body),
        other => panic!("{other:?}"),
    };
    assert_eq!(key, ObjectKey::new("tenant-ada", own()));
    assert_eq!(
        body,
        json!({
            "metadata": {
                "name": own(), "labels": {"crownlabs.polito.it/workspace": "tea"},
                "annotations": {ID: id().to_string()},
            },
            "spec": {
                "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
                "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
                "running": true,
            },
        })
    );
    assert_eq!(own().len(), "desktop-".len() + 10);
    assert_ne!(id().suffix("ada"), id().suffix("bob"), "each person has another name");
    assert_ne!(id().suffix("ada"), other("10:00:00").suffix("ada"), "each action has other names");
    let mut class = class(&[]);
    class.people[0].has_namespace = false;
    assert_eq!(super::plan::state(Verb::Start, &class), State::Refused(Refusal::NoNamespace));
}

#[test]
fn a_start_changes_only_a_person_without_a_running_machine() {
    let vm = |name: &str, parts: &[Value]| machine("ada", name, &merged(parts));
    let newer = json!({"metadata": {"creationTimestamp": "2026-03-04T09:10:00Z"}});
    let of_other = json!({"spec": {"template.crownlabs.polito.it/TemplateRef": {"name": "other"}}});
    let own = own();
    let own = own.as_str();
    let (done, already) = (State::Done, State::Unchanged(Unchanged::Already));
    for (machines, name, expected) in [
        (vec![vm("vm", &[])], "vm", Some(already.clone())),
        (vec![vm("off", &[stopped()]), vm("vm", &[])], "vm", Some(already)),
        // The newest stopped machine is started.
        (vec![vm("old", &[stopped()]), vm("new", &[stopped(), newer])], "new", None),
        (vec![vm(own, &[])], own, Some(done.clone())),
        // The person has stopped or deleted it since.
        (vec![vm(own, &[stopped()])], own, Some(done.clone())),
        (vec![vm(own, &[leaving()])], own, Some(done.clone())),
        (vec![vm("vm", &[by(&id()), stopped()])], "vm", Some(done.clone())),
        (vec![vm("a", &[stopped()]), vm("vm", &[by(&id()), stopped()])], "vm", Some(done)),
        // A machine that is being deleted, and one of another Template, do not count.
        (vec![vm("vm", &[leaving()])], own, None),
        (vec![vm("vm", &[of_other])], own, None),
        // A later action has stopped it.
        (
            vec![vm("vm", &[by(&other("10:00:01")), stopped()])],
            "vm",
            Some(State::Unchanged(Unchanged::Later)),
        ),
        (vec![vm("vm", &[by(&other("09:59:59")), stopped()])], "vm", None),
        // The student has written a time of the future.
        (vec![vm("vm", &[by(&other("11:00:00")), stopped()])], "vm", None),
    ] {
        let (machine, found) = of(Verb::Start, &class(&machines), false);
        assert_eq!(machine, name, "{machines:?}");
        match expected {
            Some(expected) => assert_eq!(found, expected, "{machines:?}"),
            None => assert!(matches!(found, State::ToDo(_)), "{machines:?}: {found:?}"),
        }
    }
}

#[test]
fn a_running_machine_is_stopped_once() {
    let vm = |parts: &[Value]| class(&[machine("ada", "vm", &merged(parts))]);
    let State::ToDo(Change::Patch(key, body)) = state(Verb::Stop, &vm(&[])) else { panic!("a patch") };
    assert_eq!(key, ObjectKey::new("tenant-ada", "vm"));
    assert_eq!(
        body,
        json!({
            "metadata": {"uid": "u-vm", "resourceVersion": "7", "annotations": {ID: id().to_string()}},
            "spec": {"running": false},
        })
    );
    for (parts, expected) in [
        (vec![stopped()], State::Unchanged(Unchanged::Already)),
        (vec![leaving()], State::Unchanged(Unchanged::Already)),
        (vec![by(&id()), stopped()], State::Done),
        // The student has started it again.
        (vec![by(&id())], State::Done),
        (vec![by(&other("10:00:05"))], State::Unchanged(Unchanged::Later)),
    ] {
        assert_eq!(state(Verb::Stop, &vm(&parts)), expected, "{parts:?}");
    }
    assert_eq!(state(Verb::Stop, &class(&[])), State::Unchanged(Unchanged::NoMachine));
}

#[test]
fn the_content_of_a_machine_is_collected_once() {
    const REQUESTED: &str = "crownlabs.polito.it/instance-submission-requested";
    const COMPLETED: &str = "crownlabs.polito.it/instance-submission-completed";
    let exam = json!({"spec": {"contentUrls": {"desktop": {"destination": "https://e.example.org/upload"}}}});
    let labels = |requested: &str, completed: &str| json!({"metadata": {"labels": {REQUESTED: requested, COMPLETED: completed}}});
    let of = |parts: &[Value], is_retry: bool| {
        let parts = [std::slice::from_ref(&exam), parts].concat();
        super::plan::of(Verb::Collect, &class(&[machine("ada", "vm", &merged(&parts))]), is_retry).1
    };
    let change = |state: State| match state {
        State::ToDo(Change::Patch(_, body)) => (body["spec"].clone(), body["metadata"]["labels"].clone()),
        other => panic!("{other:?}"),
    };
    let off = json!({"running": false});
    assert_eq!(change(of(&[], false)), (off.clone(), json!({REQUESTED: "true"})));
    assert_eq!(change(of(&[stopped()], false)), (off.clone(), json!({REQUESTED: "true"})));
    // It was started again after an upload.
    let again = json!({REQUESTED: "true", COMPLETED: "false"});
    assert_eq!(change(of(&[labels("false", "true")], false)), (off.clone(), again));
    let failed = json!({"status": {"conditions": [
        {"type": "Submitted", "status": "False", "reason": "SubmissionFailed", "message": "refused: 500"},
    ]}});
    let not_uploaded = |message: &str| State::Refused(Refusal::NotUploaded(message.to_owned()));
    for (parts, expected) in [
        (vec![by(&id()), labels("true", "false"), stopped()], State::Running),
        (vec![by(&id()), labels("false", "true"), stopped()], State::Done),
        // The student has started it again.
        (vec![by(&id()), labels("false", "true")], State::Done),
        (vec![by(&id()), labels("false", "false"), stopped(), failed.clone()], not_uploaded("refused: 500")),
        (vec![labels("false", "true"), stopped()], State::Unchanged(Unchanged::Already)),
        (vec![labels("true", "false"), stopped()], State::Running),
        (vec![leaving()], State::Refused(Refusal::Leaving)),
        (vec![json!({"spec": {"contentUrls": null}})], State::Refused(Refusal::NoDestination)),
    ] {
        assert_eq!(of(&parts, false), expected, "{parts:?}");
    }
    // A retry requests failed uploads again, and no others.
    let failed = [by(&id()), labels("false", "false"), stopped(), failed];
    assert_eq!(change(of(&failed, true)), (off, json!({REQUESTED: "true"})));
    assert_eq!(of(&[by(&id()), labels("true", "false"), stopped()], true), State::Running);
}

#[test]
fn a_machine_that_is_newer_than_the_action_is_not_deleted() {
    let vm = |parts: &[Value]| class(&[machine("ada", "vm", &merged(parts))]);
    let at = |time: &str| json!({"metadata": {"creationTimestamp": format!("2026-03-04T{time}Z")}});
    let deletion = State::ToDo(Change::Delete(ObjectKey::new("tenant-ada", "vm"), "u-vm".to_owned()));
    for (parts, expected) in [
        (vec![], deletion.clone()),
        (vec![at("10:00:00")], deletion),
        (vec![at("10:00:01")], State::Unchanged(Unchanged::Later)),
        (vec![leaving()], State::Done),
    ] {
        assert_eq!(state(Verb::Delete, &vm(&parts)), expected, "{parts:?}");
    }
}

#[test]
fn every_person_has_a_row_and_each_of_several_machines_its_own() {
    let mut class = class(&[machine("ada", "a", &json!({})), machine("ada", "b", &stopped())]);
    class.people.extend([person("bob"), person("eve")]);
    class.unread.insert("tenant-eve".to_owned(), ApiError::Forbidden("no".to_owned()));
    class.strangers = vec!["zoe".to_owned()];
    let id = id();
    let action = Action {
        verb: Verb::Stop,
        id: &id,
        course: "tea",
        template: None,
        is_retry: false,
        now: created("10:00:30"),
    };
    let rows = action.rows(&class);
    let names: Vec<&str> = rows.iter().map(|row| row.person.as_str()).collect();
    assert_eq!(names, ["ada", "ada", "bob", "eve", "zoe"]);
    assert_eq!(Totals::of(&rows), Totals { to_do: 1, unchanged: 2, refused: 2, ..Totals::default() });
    assert_eq!(rows[3].state, State::Refused(Refusal::Api(ApiError::Forbidden("no".to_owned()))));
    assert_eq!(rows[4].state, State::Refused(Refusal::NotEnrolled));
}

#[test]
fn an_identifier_is_read_as_it_is_displayed_and_ends_after_a_day() {
    let now = created("10:00:00");
    let id = ActionId::new(now).expect("random numbers");
    assert_eq!(ActionId::parse(&id.to_string()), Some(id.clone()));
    assert_ne!(ActionId::new(now).map(|id| id.to_string()), Some(id.to_string()));
    let hours = SignedDuration::from_hours;
    assert!(id.is_open(now + hours(24)) && !id.is_open(now + hours(25)));
    assert!(!id.is_open(now - hours(25)), "a time of the future");
    for text in [
        "",
        "abcdefghij234567",
        "abcdefghij234567-",
        "abcdefghij23456-1",
        "abcdefghij234568-1",
        "ABCDEFGHIJ234567-1",
        "abcdefghij234567--1",
        "abcdefghij234567-+1",
        "abcdefghij234567-1 ",
        "abcdefghij234567-999999999999",
    ] {
        assert_eq!(ActionId::parse(text), None, "{text:?}");
    }
}
