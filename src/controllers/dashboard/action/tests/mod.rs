//! Tests of the actions with a fake API server: their requests, forms that are sent twice, conflicts.

mod objects;
mod twice;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::entry::{Action, Form};
use super::request::Requests;
use super::result::Failure;
use crate::api::labels;
use crate::controllers::dashboard::account::actions::{ADD_KEY, REMOVE_KEY, entry};
use crate::controllers::dashboard::courses::actions::{ASK, JOIN, LEAVE};
use crate::controllers::dashboard::files::actions::OPEN;
use crate::controllers::dashboard::home::actions::CREATE;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::machine::actions::{
    DELETE, EXPOSE, KEEP, RENAME, RESTART, SAVE, START, STOP, UNEXPOSE,
};
use crate::controllers::dashboard::router::actions;
use crate::controllers::dashboard::session::login::record;
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::user::users::User;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::client::{Credential, UserClient};
use crate::runtime::clock;
use crate::runtime::error::ApiError;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3 ada@laptop";

fn user() -> User {
    let credential = Credential::token("token").expect("a token");
    User::new(credential, "ada".to_owned(), Timestamp::MAX)
}

/// A form for the machine `tenant-ada/vm` and the course `tea`.
fn form(fields: &str) -> Form<'static> {
    let parameters = [("namespace", "tenant-ada"), ("name", "vm"), ("course", "tea")];
    Form {
        parameters: Fields(parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()),
        fields: Fields::parse(fields.as_bytes()),
        drive_template: None,
    }
}

fn instance(spec: &Value) -> Value {
    let mut body = json!({
        "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
        "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
    });
    json_patch::merge(&mut body, spec);
    json!({"metadata": {"name": "vm", "namespace": "tenant-ada", "uid": "u1", "resourceVersion": "7"}, "spec": body})
}

fn tenant(spec: &Value) -> Value {
    json!({"metadata": {"name": "ada", "uid": "t1", "resourceVersion": "9"}, "spec": spec})
}

/// Starts an API server with one object, which answers each change with this status code.
async fn having(object: Value, code: u16) -> (ApiServer, UserClient) {
    serving(move |asked| if asked.is("GET ") { (200, object.clone()) } else { answer(code, &object) }).await
}

fn answer(code: u16, object: &Value) -> (u16, Value) {
    match code {
        409 => refused(409, "Conflict", "the object has been modified"),
        403 => refused(403, "Forbidden", "quota exceeded: Instances (4 > 3)"),
        404 => refused(404, "NotFound", "it is not there"),
        _ => (code, object.clone()),
    }
}

