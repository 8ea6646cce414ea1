//! Several replicas, and other clients that write at the same time.

use std::sync::Barrier;

use serde_json::json;

use super::{ALLOWED, SERVER, Site, daemon, send};
use crate::lab::{PATIENCE, wait_until};
use cluster::audit::{AuditEntry, Mark};

#[test]
fn two_replicas_at_once_create_one_instance() {
    let keys = format!("{ALLOWED}, clientQps: 10000, clientMaxBurst: 10000");
    let site = Site::start("exam-two", &keys);
    let (_second, second) = daemon(&site.kubeconfig, site.name, &[], &keys);
    let ports = [site.port, second, site.port, second];
    for round in 0..10 {
        let path = format!("/api/instances/exam-{round}");
        let barrier = Barrier::new(ports.len());
        let mut statuses: Vec<u16> = std::thread::scope(|scope| {
            let asking: Vec<_> = ports
                .iter()
                .map(|port| {
                    scope.spawn(|| {
                        barrier.wait();
                        let body = r#"{"template": "container"}"#;
                        send(*port, "PUT", &path, &[("X-Forwarded-For", SERVER)], body).status
                    })
                })
                .collect();
            asking.into_iter().map(|asking| asking.join().expect("an answer")).collect()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 200, 201], "{path}");
        // A write through one replica is visible in the other at once.
        let shown = send(second, "GET", &path, &[("X-Forwarded-For", SERVER)], "");
        assert_eq!((shown.status, shown.json()["template"].as_str()), (200, Some("container")));
    }
    assert_eq!(site.lab.list("instances", &site.namespace()).len(), 10);
}

#[test]
fn concurrent_changes_of_several_clients_are_all_kept() {
    let keys = format!("{ALLOWED}, clientQps: 10000, clientMaxBurst: 10000");
    let site = Site::start("exam-race", &keys);
    let (_second, second) = daemon(&site.kubeconfig, site.name, &[], &keys);
    assert_eq!(site.ask("PUT", "/api/instances/exam", r#"{"template": "container"}"#).status, 201);
    // Three at once: a request may conflict with each of the other two changes.
    let ports = [site.port, second, second];
    let barrier = Barrier::new(ports.len());
    std::thread::scope(|scope| {
        for (client, port) in ports.iter().enumerate() {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let label = format!("client-{client}");
                let body = json!({"template": "container", "labels": {label: "true"}}).to_string();
                let answer = send(*port, "PUT", "/api/instances/exam", &[("X-Forwarded-For", SERVER)], &body);
                assert_eq!(answer.status, 200, "{answer:?}");
            });
        }
    });
    let labels = site.instance("exam").expect("it is there")["metadata"]["labels"].clone();
    assert_eq!(labels, json!({"client-0": "true", "client-1": "true", "client-2": "true"}));
}

#[test]
fn fifty_writers_of_one_name_all_succeed() {
    let site = Site::start("exam-fifty", &format!("{ALLOWED}, clientQps: 10000, clientMaxBurst: 10000"));
    let keys = format!("{ALLOWED}, clientQps: 10000, clientMaxBurst: 10000");
    let (_second, second) = daemon(&site.kubeconfig, site.name, &[], &keys);
    let barrier = Barrier::new(50);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let barrier = &barrier;
        let asking: Vec<_> = (0..50)
            .map(|client| {
                let port = if client % 2 == 0 { site.port } else { second };
                scope.spawn(move || {
                    barrier.wait();
                    let label = format!("client-{client}");
                    let body =
                        json!({"id": label, "template": "container", "labels": {&label: "true"}}).to_string();
                    send(port, "PUT", "/api/instances/exam", &[("X-Forwarded-For", SERVER)], &body).status
                })
            })
            .collect();
        asking.into_iter().map(|asking| asking.join().expect("an answer")).collect()
    });
    let number = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((number(201), number(200)), (1, 49), "{statuses:?}");
    let labels = site.instance("exam").expect("it is there")["metadata"]["labels"].clone();
    assert_eq!(labels.as_object().map(serde_json::Map::len), Some(50), "{labels}");
}

