//! Actions on objects of any kind.

use super::*;
use crate::api::shared_volume::SharedVolumeKind;
use crate::controllers::dashboard::action::entry::{NewObject, Place, Plan, Right, Target};
use crate::controllers::dashboard::paths;
use crate::runtime::ObjectKey;
use crate::runtime::plan::KindInfo;

const KIND: KindInfo = KindInfo::of::<SharedVolumeKind>();
const OBJECTS: &str = "/apis/crownlabs.polito.it/v1alpha2/namespaces/workspace-tea/sharedvolumes";
const TARGET: Target = Target { kind: KIND, key };

fn key(form: &Form<'_>) -> Option<ObjectKey> {
    Some(ObjectKey::new("workspace-tea", form.get("volume"))).filter(|key| !key.name.is_empty())
}

fn new(form: &Form<'_>) -> Result<NewObject, Problem> {
    let key = key(form).ok_or(Problem::Form)?;
    Ok(NewObject { kind: KIND, key, body: json!({"spec": {"size": form.get("size")}}) })
}

/// Changes the size, and with `by=position` removes the first entry of a list.
fn change(object: &Value, form: &Form<'_>) -> Result<Option<Value>, Problem> {
    let size = form.get("size");
    if form.get("by") == "position" {
        let is_there = object["spec"]["list"].get(0).is_some();
        return Ok(is_there.then(|| json!([{"op": "remove", "path": "/spec/list/0"}])));
    }
    if size.is_empty() {
        return Err(Problem::Form);
    }
    Ok((object["spec"]["size"] != size).then(|| json!({"spec": {"size": size}})))
}

const fn action(name: &'static str, plan: Plan) -> Action {
    let right = Right::to::<SharedVolumeKind>("patch");
    Action { name, path: "/x", page: paths::COURSES, right, place: Place::Section, fields: &[], plan }
}

const ADD: Action = action("volume.add", Plan::Create(new));
const RESIZE: Action = action("volume.resize", Plan::Patch(TARGET, change));
const REMOVE: Action = action("volume.remove", Plan::Delete(TARGET));

fn volume(spec: &Value) -> Value {
    json!({"metadata": {"name": "data", "namespace": "workspace-tea", "uid": "u1", "resourceVersion": "7"}, "spec": spec})
}

#[tokio::test]
async fn an_object_is_created_with_its_kind_and_name() {
    let (api, client) = having(volume(&json!({"size": "1Gi"})), 201).await;
    let user = user();
    let requests = Requests { client: &client, user: &user };
    let done = requests.carry_out(&ADD, &form("volume=data&size=1Gi")).await;
    assert_eq!(done.expect("created"), ADD.name);
    let [create] = api.asked().try_into().expect("one request");
    assert_eq!(create.line, format!("POST {OBJECTS}"));
    let expected = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "SharedVolume",
        "metadata": {"name": "data"}, "spec": {"size": "1Gi"},
    });
    assert_eq!(create.body, expected);
}

#[tokio::test]
async fn a_form_that_is_sent_twice_creates_one_object() {
    for (size, is_done) in [("1Gi", true), ("2Gi", false)] {
        let (done, changes) = twice(&ADD, volume(&json!({"size": size, "default": true}))).await;
        assert_eq!((done.is_ok(), changes), (is_done, 1), "{size}");
        if !is_done {
            assert!(matches!(api(done), ApiError::AlreadyExists(_)));
        }
    }
}

/// Sends the form that creates an object with 1 GiB to an API server that has this object already. Returns the number
/// of writes, too.
async fn twice(action: &Action, object: Value) -> (Result<&'static str, Failure>, usize) {
    let (api, client) = serving(move |asked| {
        if asked.is("GET ") { (200, object.clone()) } else { refused(409, "AlreadyExists", "it exists") }
    })
    .await;
    let user = user();
    let requests = Requests { client: &client, user: &user };
    let done = requests.carry_out(action, &form("volume=data&size=1Gi")).await;
    (done, api.lines().iter().filter(|line| line.starts_with("POST ")).count())
}

#[tokio::test]
async fn an_object_is_changed_in_the_version_that_was_read() {
    let resize = "uid=u1&volume=data&size=2Gi";
    let by_position = "uid=u1&volume=data&by=position";
    let removal = json!([{"op": "remove", "path": "/spec/list/0"}]);
    for (spec, fields, expected) in [
        (json!({"size": "1Gi"}), resize, vec![json!({"spec": {"size": "2Gi"}})]),
        (json!({"size": "2Gi"}), resize, vec![]),
        (json!({"list": ["a"]}), by_position, vec![removal]),
        (json!({"list": []}), by_position, vec![]),
    ] {
        // The helper checks the preconditions of merge patches.
        let (done, changes) = carry_out(volume(&spec), 200, &RESIZE, fields).await;
        assert_eq!(done.expect("changed"), RESIZE.name);
        assert_eq!(changes, expected, "{spec}");
    }
    let (done, changes) =
        carry_out(volume(&json!({})), 200, &RESIZE, "uid=of-the-one-before&volume=data&size=2Gi").await;
    assert_eq!((problem(done), changes), (Problem::Changed, vec![]));
}