async fn serving(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> (ApiServer, UserClient) {
    let api = ApiServer::start(answer).await;
    let client = UserClient::new(&api.config).expect("a client");
    (api, client)
}

/// Returns the bodies of all requests that change something, without their preconditions.
fn changes(api: &ApiServer) -> Vec<Value> {
    let asked = api.asked().into_iter().filter(|asked| !asked.is("GET "));
    let plain = asked.map(|asked| {
        let mut body = asked.body;
        if let Some(operations) = body.as_array_mut() {
            operations.retain(|one| !one["path"].as_str().is_some_and(|path| path.starts_with("/metadata")));
        } else if let Some(metadata) = body["metadata"].as_object_mut() {
            let version = [metadata.remove("uid"), metadata.remove("resourceVersion")];
            assert_eq!(version, [Some("u1".into()), Some("7".into())], "the version that was read");
            if metadata.is_empty() {
                body.as_object_mut().expect("an object").remove("metadata");
            }
        }
        body
    });
    plain.collect()
}

/// Carries out an action with the machine `tenant-ada/vm`. Returns its result and the changes that were sent.
async fn carry_out(
    object: Value,
    code: u16,
    action: &Action,
    fields: &str,
) -> (Result<&'static str, Failure>, Vec<Value>) {
    let ((api, client), user) = (having(object, code).await, user());
    let done = Requests { client: &client, user: &user }.carry_out(action, &form(fields)).await;
    (done, changes(&api))
}

fn problem<T: std::fmt::Debug>(done: Result<T, Failure>) -> Problem {
    match done {
        Err(Failure::Invalid(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

fn api<T: std::fmt::Debug>(done: Result<T, Failure>) -> ApiError {
    match done {
        Err(Failure::Api(error)) => error,
        other => panic!("{other:?}"),
    }
}

const NEW: &str = "name=desktop-k3x9&templateNamespace=workspace-tea&template=desktop";

#[tokio::test]
async fn a_form_that_is_sent_twice_creates_one_machine() {
    // The Template of the existing Instance, and whether it is the requested one.
    for (template, is_same) in [("desktop", true), ("other", false)] {
        let spec = json!({"template.crownlabs.polito.it/TemplateRef": {"name": template}});
        let found = instance(&spec);
        let (api_server, client) = serving(move |asked| {
            if asked.is("GET ") { (200, found.clone()) } else { refused(409, "AlreadyExists", "it exists") }
        })
        .await;
        let user = user();
        let requests = Requests { client: &client, user: &user };
        let made = requests.carry_out(&CREATE, &form(NEW)).await;
        assert_eq!(made.is_ok(), is_same, "{template}");
        let [create, read] = api_server.asked().try_into().expect("two requests");
        let path = "/apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-ada/instances";
        assert_eq!((create.line, read.line), (format!("POST {path}"), format!("GET {path}/desktop-k3x9")));
        assert_eq!(create.body["metadata"]["name"], "desktop-k3x9");
        let expected = json!({"namespace": "workspace-tea", "name": "desktop"});
        assert_eq!(create.body["spec"]["template.crownlabs.polito.it/TemplateRef"], expected);
        assert_eq!(create.body["spec"]["tenant.crownlabs.polito.it/TenantRef"], json!({"name": "ada"}));
    }
}

#[tokio::test]
async fn an_invalid_form_sends_no_request() {
    let ((server, client), user) = (having(instance(&json!({})), 200).await, user());
    let requests = Requests { client: &client, user: &user };
    for (action, fields) in [
        (&CREATE, ""),
        (&CREATE, "name=..&templateNamespace=a&template=b"),
        (&CREATE, "name=a.b&templateNamespace=a&template=b"),
        (&CREATE, "name=a&templateNamespace=a/b&template=c"),
        (&CREATE, "name=a&template=b"),
        (&DELETE.action, ""),
        (&SAVE.action, "uid=u1&name=.."),
    ] {
        assert_eq!(problem(requests.carry_out(action, &form(fields)).await), Problem::Form, "{fields}");
    }
    assert_eq!(problem(requests.carry_out(&OPEN, &form("name=a")).await), Problem::Gone);
    assert_eq!(server.lines(), Vec::<String>::new());
}

#[test]
fn every_action_has_its_own_name_and_path() {
    let names: BTreeSet<&str> = actions().map(|action| action.name).collect();
    let paths: BTreeSet<&str> = actions().map(|action| action.path).collect();
    assert_eq!((names.len(), paths.len()), (actions().count(), actions().count()));
}

#[tokio::test]
async fn each_action_sends_only_its_change() {
    for (of, form, expected) in [
        (&START, "uid=u1", json!({"spec": {"running": true}})),
        (&STOP, "uid=u1", json!({"spec": {"running": false}})),
        (&RENAME, "uid=u1&prettyName=+My+lab+", json!({"spec": {"prettyName": "My lab"}})),
    ] {
        let (done, changes) = carry_out(instance(&json!({})), 200, &of.action, form).await;
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(changes, [expected], "{form}");
    }
    for (of, annotation) in [(&KEEP, labels::KEPT_AT), (&RESTART, labels::RESTARTED_AT)] {
        let (done, changes) = carry_out(instance(&json!({})), 200, &of.action, "uid=u1").await;
        assert!(done.is_ok(), "{done:?}");
        let text = changes[0]["metadata"]["annotations"][annotation].as_str().expect("a time");
        assert_eq!(changes, [json!({"metadata": {"annotations": {annotation: text}}})]);
        let time: Timestamp = text.parse().expect("a time");
        assert!(time <= clock::now(), "never in the future");
    }
    let long = format!("uid=u1&prettyName={}", "x".repeat(201));
    assert_eq!(problem(carry_out(instance(&json!({})), 200, &RENAME.action, &long).await.0), Problem::Name);
}

#[tokio::test]
async fn a_machine_that_was_created_again_is_not_changed() {
    let fields = "uid=of-the-one-before";
    let (done, changes) = carry_out(instance(&json!({})), 200, &STOP.action, fields).await;
    assert_eq!((problem(done), changes), (Problem::Changed, vec![]));
    // An Instance is deleted by its uid. If it no longer exists, that is a success.
    let (server, client) = having(Value::Null, 404).await;
    let user = user();
    let requests = Requests { client: &client, user: &user };
    assert!(requests.carry_out(&DELETE.action, &form(fields)).await.is_ok());
    let [asked] = server.asked().try_into().expect("one request");
    assert_eq!(asked.body["preconditions"], json!({"uid": "of-the-one-before"}));
    // The machine with the name is another one.
    assert!(carry_out(instance(&json!({})), 409, &DELETE.action, fields).await.0.is_ok());
    let (done, _) = carry_out(instance(&json!({})), 409, &DELETE.action, "uid=u1").await;
    assert!(matches!(api(done), ApiError::Conflict(_)));
}

#[tokio::test]
async fn a_conflict_is_retried_five_times() {
    let tries = |until: usize| async move {
        let count = AtomicUsize::new(0);
        let object = instance(&json!({"running": false}));
        let (server, client) = serving(move |asked| {
            let is_late = asked.is("PATCH ") && count.fetch_add(1, Ordering::Relaxed) + 1 < until;
            answer(if is_late { 409 } else { 200 }, &object)
        })
        .await;
        let user = user();
        let requests = Requests { client: &client, user: &user };
        let done = requests.carry_out(&START.action, &form("uid=u1")).await;
        (done, server.lines().iter().filter(|line| line.starts_with("PATCH ")).count())
    };
    let (done, count) = tries(5).await;
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(count, 5);
    let (done, count) = tries(6).await;
    assert!(matches!(api(done), ApiError::Conflict(_)));
    assert_eq!(count, 5, "and no more");
    let (done, changes) = carry_out(instance(&json!({"running": false})), 403, &START.action, "uid=u1").await;
    assert!(api(done).to_string().contains("quota exceeded: Instances (4 > 3)"));
    assert_eq!(changes.len(), 1, "a rejection is not retried");
}

#[tokio::test]
async fn a_port_is_added_once_and_removed() {
    let http = json!({"name": "tcp-80", "port": 0, "targetPort": 80, "protocol": "TCP"});
    let one = instance(&json!({"publicExposure": {"ports": [http]}}));
    let ports = |ports: Value| vec![json!({"spec": {"publicExposure": {"ports": ports}}})];
    let dns = json!({"name": "dns", "port": 5353, "targetPort": 53, "protocol": "UDP"});
    let form = "uid=u1&name=dns&port=5353&targetPort=53&protocol=UDP";
    for (object, of, form, expected) in [
        (instance(&json!({})), &EXPOSE, "uid=u1&targetPort=80", ports(json!([http]))),
        (one.clone(), &EXPOSE, "uid=u1&targetPort=80", vec![]),
        (one.clone(), &EXPOSE, form, ports(json!([http, dns]))),
        (one.clone(), &UNEXPOSE, "uid=u1&entry=tcp-80+0+80+TCP&at=0&same=1", ports(json!([]))),
        (one.clone(), &UNEXPOSE, "uid=u1&entry=other+0+80+TCP&at=0&same=1", vec![]),
        (instance(&json!({})), &UNEXPOSE, "uid=u1&entry=tcp-80+0+80+TCP&at=0&same=1", vec![]),
    ] {
        let (done, changes) = carry_out(object, 200, &of.action, form).await;
        assert!(done.is_ok(), "{form}: {done:?}");
        assert_eq!(changes, expected, "{form}");
    }
    for (form, wrong) in [
        ("targetPort=0", Problem::Port),
        ("targetPort=65536", Problem::Port),
        ("targetPort=ssh", Problem::Port),
        ("targetPort=22&port=-1", Problem::PublicPort),
        ("targetPort=22&protocol=ICMP", Problem::Form),
        ("targetPort=22&name=Not+a+name", Problem::PortName),
        ("targetPort=22&name=sixteen-letters-", Problem::PortName),
        ("targetPort=22&protocol=SCTP", Problem::Form),
        ("targetPort=22&name=tcp-80", Problem::PortNameTaken),
        ("targetPort=80&name=web", Problem::PortTargetTaken),
    ] {
        let (done, changes) = carry_out(one.clone(), 200, &EXPOSE.action, &format!("uid=u1&{form}")).await;
        assert_eq!((problem(done), changes), (wrong, vec![]), "{form}");
    }
}

/// Carries out an action of a Tenant with this spec.
async fn of_tenant(
    spec: Value,
    action: &Action,
    form: &Form<'_>,
) -> (Result<&'static str, Failure>, Vec<Value>) {
    let ((api, client), user) = (having(tenant(&spec), 200).await, user());
    let done = Requests { client: &client, user: &user }.carry_out(action, form).await;
    (done, changes(&api))
}

/// A form for a course.
fn course_form(name: &str) -> Form<'static> {
    Form { parameters: Fields(vec![("course".to_owned(), name.to_owned())]), ..Form::default() }
}

/// A form with a key.
fn key_form(field: &str, value: &str) -> Form<'static> {
    Form { fields: Fields(vec![(field.to_owned(), value.to_owned())]), ..Form::default() }
}

fn add(path: &str, value: &Value) -> Vec<Value> {
    vec![json!([{"op": "add", "path": path, "value": value}])]
}

#[tokio::test]
async fn a_key_is_appended_to_the_list_and_removed_by_its_position() {
    for (spec, expected) in [
        (json!({}), add("/spec/publicKeys", &json!([KEY]))),
        (json!({"publicKeys": []}), add("/spec/publicKeys", &json!([KEY]))),
        (json!({"publicKeys": ["ssh-rsa x"]}), add("/spec/publicKeys/-", &json!(KEY))),
    ] {
        let (done, changes) = of_tenant(spec.clone(), &ADD_KEY, &key_form("key", &format!(" {KEY}\n"))).await;
        assert!(done.is_ok(), "{spec}: {done:?}");
        assert_eq!(changes, expected, "{spec}");
    }
    // The same key with another comment.
    let other = KEY.replace("ada@laptop", "home");
    let known = json!({"publicKeys": [other]});
    let (done, changes) = of_tenant(known, &ADD_KEY, &key_form("key", KEY)).await;
    assert_eq!((problem(done), changes), (Problem::KnownKey, vec![]));
    let (done, changes) = of_tenant(json!({}), &ADD_KEY, &key_form("key", "ssh-rsa nonsense")).await;
    assert_eq!((problem(done), changes), (Problem::Key, vec![]));
    let keys = json!({"publicKeys": ["ssh-rsa <x>", KEY]});
    for (digest, expected) in
        [(entry(KEY), vec![json!([{"op": "remove", "path": "/spec/publicKeys/1"}])]), (entry("gone"), vec![])]
    {
        let (done, changes) = of_tenant(keys.clone(), &REMOVE_KEY, &key_form("entry", &digest)).await;
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(changes, expected);
    }
}

#[tokio::test]
async fn a_course_is_joined_by_the_rule_of_its_workspace_and_left() {
    for (enrol, spec, expected) in [
        (
            "immediate",
            json!({}),
            Ok((JOIN.name, add("/spec/workspaces", &json!([{"name": "tea", "role": "user"}])))),
        ),
        (
            "withApproval",
            json!({}),
            Ok((ASK.name, add("/spec/workspaces", &json!([{"name": "tea", "role": "candidate"}])))),
        ),
        ("immediate", json!({"workspaces": [{"name": "tea", "role": "manager"}]}), Ok((JOIN.name, vec![]))),
        ("", json!({}), Err(Problem::Closed)),
    ] {
        let workspace = json!({"metadata": {"name": "tea", "uid": "w", "resourceVersion": "1"}, "spec": {"autoEnroll": enrol}});
        let tenant = tenant(&spec);
        let (server, client) = serving(move |asked| {
            let object = if asked.line.contains("/workspaces/") { &workspace } else { &tenant };
            (200, object.clone())
        })
        .await;
        let user = user();
        let done = Requests { client: &client, user: &user }.carry_out(&JOIN, &form("")).await;
        match expected {
            Ok((name, expected)) => {
                assert_eq!((done.expect("it is done"), changes(&server)), (name, expected));
            }
            Err(expected) => assert_eq!((problem(done), changes(&server)), (expected, vec![])),
        }
    }
    let spec = json!({"workspaces": [{"name": "sea", "role": "user"}, {"name": "tea", "role": "user"}]});
    for (course, expected) in
        [("tea", vec![json!([{"op": "remove", "path": "/spec/workspaces/1"}])]), ("gone", vec![])]
    {
        let (done, changes) = of_tenant(spec.clone(), &LEAVE, &course_form(course)).await;
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(changes, expected);
    }
}

#[tokio::test]
async fn a_login_is_recorded_once_per_hour() {
    let minutes = |minutes: i64| clock::rfc3339(clock::now() - jiff::SignedDuration::from_mins(minutes));
    for (spec, count) in [
        (json!({}), 1),
        (json!({"lastLogin": minutes(50)}), 0),
        (json!({"lastLogin": minutes(70)}), 1),
        (json!({"lastLogin": minutes(-600)}), 1),
    ] {
        let ((server, client), user) = (having(tenant(&spec), 200).await, user());
        record(&client, &user).await.expect("it is done");
        let asked: Vec<Asked> = server.asked().into_iter().filter(|asked| asked.is("PATCH ")).collect();
        assert_eq!(asked.len(), count, "{spec}");
        assert!(asked.iter().all(|asked| asked.body["spec"].as_object().is_some_and(|spec| spec.len() == 1)));
    }
}
