//! The inactivity loop on a real control plane, with a real Prometheus, and with mails in a folder.

mod of_the_chart;

use std::path::Path;
use std::time::Duration;

use crownlabs::testing::clock;
use serde_json::Value;

use crate::expiration::{elsewhere, mails, passed};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::config::only;
use cluster::exporter::{Counter, Exporter};
use cluster::prometheus::{PrometheusServer, Samples};

/// The allowed idle time of an Instance.
const IDLE: Duration = Duration::from_secs(20);
/// The time between the warning and the stop.
const INTERVAL: Duration = Duration::from_secs(4);
const NAMESPACE: &str = "tenant-idle";

/// Whether each of the sources is available, according to Prometheus.
const AVAILABLE: [&str; 3] = [
    r#"up{service="ingress-nginx-external-controller-metrics"}"#,
    r#"up{container="bastion-operator-tracker-sidecar"}"#,
    r#"up{container="webssh"}"#,
];

/// A Prometheus with all sources available from an hour ago until half an hour from now. The Instance `busybee` in
/// this namespace is used all the time.
pub fn prometheus(namespace: &str) -> PrometheusServer {
    let now = clock::now().as_second();
    let times = || (now - 3_600..now + 1_800).step_by(5);
    let mut samples = Samples::default();
    for up in AVAILABLE {
        samples.series(up, times().map(|time| (time, 1)));
    }
    let requests = |service: &str| {
        format!(
            r#"nginx_ingress_controller_requests{{exported_namespace="{namespace}",exported_service="{service}"}}"#
        )
    };
    samples.series(&requests("busybee"), times().map(|time| (time, time - now + 3_600)));
    samples.series(&requests("paused"), times().map(|time| (time, 7)));
    PrometheusServer::start(&samples).expect("a Prometheus")
}

/// Makes a Template of the fixtures allow this idle time.
pub fn allow_idle(lab: &Lab, fixtures: &str, template: &str, idle: &str) {
    let patch = format!(r#"{{"spec": {{"cleanup": {{"stopAfterInactivity": "{idle}"}}}}}}"#);
    lab.patch("templates", &format!("workspace-{fixtures}"), template, &patch);
}

/// The configuration with only this loop, with that time between the warning and the stop.
pub fn config(folder: &Path, prometheus: &PrometheusServer, interval: Duration) -> String {
    let interval = interval.as_secs();
    let keys = format!("maxNumberOfAlerts: 1, notificationInterval: {interval}s, checkInterval: 2s");
    format!(
        "{}integrations: {{mail: {{transport: file, folder: \"{}\", from: labs@example.org}}, \
         prometheus: {{url: \"{}\", queryStep: 1s, timeout: 30s}}}}\n",
        only(&[("inactivity", &keys)]),
        folder.display(),
        prometheus.url()
    )
}

/// Asserts that both mails about an Instance and both events name the action.
fn assert_same_words(lab: &Lab, sent: &[(jiff::Timestamp, String)], name: &str, action: &str, data: &str) {
    let about = sent.iter().map(|(_, mail)| mail.as_str()).filter(|mail| mail.contains(name));
    let about: Vec<String> =
        about.map(|mail| mail.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(about.len(), 2, "{sent:?}");
    for (mail, done) in about.iter().zip(["will be", "has been"]) {
        assert!(mail.contains(&format!("It {done} {action}")) && mail.contains(data), "{mail}");
        assert!(mail.contains("Hello Ada Rossi,"), "{mail}");
        assert_eq!(mail.contains("This is warning 1 of 1."), done == "will be", "{mail}");
    }
    for begin in ["InactivityWarning: Warning 1 of 1 was sent", "InactivityStopped: The deadline has passed"]
    {
        let event = lab.await_event(NAMESPACE, name, &format!("{begin}; the Instance is {action}"));
        assert!(event.ends_with(&format!(", {data}")), "{event}");
    }
}

#[test]
fn unused_instances_are_warned_about_and_ended_and_used_ones_stay() {
    let lab = Lab::shared();
    let course = lab.course("idle");
    for template in ["container", "container-persistent"] {
        allow_idle(&lab, "idle", template, &format!("{}s", IDLE.as_secs()));
    }
    for (name, template) in
        [("busybee", "container-persistent"), ("paused", "container-persistent"), ("ended", "container")]
    {
        lab.apply(&instance("idle", name, template));
    }
    let prometheus = prometheus(NAMESPACE);
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), &prometheus, INTERVAL);
    let daemon = course.daemon(&config);
    lab.await_gone("instances", NAMESPACE, "ended");
    let ended = clock::now();
    let sent = mails(folder.path());
    assert!(passed(sent[0].0, ended) >= INTERVAL, "{sent:?}");
    assert_same_words(&lab, &sent, "ended", "deleted", "with all data in it");
    wait_until(PATIENCE, || {
        let object = lab.get("instances", NAMESPACE, "paused").ok_or("it has data, so it stays")?;
        if object["spec"]["running"] == false {
            Ok(())
        } else {
            Err(format!("stopped: {}", object["status"]))
        }
    });
    let condition = |name: &str| {
        let object = lab.get("instances", NAMESPACE, name).expect("it stays");
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "Inactive").unwrap_or_default()
    };
    wait_until(PATIENCE, || {
        let found = condition("paused");
        if found["reason"] == "Stopped" { Ok(()) } else { Err(format!("Stopped: {found}")) }
    });
    assert_eq!(mails(folder.path()).len(), 4, "a warning and a last mail for each: {}", daemon.log());
    let kept = "and its disk is kept, so that it can be started again";
    assert_same_words(&lab, &mails(folder.path()), "paused", "stopped", kept);
    assert!(!mails(folder.path()).iter().any(|(_, mail)| mail.contains("busybee")));
    let used = lab.get("instances", NAMESPACE, "busybee").expect("it stays");
    assert_eq!(used["spec"]["running"], Value::Bool(true));
    // Without Prometheus, a restarted Instance is not warned about.
    drop(prometheus);
    lab.patch("instances", NAMESPACE, "paused", r#"{"spec": {"running": true}}"#);
    wait_until(PATIENCE, || {
        let found = condition("paused");
        let is_blind = found["reason"] == "MetricsUnavailable" && found["status"] == "Unknown";
        if is_blind { Ok(()) } else { Err(format!("MetricsUnavailable: {found}")) }
    });
    assert_eq!(mails(folder.path()).len(), 4);
}