#[tokio::test]
async fn the_operations_on_an_object_begin_with_its_version() {
    let (api, client) = having(volume(&json!({"list": ["a"]})), 200).await;
    let user = user();
    let requests = Requests { client: &client, user: &user };
    let done = requests.carry_out(&RESIZE, &form("uid=u1&volume=data&by=position")).await;
    assert_eq!(done.expect("changed"), RESIZE.name);
    let patch = api.asked().into_iter().find(|asked| asked.is("PATCH ")).expect("a patch");
    let expected = json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "replace", "path": "/metadata/uid", "value": "u1"},
        {"op": "remove", "path": "/spec/list/0"},
    ]);
    assert_eq!((patch.line, patch.body), (format!("PATCH {OBJECTS}/data"), expected));
}

#[tokio::test]
async fn an_object_is_deleted_by_its_uid() {
    let (api_server, client) = having(Value::Null, 404).await;
    let user = user();
    let requests = Requests { client: &client, user: &user };
    let done = requests.carry_out(&REMOVE, &form("uid=u1&volume=data")).await;
    assert_eq!(done.expect("it is gone"), REMOVE.name);
    let [asked] = api_server.asked().try_into().expect("one request");
    assert_eq!(asked.line, format!("DELETE {OBJECTS}/data"));
    assert_eq!(asked.body["preconditions"], json!({"uid": "u1"}));
    let (done, _) = carry_out(volume(&json!({})), 403, &REMOVE, "uid=u1&volume=data").await;
    assert!(matches!(api(done), ApiError::Forbidden(_)));
}

#[tokio::test]
async fn an_invalid_form_about_an_object_sends_no_request() {
    let ((server, client), user) = (having(volume(&json!({})), 200).await, user());
    let requests = Requests { client: &client, user: &user };
    for (action, fields) in [
        (&ADD, "size=1Gi"),
        (&ADD, "volume=a/b&size=1Gi"),
        (&RESIZE, "volume=data&size=1Gi"),
        (&RESIZE, "uid=u1&volume=..&size=1Gi"),
        (&RESIZE, "uid=u1&volume=a.b.&size=1Gi"),
        (&REMOVE, "volume=data"),
        (&REMOVE, "uid=u1"),
    ] {
        assert_eq!(problem(requests.carry_out(action, &form(fields)).await), Problem::Form, "{fields}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());
}

fn named(form: &Form<'_>) -> Result<ObjectKey, Problem> {
    key(form).ok_or(Problem::Form)
}

fn body(form: &Form<'_>) -> Result<Value, Problem> {
    new(form).map(|new| new.body)
}

const PUT: Action =
    action("volume.put", Plan::CreateOrPatch { kind: KIND, key: named, create: body, patch: change });

#[tokio::test]
async fn an_object_that_exists_is_changed_instead_of_created() {
    for (size, expected) in [("1Gi", vec![json!({"spec": {"size": "2Gi"}})]), ("2Gi", vec![])] {
        let found = volume(&json!({"size": size}));
        let (done, changes) = carry_out(found, 200, &PUT, "volume=data&size=2Gi").await;
        assert_eq!((done.expect("changed"), changes), (PUT.name, expected), "{size}");
    }
}

#[tokio::test]
async fn an_object_that_does_not_exist_is_created_once_also_if_the_response_is_lost() {
    // The code of the response to the creation, the size of the object that is there afterwards, and the result.
    for (code, size, is_done) in [(201, "1Gi", true), (500, "1Gi", true), (500, "2Gi", false)] {
        let reads = AtomicUsize::new(0);
        let (api_server, client) = serving(move |asked| match asked.is("POST ") {
            true if code == 201 => (201, volume(&json!({"size": size}))),
            true => refused(code, "InternalError", "the response is lost"),
            false if reads.fetch_add(1, Ordering::Relaxed) == 0 => {
                refused(404, "NotFound", "it is not there")
            }
            false => (200, volume(&json!({"size": size}))),
        })
        .await;
        let user = user();
        let requests = Requests { client: &client, user: &user };
        let done = requests.carry_out(&PUT, &form("volume=data&size=1Gi")).await;
        assert_eq!(done.is_ok(), is_done, "{code} {size}: {done:?}");
        let created = api_server.asked().into_iter().filter(|asked| asked.is("POST "));
        let created: Vec<Value> = created.map(|asked| asked.body["spec"].clone()).collect();
        assert_eq!(created, [json!({"size": "1Gi"})]);
    }
}
