//! The API server rejects requests, is slow, or is down.

use std::time::Duration;

use http::Method;

use super::{ALLOWED, SERVER, STUDENT, Site, awaited, daemon, send};
use crate::daemon::Daemon;
use crate::lab::{PATIENCE, wait_until};
use cluster::proxy::{Fault, Proxy, everything, matching, requests_of};

const BODY: &str = r#"{"template": "container"}"#;

/// A daemon whose requests go through the proxy.
fn through(site: &Site, proxy: &Proxy, keys: &str) -> (Daemon, u16) {
    let account = format!("exam-agent-{}", site.name);
    let kubeconfig =
        site.lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", &account).expect("a kubeconfig");
    daemon(&kubeconfig, site.name, &[], &format!("{ALLOWED}, {keys}"))
}

#[test]
fn a_failure_of_the_api_server_has_the_text_of_its_route() {
    let site = Site::start("exam-fails", ALLOWED);
    let proxy = Proxy::start(&site.lab.cluster).expect("the proxy");
    let (daemon, port) = through(&site, &proxy, "hideUrls: true");
    assert_eq!(site.ask("PUT", "/api/instances/exam", BODY).status, 201);
    proxy.set(Fault::Status { code: 500, retry_after: None, matching: everything() });
    let missing = "{\"code\":500,\"text\":\"Cannot retrieve the requested instance.\"}\n";
    for (method, path, text) in [
        ("GET", "/api/templates/", ""),
        ("GET", "/api/instances/", "Error retrieving instances"),
        ("GET", "/api/instances/exam", missing),
        ("PUT", "/api/instances/exam", "Instance exam cannot be unchanged"),
        ("DELETE", "/api/instances/exam", "Error deleting instance"),
    ] {
        let answer = send(port, method, path, &[("X-Forwarded-For", SERVER)], BODY);
        assert_eq!((answer.status, &*answer.body), (500, text), "{method} {path}");
    }
    // It keeps serving, and continues when the API server is back.
    assert_eq!(send(port, "GET", "/healthz", &[], "").status, 200);
    assert_eq!(daemon.page("/readyz/examAgent").0, 200);
    proxy.set(Fault::None);
    assert_eq!(send(port, "GET", "/api/instances/exam", &[("X-Forwarded-For", SERVER)], "").status, 200);
    // Other requests are answered from the store. Its watch gets the Instance as soon as possible, or is opened again.
    awaited(|| send(port, "GET", "/api/instances/exam", &[], ""), |shown| shown.status == 200);
}

#[test]
fn conflicts_are_retried_ten_times() {
    let site = Site::start("exam-conflicts", ALLOWED);
    let proxy = Proxy::start(&site.lab.cluster).expect("the proxy");
    let (_daemon, port) = through(&site, &proxy, "hideUrls: true");
    let put =
        |body: &str| send(port, "PUT", "/api/instances/exam", &[("X-Forwarded-For", SERVER)], body).status;
    assert_eq!(put(BODY), 201);
    let conflicts = |number: usize| {
        let seen = std::sync::atomic::AtomicUsize::new(0);
        let counts = move |method: &Method, path: &str| {
            *method == Method::PATCH
                && path.contains("/instances/")
                && seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < number
        };
        Fault::Status { code: 409, retry_after: None, matching: matching(counts) }
    };
    proxy.set(conflicts(10));
    assert_eq!(put(r#"{"template": "container", "running": false}"#), 200);
    proxy.set(conflicts(11));
    assert_eq!(put(BODY), 409);
    // After a lost response, the next request finds the Instance.
    proxy.set(Fault::LoseAnswer { matching: requests_of(Method::POST, "/instances") });
    let lost = send(port, "PUT", "/api/instances/other", &[("X-Forwarded-For", SERVER)], BODY).status;
    proxy.set(Fault::None);
    let again = send(port, "PUT", "/api/instances/other", &[("X-Forwarded-For", SERVER)], BODY).status;
    assert_eq!((lost, again), (500, 200));
    assert!(site.instance("other").is_some());
}

#[test]
fn a_slow_response_delays_only_its_client() {
    let site = Site::start("exam-late", ALLOWED);
    let proxy = Proxy::start(&site.lab.cluster).expect("the proxy");
    let (_daemon, port) = through(&site, &proxy, "hideUrls: true");
    proxy.set(Fault::Delay {
        pause: Duration::from_mins(10),
        matching: matching(|_, path| path.ends_with("/instances/late")),
    });
    std::thread::scope(|scope| {
        // Longer than the timeout of a request to the API server.
        let headers = [("X-Forwarded-For", SERVER)];
        let late = scope.spawn(move || send(port, "GET", "/api/instances/late", &headers, ""));
        for _ in 0..20 {
            let answer = send(port, "GET", "/api/instances/", &[("X-Forwarded-For", SERVER)], "");
            assert_eq!((answer.status, &*answer.body), (200, "[]\n"));
        }
        assert!(!late.is_finished(), "the others have not waited for it");
        assert_eq!(late.join().expect("an answer").status, 500);
    });
}

#[test]
fn a_client_that_is_not_allowed_causes_no_request() {
    let site = Site::start("exam-anonymous", ALLOWED);
    let proxy = Proxy::start(&site.lab.cluster).expect("the proxy");
    let (daemon, port) = through(&site, &proxy, "clientQps: 1, clientMaxBurst: 1");
    assert_eq!(site.ask("PUT", "/api/instances/exam", BODY).status, 201);
    let see = |path: &str| send(port, "GET", path, &[("X-Forwarded-For", STUDENT)], "");
    wait_until(PATIENCE, || match see("/api/instances/exam").status {
        200 => Ok(()),
        other => Err(format!("the watch shows it, not {other}")),
    });
    // The API server rejects every request; open watches stay open.
    proxy.set(Fault::Status { code: 500, retry_after: None, matching: everything() });
    for _ in 0..50 {
        assert_eq!(see("/api/instances/exam").status, 200);
        assert_eq!(see("/api/instances/none").status, 404);
        let templates = see("/api/templates/");
        assert!(
            templates.status == 200 && templates.body.contains("\"name\":\"container\""),
            "{templates:?}"
        );
    }
    assert_eq!(send(port, "GET", "/api/instances/exam", &[("X-Forwarded-For", SERVER)], "").status, 500);
    // A client without the header is identified by its connection.
    assert_eq!(send(port, "DELETE", "/api/instances/exam", &[], "").status, 403);
    assert!(daemon.log().contains(r#"client="unknown" peer="127.0.0.1""#), "{}", daemon.log());
}
