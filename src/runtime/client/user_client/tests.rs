use super::*;
use crate::api::instance::InstanceKind;
use crate::kinds::ServiceKind;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::error::InvalidField;
use crate::runtime::plan::KindInfo;
use crate::runtime::silent::SilentServer;

const INSTANCES: &str = "/apis/crownlabs.polito.it/v1alpha2/namespaces/ns/instances";

fn user() -> Credential {
    Credential::token("token").expect("a token")
}

fn key() -> ObjectKey {
    ObjectKey::new("ns", "vm")
}

fn instance(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "ns", "uid": "u1", "resourceVersion": "7"}})
}

async fn client(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> (ApiServer, UserClient) {
    let api = ApiServer::start(answer).await;
    let client = UserClient::new(&api.config).expect("a client");
    (api, client)
}

#[tokio::test]
async fn a_user_has_the_name_and_the_permissions_from_the_api_server() {
    for (answer, name, may) in [
        (json!({"userInfo": {"username": "ada"}, "allowed": true}), Some("ada"), true),
        (json!({"userInfo": {"username": ""}, "allowed": false}), None, false),
        (json!({"allowed": "true"}), None, false),
        (json!({}), None, false),
    ] {
        let status = json!({"status": answer});
        let (api, client) = client(move |_| (201, status.clone())).await;
        assert_eq!(client.name(&user()).await.ok().as_deref(), name, "{answer}");
        let (kind, object) = (KindInfo::of::<InstanceKind>(), key());
        let right = Right { verb: "create", kind, subresource: "terminal", object: &object };
        assert_eq!(client.may(&user(), right).await, Ok(may), "{answer}");
        let [who, asked] = api.asked().try_into().expect("two requests");
        assert_eq!(who.line, "POST /apis/authentication.k8s.io/v1/selfsubjectreviews");
        assert_eq!(asked.line, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
        let attributes = &asked.body["spec"]["resourceAttributes"];
        for (member, value) in [
            ("verb", "create"),
            ("group", "crownlabs.polito.it"),
            ("resource", "instances"),
            ("subresource", "terminal"),
            ("namespace", "ns"),
            ("name", "vm"),
        ] {
            assert_eq!(attributes[member], value, "{attributes}");
        }
    }
}

#[tokio::test]
async fn the_rules_of_a_namespace_take_one_request() {
    let rule = json!({"verbs": ["create"], "apiGroups": ["*"], "resources": ["instances"]});
    let answer = json!({"status": {"incomplete": true, "resourceRules": [rule], "nonResourceRules": []}});
    let (api, client) = client(move |_| (201, answer.clone())).await;
    let rules = client.rules(&user(), "ns").await.expect("rules");
    assert!(rules.allow("create", "crownlabs.polito.it", "instances", ""));
    let [asked] = api.asked().try_into().expect("one request");
    assert_eq!(asked.line, "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews");
    assert_eq!(asked.body["spec"], json!({"namespace": "ns"}));
}

#[tokio::test]
async fn objects_are_read_and_written() {
    let (api, client) = client(|_| (200, instance("vm"))).await;
    let (user, key) = (user(), key());
    let read: Object<InstanceKind> = client.get(&user, &key).await.expect("an Instance");
    let spec = json!({"metadata": {"name": "vm"}, "spec": {"running": true}});
    let created: Object<InstanceKind> =
        client.create_as(&user, KindInfo::of::<InstanceKind>(), "ns", &spec).await.expect("an Instance");
    let merge = Preconditions::of(&read).merge(json!({"spec": {"running": false}}));
    let patched: Object<InstanceKind> =
        client.patch(&user, &key, Patch::Merge(&merge)).await.expect("an Instance");
    let test = json!({"op": "test", "path": "/spec/running", "value": true});
    let json = Preconditions::of(&read).json([test]);
    client.patch::<InstanceKind>(&user, &key, Patch::Json(&json)).await.expect("an Instance");
    client.delete_as(&user, KindInfo::of::<InstanceKind>(), &key, "u1").await.expect("deleted");
    assert_eq!((created.name(), patched.name()), ("vm", "vm"));
    let asked = api.asked();
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let object = format!("{INSTANCES}/vm");
    let expected = ["GET", "POST", "PATCH", "PATCH", "DELETE"];
    let expected =
        expected.map(|verb| format!("{verb} {}", if verb == "POST" { INSTANCES } else { &object }));
    assert_eq!(lines, expected);
    let whole = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
        "metadata": {"name": "vm"}, "spec": {"running": true},
    });
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}});
    let bodies: Vec<_> = asked.iter().map(|asked| &asked.body).collect();
    assert_eq!(bodies, [&Value::Null, &whole, &merge, &json, &options]);
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let (api, client) = client(|asked| {
        let (items, next) =
            if asked.line.contains("&continue=") { (["c", "d"], "") } else { (["a", "b"], "t0") };
        (200, json!({"items": items.map(instance), "metadata": {"continue": next}}))
    })
    .await;
    let names = async |namespace, query| {
        let list: Vec<Object<InstanceKind>> = client.list(&user(), namespace, query).await.expect("a list");
        list.iter().map(|object| object.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("ns", "labelSelector=a").await, ["a", "b", "c", "d"]);
    assert_eq!(
        api.lines(),
        [
            format!("GET {INSTANCES}?limit=500&labelSelector=a"),
            format!("GET {INSTANCES}?limit=500&labelSelector=a&continue=t0"),
        ]
    );
    names("", "").await;
    let all = "GET /apis/crownlabs.polito.it/v1alpha2/instances?limit=500";
    assert_eq!(api.lines(), [all.to_owned(), format!("{all}&&continue=t0")]);
}

