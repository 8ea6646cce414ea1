//! The API of the OCI distribution specification: pages, names, logins.

use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn all_pages_are_read_sorted_and_stripped_of_hostile_names() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/prefix/v2/_catalog" => with(
            "200 OK\r\nLink: </prefix/v2/_catalog?last=b&n=2>; rel=\"next\"",
            r#"{"repositories": ["b", "z/gone", "../../v1/secrets"]}"#,
        ),
        "/prefix/v2/_catalog?last=b&n=2" => {
            found(r#"{"repositories": ["a/b", "b", "Upper", "x?y=1", "empty", ""]}"#)
        }
        "/prefix/v2/b/tags/list" => {
            with("200 OK\r\nLink: <?last=1>; rel=\"next\"", r#"{"name": "b", "tags": ["2", "1"]}"#)
        }
        "/prefix/v2/b/tags/list?last=1" => found(r#"{"name": "b", "tags": ["latest", "1", "0", "a b"]}"#),
        "/prefix/v2/a/b/tags/list" => found(r#"{"name": "a/b", "tags": ["x"]}"#),
        "/prefix/v2/empty/tags/list" => found(r#"{"name": "empty", "tags": null}"#),
        "/prefix/v2/z/gone/tags/list" => with("404 Not Found", ""),
        other => panic!("{other}"),
    })
    .await;
    let registry = Registry::new(config(&format!("{}/prefix/", server.url), &json!({})));
    let listing = registry.list().await.expect("a listing");
    assert_eq!(lines(&listing), ["a/b: x", "b: 2 1 0"]);
    assert_eq!(listing.left_out, LeftOut { repositories: 4, tags: 1 });
    assert!(server.asked().iter().all(|asked| asked.login.is_empty()), "no login is configured");
}

#[tokio::test(start_paused = true)]
async fn a_project_is_a_prefix_of_names() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/v2/_catalog" => {
            found(r#"{"repositories": ["labs/a", "labs/b/c", "labsx/d", "labs", "e", "labs/É"]}"#)
        }
        "/v2/labs/a/tags/list" | "/v2/labs/b/c/tags/list" => found(r#"{"name": "", "tags": ["1"]}"#),
        other => panic!("{other}"),
    })
    .await;
    let listing = list(&server, &json!({"project": "labs"})).await.expect("a listing");
    assert_eq!(lines(&listing), ["a: 1", "b/c: 1"]);
    assert_eq!(listing.left_out.repositories, 1);
}

/// A folder with the files of a login, and the keys that name them.
fn login() -> (tempfile::TempDir, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("password"), "s3cret\n").unwrap();
    std::fs::write(folder.path().join("user"), "ada\r\n").unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let keys = json!({"usernameFile": path("user"), "passwordFile": path("password")});
    (folder, keys)
}

/// `ada:s3cret`.
const BASIC: &str = "Basic YWRhOnMzY3JldA==";

