//! Clients with false claims, and objects that do not belong to exams.

use super::{ALLOWED, SERVER, Site, send};
use crate::lab::instance;

const BODY: &str = r#"{"template": "container"}"#;

#[test]
fn objects_outside_exams_are_neither_shown_nor_changed() {
    let keys = format!("{ALLOWED}, templateSelector: {{example.org/exam: \"true\"}}, basePath: /exams/v1");
    let site = Site::start("exam-liars", &keys);
    let namespace = site.namespace();
    site.lab.kubectl(&["label", "template", "-n", &namespace, "container", "example.org/exam=true"]);
    // An Instance of another user in the namespace, and an Instance of exams in another namespace.
    site.lab.apply(&instance("exam-liars", "foreign", "container").replace("tenant-exam-liars", &namespace));
    let elsewhere = instance("exam-liars", "elsewhere", "container")
        .replace("{name: exam-liars}", "{name: service-tenant}");
    site.lab.apply(&elsewhere);
    let templates = site.ask("GET", "/exams/v1/templates/", "").json();
    let names: Vec<&str> =
        templates.as_array().expect("a list").iter().filter_map(|each| each["name"].as_str()).collect();
    assert_eq!(names, ["container"]);
    for (method, name, body, expected) in [
        ("GET", "foreign", "", 404),
        ("DELETE", "foreign", "", 404),
        ("PUT", "foreign", BODY, 403),
        ("GET", "elsewhere", "", 404),
        ("DELETE", "elsewhere", "", 404),
        ("PUT", "exam", r#"{"template": "vm"}"#, 403),
        ("PUT", "exam", r#"{"template": "missing"}"#, 403),
        ("PUT", "exam", "{}", 422),
        ("PUT", "exam", BODY, 201),
        ("PUT", "exam", r#"{"template": "vm"}"#, 403),
        ("GET", "exam", "", 200),
    ] {
        let answer = site.ask(method, &format!("/exams/v1/instances/{name}"), body);
        assert_eq!(answer.status, expected, "{method} {name} {body}: {answer:?}");
    }
    let list = site.ask("GET", "/exams/v1/instances/", "").json();
    assert_eq!((list[0]["id"].as_str(), list.as_array().map(Vec::len)), (Some("exam"), Some(1)));
    let foreign = site.instance("foreign").expect("it is there");
    assert_eq!(foreign["spec"]["tenant.crownlabs.polito.it/TenantRef"]["name"], "exam-liars");
    assert!(site.lab.get("instances", "tenant-exam-liars", "elsewhere").is_some());
    assert_eq!(
        site.instance("exam").expect("there")["spec"]["template.crownlabs.polito.it/TemplateRef"]["name"],
        "container"
    );
}

#[test]
fn the_client_address_is_taken_only_from_known_proxies() {
    let site = Site::start("exam-proxies", &format!("{ALLOWED}, trustedProxies: [198.51.100.0/24]"));
    // The test itself is not a proxy.
    for header in [Some(SERVER), Some("192.0.2.10, 198.51.100.1"), None] {
        let headers: Vec<(&str, &str)> = header.iter().map(|value| ("X-Forwarded-For", *value)).collect();
        assert_eq!(send(site.port, "GET", "/api/instances/", &headers, "").status, 403, "{header:?}");
    }
    let keys = format!("{ALLOWED}, trustedProxies: [127.0.0.0/8, 198.51.100.0/24]");
    let (_daemon, port) = super::daemon(&site.kubeconfig, site.name, &[], &keys);
    for (header, expected) in [
        (Some(SERVER), 200),
        (Some("192.0.2.10, 198.51.100.1"), 200),
        (Some("192.0.2.10, 203.0.113.9"), 403),
        (Some("192.0.2.10, 203.0.113.9, 198.51.100.1"), 403),
        (Some("192.0.2.10, x, 198.51.100.1"), 403),
        // The client has sent the header itself: a later entry is not a known proxy, so the whole header is rejected.
        (Some("203.0.113.9, 192.0.2.10"), 403),
        (Some("x, 192.0.2.10, 198.51.100.1"), 403),
        (None, 403),
    ] {
        let headers: Vec<(&str, &str)> = header.iter().map(|value| ("X-Forwarded-For", *value)).collect();
        assert_eq!(send(port, "GET", "/api/instances/", &headers, "").status, expected, "{header:?}");
    }
}

#[test]
fn access_is_denied_unless_a_client_is_configured_and_wide_access_is_logged() {
    let site = Site::start("exam-nobody", "trustedProxies: [127.0.0.0/8, 192.0.2.80/32]");
    assert_eq!(site.ask("PUT", "/api/instances/exam", BODY).status, 403);
    assert_eq!(site.ask("GET", "/api/instances/", "").status, 403);
    assert_eq!(site.ask("GET", "/api/templates/", "").status, 200);
    let log = site.daemon.log();
    assert!(log.contains("no client may create or delete Instances through the exam agent"), "{log}");
    assert_eq!(log.matches("a network of more than 16 addresses").count(), 1, "{log}");
    assert!(log.contains("127.0.0.0/8"), "{log}");
}
