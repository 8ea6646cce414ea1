//! The requests of the form, with a fake API server.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use form_urlencoded::Serializer;
use http::header::{COOKIE, LOCATION};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::clients::oidc::Secret;
use crate::clients::oidc::tests::{Issuer, Reply};
use crate::controllers::dashboard::router::router;
use crate::controllers::dashboard::session::Session;
use crate::controllers::dashboard::tests::site::app;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::clock;

const TEMPLATES: &str = "/apis/crownlabs.polito.it/v1alpha2/namespaces/workspace-net/templates";
const NEW: &str = "/courses/net/templates/new";
const EDIT: &str = "/courses/net/templates/lab/edit";

fn stored() -> Value {
    json!({
        "metadata": {
            "name": "lab", "namespace": "workspace-net", "uid": "u1", "resourceVersion": "7", "generation": 3,
        },
        "spec": {
            "prettyName": "Lab", "description": "d", "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "net"},
            "environmentList": [{
                "name": "vm", "image": "x", "environmentType": "VirtualMachine", "mountMyDriveVolume": true,
                "resources": {"cpu": 2, "reservedCPUPercentage": 50, "memory": "4Gi"},
            }],
        },
    })
}

/// The API server, which answers a change of a Template with this status code and body.
fn answer(asked: &Asked, code: u16, status: &Value) -> (u16, Value) {
    let rule = json!({"verbs": ["*"], "apiGroups": ["crownlabs.polito.it"], "resources": ["templates"]});
    let is_change = asked.is(&format!("POST {TEMPLATES}")) || asked.is(&format!("PATCH {TEMPLATES}"));
    match asked.name() {
        _ if is_change => (code, status.clone()),
        _ if asked.is("POST ") => {
            (201, json!({"status": {"userInfo": {"username": "ada"}, "resourceRules": [rule]}}))
        }
        "net" => (200, json!({"metadata": {"name": "net", "uid": "w1"}, "spec": {"prettyName": "Networks"}})),
        "lab" => (200, stored()),
        "instances" | "tenants" => (200, json!({"metadata": {}, "items": []})),
        _ => refused(404, "NotFound", "it is not there"),
    }
}

/// Sends a form with these fields. Returns the status of the response, its page or the place that it leads to, and the
/// changes of Templates that the API server was asked for.
async fn sent(
    path: &str,
    fields: &[(&str, &str)],
    code: u16,
    status: Value,
) -> (StatusCode, String, Vec<Asked>) {
    let api = ApiServer::start(move |asked| answer(asked, code, &status)).await;
    let issuer = Issuer::start().await;
    let claims = json!({"nonce": null, "exp": clock::now().as_second() + 300});
    issuer.answers(Reply::Json(200, issuer.tokens(&claims)));
    let (app, keys) = app(&api, &issuer);
    let refresh_token = Secret::from("first".to_owned());
    let session = Session { id: "one".to_owned(), refresh_token, visited: clock::now() };
    let sealed = session.seal(&keys).expect("a cookie");
    let cookie = sealed.split(';').next().expect("a pair").to_owned();
    let body = Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = Request::post(path).header(COOKIE, cookie).header("sec-fetch-site", "same-origin");
    let request = request.body(Body::from(body)).expect("a request");
    let Ok(answer) = router(Arc::clone(&app)).oneshot(request).await;
    let changes =
        api.asked().into_iter().filter(|asked| asked.is(&format!("POST {TEMPLATES}")) || asked.is("PATCH "));
    (answer.status(), shown(answer).await, changes.collect())
}

/// Returns the place that a response leads to, or its page.
async fn shown(answer: Response) -> String {
    if let Some(place) = answer.headers().get(LOCATION) {
        return place.to_str().expect("text").to_owned();
    }
    let page = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    String::from_utf8(page.to_vec()).expect("text")
}

/// The fields of the form of the stored Template, and these.
fn form<'f>(more: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let fields = [
        ("uid", "u1"),
        ("generation", "3"),
        ("environments", "0"),
        ("metadata", "{}"),
        ("prettyName", "Lab"),
        ("description", "d"),
        ("workspace", "net"),
        ("e0.was", "vm"),
        ("e0.name", "vm"),
        ("e0.image", "x"),
        ("e0.environmentType", "VirtualMachine"),
        ("e0.mountMyDriveVolume", "on"),
        ("e0.guiEnabled", "on"),
        ("e0.cpu", "2"),
        ("e0.reservedCPUPercentage", "50"),
        ("e0.memory", "4Gi"),
    ];
    let is_new = |(name, _): &&(&str, &str)| more.iter().all(|(other, _)| other != name);
    fields.iter().filter(is_new).chain(more).copied().collect()
}

