//! Registries that fail, send wrong responses or hang. The result is no list but an error with the cause.

use serde_json::json;

use super::*;
use crate::api::reason::{
    IMAGE_LIST_TOO_LARGE, REGISTRY_BAD_ANSWER, REGISTRY_FAILED, REGISTRY_REFUSED, REGISTRY_SETTINGS_INVALID,
    REGISTRY_UNREACHABLE, Reason,
};

/// The reason and the message of the error that a catalogue causes.
async fn refused(answer: impl Fn() -> Answer + Send + Sync + 'static) -> (Reason, String) {
    let server = Server::start(move |_| answer()).await;
    let error = list(&server, &json!({})).await.expect_err("no list");
    (error.reason(), error.to_string())
}

/// Invalid responses for the catalogue: head, body, the reason of the error, and its message.
const NO_CATALOGUES: [(&str, &str, Reason, &str); 16] = [
    ("500 No", r#"{"repositories": []}"#, REGISTRY_FAILED, " was answered 500"),
    (
        "503 No",
        r#"{"errors": [{"code": "UNAVAILABLE", "message": "s3cret"}, {"code": "s3cret"}, {}]}"#,
        REGISTRY_FAILED,
        " was answered 503 (UNAVAILABLE)",
    ),
    (
        "404 No",
        r#"{"errors": [{"code": "NAME_UNKNOWN"}]}"#,
        REGISTRY_FAILED,
        " was answered 404 (NAME_UNKNOWN)",
    ),
    ("429 No", "<html>", REGISTRY_FAILED, " was answered 429"),
    (
        "403 No",
        r#"{"errors": [{"code": "DENIED"}]}"#,
        REGISTRY_REFUSED,
        " was answered 403 (DENIED): it requires a login: set username and passwordFile",
    ),
    ("200 OK", "", REGISTRY_BAD_ANSWER, ": the answer ends early"),
    ("200 OK", r#"{"repositories": ["a""#, REGISTRY_BAD_ANSWER, ": the answer ends early"),
    ("200 OK", "<html>", REGISTRY_BAD_ANSWER, ": the answer is not JSON"),
    ("200 OK", "{}", REGISTRY_BAD_ANSWER, ": the answer is not a list of repositories"),
    (
        "200 OK",
        r#"{"repositories": null}"#,
        REGISTRY_BAD_ANSWER,
        ": the answer is not a list of repositories",
    ),
    (
        "200 OK",
        r#"{"repositories": {"a": 1}}"#,
        REGISTRY_BAD_ANSWER,
        ": the answer is not a list of repositories",
    ),
    ("200 OK", r#"{"repositories": [1]}"#, REGISTRY_BAD_ANSWER, ": the answer is not a list of repositories"),
    ("200 OK", r#"[["a"]]"#, REGISTRY_BAD_ANSWER, ": the answer is not a list of repositories"),
    (
        "200 OK",
        r#"{"repositories": [], "errors": [{"code": "UNAUTHORIZED"}]}"#,
        REGISTRY_BAD_ANSWER,
        ": the answer has errors (UNAUTHORIZED)",
    ),
    (
        "200 OK\r\nLink: </v2/_catalog>; rel=next",
        r#"{"repositories": ["a"]}"#,
        REGISTRY_BAD_ANSWER,
        ": its pages form a cycle",
    ),
    (
        "200 OK\r\nLink: <http://>; rel=next",
        r#"{"repositories": []}"#,
        REGISTRY_BAD_ANSWER,
        ": its next page has no valid URL",
    ),
];

#[tokio::test(start_paused = true)]
async fn an_invalid_catalogue_returns_an_error() {
    for (head, body, reason, message) in NO_CATALOGUES {
        let found = refused(move || with(head, body)).await;
        assert_eq!(found, (reason, format!("GET /v2/_catalog{message}")), "{head} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn tags_that_cannot_be_read_return_an_error() {
    for (head, body, expected) in [
        ("500 No", "{}", "GET /v2/a/tags/list was answered 500"),
        ("200 OK", "{}", "GET /v2/a/tags/list: the answer is not a list of tags"),
        ("200 OK", "[]", "GET /v2/a/tags/list: the answer is not a list of tags"),
        ("200 OK", r#"{"tags": "x"}"#, "GET /v2/a/tags/list: the answer is not a list of tags"),
        ("200 OK", "no", "GET /v2/a/tags/list: the answer is not JSON"),
        ("404 No", "<html>", "the tags: all 2 repositories were answered 404, but not by a registry"),
        ("404 No", r#"{"errors": [{"code": "NAME_UNKNOWN"}]}"#, ""),
    ] {
        let server = Server::start(move |asked| match asked.path.as_str() {
            "/v2/_catalog" => found(r#"{"repositories": ["b", "a"]}"#),
            _ => with(head, body),
        })
        .await;
        let listed = list(&server, &json!({})).await;
        let error = listed.err().map_or_else(String::new, |error| error.to_string());
        assert_eq!(error, expected, "{head} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_responses_and_lists_are_limited() {
    let (reason, message) = refused(|| Answer::Endless).await;
    assert_eq!(
        (reason, &*message),
        (REGISTRY_BAD_ANSWER, "GET /v2/_catalog: the answer is longer than 4 MiB")
    );
    let (reason, message) = refused(|| Answer::Short).await;
    assert!(reason == REGISTRY_UNREACHABLE && message.starts_with("GET /v2/_catalog: "), "{message}");
    let many = |count: usize| (0..count).map(|number| format!("r{number}")).collect::<Vec<_>>();
    let (reason, message) = refused(move || found(json!({"repositories": many(10_001)}).to_string())).await;
    let expected = "there are more than 10000 repositories: name a project that has fewer, or delete some";
    assert_eq!((reason, &*message), (IMAGE_LIST_TOO_LARGE, expected));
    for (count, fits) in [(10_000, true), (10_001, false)] {
        let server = Server::start(move |asked| match asked.path.as_str() {
            "/v2/_catalog" => found(r#"{"repositories": ["a"]}"#),
            _ => found(json!({"name": "a", "tags": many(count)}).to_string()),
        })
        .await;
        match list(&server, &json!({})).await {
            Ok(listing) => assert!(fits && listing.images[0].versions.len() == count),
            Err(error) => {
                let expected =
                    "there are more than 10000 tags of a: name a project that has fewer, or delete some";
                assert!(!fits && error.to_string() == expected, "{error}");
            }
        }
    }
    // Each page refers to another one.
    let server = Server::start(|asked| {
        let number = asked.path.len();
        with(&format!("200 OK\r\nLink: <?{}>; rel=next", "x".repeat(number)), r#"{"repositories": []}"#)
    })
    .await;
    let error = list(&server, &json!({})).await.expect_err("no end");
    assert_eq!(error.to_string(), "GET /v2/_catalog: its next page has no valid URL");
    let server = Server::start(|asked| {
        let page: usize = asked.path.split_once('=').map_or(0, |(_, page)| page.parse().unwrap());
        with(&format!("200 OK\r\nLink: <?last={}>; rel=next", page + 1), r#"{"repositories": []}"#)
    })
    .await;
    let error = list(&server, &json!({})).await.expect_err("no end");
    assert_eq!(error.to_string(), "GET /v2/_catalog: it has more than 1000 pages");
    assert_eq!(server.asked().len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_hanging_registry_times_out() {
    let (reason, message) = refused(|| Answer::Hang).await;
    assert_eq!((reason, &*message), (REGISTRY_UNREACHABLE, "GET /v2/_catalog: no answer within 10s"));
}

#[tokio::test(start_paused = true)]
async fn a_query_with_slow_responses_times_out() {
    // The total exceeds the time limit although each request takes less than its own.
    let server = Server::start(|asked| match asked.path.as_str() {
        "/v2/_catalog" => found(r#"{"repositories": ["a", "b"]}"#),
        "/v2/a/tags/list" => found(r#"{"name": "a", "tags": ["1"]}"#),
        _ => Answer::Hang,
    })
    .await;
    let registry = Registry::new(config(&server.url, &json!({})));
    let error = registry.list_within(Duration::from_secs(1)).await.expect_err("it hangs");
    assert_eq!(
        (error.reason(), error.to_string()),
        (REGISTRY_UNREACHABLE, "it could not be read within 1 s".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn each_list_of_a_registry_has_its_own_outage() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/v2/_catalog" if asked.login.is_empty() => found(r#"{"repositories": ["labs/a"]}"#),
        "/v2/_catalog" => with("401 No", r#"{"errors": [{"code": "UNAUTHORIZED"}]}"#),
        _ => found(r#"{"name": "labs/a", "tags": ["1"]}"#),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password").display().to_string();
    std::fs::write(&file, "expired").unwrap();
    let outages = Outages::default();
    let registry = |keys: serde_json::Value| Registry::new(config(&server.url, &keys)).reporting_to(&outages);
    let other = registry(json!({"imageListName": "labs", "project": "labs"}));
    let expired = registry(json!({
        "imageListName": "exams", "project": "labs", "username": "ada", "passwordFile": file,
    }));
    let host = server.url.trim_start_matches("http://");
    let begin = format!("[!] registry {host}/labs of ImageList exams: failing for ");
    for _ in 0..2 {
        assert!(expired.list().await.is_err());
        other.list().await.expect("a listing");
        let lines = outages.lines();
        assert!(lines.starts_with(&begin) && lines.lines().count() == 1, "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_name_files_that_cannot_be_used() {
    let server = Server::start(|asked| panic!("{asked:?}")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (name, content) in [("empty", "\n"), ("colon", "a:b"), ("password", "x")] {
        std::fs::write(path(name), content).unwrap();
    }
    for (keys, expected) in [
        (
            json!({"username": "ada", "passwordFile": path("absent")}),
            format!(
                "passwordFile cannot be used: {}: it does not exist; create it, or correct the path",
                path("absent")
            ),
        ),
        (
            json!({"username": "ada", "passwordFile": path("empty")}),
            format!("passwordFile cannot be used: {}: it is empty; write the value into it", path("empty")),
        ),
        (
            json!({"usernameFile": path("colon"), "passwordFile": path("password")}),
            format!("usernameFile cannot be used: the user in {} has a colon", path("colon")),
        ),
    ] {
        let error = list(&server, &keys).await.expect_err("no list");
        assert_eq!((error.reason(), error.to_string()), (REGISTRY_SETTINGS_INVALID, expected));
    }
    let error = list(&server, &json!({"caFile": path("absent")})).await.expect_err("no list");
    let begin = format!("caFile cannot be used: {} cannot be used: it does not exist; ", path("absent"));
    assert!(error.to_string().starts_with(&begin), "{error}");
}