#[test]
fn the_instances_of_a_namespace_stay_while_it_is_exempt() {
    let lab = Lab::shared();
    let (name, namespace) = ("spared", "tenant-spared");
    let course = lab.course(name);
    let exempt = |value: &str| {
        let labels = format!(r#"{{"crownlabs.polito.it/instance-inactivity-ignore": {value}}}"#);
        lab.patch("namespaces", "", namespace, &format!(r#"{{"metadata": {{"labels": {labels}}}}}"#));
    };
    // The case of the value does not matter: exempting too many is the safe direction.
    exempt("\"True\"");
    allow_idle(&lab, name, "container", "5s");
    lab.apply(&instance(name, "kept", "container"));
    // This Instance shows what would have happened to the other one.
    lab.apply(&elsewhere(name, "marker", "container", name));
    let prometheus = prometheus(namespace);
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), &prometheus, INTERVAL);
    let daemon = course.daemon(&config);
    lab.await_gone("instances", "workspace-spared", "marker");
    let kept = lab.get("instances", namespace, "kept").expect("it is exempt");
    assert_eq!((&kept["spec"]["running"], &kept["status"]["inactivity"]), (&Value::Bool(true), &Value::Null));
    assert_eq!(mails(folder.path()).len(), 2, "those about the other: {}", daemon.log());
    // Once the exemption ends, the Instance is reconciled again at once.
    exempt("null");
    lab.await_gone("instances", namespace, "kept");
    let sent = mails(folder.path());
    assert_eq!(sent.len(), 4, "{}", daemon.log());
    assert!(passed(sent[2].0, sent[3].0) >= INTERVAL, "{sent:?}");
}

#[test]
fn an_annotation_keeps_an_instance_after_the_warning() {
    let lab = Lab::shared();
    let (name, namespace) = ("keeping", "tenant-keeping");
    let course = lab.course(name);
    allow_idle(&lab, name, "container-persistent", "5s");
    lab.apply(&instance(name, "box", "container-persistent"));
    let prometheus = prometheus(namespace);
    let folder = tempfile::tempdir().expect("a folder");
    // No Instance is stopped in the meantime.
    let config = config(folder.path(), &prometheus, Duration::from_mins(10));
    let daemon = course.daemon(&config);
    let promise = |is_wanted: &dyn Fn(&Value) -> bool| {
        wait_until(PATIENCE, || {
            let object = lab.get("instances", namespace, "box").expect("it stays");
            let promise = &object["status"]["inactivity"];
            if is_wanted(promise) { Ok(promise.clone()) } else { Err(format!("{promise}: {}", daemon.log())) }
        })
    };
    promise(&|promise| promise["deadline"].is_string());
    let annotate = |text: &str| {
        let annotations = format!(r#"{{"crownlabs.polito.it/kept-at": "{text}"}}"#);
        lab.patch(
            "instances",
            namespace,
            "box",
            &format!(r#"{{"metadata": {{"annotations": {annotations}}}}}"#),
        );
    };
    annotate("tomorrow");
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, "box").expect("it stays");
        let text = &object["metadata"]["annotations"]["crownlabs.polito.it/kept-at"];
        if text.is_null() { Ok(()) } else { Err(format!("{text} is no time, so it is removed")) }
    });
    lab.await_event(namespace, "box", "InvalidKeptAt: ");
    let warned = promise(&|promise| promise["deadline"].is_string());
    let kept = clock::now().round(jiff::Unit::Second).expect("a time");
    annotate(&kept.to_string());
    let promise = promise(&|promise| promise["witness"] == "kept" && promise["deadline"].is_null());
    assert_eq!(promise["since"], kept.to_string(), "{warned}");
    assert_eq!(mails(folder.path()).len(), 1, "the next one may come after an interval: {}", daemon.log());
}

