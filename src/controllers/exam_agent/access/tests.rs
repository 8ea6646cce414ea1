//! Tables of forged and honest requests, and the decision on each.

use serde_json::json;

use super::super::{body, origin};
use super::*;
use crate::config::Network;

/// The addresses of a student in a lecture room, of the exam server, and of the proxy in front of the agent.
const STUDENT: &str = "203.0.113.9";
const SERVER: &str = "192.0.2.10";
const PROXY: &str = "10.0.0.7";

fn config() -> ExamAgentConfig {
    ExamAgentConfig {
        allowed_ips: vec!["192.0.2.0/24".parse().expect("a network")],
        tenant: "service-tenant".to_owned(),
        template_selector: BTreeMap::from([("example.org/exam".to_owned(), "true".to_owned())]),
        hide_urls: true,
        ..ExamAgentConfig::default()
    }
}

fn instance(tenant: &str) -> Instance {
    let labels = json!({"crownlabs.polito.it/watch-for-instance-termination": "true", "course": "tsr"});
    let object = json!({
        "metadata": {"name": "exam-1", "namespace": "exams", "labels": labels},
        "spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": tenant}},
    });
    serde_json::from_value(object).expect("an Instance")
}

fn template(labels: &serde_json::Value) -> Template {
    let object = json!({"metadata": {"name": "desktop", "namespace": "exams", "labels": labels}, "spec": {}});
    serde_json::from_value(object).expect("a Template")
}

fn wanted(body: &str) -> WantedInstance {
    body::read(body.as_bytes()).expect("a body")
}

/// The decision as one word.
fn word(decision: &Result<Granted, Refusal>) -> &'static str {
    match decision {
        Ok(Granted { sees_urls: true, .. }) => "all",
        Ok(Granted { sees_urls: false, .. }) => "less",
        Err(Refusal::Forbidden(_)) => "forbidden",
        Err(Refusal::Malformed(_)) => "malformed",
        Err(Refusal::Invalid(_)) => "invalid",
        Err(Refusal::UnsupportedType) => "unsupported",
        Err(Refusal::NotFound) => "not found",
    }
}

