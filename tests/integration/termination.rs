//! The status URLs of exams, on a server of the test.

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::exam_server::{Answer, ExamServer};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

const WATCH: &str = "/metadata/labels/crownlabs.polito.it~1watch-for-instance-termination";
const REQUESTED: &str = "/metadata/labels/crownlabs.polito.it~1instance-submission-requested";

/// An Instance of a Template with further lines of its spec, and with its own name, which the instance loop then does
/// not choose.
pub fn exam(fixtures: &str, name: &str, template: &str, spec: &str) -> String {
    format!("{}  prettyName: Exam\n{spec}", instance(fixtures, name, template))
}

/// Waits until a condition of an Instance has this reason. Returns the condition.
pub fn await_condition(lab: &Lab, namespace: &str, name: &str, type_: &str, reason: &str) -> Value {
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, name).ok_or_else(|| format!("Instance {name}"))?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition["type"] == type_);
        match found {
            Some(found) if found["reason"] == reason => Ok(found),
            other => Err(format!("Instance {name}: {type_} {reason}, is {other:?}")),
        }
    })
}

#[test]
fn each_response_has_its_effect() {
    let lab = Lab::shared();
    let course = lab.course("term");
    let (namespace, server) = ("tenant-term", ExamServer::start());
    let config = "controllers:
  termination: {enabled: true, statusCheckTimeout: 1s, statusCheckInterval: 5s, confirmAfter: 5s,
    allowCidrs: [127.0.0.0/8]}\n";
    let daemon = course.daemon(config);
    for (name, answer) in [
        ("kept", Answer::Body(200, r#"{"deadline": "2030-01-02T03:04:05+01:00"}"#)),
        ("empty", Answer::Body(204, "")),
        ("gone", Answer::Body(404, "<html>")),
        ("over", Answer::Body(410, "{}")),
        ("moved", Answer::Redirect("gone")),
        ("older", Answer::Body(404, "")),
        ("fails", Answer::Body(500, "")),
        ("endless", Answer::Endless),
        ("hangs", Answer::Hang),
    ] {
        server.set(name, answer);
        let url = server.url(name);
        let spec = if name == "older" {
            format!(
                "  customizationUrls: {{statusCheck: \"{url}\", contentDestination: \"https://x.example\"}}\n"
            )
        } else {
            format!("  statusCheckUrl: \"{url}\"\n")
        };
        lab.apply(&exam("term", name, "container-persistent", &spec));
    }
    for (name, requested) in [("gone", "false"), ("over", "false"), ("moved", "false"), ("older", "true")] {
        let object = lab.await_value("instances", namespace, name, WATCH, "false");
        assert_eq!(object["spec"]["running"], false, "{name}: in the same write");
        assert_eq!(object.pointer(REQUESTED), Some(&json!(requested)), "{name}");
        let automation = &object["status"]["automation"];
        assert!(automation["terminationTime"].is_string(), "{automation}");
        assert_eq!(automation["terminationTime"], automation["lastCheckTime"], "{name}");
        await_condition(&lab, namespace, name, "StatusChecked", "Terminated");
        lab.await_event(namespace, name, "Terminated: ");
    }
    failed_queries(&lab, namespace, &server);
    kept_instances(&lab, namespace, &server);
    let metrics = daemon.metrics();
    for result in ["kept", "terminated", "failed"] {
        assert!(
            metrics.contains(&format!("instance_status_checks_total{{result=\"{result}\"}}")),
            "{metrics}"
        );
    }
    assert!(!daemon.log().contains("hunter2"), "{}", daemon.log());
}

/// Instances with an unreliable status URL: they are kept, the reason is reported, and they recover.
fn failed_queries(lab: &Lab, namespace: &str, server: &ExamServer) {
    for name in ["fails", "hangs"] {
        let condition = await_condition(lab, namespace, name, "StatusChecked", "StatusCheckFailed");
        let message = condition["message"].as_str().unwrap_or_default().to_owned();
        let expected = format!("the status URL at {} could not be checked: ", server.host());
        assert!(message.starts_with(&expected) && !message.contains("hunter2"), "{message}");
        lab.await_event(namespace, name, &format!("StatusCheckFailed: {message}"));
        let object = lab.get("instances", namespace, name).expect("there");
        assert_eq!(object["spec"]["running"], true, "{name}");
        assert_eq!(object["status"]["automation"], Value::Null, "{name}");
        // It recovers.
        server.set(name, Answer::Body(200, "{}"));
        await_condition(lab, namespace, name, "StatusChecked", "Kept");
    }
}

/// Instances that are kept until the response changes, and that are queried again when their label is set again.
fn kept_instances(lab: &Lab, namespace: &str, server: &ExamServer) {
    let deadline = "2030-01-02T02:04:05Z";
    let kept =
        lab.await_value("instances", namespace, "kept", "/status/automation/terminationTime", deadline);
    assert_eq!(kept["spec"]["running"], true);
    let both = "/status/environments/0/automation/terminationTime";
    lab.await_value("instances", namespace, "kept", both, deadline);
    let condition = await_condition(lab, namespace, "empty", "StatusChecked", "Kept");
    assert_eq!(condition["message"], format!("{} answered 204: the Instance is kept", server.host()));
    let condition = await_condition(lab, namespace, "endless", "StatusChecked", "Kept");
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(
        message.ends_with("the end of the exam cannot be read: the answer is longer than 64 KiB"),
        "{message}"
    );
    server.set("kept", Answer::Body(404, ""));
    lab.await_value("instances", namespace, "kept", WATCH, "false");
    lab.await_phase(namespace, "kept", "Off");
    await_condition(lab, namespace, "kept", "StatusChecked", "Terminated");
    server.set("kept", Answer::Body(200, ""));
    let watch = json!({"crownlabs.polito.it/watch-for-instance-termination": "true"});
    let again = json!({"metadata": {"labels": watch}, "spec": {"running": true}});
    lab.patch("instances", namespace, "kept", &again.to_string());
    await_condition(lab, namespace, "kept", "StatusChecked", "Kept");
    let object = lab.await_value("instances", namespace, "kept", both, "");
    assert_eq!((&object["spec"]["running"], object.pointer(WATCH)), (&json!(true), Some(&json!("true"))));
}

#[test]
fn a_url_that_hangs_delays_only_its_instance() {
    let lab = Lab::shared();
    let course = lab.course("termhang");
    let (namespace, server) = ("tenant-termhang", ExamServer::start());
    // With one worker, which would wait longer than the test.
    let config = "controllers: {termination: {enabled: true, concurrency: 1, statusCheckTimeout: 10m, \
                  allowCidrs: [127.0.0.0/8]}}\n";
    let _daemon = course.daemon(config);
    server.set("hangs", Answer::Hang);
    server.set("gone", Answer::Body(404, ""));
    let with_url = |name: &str| format!("  statusCheckUrl: \"{}\"\n", server.url(name));
    lab.apply(&exam("termhang", "hangs", "container", &with_url("hangs")));
    wait_until(PATIENCE, || {
        (server.requests("hangs") > 0).then_some(()).ok_or_else(|| "a request".to_owned())
    });
    lab.apply(&exam("termhang", "gone", "container", &with_url("gone")));
    lab.await_value("instances", namespace, "gone", WATCH, "false");
    assert_eq!(server.requests("hangs"), 1, "it still hangs");
}

#[test]
fn one_wrong_response_of_a_proxy_ends_no_exam_and_a_forbidden_address_is_not_contacted() {
    let lab = Lab::shared();
    let course = lab.course("termonly");
    let (namespace, server) = ("tenant-termonly", ExamServer::start());
    // Only the test makes machines ready here.
    let config = "controllers:
  instance: {enabled: false}
  termination: {enabled: true, confirmAfter: 5s, allowCidrs: [127.0.0.1/32]}\n";
    let daemon = course.daemon(config);
    let inside = TcpListener::bind("127.0.0.2:0").expect("a port");
    inside.set_nonblocking(true).expect("a socket");
    let inside_url = format!("http://{}/?key=hunter2", inside.local_addr().expect("an address"));
    server.set("early", Answer::Body(404, "default backend"));
    server.set("flaky", Answer::Once(404, "default backend", 200, "{}"));
    for (name, url, status) in [
        ("early", server.url("early"), r#"{"phase": "Starting"}"#),
        ("flaky", server.url("flaky"), r#"{"phase": "Ready"}"#),
        ("inside", inside_url, r#"{"phase": "Ready"}"#),
    ] {
        lab.apply(&exam("termonly", name, "container", &format!("  statusCheckUrl: \"{url}\"\n")));
        lab.patch_status("instances", namespace, name, &format!(r#"{{"status": {status}}}"#));
        let watched = json!({"crownlabs.polito.it/watch-for-instance-termination": "true"});
        lab.patch("instances", namespace, name, &json!({"metadata": {"labels": watched}}).to_string());
    }
    await_condition(&lab, namespace, "flaky", "StatusChecked", "Kept");
    assert_eq!(server.requests("flaky"), 2, "the first answer was 404");
    // By then, its URL has been queried more than once.
    wait_until(PATIENCE, || match server.requests("early") {
        0..3 => Err("three requests".to_owned()),
        _ => Ok(()),
    });
    let unready = await_condition(&lab, namespace, "early", "StatusChecked", "Unconfirmed");
    let message = unready["message"].as_str().unwrap_or_default();
    assert!(message.contains("does not end an exam before its machine has been ready"), "{message}");
    let refused = await_condition(&lab, namespace, "inside", "StatusChecked", "StatusCheckFailed");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("could not be checked: it is not reachable; it is retried"), "{message}");
    assert_eq!(inside.accept().map_err(|error| error.kind()).err(), Some(ErrorKind::WouldBlock));
    assert!(daemon.log().contains("a status URL is not reachable"), "{}", daemon.log());
    for name in ["early", "flaky", "inside"] {
        let object = lab.get("instances", namespace, name).expect("there");
        assert_eq!((&object["spec"]["running"], object.pointer(WATCH)), (&json!(true), Some(&json!("true"))));
    }
}

#[test]
fn a_url_is_queried_when_its_instance_is_created_or_changed_and_not_at_a_restart() {
    let lab = Lab::shared();
    let _course = lab.course("termonce");
    let (namespace, server) = ("tenant-termonce", ExamServer::start());
    let kubeconfig = lab.service_account();
    let config = "controllers: {termination: {enabled: true, allowCidrs: [127.0.0.0/8]}}\n";
    let options = Options { kubeconfig: &kubeconfig, selector: "termonce", config };
    let daemon = Daemon::start(&options);
    let create = |name: &str| {
        server.set(name, Answer::Body(200, "{}"));
        let url = server.url(name);
        lab.apply(&exam("termonce", name, "container", &format!("  statusCheckUrl: \"{url}\"\n")));
        await_condition(&lab, namespace, name, "StatusChecked", "Kept");
    };
    create("exam");
    // The instance loop writes labels and the status in the meantime.
    lab.await_phase(namespace, "exam", "Ready");
    create("second");
    assert_eq!(server.requests("exam"), 1);
    drop(daemon);
    let _daemon = Daemon::start(&options);
    // When a later Instance has been queried, the earlier ones have been reconciled, too.
    create("third");
    assert_eq!((server.requests("exam"), server.requests("second")), (1, 1));
    lab.patch("instances", namespace, "exam", r#"{"spec": {"prettyName": "Another"}}"#);
    wait_until(PATIENCE, || match server.requests("exam") {
        2 => Ok(()),
        other => Err(format!("2 requests, are {other}")),
    });
}
