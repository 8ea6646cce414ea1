//! Bad input gets a sentence, nothing is hot, and nobody else is affected.

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

const LAB: &str = "bad";
const NAMESPACE: &str = "tenant-bad";

/// A Template whose first environment has these members.
fn template(name: &str, environment: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: {name}, namespace: workspace-{LAB}}}
spec:
  prettyName: {name}
  description: bad
  environmentList: [{environment}]
"
    )
}

/// An event with that reason about the Instance.
fn await_event(lab: &Lab, name: &str, reason: &str) {
    wait_until(PATIENCE, || {
        let events = lab.events(NAMESPACE, name);
        let found = events.iter().any(|event| event.starts_with(&format!("{reason}: ")));
        found.then_some(()).ok_or_else(|| format!("event {reason} about {name}, are {events:?}"))
    });
}

#[test]
fn bad_input_is_told_and_heals() {
    let lab = Lab::shared();
    lab.furnish(LAB);
    let admin = lab.admin();
    let config = "controllers: {instance: {websiteBaseUrl: bad.example.com}}\n";
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: LAB, config });
    let resources = "resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi}";
    lab.apply(&template("empty", ""));
    lab.apply(&template("diskless", &format!("{{name: main, environmentType: Container, image: i, persistent: true, mountMyDriveVolume: false, {resources}}}")));
    lab.apply(&template("diskless-vm", &format!("{{name: main, environmentType: CloudVM, image: i, persistent: true, mountMyDriveVolume: false, {resources}}}")));
    lab.apply(&template(
        "volatile-cloud",
        &format!(
            "{{name: main, environmentType: CloudVM, image: i, mountMyDriveVolume: false, {resources}}}"
        ),
    ));
    lab.apply(&template("zero", "{name: main, environmentType: Container, image: i, mountMyDriveVolume: false, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 0}}"));
    lab.apply(&template("twins", &format!("{{name: a, environmentType: Container, image: i, {resources}}}, {{name: a, environmentType: Container, image: i, {resources}}}")));
    lab.apply(&template("shared", &format!("{{name: main, environmentType: Container, image: i, mountMyDriveVolume: false, {resources}, sharedVolumeMounts: [{{sharedVolume: {{name: data, namespace: workspace-{LAB}}}, mountPath: /data, readOnly: true}}]}}")));
    lab.apply(&template("local", &format!("{{name: main, environmentType: LocalVM, image: a/b, persistent: true, mountMyDriveVolume: false, {resources}}}")));
    for (name, template, reason, phase) in [
        ("no-environment", "empty", "InvalidTemplate", "CreationLoopBackoff"),
        ("no-template", "absent", "TemplateNotFound", "CreationLoopBackoff"),
        ("no-disk", "diskless", "DiskMissing", "CreationLoopBackoff"),
        ("no-vm-disk", "diskless-vm", "DiskMissing", "CreationLoopBackoff"),
        ("no-memory", "zero", "InvalidQuantity", "CreationLoopBackoff"),
        ("not-persistent", "volatile-cloud", "NotPersistent", "Failed"),
        ("twins", "twins", "InvalidTemplate", "CreationLoopBackoff"),
        ("no-volume", "shared", "SharedVolumeNotFound", "CreationLoopBackoff"),
        ("no-local", "local", "LocalVMDisabled", "CreationLoopBackoff"),
    ] {
        lab.apply(&instance(LAB, name, template));
        let message = lab.await_fault(NAMESPACE, name, reason);
        assert!(message.len() > 20, "{name}: {message}");
        lab.await_phase(NAMESPACE, name, phase);
        await_event(&lab, name, reason);
    }
    let message = lab.await_fault(NAMESPACE, "no-disk", "DiskMissing");
    assert!(message.contains("environment main") && message.contains("resources.disk"), "{message}");

    // A missing Tenant, and one that appears.
    lab.apply(
        &instance(LAB, "no-tenant", "standalone")
            .replace("TenantRef: {name: bad}", "TenantRef: {name: late}"),
    );
    assert_eq!(lab.await_fault(NAMESPACE, "no-tenant", "TenantNotFound"), "Tenant late not found");
    lab.apply("{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: late}, spec: {firstName: L, lastName: L, email: l@example.org}}");
    lab.await_phase(NAMESPACE, "no-tenant", "Ready");
    // A Template that appears; one that is mended.
    lab.apply(&template(
        "absent",
        &format!(
            "{{name: main, environmentType: Container, image: i, mountMyDriveVolume: false, {resources}}}"
        ),
    ));
    lab.await_phase(NAMESPACE, "no-template", "Ready");
    lab.apply(&template("diskless", "{name: main, environmentType: Container, image: i, persistent: true, mountMyDriveVolume: false, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}"));
    lab.await_phase(NAMESPACE, "no-disk", "Ready");
    // A shared volume that appears, and is exported a while later.
    lab.apply(&format!("{{apiVersion: crownlabs.polito.it/v1alpha2, kind: SharedVolume, metadata: {{name: data, namespace: workspace-{LAB}}}, spec: {{prettyName: data, size: 1Gi}}}}"));
    lab.await_fault(NAMESPACE, "no-volume", "SharedVolumeNotReady");
    lab.await_phase(NAMESPACE, "no-volume", "Starting");
    lab.patch_status(
        "sharedvolumes",
        &format!("workspace-{LAB}"),
        "data",
        r#"{"status": {"serverAddress": "nfs", "exportPath": "/x", "phase": "Ready"}}"#,
    );
    lab.await_phase(NAMESPACE, "no-volume", "Ready");
    // MyDrive's Secret that is deleted and made again.
    lab.kubectl(&["delete", "secret", "-n", NAMESPACE, "mydrive-info"]);
    lab.apply(&instance(LAB, "no-drive", "container"));
    let message = lab.await_fault(NAMESPACE, "no-drive", "MyDriveNotFound");
    assert!(message.contains("tenant-bad/mydrive-info"), "{message}");
    lab.apply(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: mydrive-info, namespace: {NAMESPACE}}}, stringData: {{server-name: s, path: /p}}}}"));
    lab.await_phase(NAMESPACE, "no-drive", "Ready");
    // Nothing that is refused is tried again and again.
    let retries = |metrics: &str| {
        let line = metrics.lines().find(|line| line.starts_with("controller_runtime_reconcile_errors_total"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or(f64::MAX)
    };
    assert!(retries(&daemon.metrics()) < 20.0, "{}", daemon.metrics());
    lab.clear(LAB);
}

#[test]
fn a_quota_is_respected_and_told() {
    let lab = Lab::shared();
    lab.furnish("quota");
    let namespace = "tenant-quota";
    lab.apply(&format!("{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: q, namespace: {namespace}}}, spec: {{hard: {{services: \"0\"}}}}}}"));
    lab.await_value("resourcequotas", namespace, "q", "/status/hard/services", "0");
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "quota", config: "" });
    lab.apply(&instance("quota", "over", "standalone"));
    let message = lab.await_fault(namespace, "over", "ResourceQuotaExceeded");
    assert!(message.starts_with("Resource quota exceeded, retrying automatically"), "{message}");
    lab.await_phase(namespace, "over", "ResourceQuotaExceeded");
    // It is tried again by itself after a minute at the latest; a change makes it sooner.
    lab.kubectl(&["delete", "resourcequota", "-n", namespace, "q"]);
    lab.patch("instances", namespace, "over", r#"{"metadata": {"annotations": {"touched": "1"}}}"#);
    lab.await_phase(namespace, "over", "Ready");
    lab.clear("quota");
}

#[test]
fn a_host_that_the_api_refuses_is_told_and_the_machine_runs() {
    let lab = Lab::shared();
    lab.furnish("host");
    let admin = lab.admin();
    // As long as a host name may be: with `exam.` before it, it is too long for an Ingress.
    let host = format!("{}.labs", ["label"; 41].join("."));
    lab.kubectl(&[
        "patch",
        "templates",
        "-n",
        "workspace-host",
        "standalone",
        "--type=json",
        "-p",
        r#"[{"op": "add", "path": "/spec/environmentList/0/mode", "value": "Exam"}]"#,
    ]);
    let config = format!("controllers: {{instance: {{websiteBaseUrl: {host}}}}}\n");
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "host", config: &config });
    lab.apply(&instance("host", "web", "standalone"));
    let message = lab.await_fault("tenant-host", "web", "EnvironmentEnforcementFailed");
    assert!(message.contains("Ingress web-app"), "{message}");
    lab.await_value("deployments", "tenant-host", "web", "/kind", "Deployment");
    lab.clear("host");
}
