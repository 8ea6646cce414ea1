//! Forms that are sent twice, and changes that the API server refuses or does not confirm: the object is read before the
//! outcome is reported.

use super::*;
use crate::controllers::dashboard::machine::actions::entry as entry_of_port;

const UNEXPOSE_SSH: &str = "uid=u1&entry=ssh+22+22+TCP&at=0&same=2";

/// Carries out an action. Reads return `before` until the first change, and `after` then; `None` if there is no object. The
/// change is answered with this status code.
async fn answered(
    (before, after): (Option<Value>, Option<Value>),
    code: u16,
    action: &Action,
    form: &Form<'_>,
) -> Result<&'static str, Failure> {
    let is_sent = AtomicUsize::new(0);
    let (_server, client) = serving(move |asked| {
        if !asked.is("GET ") {
            is_sent.store(1, Ordering::Relaxed);
            return match code {
                409 => refused(409, "AlreadyExists", "it exists"),
                500 => refused(500, "InternalError", "the answer is lost"),
                code => answer(code, &Value::Null),
            };
        }
        if asked.line.contains("readyz") {
            return (200, json!("ok"));
        }
        let found = if is_sent.load(Ordering::Relaxed) == 0 { &before } else { &after };
        found.clone().map_or_else(|| answer(404, &Value::Null), |found| (200, found))
    })
    .await;
    let user = user();
    Requests { client: &client, user: &user }.carry_out(action, form).await
}

/// The snapshot that the form of [`SAVE`] creates.
fn snapshot(image: &str) -> Value {
    json!({"metadata": {"name": "vm-1", "namespace": "tenant-ada", "uid": "s1", "resourceVersion": "1"}, "spec": {
        "instanceRef": {"name": "vm", "namespace": "tenant-ada"}, "environmentRef": {"name": "desktop"}, "imageName": image,
    }})
}

#[tokio::test]
async fn a_refused_or_lost_change_that_happened_is_reported_as_done() {
    let running = |running: bool| Some(instance(&json!({"running": running})));
    let named = |name: &str| Some(instance(&json!({"prettyName": name})));
    let port = json!({"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"});
    let ports = |ports: &Value| Some(instance(&json!({"publicExposure": {"ports": ports}})));
    let save = "uid=u1&name=vm-1&environment=desktop&imageName=lab";
    for (action, fields, before, happened) in [
        (&CREATE, NEW, None, running(true)),
        (&START.action, "uid=u1", running(false), running(true)),
        (&STOP.action, "uid=u1", running(true), running(false)),
        (&RENAME.action, "uid=u1&prettyName=Lab", named("Old"), named("Lab")),
        (&EXPOSE.action, "uid=u1&name=ssh&targetPort=22&port=22", ports(&json!([])), ports(&json!([port]))),
        (&UNEXPOSE.action, UNEXPOSE_SSH, ports(&json!([port, port])), ports(&json!([port]))),
        (&DELETE.action, "uid=u1", running(true), None),
        (&SAVE.action, save, None, Some(snapshot("lab"))),
    ] {
        for code in [403, 500] {
            let done = answered((before.clone(), happened.clone()), code, action, &form(fields)).await;
            assert_eq!(done.expect(action.name), action.name, "{code}");
            let failed = answered((before.clone(), before.clone()), code, action, &form(fields)).await;
            let error = api(failed);
            assert_eq!(matches!(error, ApiError::Forbidden(_)), code == 403, "{}: {error}", action.name);
        }
    }
}

#[tokio::test]
async fn a_refused_or_lost_change_of_the_tenant_that_happened_is_reported_as_done() {
    let keys = |keys: &[&str]| Some(tenant(&json!({"publicKeys": keys})));
    let courses = |names: &[&str]| {
        let entries: Vec<Value> = names.iter().map(|name| json!({"name": name, "role": "user"})).collect();
        Some(tenant(&json!({"workspaces": entries})))
    };
    let key = |field: &str, value: &str, count: &str| {
        let fields = [(field, value), ("count", count)];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Form { fields: Fields(fields), ..Form::default() }
    };
    for (action, form, before, happened) in [
        (&ADD_KEY, key("key", KEY, "0"), keys(&[]), keys(&[KEY])),
        (&REMOVE_KEY, key("entry", &entry(KEY), ""), keys(&[KEY]), keys(&[])),
        (&LEAVE, course_form("tea"), courses(&["tea"]), courses(&[])),
    ] {
        for code in [403, 500] {
            let done = answered((before.clone(), happened.clone()), code, action, &form).await;
            assert_eq!(done.expect(action.name), action.name, "{code}");
            let failed = answered((before.clone(), before.clone()), code, action, &form).await;
            assert!(matches!(failed, Err(Failure::Api(_))), "{}: {failed:?}", action.name);
        }
    }
}

