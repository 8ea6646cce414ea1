//! Harbor's API.

use serde_json::{Value, json};

use super::*;

/// The keys of Harbor.
fn harbor() -> Value {
    json!({"type": "harbor", "project": "labs", "artifactTypes": ["IMAGE", "WASM"]})
}

/// The requested page number.
fn page(path: &str) -> usize {
    let (_, query) = path.split_once("?page=").expect("a page");
    let (page, size) = query.split_once("&page_size=").expect("a size");
    assert_eq!(size, "100");
    page.parse().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn pages_nested_names_and_types() {
    let server = Server::start(|asked| {
        let (path, _) = asked.path.split_once('?').expect("a query");
        match (path, page(&asked.path)) {
            ("/api/v2.0/projects/labs/repositories", 1) => {
                let names = (0..100).map(|number| json!({"name": format!("labs/r{number}"), "artifact_count": 1}));
                found(names.collect::<Value>().to_string())
            }
            ("/api/v2.0/projects/labs/repositories", 2) => {
                found(r#"{"data": [{"name": "labs/deep/er/x"}, {"name": "other/y"}, {"name": "labs/Z"}]}"#)
            }
            ("/api/v2.0/projects/labs/repositories/deep%252Fer%252Fx/artifacts", 1) => {
                // A page with fewer than a hundred entries. Its header says that there are more.
                with(
                    "200 OK\r\nX-Total-Count: 4",
                    r#"[{"type": "IMAGE", "tags": [{"name": "2"}, {"name": "latest"}]}, {"type": "CHART", "tags": [{"name": "c"}]}]"#,
                )
            }
            ("/api/v2.0/projects/labs/repositories/deep%252Fer%252Fx/artifacts", 2) => with(
                "200 OK\r\nX-Total-Count: 4",
                r#"[{"type": "wasm", "tags": [{"name": "w"}, {"name": "2"}]}, {"tags": null}]"#,
            ),
            ("/api/v2.0/projects/labs/repositories/r0/artifacts", 1) => found(r#"[{"tags": [{"name": "1"}]}]"#),
            (_, 1) => found("[]"),
            (path, page) => panic!("{path} {page}"),
        }
    })
    .await;
    let listing = list(&server, &harbor()).await.expect("a listing");
    assert_eq!(lines(&listing), ["deep/er/x: 2 w", "r0: 1"]);
    assert_eq!(listing.left_out, LeftOut { repositories: 2, tags: 0 });
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_list_returns_an_error() {
    for (head, body, expected) in [
        (
            "401 No",
            r#"{"errors": [{"code": "UNAUTHORIZED"}]}"#,
            " was answered 401 (UNAUTHORIZED): it requires a login: set username and passwordFile",
        ),
        ("404 No", r#"{"errors": [{"code": "NOT_FOUND"}]}"#, " was answered 404 (NOT_FOUND)"),
        ("200 OK", r#"{"errors": [{"code": "DENIED"}]}"#, ": the answer has errors (DENIED)"),
        ("200 OK", "{}", ": the answer is not a list of repositories"),
        ("200 OK", r#"[{"id": 1}]"#, ": the answer is not a list of repositories"),
        ("200 OK\r\nX-Total-Count: 7", "[]", ": its pages have 0 of 7 entries"),
    ] {
        let server = Server::start(move |_| with(head, body)).await;
        let error = list(&server, &harbor()).await.expect_err("no list").to_string();
        assert_eq!(error, format!("GET /api/v2.0/projects/labs/repositories{expected}"), "{head} {body}");
    }
    // The same page is returned again and again.
    let server = Server::start(|_| found(json!(vec![json!({"name": "labs/a"}); 100]).to_string())).await;
    let error = list(&server, &harbor()).await.expect_err("no end");
    assert_eq!(error.reason(), crate::api::reason::REGISTRY_BAD_ANSWER, "{error}");
}
