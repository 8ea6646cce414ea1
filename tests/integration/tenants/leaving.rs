//! Deletions that take time: an object that is being deleted still exists, and is created again as soon as it is gone.

use std::time::{Duration, Instant};

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, running};

/// The time within which a deleted object is created again.
const SOON: Duration = Duration::from_secs(4);

/// Creates an object in a namespace that delays the namespace's deletion, until [`release`].
fn hold(lab: &Lab, namespace: &str) {
    lab.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: hold, namespace: {namespace}, finalizers: [example.org/hold]}}}}"
    ));
}

fn release(lab: &Lab, namespace: &str) {
    lab.patch("configmaps", namespace, "hold", r#"{"metadata": {"finalizers": null}}"#);
}

fn uid(lab: &Lab, kind: &str, namespace: &str, name: &str) -> Option<String> {
    lab.get(kind, namespace, name)?["metadata"]["uid"].as_str().map(str::to_owned)
}

/// Waits until an object is gone, and asserts that it is created again within [`SOON`].
fn await_recreated(lab: &Lab, kind: &str, namespace: &str, name: &str, former: &str) {
    let begin = Instant::now();
    let mut gone = None;
    loop {
        match uid(lab, kind, namespace, name) {
            Some(now) if now == former => {
                running::check(&format!("the end of {kind} {name}"));
                assert!(begin.elapsed() < PATIENCE, "{kind} {name} does not end");
                gone = Some(Instant::now());
            }
            // The last time that it existed, or now.
            now => {
                let since = gone.get_or_insert_with(Instant::now).elapsed();
                assert!(since <= SOON, "{kind} {name} is missing since {since:?}");
                if now.is_some() {
                    return;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_recreated_tenant_or_workspace_gets_its_namespace_soon_after_the_old_one_is_gone() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "leave", config: "" });
    let (person, course) = (tenant("leave", "lea.ve", ""), workspace("leave", "leave", ""));
    let all = [
        ("tenants", "lea.ve", "tenant-lea-ve", &person),
        ("workspaces", "leave", "workspace-leave", &course),
    ];
    for (kind, name, namespace, yaml) in all {
        lab.apply(yaml);
        lab.await_ready(kind, name);
        hold(&lab, namespace);
        lab.delete(kind, "", &[name]);
        let former = uid(&lab, "namespaces", "", namespace).expect("held");
        lab.apply(yaml);
        let message = lab.await_condition(kind, name, "Reconciled", "NamespaceTerminating");
        assert!(message.contains(&format!("namespace {namespace}")), "{message}");
        release(&lab, namespace);
        await_recreated(&lab, "namespaces", "", namespace, &former);
        lab.await_ready(kind, name);
    }
    lab.delete("tenant", "", &["lea.ve"]);
    lab.delete("workspace", "", &["leave"]);
}

#[test]
fn the_deletion_of_an_unowned_namespace_is_awaited() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "nobodys", config: "" });
    let all = [
        ("tenants", "nobodys.a", "tenant-nobodys-a", tenant("nobodys", "nobodys.a", "")),
        ("workspaces", "nobodys", "workspace-nobodys", workspace("nobodys", "nobodys", "")),
    ];
    for (kind, name, namespace, yaml) in all {
        lab.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"));
        hold(&lab, namespace);
        lab.begin_delete("namespace", "", &[namespace]);
        let former = uid(&lab, "namespaces", "", namespace).expect("held");
        lab.apply(&yaml);
        lab.await_condition(kind, name, "Reconciled", "NamespaceTerminating");
        release(&lab, namespace);
        await_recreated(&lab, "namespaces", "", namespace, &former);
        lab.await_ready(kind, name);
    }
    lab.delete("tenant", "", &["nobodys.a"]);
    lab.delete("workspace", "", &["nobodys"]);
}

#[test]
fn a_login_during_the_deletion_of_the_idle_namespace_recreates_it_soon() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "relogin", config: "" });
    lab.apply(&tenant("relogin", "relogin", ""));
    lab.await_ready("tenants", "relogin");
    let namespace = "tenant-relogin";
    hold(&lab, namespace);
    let former = uid(&lab, "namespaces", "", namespace).expect("made");
    lab.patch("tenants", "", "relogin", r#"{"spec": {"lastLogin": "2020-01-01T00:00:00Z"}}"#);
    lab.await_value("namespaces", "", namespace, "/status/phase", "Terminating");
    lab.await_condition("tenants", "relogin", "Ready", "Inactive");
    lab.patch("tenants", "", "relogin", r#"{"spec": {"lastLogin": "2099-01-01T00:00:00Z"}}"#);
    lab.await_condition("tenants", "relogin", "Reconciled", "NamespaceTerminating");
    release(&lab, namespace);
    await_recreated(&lab, "namespaces", "", namespace, &former);
    lab.await_condition("tenants", "relogin", "Ready", "Ready");
    lab.delete("tenant", "", &["relogin"]);
}

#[test]
fn an_object_with_finalizers_is_recreated_when_it_is_gone() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let config = "controllers: {tenant: {personalWorkspace: {enabled: true}}}\n";
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "held", config });
    lab.apply(&tenant("held", "held", ", personalWorkspace: {cpu: 1, memory: 1Gi, instances: 1, disk: 1Gi}"));
    let (kind, namespace, name) = ("rolebindings", "tenant-held", "crownlabs-manage-templates");
    lab.await_value(kind, namespace, name, "/subjects/0/name", "held");
    lab.patch(kind, namespace, name, r#"{"metadata": {"finalizers": ["example.org/hold"]}}"#);
    let former = uid(&lab, kind, namespace, name).expect("held");
    lab.patch("tenants", "", "held", r#"{"spec": {"personalWorkspace": null}}"#);
    crate::lab::wait_until(PATIENCE, || {
        let object = lab.get(kind, namespace, name).expect("held");
        let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
        is_leaving.then_some(()).ok_or_else(|| "its deletion".to_owned())
    });
    let wanted =
        r#"{"spec": {"personalWorkspace": {"cpu": 2, "memory": "1Gi", "instances": 1, "disk": "1Gi"}}}"#;
    lab.patch("tenants", "", "held", wanted);
    lab.await_value("tenants", "", "held", "/status/quota/cpu", "2");
    // After seven failures the next attempt is at least eight seconds away.
    daemon.wait_for("seven attempts", |daemon| {
        let metrics = daemon.metrics();
        let retries =
            metrics.lines().find(|line| line.starts_with("workqueue_retries_total{name=\"tenant\""));
        let count = retries.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok());
        count.is_some_and(|count| count >= 7)
    });
    lab.patch(kind, namespace, name, r#"{"metadata": {"finalizers": null}}"#);
    await_recreated(&lab, kind, namespace, name, &former);
    lab.delete("tenant", "", &["held"]);
}
