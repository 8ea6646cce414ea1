//! The inactivity loop on a real control plane, with a real Prometheus, and with mails in a folder.

use std::path::Path;
use std::time::Duration;

use crownlabs::testing::clock;
use serde_json::Value;

use crate::cluster::prometheus::{PrometheusServer, Samples};
use crate::daemon::{Daemon, Options};
use crate::expiration::{mails, passed};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The time without use after which an Instance is overdue.
const IDLE: &str = "20s";
/// The time between the warning and the stop.
const INTERVAL: Duration = Duration::from_secs(4);
const NAMESPACE: &str = "tenant-idle";

/// A Prometheus in which all sources are there from an hour ago until half an hour from now, and in which the Instance
/// `busybee` in this namespace is used all the time.
pub fn prometheus(namespace: &str) -> PrometheusServer {
    let now = clock::now().as_second();
    let times = || (now - 3_600..now + 1_800).step_by(5);
    let mut samples = Samples::default();
    for up in [
        r#"up{service="ingress-nginx-external-controller-metrics"}"#,
        r#"up{container="bastion-operator-tracker-sidecar"}"#,
        r#"up{container="webssh"}"#,
    ] {
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

/// Lets a Template of the fixtures allow so much time without use.
pub fn allow_idle(lab: &Lab, fixtures: &str, template: &str, idle: &str) {
    let patch = format!(r#"{{"spec": {{"cleanup": {{"stopAfterInactivity": "{idle}"}}}}}}"#);
    lab.patch("templates", &format!("workspace-{fixtures}"), template, &patch);
}

/// The configuration of the loop alone, with that time between the warning and the stop.
pub fn config(folder: &Path, prometheus: &PrometheusServer, interval: Duration) -> String {
    format!(
        "controllers: {{instance: {{enabled: false}}, publicExposure: {{enabled: false}}, \
         sharedVolume: {{enabled: false}}, snapshot: {{enabled: false}}, tenant: {{enabled: false}}, \
         workspace: {{enabled: false}}, inactivity: {{enabled: true, maxNumberOfAlerts: 1, \
         notificationInterval: {}s, checkInterval: 2s}}}}\n\
         integrations: {{mail: {{transport: file, folder: \"{}\", from: labs@example.org}}, \
         prometheus: {{url: \"{}\", queryStep: 1s, timeout: 30s}}}}\n",
        interval.as_secs(),
        folder.display(),
        prometheus.url()
    )
}

#[test]
fn what_nobody_uses_is_warned_about_and_ended_and_what_is_used_stays() {
    let lab = Lab::shared();
    lab.create_fixtures("idle");
    for template in ["container", "container-persistent"] {
        allow_idle(&lab, "idle", template, IDLE);
    }
    for (name, template) in
        [("busybee", "container-persistent"), ("paused", "container-persistent"), ("ended", "container")]
    {
        lab.apply(&instance("idle", name, template));
    }
    let prometheus = prometheus(NAMESPACE);
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), &prometheus, INTERVAL);
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "idle", config: &config });
    lab.await_gone("instances", NAMESPACE, "ended");
    let ended = clock::now();
    let sent = mails(folder.path());
    assert!(passed(sent[0].0, ended) >= INTERVAL, "{sent:?}");
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
    let events = lab.events(NAMESPACE, "paused");
    for reason in ["InactivityWarning: ", "InactivityStopped: "] {
        assert!(events.iter().any(|event| event.starts_with(reason)), "{events:?}");
    }
    assert_eq!(mails(folder.path()).len(), 4, "a warning and a last mail for each: {}", daemon.log());
    assert!(!mails(folder.path()).iter().any(|(_, mail)| mail.contains("busybee")));
    let used = lab.get("instances", NAMESPACE, "busybee").expect("it stays");
    assert_eq!(used["spec"]["running"], Value::Bool(true));
    // Without Prometheus, an Instance that is started again is not warned about.
    drop(prometheus);
    lab.patch("instances", NAMESPACE, "paused", r#"{"spec": {"running": true}}"#);
    wait_until(PATIENCE, || {
        let found = condition("paused");
        let is_blind = found["reason"] == "MetricsUnavailable" && found["status"] == "Unknown";
        if is_blind { Ok(()) } else { Err(format!("MetricsUnavailable: {found}")) }
    });
    assert_eq!(mails(folder.path()).len(), 4);
    drop(daemon);
    lab.delete_fixtures("idle");
}
