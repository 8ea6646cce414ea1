//! The requests of an action.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::class::cluster::AsUser;
use crate::class::model::{People, Refusal, Row, State, Unchanged, Verb};
use crate::class::plan::Action;
use crate::class::read::read;
use crate::class::run::{check, run};
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::client::{Credential, UserClient};

const PEOPLE: usize = 40;

fn cluster(api: &ApiServer) -> AsUser {
    let credential = Credential::token("token").expect("a token");
    AsUser { client: UserClient::new(&api.config).expect("a client"), credential }
}

fn tenants() -> Value {
    let tenant = |number: usize| {
        json!({
            "metadata": {"name": format!("s{number:02}")},
            "spec": {"firstName": format!("Student {number:02}"), "lastName": "Rossi", "email": "s@example.org"},
            "status": {"personalNamespace": {"created": true}},
        })
    };
    (0..PEOPLE).map(tenant).collect::<Vec<_>>().into()
}

fn list(items: &Value) -> (u16, Value) {
    (200, json!({"kind": "List", "metadata": {}, "items": items}))
}

/// Answers the reads of a course whose students have these machines.
fn reads(asked: &Asked, machines: &Value) -> Option<(u16, Value)> {
    match asked.line.split('?').next().unwrap_or_default() {
        line if line.ends_with("/tenants") => Some(list(&tenants())),
        "GET /apis/crownlabs.polito.it/v1alpha2/instances" => {
            let nothing = Value::Array(Vec::new());
            Some(list(if asked.line.contains("%21") { &nothing } else { machines }))
        }
        "GET /readyz" => Some((200, json!("ok"))),
        _ => None,
    }
}

/// Carries out an action on the class. Returns the rows, and the requests.
async fn carried_out(
    verb: Verb,
    answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static,
) -> (Vec<Row>, Vec<String>) {
    let api = ApiServer::start(answer).await;
    let cluster = cluster(&api);
    let class = read(&cluster, "tea", "workspace-tea", &People::All).await.expect("a class");
    api.lines();
    let (id, template) = (id(), template());
    let action = Action {
        verb,
        id: &id,
        course: "tea",
        template: Some(&template),
        is_retry: false,
        now: created("10:00:30"),
    };
    let rows = run(&cluster, &action, action.rows(&class), Instant::now() + Duration::from_mins(1)).await;
    (rows, api.lines())
}

fn machines(more: &Value) -> Value {
    let machine = |number: usize| {
        let name = format!("s{number:02}");
        machine(&name, "vm", more)
    };
    (0..PEOPLE).map(machine).collect::<Vec<_>>().into()
}