#[test]
fn a_forged_address_grants_no_rights() {
    let (none, wanted) = (BTreeMap::new(), wanted(r#"{"template": "desktop"}"#));
    let proxies: Vec<Network> = vec!["10.0.0.0/8".parse().expect("a network")];
    for (peer, header, may) in [
        (PROXY, Some(SERVER), true),
        (PROXY, Some("203.0.113.9, 192.0.2.10"), false),
        (PROXY, Some(STUDENT), false),
        (PROXY, None, false),
        (PROXY, Some(""), false),
        // The student sends the server's address, and the proxy appends the student's own.
        (PROXY, Some("192.0.2.10, 203.0.113.9"), false),
        (PROXY, Some("192.0.2.10,192.0.2.10, 203.0.113.9"), false),
        (PROXY, Some("192.0.2.10, 10.0.0.7, 203.0.113.9"), false),
        (PROXY, Some("192.0.2.10 203.0.113.9"), false),
        (PROXY, Some("192.0.2.10:80"), false),
        (PROXY, Some("192.0.2.0/24"), false),
        (PROXY, Some("192.0.2.010"), false),
        // Every hop between the client and the peer must be a known proxy.
        ("10.0.0.8", Some("192.0.2.10, 10.0.0.7"), true),
        (PROXY, Some("192.0.2.10, 10.0.0.8, 192.0.2.10"), false),
        (PROXY, Some("192.0.2.10, x"), false),
        // The student bypasses the proxy.
        (STUDENT, Some(SERVER), false),
        (STUDENT, Some("192.0.2.10, 10.0.0.7"), false),
        (STUDENT, None, false),
        // The server bypasses the proxy.
        (SERVER, None, true),
        (SERVER, Some(STUDENT), true),
    ] {
        let client = origin::client(peer.parse().expect("an address"), header, &proxies);
        let decide = |action| word(&decide(&config(), client, action, World::UNREAD));
        let expected = if may { "all" } else { "forbidden" };
        for action in
            [Action::List(&none), Action::PutAny, Action::Put("exam-1", &wanted), Action::Delete("exam-1")]
        {
            assert_eq!(decide(action), expected, "{peer} {header:?} {action:?}");
        }
        // These actions are open to every client, without the URLs.
        let expected = if may { "all" } else { "less" };
        assert_eq!(decide(Action::See("exam-1")), expected, "{peer} {header:?}");
        assert_eq!(decide(Action::SeeTemplates), expected, "{peer} {header:?}");
    }
}

#[test]
fn writes_are_refused_without_an_allow_list_unless_allow_anyone_is_set() {
    let closed = ExamAgentConfig { allowed_ips: Vec::new(), ..config() };
    let open = ExamAgentConfig { allow_anyone: true, ..closed.clone() };
    for client in [None, SERVER.parse().ok(), STUDENT.parse().ok()] {
        assert_eq!(word(&decide(&closed, client, Action::Delete("exam-1"), World::UNREAD)), "forbidden");
        assert_eq!(word(&decide(&closed, client, Action::See("exam-1"), World::UNREAD)), "less");
        assert_eq!(word(&decide(&open, client, Action::Delete("exam-1"), World::UNREAD)), "all");
    }
    let shown = ExamAgentConfig { hide_urls: false, ..config() };
    assert_eq!(word(&decide(&shown, None, Action::See("exam-1"), World::UNREAD)), "all");
    assert_eq!(word(&decide(&shown, None, Action::Delete("exam-1"), World::UNREAD)), "forbidden");
}

/// The decision about a request of the exam server.
fn server(action: Action<'_>, world: World<'_>) -> Result<Granted, Refusal> {
    decide(&config(), SERVER.parse().ok(), action, world)
}

#[test]
fn invalid_names_are_malformed() {
    let overlong = "a".repeat(254);
    let wanted = WantedInstance { template: "desktop".to_owned(), ..WantedInstance::default() };
    for name in [
        "",
        "/",
        "a/b",
        "../exam-1",
        "..",
        ".",
        "a/../b",
        "exam-1/status",
        "exam-1?watch=1",
        "exam-1#",
        "%",
        "%2e%2e",
        "%00",
        "exam-1\n",
        "\r\nX-Forwarded-For: 192.0.2.10",
        "exam 1",
        "EXAM-1",
        "exam_1",
        "exam-",
        "-exam",
        "a..b",
        "é",
        "ｅｘａｍ",
        "exam\u{202e}",
        "\u{0}",
        &overlong,
    ] {
        for action in [Action::See(name), Action::Put(name, &wanted), Action::Delete(name)] {
            assert_eq!(word(&server(action, World::UNREAD)), "malformed", "{action:?}");
        }
    }
    for name in ["exam-1", "a.b", "1", &overlong[1..]] {
        assert_eq!(word(&server(Action::See(name), World::UNREAD)), "all", "{name:?}");
    }
}

#[test]
fn instances_of_others_are_neither_seen_nor_touched() {
    let (none, wanted) = (BTreeMap::new(), wanted(r#"{"template": "desktop"}"#));
    let exams = template(&json!({"example.org/exam": "true"}));
    let [ours, foreign] = [instance("service-tenant"), instance("ada")];
    let unreadable: Instance = serde_json::from_value(json!({
        "metadata": {"name": "exam-1"},
        "spec": {"running": 7, "tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"}},
    }))
    .expect("an Instance");
    assert!(unreadable.malformed.is_some());
    let world = |instance| World { instance, template: Lookup::Found(&exams) };
    for (instance, see, put, list) in [
        (Lookup::Found(&ours), "all", "all", "all"),
        (Lookup::Absent, "not found", "all", "all"),
        (Lookup::Found(&foreign), "not found", "forbidden", "not found"),
        (Lookup::Found(&unreadable), "not found", "forbidden", "not found"),
    ] {
        assert_eq!(word(&server(Action::See("exam-1"), world(instance))), see, "{instance:?}");
        assert_eq!(word(&server(Action::Delete("exam-1"), world(instance))), see, "{instance:?}");
        assert_eq!(word(&server(Action::Put("exam-1", &wanted), world(instance))), put, "{instance:?}");
        assert_eq!(word(&server(Action::List(&none), world(instance))), list, "{instance:?}");
    }
    // Knowing the name does not show a student more.
    let of_student =
        decide(&config(), STUDENT.parse().ok(), Action::See("exam-1"), world(Lookup::Found(&foreign)));
    assert_eq!(of_student, Err(Refusal::NotFound));
}

#[test]
fn a_template_that_is_not_for_exams_cannot_be_started() {
    let exams = template(&json!({"example.org/exam": "true", "more": "x"}));
    let [wrong, bare] = [json!({"example.org/exam": "false"}), json!({})].map(|labels| template(&labels));
    let put = |name: &str, template| {
        let wanted = WantedInstance { template: name.to_owned(), ..WantedInstance::default() };
        word(&server(Action::Put("exam-1", &wanted), World { instance: Lookup::Absent, template }))
    };
    for (template, expected) in [
        (Lookup::Found(&exams), "all"),
        (Lookup::Found(&wrong), "forbidden"),
        (Lookup::Found(&bare), "forbidden"),
        (Lookup::Absent, "forbidden"),
    ] {
        assert_eq!(put("desktop", template), expected, "{template:?}");
        let seen = match template {
            Lookup::Found(template) => word(&server(
                Action::SeeTemplates,
                World { instance: Lookup::Unread, template: Lookup::Found(template) },
            )),
            _ => continue,
        };
        assert_eq!(seen, if expected == "all" { "all" } else { "not found" });
    }
    assert_eq!(put("", Lookup::Unread), "invalid", "a Template is required");
    for name in ["../desktop", "workspace-x/desktop", "Desktop", "desktop\n", "desktop?x"] {
        assert_eq!(put(name, Lookup::Unread), "invalid", "{name:?}");
    }
    // Without a selector, every Template of the namespace is for exams.
    let any = ExamAgentConfig { template_selector: BTreeMap::new(), ..config() };
    for (name, template, expected) in [
        ("desktop", Lookup::Found(&bare), "all"),
        ("", Lookup::Unread, "invalid"),
        ("", Lookup::Absent, "invalid"),
        ("a/b", Lookup::Unread, "invalid"),
    ] {
        let wanted = WantedInstance { template: name.to_owned(), ..WantedInstance::default() };
        let world = World { instance: Lookup::Absent, template };
        let decision = decide(&any, SERVER.parse().ok(), Action::Put("exam-1", &wanted), world);
        assert_eq!(word(&decision), expected, "{name:?}");
    }
}

#[test]
fn labels_of_the_daemon_are_not_set_by_clients() {
    let (exams, ours) = (template(&json!({"example.org/exam": "true"})), instance("service-tenant"));
    let put = |labels: serde_json::Value, instance| {
        let wanted = wanted(&json!({"template": "desktop", "labels": labels}).to_string());
        word(&server(Action::Put("exam-1", &wanted), World { instance, template: Lookup::Found(&exams) }))
    };
    let watch = "crownlabs.polito.it/watch-for-instance-termination";
    for (labels, new, old) in [
        (json!({"course": "tsr", "example.org/student": "s123456"}), "all", "all"),
        // A client may send back the labels that it was shown.
        (json!({watch: "true"}), "invalid", "all"),
        (json!({watch: "false"}), "invalid", "invalid"),
        (json!({watch: null}), "invalid", "invalid"),
        (json!({"crownlabs.polito.it/instance-submission-completed": "true"}), "invalid", "invalid"),
        (json!({"crownlabs.polito.it/managed-by": "instance"}), "invalid", "invalid"),
        (json!({"pmp.crownlabs.polito.it/x": "1"}), "invalid", "invalid"),
        (json!({"CrownLabs.polito.it/x": "1"}), "invalid", "invalid"),
        (json!({"notcrownlabs.polito.it/x": "1"}), "all", "all"),
        (json!({"crownlabs.polito.it": "1"}), "all", "all"),
        (json!({"crownlabs.polito.it/": "1"}), "invalid", "invalid"),
        (json!({"a b": "1"}), "invalid", "invalid"),
        (json!({"": "1"}), "invalid", "invalid"),
        (json!({"a": "b c"}), "invalid", "invalid"),
        (json!({"a": "x".repeat(64)}), "invalid", "invalid"),
        (json!({"a\n": "1"}), "invalid", "invalid"),
    ] {
        assert_eq!(put(labels.clone(), Lookup::Absent), new, "{labels}");
        assert_eq!(put(labels.clone(), Lookup::Found(&ours)), old, "{labels}");
    }
    // A list by invalid labels is refused before a request is sent.
    let list = |key: &str, value: &str| {
        let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        word(&server(Action::List(&labels), World::UNREAD))
    };
    assert_eq!(list(watch, "true"), "all");
    for (key, value) in [("", "true"), ("a,b", "1"), ("a", "1,c=2"), ("!a", "true"), ("a", "b c")] {
        assert_eq!(list(key, value), "malformed", "{key}={value}");
    }
}