#[test]
fn an_instance_that_is_being_deleted_is_created_again() {
    let site = Site::start("exam-again", ALLOWED);
    let (path, body) = ("/api/instances/exam", r#"{"template": "container"}"#);
    let hold = r#"{"metadata": {"finalizers": ["example.org/kept"]}}"#;
    let release = r#"{"metadata": {"finalizers": null}}"#;
    assert_eq!(site.ask("PUT", path, body).status, 201);
    let uid = site.instance("exam").expect("it is there")["metadata"]["uid"].clone();
    site.lab.patch("instances", &site.namespace(), "exam", hold);
    assert_eq!(site.ask("DELETE", path, "").status, 200);
    // It is rejected, so that no client believes that the Instance was changed.
    let late = site.ask("PUT", path, body);
    assert_eq!(
        (late.status, &*late.body),
        (409, "Conflict: the Instance is being deleted: try again when it no longer exists")
    );
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| site.ask("PUT", path, body).status);
        site.lab.patch("instances", &site.namespace(), "exam", release);
        assert_eq!(asking.join().expect("an answer"), 201);
    });
    assert_ne!(site.instance("exam").expect("it is there")["metadata"]["uid"], uid);
}

#[test]
fn the_rights_are_sufficient_and_all_of_them_are_used() {
    let mut site = Site::start("exam-rights", &format!("{ALLOWED}, templateSelector: {{exam: \"1\"}}"));
    site.lab.kubectl(&["label", "template", "-n", &site.namespace(), "container", "exam=1"]);
    for (method, path, body, status) in [
        ("GET", "/api/templates/", "", 200),
        ("PUT", "/api/instances/exam", r#"{"template": "container"}"#, 201),
        ("PUT", "/api/instances/exam", r#"{"template": "container", "running": false}"#, 200),
        ("GET", "/api/instances/exam", "", 200),
        ("GET", "/api/instances/", "", 200),
        ("DELETE", "/api/instances/exam", "", 200),
    ] {
        assert_eq!(site.ask(method, path, body).status, status, "{method} {path}");
    }
    // A watch is in the audit log once it has ended.
    site.daemon.stop();
    let user = format!("system:serviceaccount:crownlabs-system:exam-agent-{}", site.name);
    let expected = [
        "create instances",
        "delete instances",
        "get instances",
        "get templates",
        "list instances",
        "list templates",
        "patch instances",
        "watch instances",
        "watch templates",
    ];
    // The audit log is written with a short delay.
    wait_until(PATIENCE, || {
        let entries = site.lab.cluster.audit().since(Mark::default()).expect("the audit log");
        let ours: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.user == user).collect();
        let refused: Vec<_> = ours.iter().filter(|entry| entry.code == 403).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        let mut verbs: Vec<String> = ours
            .iter()
            .filter(|entry| !entry.resource.is_empty())
            .map(|entry| format!("{} {}", entry.verb, entry.resource))
            .collect();
        verbs.sort();
        verbs.dedup();
        (verbs == expected).then_some(()).ok_or_else(|| format!("{verbs:?}"))
    });
    let role = site.lab.get("roles", &site.namespace(), "crownlabs-exam-agent").expect("the role");
    let mut granted: Vec<String> = Vec::new();
    for rule in role["rules"].as_array().expect("rules") {
        let texts = |key: &str| -> Vec<String> {
            let list = rule[key].as_array().expect("a list").iter();
            list.map(|text| text.as_str().expect("a text").to_owned()).collect()
        };
        for resource in texts("resources") {
            granted.extend(texts("verbs").iter().map(|verb| format!("{verb} {resource}")));
        }
    }
    granted.sort();
    assert_eq!(granted, expected);
}