#[tokio::test]
async fn a_list_is_bounded_in_objects_and_in_bytes() {
    for (objects, length, expected) in [
        (MOST_OBJECTS, 0, Ok(MOST_OBJECTS)),
        (MOST_OBJECTS + 1, 0, Err(())),
        (5, MOST_BYTES / 5, Err(())),
        (5, MOST_BYTES / 6, Ok(5)),
        (1, 2 * MOST_BYTES, Err(())),
    ] {
        let mut object = instance("vm");
        object["metadata"]["annotations"] = json!({"a": "x".repeat(length)});
        let page = json!({"metadata": {}, "items": vec![object; objects]});
        let (_api, client) = client(move |_| (200, page.clone())).await;
        let list = client.list::<InstanceKind>(&user(), "ns", "").await;
        let text = "the list of instances of the namespace ns has more than 10000 objects or 1 MiB";
        let expected = expected.map_err(|()| ApiError::TooLong(text.to_owned()));
        assert_eq!(list.map(|list| list.len()), expected, "{objects} of {length}");
    }
}

#[tokio::test]
async fn a_rejected_request_has_the_message_of_the_api_server() {
    let denied =
        r#"admission webhook "quota" denied the request: your quota of 2 machines – "a", "b" – is used up"#;
    let slowly =
        ApiError::Transient { message: "slowly".to_owned(), retry_after: Some(Duration::from_secs(7)) };
    for (code, reason, message, expected) in [
        (409, "Conflict", "changed", ApiError::Conflict("changed".to_owned())),
        (409, "AlreadyExists", "there", ApiError::AlreadyExists("there".to_owned())),
        (403, "Forbidden", denied, ApiError::Forbidden(denied.to_owned())),
        (401, "Unauthorized", "Unauthorized", ApiError::Forbidden("Unauthorized".to_owned())),
        (422, "Invalid", "spec.x: no", ApiError::Invalid("spec.x: no".to_owned())),
        (404, "NotFound", "gone", ApiError::NotFound("gone".to_owned())),
        (429, "TooManyRequests", "slowly", slowly),
    ] {
        let (_api, client) = client(move |asked| {
            if asked.is("GET /readyz") {
                return (200, json!("ok"));
            }
            let (code, mut status) = refused(code, reason, message);
            status["details"] = json!({"retryAfterSeconds": 7});
            (code, status)
        })
        .await;
        let (user, key, body) = (user(), key(), json!({}));
        let answers = [
            client.get::<InstanceKind>(&user, &key).await.map(drop),
            client.list::<InstanceKind>(&user, "ns", "").await.map(drop),
            client
                .create_as::<Object<InstanceKind>>(&user, KindInfo::of::<InstanceKind>(), "ns", &body)
                .await
                .map(drop),
            client.patch::<InstanceKind>(&user, &key, Patch::Merge(&body)).await.map(drop),
            client.patch::<InstanceKind>(&user, &key, Patch::Json(&body)).await.map(drop),
            client.delete_as(&user, KindInfo::of::<InstanceKind>(), &key, "u1").await,
            client.rules(&user, "ns").await.map(drop),
            client.name(&user).await.map(drop),
        ];
        for answer in answers {
            assert_eq!(answer, Err(expected.clone()), "{code} {reason}");
        }
    }
}

#[tokio::test]
async fn a_rejected_object_has_the_fields_that_the_api_server_names() {
    let cause = json!({"reason": "FieldValueInvalid", "message": "no", "field": "spec.x"});
    let (_api, client) = client(move |_| {
        let (code, mut status) = refused(422, "Invalid", "spec.x: no");
        status["details"] = json!({"causes": [cause]});
        (code, status)
    })
    .await;
    let fields = vec![InvalidField { path: "spec.x".to_owned(), message: "no".to_owned() }];
    let expected = ApiError::InvalidFields { message: "spec.x: no".to_owned(), fields };
    let created = client
        .create_as::<Object<InstanceKind>>(&user(), KindInfo::of::<InstanceKind>(), "ns", &json!({}))
        .await;
    assert_eq!(created.map(drop), Err(expected));
}

#[tokio::test]
async fn invalid_names_never_become_part_of_a_path() {
    let (api, client) = client(|_| (200, instance("vm"))).await;
    let (user, body) = (user(), json!({}));
    for (namespace, name) in [("ns", "../x"), ("ns", ""), ("ns", "vm/status"), ("n/s", "vm"), ("ns?", "vm")] {
        let key = ObjectKey::new(namespace, name);
        let mut answers = vec![
            client.get::<ServiceKind>(&user, &key).await.map(drop),
            client.patch::<ServiceKind>(&user, &key, Patch::Merge(&body)).await.map(drop),
            client.delete_as(&user, KindInfo::of::<ServiceKind>(), &key, "u1").await,
        ];
        if namespace != "ns" {
            answers.push(client.list::<ServiceKind>(&user, namespace, "").await.map(drop));
            answers.push(
                client
                    .create_as::<Object<ServiceKind>>(&user, KindInfo::of::<ServiceKind>(), namespace, &body)
                    .await
                    .map(drop),
            );
        }
        for answer in answers {
            assert!(matches!(answer, Err(ApiError::Invalid(_))), "{namespace}/{name}: {answer:?}");
        }
    }
    assert!(api.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_silent_api_server_times_out_after_ten_seconds() {
    let server = SilentServer::start();
    let client = UserClient::new(&server.config()).expect("a client");
    let begin = tokio::time::Instant::now();
    let late = ApiError::transient("the API server did not answer in time");
    assert_eq!(client.name(&user()).await, Err(late.clone()));
    assert_eq!(begin.elapsed(), TIMEOUT);
    assert_eq!(client.list::<InstanceKind>(&user(), "ns", "").await.map(drop), Err(late));
    assert_eq!(begin.elapsed(), TIMEOUT * 2);
}
