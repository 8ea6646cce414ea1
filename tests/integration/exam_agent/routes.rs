//! Every route and method, with its status, its type and its text.

use serde_json::json;

use super::{ALLOWED, Answer, SERVER, STUDENT, Site, send};
use crate::lab::{PATIENCE, wait_until};

/// Method, path, value of `X-Forwarded-For`, body; status, type and beginning of the response.
type Row<'a> = (&'a str, &'a str, Option<&'a str>, &'a str, u16, &'a str, &'a str);

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const NONE: Option<&str> = None;
const ALLOWED_CLIENT: Option<&str> = Some(SERVER);
const OTHER: Option<&str> = Some(STUDENT);
const MISSING: &str = "{\"code\":404,\"text\":\"The requested Instance does not exist.\"}\n";
const OWN_LABEL: &str = r#"{"template": "container", "labels": {"crownlabs.polito.it/managed-by": "x"}}"#;
const BODY: &str = r#"{"template": "container"}"#;

fn check(site: &Site, rows: &[Row<'_>]) {
    for (method, path, from, body, status, kind, begin) in rows {
        let headers: Vec<(&str, &str)> = from.iter().map(|from| ("X-Forwarded-For", *from)).collect();
        let answer = send(site.port, method, path, &headers, body);
        let Answer { status: found, body: text, .. } = &answer;
        assert_eq!((found, answer.kind()), (status, *kind), "{method} {path} {from:?}: {text}");
        assert!(text.starts_with(begin), "{method} {path} {from:?}: {text:?} instead of {begin:?}");
    }
}

/// Pages that are open to every client, and pages that do not exist.
const OPEN: &[Row<'_>] = &[
    ("GET", "/healthz", NONE, "", 200, TEXT, "OK"),
    ("POST", "/healthz", NONE, "", 405, TEXT, "Method not allowed"),
    ("HEAD", "/healthz", NONE, "", 405, TEXT, ""),
    ("GET", "/", ALLOWED_CLIENT, "", 404, TEXT, "Not found"),
    ("GET", "/api", ALLOWED_CLIENT, "", 404, TEXT, "Not found"),
    ("GET", "/instances/", ALLOWED_CLIENT, "", 404, TEXT, "Not found"),
    ("GET", "/api/openapi.json", NONE, "", 200, JSON, "{\n  \"openapi\": \"3.1.0\""),
    ("PUT", "/api/openapi.json", NONE, "", 405, TEXT, "Method not allowed"),
    // Templates, whatever follows in the path.
    ("GET", "/api/templates/", NONE, "", 200, JSON, "[{\"name\":\"cloudvm\""),
    ("GET", "/api/template", OTHER, "", 200, JSON, "[{\"name\":\"cloudvm\""),
    ("GET", "/api/templates/x/y?z", OTHER, "", 200, JSON, "[{\"name\":\"cloudvm\""),
    ("POST", "/api/templates/", ALLOWED_CLIENT, "", 405, TEXT, "Method not allowed"),
    ("DELETE", "/api/templates/container", ALLOWED_CLIENT, "", 405, TEXT, "Method not allowed"),
    // One Instance.
    ("GET", "/api/instances/a/b", NONE, "", 400, TEXT, "Bad request: the name must be"),
    ("GET", "/api/instances/..%2Ftemplates", NONE, "", 400, TEXT, "Bad request: the name must be"),
    ("GET", "/api/instances/%FF", NONE, "", 400, TEXT, "Bad request: the name must be"),
    ("GET", "/api/instances/exam", NONE, "", 404, JSON, MISSING),
];

/// The list of Instances, which is for clients in the allow-list.
const LIST: &[Row<'_>] = &[
    ("GET", "/api/instances/", ALLOWED_CLIENT, "", 200, JSON, "[]\n"),
    ("GET", "/api/instance", ALLOWED_CLIENT, "", 200, JSON, "[]\n"),
    ("GET", "/api/instances/", NONE, "", 403, TEXT, "Forbidden"),
    ("GET", "/api/instances/", Some(""), "", 403, TEXT, "Forbidden"),
    ("GET", "/api/instances/", OTHER, "", 403, TEXT, "Forbidden"),
    ("GET", "/api/instances/", Some("192.0.2.10, 203.0.113.9"), "", 403, TEXT, "Forbidden"),
    ("GET", "/api/instances/", Some("203.0.113.9, 192.0.2.10"), "", 403, TEXT, "Forbidden"),
    ("GET", "/api/instances/", Some("192.0.2.10, 192.0.2.11"), "", 403, TEXT, "Forbidden"),
    ("POST", "/api/instances/", ALLOWED_CLIENT, BODY, 405, TEXT, "Method not allowed"),
    ("HEAD", "/api/instances/", ALLOWED_CLIENT, "", 405, TEXT, ""),
    // PUT and DELETE need a name, for every client.
    ("PUT", "/api/instances/", ALLOWED_CLIENT, BODY, 405, TEXT, "Method not allowed: this path has GET"),
    ("PUT", "/api/instances", ALLOWED_CLIENT, "null", 405, TEXT, "Method not allowed: this path has GET"),
    ("PUT", "/api/instances/", OTHER, BODY, 405, TEXT, "Method not allowed"),
    ("DELETE", "/api/instances/", ALLOWED_CLIENT, "", 405, TEXT, "Method not allowed: this path has GET"),
    ("DELETE", "/api/instances", OTHER, "", 405, TEXT, "Method not allowed"),
];

/// Requests that are rejected. A client without permission is rejected before its body is checked.
const REFUSED: &[Row<'_>] = &[
    ("PUT", "/api/instances/a%2Fb", ALLOWED_CLIENT, BODY, 400, TEXT, "Bad request: the name must be"),
    ("DELETE", "/api/instances/a%0Ab", ALLOWED_CLIENT, "", 400, TEXT, "Bad request: the name must be"),
    ("PUT", "/api/instances/exam/", ALLOWED_CLIENT, BODY, 400, TEXT, "Bad request: the name must be"),
    ("PUT", "/api/instances/exam", OTHER, "", 403, TEXT, "Forbidden"),
    ("PUT", "/api/instances/exam", NONE, BODY, 403, TEXT, "Forbidden"),
    ("PUT", "/api/instances/a%0Ab", OTHER, BODY, 403, TEXT, "Forbidden"),
    ("DELETE", "/api/instances/exam", OTHER, "", 403, TEXT, "Forbidden"),
    ("DELETE", "/api/instances/exam", ALLOWED_CLIENT, "", 404, TEXT, "Not found"),
];

/// Bodies that are rejected, with the response.
const BODIES: &[(&str, u16, &str)] = &[
    ("", 400, "Bad request: the body is empty: send an object such as {\"template\": \"desktop\"}"),
    ("{", 400, "Bad request: the body is not JSON (EOF while parsing"),
    ("template=container", 400, "Bad request: the body is not JSON (expected"),
    ("\u{0}", 400, "Bad request: the body is not JSON ("),
    ("null", 422, "Unprocessable content: the body must be an object, not null: send"),
    ("[]", 422, "Unprocessable content: the body must be an object, not an array: send"),
    ("\"container\"", 422, "Unprocessable content: the body must be an object, not a text"),
    ("7", 422, "Unprocessable content: the body must be an object, not a number"),
    ("false", 422, "Unprocessable content: the body must be an object, not true or false"),
    ("{}", 422, "Unprocessable content: template is missing: choose one that GET templates/ returns"),
    (r#"{"template": null}"#, 422, "Unprocessable content: template is missing"),
    (r#"{"template": ""}"#, 422, "Unprocessable content: template is missing"),
    (r#"{"template": "container", "template": ""}"#, 422, "Unprocessable content: template is missing"),
    (r#"{"template": {}}"#, 422, "Unprocessable content: template must be a text"),
    (r#"{"template": "a/b"}"#, 422, "Unprocessable content: template is not the name of a Template: choose"),
    (
        r#"{"template": "container", "running": 1}"#,
        422,
        "Unprocessable content: running must be true or false",
    ),
    (
        r#"{"template": "container", "labels": {"a b": ""}}"#,
        422,
        "Unprocessable content: a label is not valid",
    ),
    (
        OWN_LABEL,
        422,
        "Unprocessable content: the label crownlabs.polito.it/managed-by is reserved for the daemon: leave",
    ),
];

/// The life of an Instance.
const LIFE: &[Row<'_>] = &[
    (
        "PUT",
        "/api/instances/exam",
        ALLOWED_CLIENT,
        BODY,
        201,
        JSON,
        "{\"id\":\"exam\",\"template\":\"container\"",
    ),
    (
        "PUT",
        "/api/instance/exam",
        ALLOWED_CLIENT,
        BODY,
        200,
        JSON,
        "{\"id\":\"exam\",\"template\":\"container\"",
    ),
    ("GET", "/api/instances/", ALLOWED_CLIENT, "", 200, JSON, "[{\"id\":\"exam\""),
    ("POST", "/api/instances/exam", ALLOWED_CLIENT, BODY, 405, TEXT, "Method not allowed"),
    ("HEAD", "/api/instances/exam", ALLOWED_CLIENT, "", 405, TEXT, ""),
    ("PATCH", "/api/instances/exam", ALLOWED_CLIENT, "{}", 405, TEXT, "Method not allowed"),
    ("DELETE", "/api/instances/exam", ALLOWED_CLIENT, "", 200, TEXT, ""),
    ("DELETE", "/api/instances/exam", ALLOWED_CLIENT, "", 404, TEXT, "Not found"),
];

#[test]
fn every_route_has_the_documented_response() {
    let site = Site::start("exam-routes", &format!("{ALLOWED}, clientQps: 10000, clientMaxBurst: 10000"));
    for rows in [OPEN, LIST, REFUSED, LIFE] {
        check(&site, rows);
    }
    // A rejected body neither creates nor changes an Instance.
    for is_there in [false, true] {
        if is_there {
            assert_eq!(site.ask("PUT", "/api/instances/kept", BODY).status, 201);
        }
        let before = site.instance("kept");
        for (body, status, begin) in BODIES {
            check(&site, &[("PUT", "/api/instances/kept", ALLOWED_CLIENT, body, *status, TEXT, begin)]);
            assert_eq!(site.instance("kept"), before, "{body}");
        }
        let long = format!(r#"{{"template": "container", "id": "{}"}}"#, "x".repeat(70_000));
        assert_eq!(site.ask("PUT", "/api/instances/kept", &long).status, 413);
        let headers = [("X-Forwarded-For", SERVER), ("Content-Type", "application/xml")];
        let typed = send(site.port, "PUT", "/api/instances/kept", &headers, BODY);
        assert_eq!((typed.status, typed.header("accept")), (415, Some(JSON)), "{typed:?}");
        assert_eq!(site.instance("kept"), before);
    }
    // Unknown keys are ignored at any depth, and the last of several equal keys counts.
    let nested = format!(
        r#"{{"template": "x", "Template": "container", "x": {}1{}}}"#,
        "[".repeat(9_000),
        "]".repeat(9_000)
    );
    assert_eq!(site.ask("PUT", "/api/instances/kept", &nested).status, 200);
    let lengthy = format!("/api/instances/{}", "a".repeat(254));
    check(&site, &[("GET", &lengthy, NONE, "", 400, TEXT, "Bad request: the name must be")]);
    assert_eq!(site.ask("OPTIONS", "/api/instances/exam", "").header("allow"), Some("GET, PUT, DELETE"));
    for method in ["OPTIONS", "PUT", "DELETE", "POST"] {
        assert_eq!(site.ask(method, "/api/instances/", BODY).header("allow"), Some("GET"), "{method}");
    }
    let metrics = site.daemon.metrics();
    for series in [
        "exam_agent_requests_total{route=\"instance\",method=\"PUT\",code=\"201\"} 2\n",
        "exam_agent_requests_total{route=\"health\",method=\"other\",code=\"405\"} 2\n",
    ] {
        assert!(metrics.contains(series), "{series}: {metrics}");
    }
}

#[test]
fn an_instance_is_stored_as_requested() {
    let site = Site::start("exam-spec", ALLOWED);
    let path = "/api/instances/exam.1";
    let body = r#"{"ID": "s123456", "Template": "container-persistent", "labels": {"course": "tsr"}, "unknown": 1,
        "CustomizationUrls": {"contentOrigin": "https://o", "statuscheck": "https://s"}} trailing"#;
    let created = site.ask("PUT", path, body);
    assert_eq!(created.status, 201);
    let urls = json!({"contentOrigin": "https://o", "statusCheck": "https://s"});
    let shown = json!({
        "id": "exam.1", "template": "container-persistent", "running": true, "customizationUrls": urls,
        "contentUrls": {"origin": "https://o"}, "phase": "", "labels": {"course": "tsr"},
    });
    assert_eq!(created.json(), shown);
    assert!(created.body.ends_with("}\n"));
    let stored = site.instance("exam.1").expect("it is there");
    let expected = json!({
        "template.crownlabs.polito.it/TemplateRef": {"name": "container-persistent", "namespace": site.namespace()},
        "tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"},
        "running": true, "prettyName": "Exam s123456", "customizationUrls": urls, "statusCheckUrl": "https://s",
    });
    assert_eq!(stored["spec"], expected);
    // The same again writes nothing.
    assert_eq!((site.ask("PUT", path, body).status, site.instance("exam.1")), (200, Some(stored)));
    // The whole spec is replaced, the URL of the status check and labels stay.
    site.lab.patch(
        "instances",
        &site.namespace(),
        "exam.1",
        r#"{"metadata": {"labels": {"crownlabs.polito.it/template": "x"}, "annotations": {"kept": "1"}},
            "spec": {"running": false, "nodeSelector": {"disk": "fast"}}}"#,
    );
    let again = r#"{"template": "container", "labels": {"new": "1", "crownlabs.polito.it/template": "x"},
        "contentUrls": {"destination": "https://d"}}"#;
    assert_eq!(site.ask("PUT", path, again).status, 200);
    let stored = site.instance("exam.1").expect("it is there");
    let expected = json!({
        "template.crownlabs.polito.it/TemplateRef": {"name": "container", "namespace": site.namespace()},
        "tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"},
        "running": true, "prettyName": "Exam ", "customizationUrls": {}, "statusCheckUrl": "https://s",
        "contentUrls": {"main": {"destination": "https://d"}},
    });
    assert_eq!(stored["spec"], expected);
    let labels = json!({"course": "tsr", "new": "1", "crownlabs.polito.it/template": "x"});
    assert_eq!(
        (&stored["metadata"]["labels"], &stored["metadata"]["annotations"]["kept"]),
        (&labels, &json!("1"))
    );
    assert!(!site.daemon.log().contains("https://s"), "the log has a URL");
}

#[test]
fn students_see_neither_urls_nor_the_uid() {
    let site = Site::start("exam-hidden", ALLOWED);
    let path = "/api/instances/exam";
    let body = r#"{"template": "container", "contentUrls": {"destination": "https://d"},
        "customizationUrls": {"contentOrigin": "https://o", "statusCheck": "https://s"}}"#;
    assert_eq!(site.ask("PUT", path, body).status, 201);
    let uid = site.instance("exam").expect("it is there")["metadata"]["uid"].clone();
    let uid = uid.as_str().expect("a uid");
    let url = format!("https://labs.example.org/instance/{uid}");
    site.set_status("exam", &json!({"phase": "Ready", "url": url}));
    let student = site.await_shown("exam", "Ready");
    assert!(!student.body.contains(uid) && !student.body.contains("https://"), "{student:?}");
    assert_eq!(student.json()["customizationUrls"], json!({}));
    let server = site.ask("GET", path, "").json();
    assert_eq!(
        (&server["url"], &server["customizationUrls"]["statusCheck"]),
        (&json!(url), &json!("https://s"))
    );
}

#[test]
fn instances_are_listed_by_labels() {
    let site = Site::start("exam-labels", "allowAnyone: true");
    for (name, labels) in [("a", json!({"room": "1", "late": "true"})), ("b", json!({"room": "2"}))] {
        let body = json!({"template": "container", "labels": labels}).to_string();
        assert_eq!(site.ask("PUT", &format!("/api/instances/{name}"), &body).status, 201);
    }
    for (query, expected) in [
        ("", Some("ab")),
        ("?", Some("ab")),
        ("?room=1", Some("a")),
        ("?room=1&room=2", Some("a")),
        ("?late", Some("a")),
        ("?late&room=2", Some("")),
        ("?example.org%2Fx=1", Some("")),
        ("?a,b=1", None),
        ("?room=1,late", None),
        ("?!room", None),
        ("?=", None),
        ("?%FF", None),
    ] {
        let answer = site.ask("GET", &format!("/api/instances/{query}"), "");
        let Some(expected) = expected else {
            assert_eq!(answer.status, 400, "{query}: {answer:?}");
            continue;
        };
        let found = answer.json();
        let names: String =
            found.as_array().expect("a list").iter().filter_map(|each| each["id"].as_str()).collect();
        assert_eq!((answer.status, &*names), (200, expected), "{query}");
    }
    // Every client may; the log says so.
    assert_eq!(send(site.port, "DELETE", "/api/instances/a", &[], "").status, 200);
    assert!(site.daemon.log().contains("every client of the exam agent"), "{}", site.daemon.log());
}

#[test]
fn a_browser_is_redirected_to_a_ready_machine() {
    let site = Site::start("exam-browser", ALLOWED);
    let missing = site.browse("/api/instances/exam");
    assert_eq!((missing.status, missing.kind()), (404, "text/html; charset=utf-8"));
    assert!(missing.body.contains("The requested Instance does not exist."), "{}", missing.body);
    assert_eq!(site.ask("PUT", "/api/instances/exam", BODY).status, 201);
    let url = "https://labs.example.org/instance/1/";
    for (phase, url, status, text) in [
        ("", "", 201, "starting"),
        ("Importing", "", 201, "starting"),
        ("Starting", url, 201, "starting"),
        ("ResourceQuotaExceeded", url, 201, "starting"),
        ("Running", url, 201, "starting"),
        ("Stopping", url, 201, "starting"),
        ("Ready", "", 201, "starting"),
        ("Ready", "javascript:alert(1)", 201, "starting"),
        ("Ready", url, 302, ""),
        ("Off", "", 410, "The requested Instance is not running."),
        ("Failed", "", 500, "Something went wrong."),
        ("CreationLoopBackoff", "", 500, "Something went wrong."),
    ] {
        site.set_status("exam", &json!({"phase": phase, "url": url}));
        // The watch delivers it to browsers.
        let page = || site.browse("/api/instances/exam");
        wait_until(PATIENCE, || {
            let page = page();
            let is_led = page.header("location") == (status == 302).then_some(url);
            let is_there = page.status == status && page.body.contains(text) && is_led;
            is_there.then_some(()).ok_or_else(|| format!("{phase} {url}: {page:?}"))
        });
        let page = page();
        assert_eq!(page.header("refresh"), (status == 201).then_some("5"), "{phase}");
        assert_eq!(page.header("cache-control"), Some("no-store"));
        // Other clients get JSON, whatever the phase.
        site.await_shown("exam", phase);
        let json = send(site.port, "GET", "/api/instances/exam", &[("Accept", "application/json")], "");
        assert_eq!(
            (json.status, json.kind(), json.json()["phase"].as_str()),
            (200, JSON, Some(phase)),
            "{phase}"
        );
    }
}