#[tokio::test]
async fn a_form_creates_a_template_in_the_namespace_of_the_course() {
    let fields = form(&[("do", "save"), ("name", "other"), ("namespace", "kube-system")]);
    let (status, place, asked) = sent(NEW, &fields, 201, stored()).await;
    assert_eq!((status, place.as_str()), (StatusCode::SEE_OTHER, "/courses/net/templates"));
    let [asked] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(asked.line, format!("POST {TEMPLATES}"));
    assert_eq!(asked.body["metadata"], json!({"name": "other"}));
    assert_eq!(asked.body["spec"], stored()["spec"]);
}

#[tokio::test]
async fn a_form_changes_only_what_the_user_has_changed() {
    let fields = form(&[("do", "save"), ("prettyName", "Other")]);
    let (status, place, asked) = sent(EDIT, &fields, 200, stored()).await;
    assert_eq!((status, place.as_str()), (StatusCode::SEE_OTHER, "/courses/net/templates/lab"));
    let [asked] = &asked[..] else { panic!("{asked:?}") };
    let metadata = json!({"uid": "u1", "resourceVersion": "7"});
    assert_eq!(asked.body, json!({"spec": {"prettyName": "Other"}, "metadata": metadata}));
    let (status, _, asked) = sent(EDIT, &form(&[("do", "save")]), 200, stored()).await;
    assert_eq!((status, asked), (StatusCode::SEE_OTHER, vec![]), "nothing has changed");
}

#[tokio::test]
async fn a_rejected_form_has_the_message_beside_its_field_and_keeps_what_was_typed() {
    let message = "Invalid value: it must be a duration";
    let cause = json!({"reason": "FieldValueInvalid", "message": message, "field": "spec.deleteAfter"});
    let rejected = json!({
        "kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid", "message": "m",
        "details": {"causes": [cause]},
    });
    for command in ["save", "preview"] {
        let fields = form(&[("do", command), ("deleteAfter", "tomorrow"), ("prettyName", "Typed")]);
        let (status, page, asked) = sent(EDIT, &fields, 422, rejected.clone()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{command}");
        let (_, field) = page.split_once("id=\"field-deleteAfter\"").expect("the field");
        let (field, _) = field.split_once("</div>").expect("its end");
        assert!(field.contains(message) && field.contains("value=\"tomorrow\""), "{field}");
        assert!(page.contains("value=\"Typed\"") && page.contains("href=\"#field-deleteAfter\""), "{page}");
        assert_eq!(asked[0].line.contains("dryRun=All"), command == "preview");
    }
}

#[tokio::test]
async fn a_preview_and_another_view_change_nothing() {
    let preview = form(&[("do", "preview"), ("e0.image", "other")]);
    let (status, page, asked) = sent(EDIT, &preview, 200, stored()).await;
    assert_eq!((status, page.contains("id=\"preview\"")), (StatusCode::OK, true));
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(lines, [format!("PATCH {TEMPLATES}/lab?dryRun=All")]);
    for (command, part) in [
        ("add", "name=\"e1.image\""),
        ("remove-0", "name=\"environments\" value=\"\""),
        ("text", "prettyName: Typed"),
    ] {
        let (status, page, asked) =
            sent(EDIT, &form(&[("do", command), ("prettyName", "Typed")]), 500, json!({})).await;
        assert_eq!((status, asked), (StatusCode::OK, vec![]), "{command}");
        assert!(page.contains(part) && page.contains("Typed"), "{command}: {page}");
        assert!(page.contains("name=\"generation\" value=\"3\""), "{page}");
    }
    let broken = [("do", "save"), ("uid", "u1"), ("generation", "3"), ("yaml", "a: [")];
    let (status, page, asked) = sent(EDIT, &broken, 500, json!({})).await;
    assert_eq!((status, asked), (StatusCode::UNPROCESSABLE_ENTITY, vec![]));
    assert!(page.contains(">a: [</textarea>") && page.contains("not valid YAML"), "{page}");
}

#[tokio::test]
async fn a_template_that_others_have_changed_is_not_overwritten_unasked() {
    let fields = form(&[("do", "save"), ("prettyName", "Typed"), ("generation", "2")]);
    let (status, page, asked) = sent(EDIT, &fields, 200, stored()).await;
    assert_eq!((status, asked), (StatusCode::UNPROCESSABLE_ENTITY, vec![]));
    // The next attempt applies to the current Template.
    assert!(page.contains("value=\"Typed\"") && page.contains("name=\"generation\" value=\"3\""), "{page}");
    let (status, page, _) = sent(NEW, &form(&[("do", "save"), ("name", "new")]), 201, stored()).await;
    assert_eq!((status, page.contains("id=\"field-name-error\"")), (StatusCode::UNPROCESSABLE_ENTITY, true));
}