#[tokio::test]
async fn a_machine_is_created_for_each_person_and_an_existing_one_is_not_created_again() {
    for code in [201, 409] {
        let (rows, lines) = carried_out(Verb::Start, move |asked| {
            let created = || if code == 201 { (201, json!({})) } else { refused(409, "AlreadyExists", "") };
            reads(asked, &json!([])).unwrap_or_else(created)
        })
        .await;
        assert!(rows.iter().all(|row| row.state == State::Done), "{rows:?}");
        let titles: Vec<&str> = rows.iter().map(|row| row.title.as_str()).collect();
        assert!(titles.is_sorted() && rows.len() == PEOPLE, "{titles:?}");
        let lines: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(lines.len(), PEOPLE, "each person once: {lines:?}");
        assert!(lines.iter().all(|line| line.starts_with("POST ")), "{lines:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_reported_unless_the_machine_exists() {
    for exists in [true, false] {
        let (rows, _) = carried_out(Verb::Start, move |asked| {
            reads(asked, &json!([])).unwrap_or_else(|| match asked.is("GET ") {
                true if exists => (200, machine("ada", "vm", &json!({}))),
                true => refused(404, "NotFound", "not found"),
                false => refused(403, "Forbidden", "exceeded quota: 1 of 1"),
            })
        })
        .await;
        for row in &rows {
            match &row.state {
                State::Done => assert!(exists),
                State::Refused(Refusal::Api(error)) => {
                    assert!(!exists && error.to_string().contains("exceeded quota: 1 of 1"), "{error}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_machine_that_has_changed_meanwhile_is_read_again() {
    let (rows, lines) = carried_out(Verb::Stop, |asked| {
        reads(asked, &machines(&json!({}))).unwrap_or_else(|| match asked.is("PATCH ") {
            true if asked.body["metadata"]["resourceVersion"] == "7" => {
                refused(409, "Conflict", "the object has been modified")
            }
            true => (200, json!({})),
            // Of the read machines, the first has been deleted, and the second created again.
            false if asked.line.contains("tenant-s00/") => refused(404, "NotFound", "not found"),
            false if asked.line.contains("tenant-s01/") => {
                (200, machine("s01", "vm", &json!({"metadata": {"uid": "u-2"}})))
            }
            false => (200, machine("x", "vm", &json!({"metadata": {"resourceVersion": "8"}}))),
        })
    })
    .await;
    let states: Vec<&State> = rows.iter().map(|row| &row.state).collect();
    assert_eq!(*states[0], State::Unchanged(Unchanged::NoMachine));
    assert_eq!(*states[1], State::Unchanged(Unchanged::Later));
    assert!(states[2..].iter().all(|state| **state == State::Done), "{states:?}");
    let patches = lines.iter().filter(|line| line.starts_with("PATCH ")).count();
    assert_eq!(patches, PEOPLE + PEOPLE - 2);
}

#[tokio::test]
async fn no_request_begins_after_the_end_and_a_check_changes_nothing() {
    let api = ApiServer::start(|asked| {
        reads(asked, &machines(&json!({}))).unwrap_or_else(|| refused(403, "Forbidden", "no"))
    })
    .await;
    let cluster = cluster(&api);
    let class = read(&cluster, "tea", "workspace-tea", &People::All).await.expect("a class");
    api.lines();
    let id = id();
    let action = Action {
        verb: Verb::Delete,
        id: &id,
        course: "tea",
        template: None,
        is_retry: false,
        now: id.time(),
    };
    let rows = action.rows(&class);
    assert_eq!(run(&cluster, &action, rows.clone(), Instant::now()).await, rows);
    assert_eq!(check(&cluster, rows.clone(), 100, Instant::now()).await, rows);
    assert_eq!(api.lines(), Vec::<String>::new());
    let later = Instant::now() + Duration::from_mins(1);
    let checked = check(&cluster, rows.clone(), 3, later).await;
    let asked = api.asked();
    let dry = asked.iter().filter(|asked| asked.body["dryRun"] == json!(["All"])).count();
    assert_eq!(dry, 3, "{asked:?}");
    assert!(asked.iter().all(|asked| asked.is("DELETE ") || asked.is("GET /readyz")), "{asked:?}");
    assert_eq!(asked.iter().filter(|asked| asked.is("DELETE ")).count(), 3);
    let is_refused = |row: &Row| matches!(&row.state, State::Refused(Refusal::Api(_)));
    assert!(checked[..3].iter().all(is_refused), "{checked:?}");
    assert_eq!(checked[3..], rows[3..]);
}

#[tokio::test]
async fn the_machines_of_a_namespace_are_listed_if_those_of_the_cluster_must_not_be() {
    let api = ApiServer::start(|asked| {
        let path = asked.line.split('?').next().unwrap_or_default();
        match path {
            "GET /apis/crownlabs.polito.it/v1alpha2/instances" => refused(403, "Forbidden", "no"),
            path if path.contains("/namespaces/tenant-s07/") => refused(403, "Forbidden", "not here"),
            path if path.contains("/namespaces/") => {
                let of_course = machine("x", "vm", &json!({}));
                let new = machine("x", "new", &json!({"metadata": {"labels": null}}));
                let label = json!({"metadata": {"labels": {"crownlabs.polito.it/workspace": "net"}}});
                list(&json!([of_course, new, machine("x", "other", &label)]))
            }
            _ => reads(asked, &json!([])).unwrap_or_else(|| refused(404, "NotFound", "not found")),
        }
    })
    .await;
    let cluster = cluster(&api);
    let class = read(&cluster, "tea", "workspace-tea", &People::All).await.expect("a class");
    assert_eq!((class.machines.len(), class.unread.len()), (PEOPLE - 1, 1));
    assert!(class.unread.contains_key("tenant-s07"));
    let names: Vec<&str> = class.machines["tenant-s00"].iter().map(Instance::name).collect();
    assert_eq!(names, ["vm", "new"], "the label decides, and the namespace of the Template without one");
    // A few selected people, and a name that no student has.
    api.lines();
    let people = People::Named(["s01", "nobody"].map(str::to_owned).into());
    let class = read(&cluster, "tea", "workspace-tea", &people).await.expect("a class");
    assert_eq!(class.people.iter().map(|person| person.name.as_str()).collect::<Vec<_>>(), ["s01"]);
    assert_eq!(class.strangers, ["nobody"]);
    let lines = api.lines();
    assert_eq!(lines.len(), 2, "the students and one namespace: {lines:?}");
    assert!(lines[0].contains("labelSelector=crownlabs.polito.it%2Fworkspace-tea%3Duser"), "{lines:?}");
}
