//! The tokens that let a browser open a desktop without a login.

use serde_json::json;

use super::*;

const URL: &str = "https://labs.example.org/instance/1/";
const BODY: &str = r#"{"template": "box"}"#;

/// Creates an Instance that is ready, and returns its token as the exam server sees it.
fn ready(site: &Site, name: &str) -> Option<String> {
    assert_eq!(site.ask("PUT", &format!("/api/instances/{name}"), BODY).status, 201);
    site.set_status(name, &json!({"phase": "Ready", "url": URL}));
    let shown = site.await_shown(name, "Ready").json();
    assert_eq!(shown.get("token"), None, "a student does not see the token: {shown}");
    let seen = site.ask("GET", &format!("/api/instances/{name}"), "").json();
    seen["token"].as_str().map(str::to_owned)
}

#[test]
fn a_browser_without_the_token_is_not_redirected_to_a_desktop_without_a_login() {
    let site = Site::start("exam-token", &format!("{ALLOWED}, requireToken: true"));
    let token = ready(&site, "one").expect("a token");
    let other = ready(&site, "other").expect("a token");
    let location = |query: &str| {
        let page = site.browse(&format!("/api/instances/one{query}"));
        (page.status, page.header("location").map(str::to_owned))
    };
    assert_eq!(location(&format!("?token={token}")), (302, Some(URL.to_owned())));
    for query in [String::new(), format!("?token={other}"), format!("?token={}", &token[1..])] {
        assert_eq!(location(&query), (403, None), "{query}");
    }
    // The exam server needs no token.
    let headers = [("X-Forwarded-For", SERVER), ("Accept", "text/html")];
    assert_eq!(send(site.port, "GET", "/api/instances/one", &headers, "").status, 302);
}

#[test]
fn a_login_of_exams_makes_the_token_unnecessary() {
    let lab = Lab::shared();
    let name = "exam-login";
    lab.create_fixtures(name);
    let kubeconfig = account(&lab, name);
    let port = reserved_port();
    let keys = agent(port, name, &format!("{ALLOWED}, requireToken: true"));
    let login = "instance: {enabled: false, access: {exams: shared}}";
    let config = only(&[("examAgent", &keys)]).replace("instance: {enabled: false}", login);
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    daemon.wait_for("the exam agent", |daemon| daemon.page("/readyz/examAgent").0 == 200);
    let site = Site { lab, name, kubeconfig, daemon, port };
    assert_eq!(ready(&site, "one"), None, "no token is needed");
    assert_eq!(site.browse("/api/instances/one").header("location"), Some(URL));
}