#[tokio::test(start_paused = true)]
async fn a_user_logs_in_with_a_password_or_a_token() {
    let (folder, mut keys) = login();
    let basic = Server::start(|asked| match asked.path.as_str() {
        _ if asked.login != BASIC => with("401 No\r\nWWW-Authenticate: Basic realm=\"r\"", ""),
        "/v2/_catalog" => found(r#"{"repositories": ["a"]}"#),
        _ => found(r#"{"name": "a", "tags": ["1"]}"#),
    })
    .await;
    assert_eq!(lines(&list(&basic, &keys).await.expect("a listing")), ["a: 1"]);
    assert!(basic.asked().iter().all(|asked| asked.login == BASIC), "at once");
    let error = list(&basic, &json!({})).await.expect_err("no login is configured");
    let expected = "GET /v2/_catalog was answered 401: it requires a login: set username and passwordFile";
    assert_eq!(error.to_string(), expected);
    // The password file is read again after a change.
    let registry = Registry::new(config(&basic.url, &keys));
    std::fs::write(folder.path().join("password"), "other").unwrap();
    let error = registry.list().await.expect_err("the password is wrong").to_string();
    let end = "401: check the user, the content of passwordFile, and the permissions of the user";
    assert!(error.ends_with(end) && !error.contains("other"), "{error}");
    std::fs::write(folder.path().join("password"), "s3cret").unwrap();
    registry.list().await.expect("a listing");

    let issuer = Server::start(|asked| {
        assert_eq!(asked.login, BASIC);
        let (_, query) = asked.path.split_once('?').expect("a query");
        found(json!({"token": query.replace(['&', '=', '%', '+'], "-")}).to_string())
    })
    .await;
    let realm = format!("{}/token", issuer.url);
    let bearer = Server::start(move |asked| {
        let is_allowed = |scope: &str| asked.login == format!("Bearer service-r-scope-{scope}");
        let (scope, body) = match asked.path.as_str() {
            "/v2/_catalog" => ("registry-3Acatalog-3A*", r#"{"repositories": ["a", "b"]}"#),
            "/v2/a/tags/list" => ("repository-3Aa-3Apull", r#"{"name": "a", "tags": ["1"]}"#),
            _ => ("repository-3Ab-3Apull", r#"{"name": "b", "tags": ["2"]}"#),
        };
        if is_allowed(scope) {
            return found(body);
        }
        let scope = scope.replace("-3A", ":");
        let challenge = format!(r#"Bearer realm="{realm}",service="r",scope="{scope}""#);
        with(&format!("401 No\r\nWWW-Authenticate: {challenge}"), r#"{"errors": [{"code": "UNAUTHORIZED"}]}"#)
    })
    .await;
    keys["tokenUrl"] = json!(issuer.url);
    assert_eq!(lines(&list(&bearer, &keys).await.expect("a listing")), ["a: 1", "b: 2"]);
    let refused = bearer.asked().iter().filter(|asked| !asked.login.starts_with("Bearer")).count();
    assert_eq!(refused, 1, "the service is known after the first challenge");
}

#[tokio::test(start_paused = true)]
async fn the_login_is_sent_to_no_other_server() {
    let (_folder, keys) = login();
    let thief = Server::start(|_| found(r#"{"token": "x"}"#)).await;
    for (head, message) in [
        (
            format!("401 No\r\nWWW-Authenticate: Bearer realm=\"{}/token\"", thief.url),
            "for a token, and no request is sent there: set tokenUrl if that server should get the login",
        ),
        (
            format!("302 Found\r\nLocation: {}/v2/_catalog", thief.url),
            "and no request is sent there: set url to the address of the registry itself",
        ),
        (
            format!("200 OK\r\nLink: <{}/v2/_catalog?last=a>; rel=\"next\"", thief.url),
            "for its next page, and no request is sent there: the registry must use the address in url for its pages",
        ),
    ] {
        let said = head.clone();
        let server = Server::start(move |_| with(&said, r#"{"repositories": []}"#)).await;
        let error = list(&server, &keys).await.expect_err(&head);
        assert_eq!(error.reason(), crate::api::reason::REGISTRY_ELSEWHERE);
        let error = error.to_string();
        assert!(error.contains(&thief.url) && error.contains(message), "{error}");
    }
    assert!(thief.paths().is_empty(), "{:?}", thief.paths());
}

#[tokio::test(start_paused = true)]
async fn a_challenge_of_the_registry_itself_is_answered_without_a_user() {
    let url: Arc<Mutex<String>> = Arc::default();
    let own = Arc::clone(&url);
    let server = Server::start(move |asked| match (asked.path.as_str(), asked.login.as_str()) {
        (path, "") if path.starts_with("/token?") => found(r#"{"access_token": "t"}"#),
        ("/v2/_catalog", "Bearer t") => found(r#"{"repositories": []}"#),
        (_, "") => {
            let realm = own.lock().unwrap().clone();
            with(&format!("401 No\r\nWWW-Authenticate: Bearer realm=\"{realm}/token\""), "")
        }
        (_, login) => panic!("{login}"),
    })
    .await;
    url.lock().unwrap().clone_from(&server.url);
    let listing = list(&server, &json!({})).await.expect("a listing");
    assert_eq!(listing, Listing::default(), "an empty registry has an empty list");
    assert_eq!(server.paths(), ["/v2/_catalog", "/token?scope=registry%3Acatalog%3A*", "/v2/_catalog"]);
}
