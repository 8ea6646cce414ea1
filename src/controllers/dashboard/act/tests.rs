//! Actions against an API server that answers as a test says: what is asked for, what is sent twice, and what has changed.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::client::Credential;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1bGxzaGl0a2V5Zm9ydGVzdGluZ29ubHkxMjM0NTY3 ada@laptop";

fn user() -> User {
    let credential = Credential::token("token").expect("a token");
    User::new(credential, "ada".to_owned(), Timestamp::MAX)
}

fn machine() -> ObjectKey {
    ObjectKey::new("tenant-ada", "vm")
}

fn fields(text: &str) -> Fields {
    Fields::parse(text.as_bytes())
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

/// An API server that has one object, and answers so to whatever is to change it.
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

/// What was sent to change something, without the versions that it is for.
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

async fn act(object: Value, code: u16, act: OfMachine, form: &str) -> (Result<(), Failure>, Vec<Value>) {
    let ((api, client), user) = (having(object, code).await, user());
    let done = Acting { client: &client, user: &user }.machine(&machine(), act, &fields(form)).await;
    (done, changes(&api))
}

fn typed<T: std::fmt::Debug>(done: Result<T, Failure>) -> Typed {
    match done {
        Err(Failure::Typed(typed)) => typed,
        other => panic!("{other:?}"),
    }
}

fn api<T: std::fmt::Debug>(done: Result<T, Failure>) -> ApiError {
    match done {
        Err(Failure::Api(error)) => error,
        other => panic!("{other:?}"),
    }
}

const CREATE: &str = "name=desktop-k3x9&templateNamespace=workspace-tea&template=desktop";

#[tokio::test]
async fn a_form_that_is_sent_twice_makes_one_machine() {
    // What is there, and whether it counts as what the form asks for.
    for (template, is_same) in [("desktop", true), ("other", false)] {
        let spec = json!({"template.crownlabs.polito.it/TemplateRef": {"name": template}});
        let found = instance(&spec);
        let (api_server, client) = serving(move |asked| {
            if asked.is("GET ") { (200, found.clone()) } else { refused(409, "AlreadyExists", "it exists") }
        })
        .await;
        let user = user();
        let made = Acting { client: &client, user: &user }.create(&fields(CREATE)).await;
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
async fn a_form_of_another_page_asks_for_nothing() {
    let ((server, client), user) = (having(instance(&json!({})), 200).await, user());
    let acting = Acting { client: &client, user: &user };
    for form in [
        "",
        "name=..&templateNamespace=a&template=b",
        "name=a&templateNamespace=a/b&template=c",
        "name=a&template=b",
    ] {
        assert_eq!(typed(acting.create(&fields(form)).await), Typed::Form, "{form}");
    }
    assert_eq!(typed(acting.machine(&machine(), OfMachine::Delete, &fields("")).await), Typed::Form);
    assert_eq!(
        typed(acting.machine(&machine(), OfMachine::Save, &fields("uid=u1&name=..")).await),
        Typed::Form
    );
    assert_eq!(server.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn each_action_changes_what_it_says_and_nothing_else() {
    for (of, form, expected) in [
        (OfMachine::Start, "uid=u1", json!({"spec": {"running": true}})),
        (OfMachine::Stop, "uid=u1", json!({"spec": {"running": false}})),
        (OfMachine::Rename, "uid=u1&prettyName=+My+lab+", json!({"spec": {"prettyName": "My lab"}})),
    ] {
        let (done, changes) = act(instance(&json!({})), 200, of, form).await;
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(changes, [expected], "{form}");
    }
    let (done, changes) = act(instance(&json!({})), 200, OfMachine::Keep, "uid=u1").await;
    assert!(done.is_ok(), "{done:?}");
    let kept = changes[0]["metadata"]["annotations"][labels::KEPT_AT].as_str().expect("a time");
    let kept: Timestamp = kept.parse().expect("a time");
    assert!(kept <= clock::now(), "never in the future");
    let long = format!("uid=u1&prettyName={}", "x".repeat(201));
    assert_eq!(typed(act(instance(&json!({})), 200, OfMachine::Rename, &long).await.0), Typed::Name);
}

#[tokio::test]
async fn the_machine_that_came_after_it_is_left_alone() {
    let form = "uid=of-the-one-before";
    let (done, changes) = act(instance(&json!({})), 200, OfMachine::Stop, form).await;
    assert!(matches!(api(done), ApiError::Conflict(_)));
    assert_eq!(changes, Vec::<Value>::new());
    // It is deleted by its uid; what is gone already is deleted.
    let (server, client) = having(Value::Null, 404).await;
    let user = user();
    let acting = Acting { client: &client, user: &user };
    assert!(acting.machine(&machine(), OfMachine::Delete, &fields(form)).await.is_ok());
    let [asked] = server.asked().try_into().expect("one request");
    assert_eq!(asked.body["preconditions"], json!({"uid": "of-the-one-before"}));
    let (done, _) = act(Value::Null, 409, OfMachine::Delete, form).await;
    assert!(matches!(api(done), ApiError::Conflict(_)));
}

#[tokio::test]
async fn a_change_is_tried_again_for_the_next_version_five_times() {
    let tries = |until: usize| async move {
        let count = AtomicUsize::new(0);
        let object = instance(&json!({}));
        let (server, client) = serving(move |asked| {
            let is_late = asked.is("PATCH ") && count.fetch_add(1, Ordering::Relaxed) + 1 < until;
            answer(if is_late { 409 } else { 200 }, &object)
        })
        .await;
        let user = user();
        let acting = Acting { client: &client, user: &user };
        let done = acting.machine(&machine(), OfMachine::Start, &fields("uid=u1")).await;
        (done, server.lines().iter().filter(|line| line.starts_with("PATCH ")).count())
    };
    let (done, count) = tries(5).await;
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(count, 5);
    let (done, count) = tries(6).await;
    assert!(matches!(api(done), ApiError::Conflict(_)));
    assert_eq!(count, 5, "and no more");
    let (done, changes) = act(instance(&json!({})), 403, OfMachine::Start, "uid=u1").await;
    assert!(api(done).to_string().contains("quota exceeded: Instances (4 > 3)"));
    assert_eq!(changes.len(), 1, "what is refused is not tried again");
}

#[tokio::test]
async fn a_port_is_added_once_and_removed() {
    let http = json!({"name": "tcp-80", "port": 0, "targetPort": 80, "protocol": "TCP"});
    let one = instance(&json!({"publicExposure": {"ports": [http]}}));
    let ports = |ports: Value| vec![json!({"spec": {"publicExposure": {"ports": ports}}})];
    let dns = json!({"name": "dns", "port": 5353, "targetPort": 53, "protocol": "UDP"});
    let form = "uid=u1&name=dns&port=5353&targetPort=53&protocol=UDP";
    for (object, of, form, expected) in [
        (instance(&json!({})), OfMachine::Expose, "uid=u1&targetPort=80", ports(json!([http]))),
        (one.clone(), OfMachine::Expose, "uid=u1&targetPort=80", vec![]),
        (one.clone(), OfMachine::Expose, form, ports(json!([http, dns]))),
        (one.clone(), OfMachine::Unexpose, "uid=u1&name=tcp-80", ports(json!([]))),
        (one.clone(), OfMachine::Unexpose, "uid=u1&name=other", vec![]),
        (instance(&json!({})), OfMachine::Unexpose, "uid=u1&name=tcp-80", vec![]),
    ] {
        let (done, changes) = act(object, 200, of, form).await;
        assert!(done.is_ok(), "{form}: {done:?}");
        assert_eq!(changes, expected, "{form}");
    }
    for (form, wrong) in [
        ("targetPort=0", Typed::Port),
        ("targetPort=65536", Typed::Port),
        ("targetPort=ssh", Typed::Port),
        ("targetPort=22&port=-1", Typed::Port),
        ("targetPort=22&protocol=ICMP", Typed::Form),
        ("targetPort=22&name=Not+a+name", Typed::PortName),
        ("targetPort=22&name=sixteen-letters-", Typed::PortName),
    ] {
        let (done, changes) = act(one.clone(), 200, OfMachine::Expose, &format!("uid=u1&{form}")).await;
        assert_eq!((typed(done), changes), (wrong, vec![]), "{form}");
    }
}

async fn of_tenant<T>(spec: Value, then: impl AsyncFn(&Acting<'_>) -> T) -> (T, Vec<Value>) {
    let ((api, client), user) = (having(tenant(&spec), 200).await, user());
    let done = then(&Acting { client: &client, user: &user }).await;
    (done, changes(&api))
}

fn add(path: &str, value: &Value) -> Vec<Value> {
    vec![json!([{"op": "add", "path": path, "value": value}])]
}

#[tokio::test]
async fn a_key_is_added_to_a_list_or_makes_it_and_is_removed_where_it_is() {
    for (spec, expected) in [
        (json!({}), add("/spec/publicKeys", &json!([KEY]))),
        (json!({"publicKeys": []}), add("/spec/publicKeys", &json!([KEY]))),
        (json!({"publicKeys": ["ssh-rsa x"]}), add("/spec/publicKeys/-", &json!(KEY))),
    ] {
        let (done, changes) =
            of_tenant(spec.clone(), async |acting| acting.add_key(&format!(" {KEY}\n")).await).await;
        assert!(done.is_ok(), "{spec}: {done:?}");
        assert_eq!(changes, expected, "{spec}");
    }
    // The same key with another comment.
    let other = KEY.replace("ada@laptop", "home");
    let known = json!({"publicKeys": [other]});
    let (done, changes) = of_tenant(known, async |acting| acting.add_key(KEY).await).await;
    assert_eq!((typed(done), changes), (Typed::KnownKey, vec![]));
    let (done, changes) = of_tenant(json!({}), async |acting| acting.add_key("ssh-rsa nonsense").await).await;
    assert_eq!((typed(done), changes), (Typed::Key(PublicKeyError::Unreadable), vec![]));
    let keys = json!({"publicKeys": ["ssh-rsa <x>", KEY]});
    for (entry, expected) in [
        (page::entry(KEY), vec![json!([{"op": "remove", "path": "/spec/publicKeys/1"}])]),
        (page::entry("gone"), vec![]),
    ] {
        let (done, changes) = of_tenant(keys.clone(), async |acting| acting.remove_key(&entry).await).await;
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(changes, expected);
    }
}

#[tokio::test]
async fn a_course_is_joined_as_its_workspace_says_and_left() {
    for (enrol, spec, expected) in [
        (
            "immediate",
            json!({}),
            Ok((true, add("/spec/workspaces", &json!([{"name": "tea", "role": "user"}])))),
        ),
        (
            "withApproval",
            json!({}),
            Ok((false, add("/spec/workspaces", &json!([{"name": "tea", "role": "candidate"}])))),
        ),
        ("immediate", json!({"workspaces": [{"name": "tea", "role": "manager"}]}), Ok((true, vec![]))),
        ("", json!({}), Err(Typed::Closed)),
    ] {
        let workspace = json!({"metadata": {"name": "tea", "uid": "w", "resourceVersion": "1"}, "spec": {"autoEnroll": enrol}});
        let tenant = tenant(&spec);
        let (server, client) = serving(move |asked| {
            let object = if asked.line.contains("/workspaces/") { &workspace } else { &tenant };
            (200, object.clone())
        })
        .await;
        let user = user();
        let done = Acting { client: &client, user: &user }.join("tea").await;
        match expected {
            Ok((is_in, expected)) => {
                assert_eq!((done.expect("it is done"), changes(&server)), (is_in, expected));
            }
            Err(expected) => assert_eq!((typed(done), changes(&server)), (expected, vec![])),
        }
    }
    let spec = json!({"workspaces": [{"name": "sea", "role": "user"}, {"name": "tea", "role": "user"}]});
    for (course, expected) in
        [("tea", vec![json!([{"op": "remove", "path": "/spec/workspaces/1"}])]), ("gone", vec![])]
    {
        let (done, changes) = of_tenant(spec.clone(), async |acting| acting.leave(course).await).await;
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(changes, expected);
    }
}

#[tokio::test]
async fn a_login_is_written_once_in_an_hour() {
    let minutes = |minutes: i64| clock::rfc3339(clock::now() - jiff::SignedDuration::from_mins(minutes));
    for (spec, count) in [
        (json!({}), 1),
        (json!({"lastLogin": minutes(50)}), 0),
        (json!({"lastLogin": minutes(70)}), 1),
        (json!({"lastLogin": minutes(-600)}), 1),
    ] {
        let ((server, client), user) = (having(tenant(&spec), 200).await, user());
        Acting { client: &client, user: &user }.logged_in().await.expect("it is done");
        let asked: Vec<Asked> = server.asked().into_iter().filter(|asked| asked.is("PATCH ")).collect();
        assert_eq!(asked.len(), count, "{spec}");
        assert!(asked.iter().all(|asked| asked.body["spec"].as_object().is_some_and(|spec| spec.len() == 1)));
    }
}