/// A Prometheus that scrapes an exporter, and has done so for some seconds.
fn scraping(exporter: &Exporter) -> PrometheusServer {
    let prometheus = PrometheusServer::scraping_all(&exporter.targets()).expect("a Prometheus");
    for up in AVAILABLE {
        wait_until(PATIENCE, || match prometheus.value(&format!("count_over_time({up}[1m])")) {
            Ok(Some(scrapes)) if scrapes >= 5.0 => Ok(()),
            other => Err(format!("five scrapes of {up}: {other:?}")),
        });
    }
    prometheus
}

/// The Service of an Instance, which the instance loop would create, and its address.
fn service(lab: &Lab, namespace: &str, name: &str) -> String {
    let instance = lab.get("instances", namespace, name).expect("it was applied");
    let uid = &instance["metadata"]["uid"];
    lab.apply(&format!(
        "apiVersion: v1
kind: Service
metadata:
  namespace: {namespace}
  name: {name}
  labels: {{crownlabs.polito.it/managed-by: instance}}
  ownerReferences: [{{apiVersion: crownlabs.polito.it/v1alpha2, kind: Instance, name: {name}, uid: {uid}, controller: true}}]
spec: {{ports: [{{name: ssh, port: 22}}]}}
"
    ));
    let service = lab.get("services", namespace, name).expect("it was applied");
    service["spec"]["clusterIP"].as_str().expect("an address").to_owned()
}

#[test]
fn an_instance_is_warned_about_when_it_has_been_idle_since_its_last_use() {
    let lab = Lab::shared();
    let (fixtures, namespace) = ("scraped", "tenant-scraped");
    let course = lab.course(fixtures);
    allow_idle(&lab, fixtures, "container-persistent", &format!("{}s", IDLE.as_secs()));
    let exporter = Exporter::start().expect("an exporter");
    // It was used before the observation began, and never since.
    exporter.count(&Counter::requests(namespace, "forsaken"));
    let prometheus = scraping(&exporter);
    let in_use =
        [("browsed", "ingress"), ("tunnelled", "ssh"), ("typed-into", "webSsh")].map(|(name, source)| {
            lab.apply(&instance(fixtures, name, "container-persistent"));
            let address = service(&lab, namespace, name);
            let counter = match source {
                "ingress" => Counter::requests(namespace, name),
                "ssh" => Counter::ssh(&address),
                _ => Counter::web_ssh(&address),
            };
            exporter.begin(&counter);
            (name, source, counter)
        });
    lab.apply(&instance(fixtures, "forsaken", "container-persistent"));
    let folder = tempfile::tempdir().expect("a folder");
    // No Instance is stopped in the meantime.
    let config = config(folder.path(), &prometheus, Duration::from_mins(10));
    let daemon = course.daemon(&config);
    let warned = |name: &str| {
        wait_until(PATIENCE, || {
            let sent = mails(folder.path());
            let found = sent.into_iter().find(|(_, mail)| mail.contains(name));
            found
                .map(|(accepted, _)| accepted)
                .ok_or_else(|| format!("a mail about {name}: {}", daemon.log()))
        })
    };
    warned("forsaken");
    // The others are as old: they would be overdue too if their usage had not been seen.
    exporter.end_all();
    let last = clock::now();
    for (_, _, counter) in &in_use {
        exporter.count(counter);
    }
    for (name, source, _) in &in_use {
        let accepted = warned(name);
        assert!(accepted >= last + IDLE, "{name} is warned about at {accepted}, was used at {last}");
        let object = lab.await_value("instances", namespace, name, "/status/inactivity/witness", source);
        assert_eq!(object["spec"]["running"], Value::Bool(true));
    }
    assert_eq!(mails(folder.path()).len(), 4, "a warning for each");
}