#[tokio::test]
async fn a_machine_that_appears_shortly_after_the_refusal_was_created_by_the_same_form() {
    let reads = AtomicUsize::new(0);
    let (server, client) = serving(move |asked| {
        if !asked.is("GET ") {
            return refused(403, "Forbidden", "exceeded quota: limits");
        }
        match reads.fetch_add(1, Ordering::Relaxed) {
            0 => answer(404, &Value::Null),
            _ => (200, instance(&json!({}))),
        }
    })
    .await;
    let user = user();
    let done = Requests { client: &client, user: &user }.carry_out(&CREATE, &form(NEW)).await;
    assert_eq!(done.expect("it is created"), CREATE.name);
    assert_eq!(server.lines().len(), 3, "the change and two reads");
}

#[tokio::test]
async fn an_object_of_another_form_with_the_same_name_is_not_the_result() {
    let other = instance(&json!({"template.crownlabs.polito.it/TemplateRef": {"name": "other"}}));
    let failed = answered((None, Some(other)), 409, &CREATE, &form(NEW)).await;
    assert!(matches!(api(failed), ApiError::AlreadyExists(_)));
    let save = "uid=u1&name=vm-1&environment=desktop&imageName=lab";
    let failed = answered((None, Some(snapshot("other"))), 409, &SAVE.action, &form(save)).await;
    assert!(matches!(api(failed), ApiError::AlreadyExists(_)));
    let done = answered((None, Some(snapshot("lab"))), 409, &SAVE.action, &form(save)).await;
    assert_eq!(done.expect("it is saved"), SAVE.action.name);
}

#[tokio::test]
async fn if_the_object_cannot_be_read_nothing_is_sent_and_nothing_is_changed() {
    let (server, client) = serving(|_| refused(503, "ServiceUnavailable", "later")).await;
    let user = user();
    let requests = Requests { client: &client, user: &user };
    assert_eq!(problem(requests.carry_out(&STOP.action, &form("uid=u1")).await), Problem::NotNow);
    assert_eq!(problem(requests.carry_out(&JOIN, &form("")).await), Problem::NotNow);
    assert!(server.lines().iter().all(|line| line.starts_with("GET ")));
}

#[tokio::test]
async fn a_key_that_a_form_adds_twice_is_added_once_and_a_known_key_is_reported() {
    let form = |count: &str| {
        let fields = [("key", KEY), ("count", count)];
        Form {
            fields: Fields(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()),
            ..Form::default()
        }
    };
    let spec = json!({"publicKeys": [KEY]});
    // The page of the form shows no key yet.
    let (done, changes) = of_tenant(spec.clone(), &ADD_KEY, &form("0")).await;
    assert_eq!((done.expect("it is added"), changes), (ADD_KEY.name, vec![]));
    let (done, changes) = of_tenant(spec, &ADD_KEY, &form("1")).await;
    assert_eq!((problem(done), changes), (Problem::KnownKey, vec![]));
}

#[tokio::test]
async fn of_equal_entries_one_is_removed() {
    let [ssh, web] = [
        json!({"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"}),
        json!({"name": "web", "port": 0, "targetPort": 80, "protocol": "TCP"}),
    ];
    assert_eq!(entry_of_port(&serde_json::from_value(ssh.clone()).expect("a port")), "ssh 22 22 TCP");
    for (ports, at, expected) in [
        (json!([ssh, web, ssh]), 0, Some(json!([web, ssh]))),
        (json!([ssh, web, ssh]), 2, Some(json!([ssh, web]))),
        // The list has changed, and the form finds its entry elsewhere.
        (json!([web, ssh, ssh]), 0, Some(json!([web, ssh]))),
        // The form was sent twice.
        (json!([web, ssh]), 1, None),
        (json!([web]), 0, None),
    ] {
        let object = instance(&json!({"publicExposure": {"ports": ports}}));
        let fields = format!("uid=u1&entry=ssh+22+22+TCP&at={at}&same=2");
        let (done, changes) = carry_out(object, 200, &UNEXPOSE.action, &fields).await;
        assert!(done.is_ok(), "{done:?}");
        let expected: Vec<Value> =
            expected.map(|ports| json!({"spec": {"publicExposure": {"ports": ports}}})).into_iter().collect();
        assert_eq!(changes, expected, "{ports} {at}");
    }
    let twice = json!({"publicKeys": [KEY, "ssh-rsa x", KEY]});
    let same = |count: &str| Form {
        fields: Fields(vec![("entry".to_owned(), entry(KEY)), ("same".to_owned(), count.to_owned())]),
        ..Form::default()
    };
    let (_, changes) = of_tenant(twice, &REMOVE_KEY, &same("2")).await;
    assert_eq!(changes, vec![json!([{"op": "remove", "path": "/spec/publicKeys/0"}])]);
    let (done, changes) = of_tenant(json!({"publicKeys": [KEY]}), &REMOVE_KEY, &same("2")).await;
    assert_eq!((done.expect("it is removed"), changes), (REMOVE_KEY.name, vec![]));
}
