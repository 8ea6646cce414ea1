//! Bad input is reported in a sentence, and is not reconciled repeatedly.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::pod_config::nodes::PlayedNodes;
use crate::pod_config::{self, NODES, await_configured, pod, pod_config};
use cluster::audit::{Mark, by_agent};

/// The fixtures of the first test.
const FIXTURES: &str = "bad";
const NAMESPACE: &str = "tenant-bad";

/// A Template with these environments, as entries of a YAML list.
fn template(name: &str, environment: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: {name}, namespace: workspace-{FIXTURES}}}
spec:
  prettyName: {name}
  description: bad
  environmentList: [{environment}]
"
    )
}

const RESOURCES: &str = "resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi}";

#[test]
fn bad_input_is_reported_until_it_is_corrected() {
    let lab = Lab::shared();
    let _course = lab.course(FIXTURES);
    let admin = lab.admin();
    // The test itself makes shared volumes ready.
    let config =
        "controllers: {instance: {websiteBaseUrl: bad.example.com}, sharedVolume: {enabled: false}}\n";
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: FIXTURES, config });
    bad_templates(&lab);
    let mark = lab.cluster.audit().mark().expect("the audit log");
    faults_are_reported(&lab);
    names_that_nothing_can_have_are_reported(&lab);
    assert_no_strange_request(&lab, mark);
    corrected_input_is_used(&lab);
    // Rejected objects are not retried repeatedly.
    let retries = |metrics: &str| {
        let series = "controller_runtime_reconcile_errors_total{controller=\"instance\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(series)?.parse::<f64>().ok())
    };
    let retries = retries(&daemon.metrics()).expect("the loop of Instances counts its errors");
    assert!(retries < 20.0, "{retries}: {}", daemon.metrics());
}

/// Names that no object can have, as users may write them.
pub const STRANGE_NAMES: [(&str, &str); 4] =
    [("spaced", "my vm"), ("nameless", ""), ("climbing", "../"), ("asking", "x?y=1")];

/// Asserts that no daemon has sent a request with one of the [`STRANGE_NAMES`] since `mark`.
pub fn assert_no_strange_request(lab: &Lab, mark: Mark) {
    let entries = lab.cluster.audit().since(mark).expect("the audit log");
    let asked: Vec<&str> = by_agent(&entries, "crownlabs/").map(|entry| entry.request_uri.as_str()).collect();
    assert!(!asked.is_empty(), "the daemons ask for something");
    for uri in asked {
        let path = uri.split('?').next().unwrap_or_default();
        let is_strange = path.ends_with('/')
            || ["/..", "%2E", "%2F", "my vm", "my%20vm", "my+vm", "x?y", "x%3Fy"].iter().any(|part| {
                // Selectors of lists are encoded in the query.
                path.contains(part) || (part.contains('?') && uri.contains(part))
            });
        assert!(!is_strange, "{uri}");
    }
}

/// A Template or Tenant whose name nothing can have is not found, which the status says.
fn names_that_nothing_can_have_are_reported(lab: &Lab) {
    for (name, strange) in STRANGE_NAMES {
        let quoted = format!("\"{strange}\"");
        lab.apply(&instance(FIXTURES, name, &quoted));
        let message = lab.await_fault(NAMESPACE, name, "TemplateNotFound");
        assert_eq!(message, format!("Template workspace-{FIXTURES}/{strange} not found"));
        let of_nobody = format!("{name}-tenant");
        lab.apply(
            &instance(FIXTURES, &of_nobody, "standalone")
                .replace("TenantRef: {name: bad}", &format!("TenantRef: {{name: {quoted}}}")),
        );
        let message = lab.await_fault(NAMESPACE, &of_nobody, "TenantNotFound");
        assert_eq!(message, format!("Tenant {strange} not found"));
    }
}

/// Creates Templates that no Instance can use.
fn bad_templates(lab: &Lab) {
    let (container, cloud_vm) = (
        format!("environmentType: Container, image: i, {RESOURCES}"),
        format!("environmentType: CloudVM, image: i, mountMyDriveVolume: false, {RESOURCES}"),
    );
    let shared = format!(
        "sharedVolumeMounts: [{{sharedVolume: {{name: data, namespace: workspace-{FIXTURES}}}, mountPath: /data, \
         readOnly: true}}]"
    );
    for (name, environments) in [
        ("empty", String::new()),
        ("diskless", format!("{{name: main, persistent: true, mountMyDriveVolume: false, {container}}}")),
        ("diskless-vm", format!("{{name: main, persistent: true, {cloud_vm}}}")),
        ("volatile-cloud", format!("{{name: main, {cloud_vm}}}")),
        (
            "zero",
            "{name: main, environmentType: Container, image: i, mountMyDriveVolume: false, \
             resources: {cpu: 1, reservedCPUPercentage: 10, memory: 0}}"
                .to_owned(),
        ),
        ("twins", format!("{{name: a, {container}}}, {{name: a, {container}}}")),
        ("shared", format!("{{name: main, mountMyDriveVolume: false, {container}, {shared}}}")),
        (
            "local",
            format!(
                "{{name: main, environmentType: LocalVM, image: a/b, persistent: true, mountMyDriveVolume: false, \
                 {RESOURCES}}}"
            ),
        ),
    ] {
        lab.apply(&template(name, &environments));
    }
}

/// Each fault is reported in the condition, in the phase and in an event.
fn faults_are_reported(lab: &Lab) {
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
        lab.apply(&instance(FIXTURES, name, template));
        let message = lab.await_fault(NAMESPACE, name, reason);
        assert!(message.len() > 20, "{name}: {message}");
        lab.await_phase(NAMESPACE, name, phase);
        lab.await_event(NAMESPACE, name, &format!("{reason}: "));
        // A problem in one environment also has the event of the Go operators.
        if !["InvalidTemplate", "TemplateNotFound"].contains(&reason) {
            lab.await_event(
                NAMESPACE,
                name,
                "EnvironmentEnforcementFailed: Failed to enforce environment main: ",
            );
        }
    }
    let message = lab.await_fault(NAMESPACE, "no-disk", "DiskMissing");
    assert!(message.contains("environment main") && message.contains("resources.disk"), "{message}");
}

/// Each error disappears when the missing object is created, or the bad value is corrected.
fn corrected_input_is_used(lab: &Lab) {
    // A Tenant that is created later.
    lab.apply(
        &instance(FIXTURES, "no-tenant", "standalone")
            .replace("TenantRef: {name: bad}", "TenantRef: {name: late}"),
    );
    assert_eq!(lab.await_fault(NAMESPACE, "no-tenant", "TenantNotFound"), "Tenant late not found");
    lab.apply("{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: late}, spec: {firstName: L, lastName: L, email: l@example.org}}");
    lab.await_phase(NAMESPACE, "no-tenant", "Ready");
    // A Template that is created later, and one that is corrected.
    let container =
        format!("name: main, environmentType: Container, image: i, mountMyDriveVolume: false, {RESOURCES}");
    lab.apply(&template("absent", &format!("{{{container}}}")));
    lab.await_phase(NAMESPACE, "no-template", "Ready");
    let with_disk = container.replace("64Mi}", "64Mi, disk: 1Gi}");
    lab.apply(&template("diskless", &format!("{{persistent: true, {with_disk}}}")));
    lab.await_phase(NAMESPACE, "no-disk", "Ready");
    // A shared volume that is created later, and exported later still.
    lab.apply(&format!("{{apiVersion: crownlabs.polito.it/v1alpha2, kind: SharedVolume, metadata: {{name: data, namespace: workspace-{FIXTURES}}}, spec: {{prettyName: data, size: 1Gi}}}}"));
    lab.await_fault(NAMESPACE, "no-volume", "SharedVolumeNotReady");
    lab.await_phase(NAMESPACE, "no-volume", "Starting");
    lab.await_event(NAMESPACE, "no-volume", "SharedVolumeNotReady: ");
    lab.patch_status(
        "sharedvolumes",
        &format!("workspace-{FIXTURES}"),
        "data",
        r#"{"status": {"serverAddress": "nfs", "exportPath": "/x", "phase": "Ready"}}"#,
    );
    lab.await_phase(NAMESPACE, "no-volume", "Ready");
    // The Secret of MyDrive is deleted and created again.
    lab.delete("secret", NAMESPACE, &["mydrive-info"]);
    lab.apply(&instance(FIXTURES, "no-drive", "container"));
    let message = lab.await_fault(NAMESPACE, "no-drive", "MyDriveNotFound");
    assert!(message.contains("tenant-bad/mydrive-info"), "{message}");
    lab.apply(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: mydrive-info, namespace: {NAMESPACE}}}, stringData: {{server-name: s, path: /p}}}}"));
    lab.await_phase(NAMESPACE, "no-drive", "Ready");
}

#[test]
fn an_exceeded_quota_is_reported() {
    let lab = Lab::shared();
    let _course = lab.course("quota");
    let namespace = "tenant-quota";
    lab.apply(&format!("{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: q, namespace: {namespace}}}, spec: {{hard: {{services: \"0\"}}}}}}"));
    lab.await_value("resourcequotas", namespace, "q", "/status/hard/services", "0");
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "quota", config: "" });
    lab.apply(&instance("quota", "over", "standalone"));
    let message = lab.await_fault(namespace, "over", "ResourceQuotaExceeded");
    assert!(message.starts_with("Resource quota exceeded, retrying automatically"), "{message}");
    lab.await_phase(namespace, "over", "ResourceQuotaExceeded");
    lab.await_event(namespace, "over", "ResourceQuotaExceeded: ");
    let told = "EnvironmentEnforcementFailed: Resource quota exceeded, retrying automatically";
    lab.await_event(namespace, "over", &format!("{told}: "));
    // The daemon retries automatically, within a minute at the latest.
    lab.delete("resourcequota", namespace, &["q"]);
    lab.await_phase(namespace, "over", "Ready");
}

#[test]
fn a_rejected_host_is_reported_and_the_machine_runs() {
    let lab = Lab::shared();
    let _course = lab.course("host");
    let admin = lab.admin();
    // The longest host name that is allowed; with `exam.` before it, it is too long for an Ingress.
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
}

/// Objects that no schema allows, but that may have been stored before there was a schema.
#[test]
fn a_hostile_pod_config_does_not_block_others() {
    let lab = pod_config::lab();
    let open = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "value": {"x-kubernetes-preserve-unknown-fields": true}}]);
    lab.kubectl(&["patch", "crd", "podconfigs.podconfig.opdev.io", "--type=json", "-p", &open.to_string()]);
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "hostile", config: &pod_config::config() };
    let daemon = Daemon::start(&options);
    let _nodes = PlayedNodes::start(&lab, NODES);
    lab.apply(&["hostile", "honest"].map(pod_config::namespace).join("\n---\n"));
    let many: Vec<Value> = (0..1_500)
        .map(|n| json!({"name": format!("a{n}"), "linkType": "veth", "master": "many0", "cidr": "10.20.0.0/16"}))
        .collect();
    for (name, spec) in [
        ("a-text", json!({"networkAttachments": "all"})),
        ("a-list", json!([])),
        ("many", json!({"networkAttachments": many})),
        ("everything", json!({"networkAttachments": [{"name": "x", "master": "../x", "cidr": "0.0.0.0/0"}]})),
    ] {
        let mut object: Value =
            serde_json::from_str(&pod_config("hostile", name, &[], &json!({}))).expect("JSON");
        object["spec"] = spec;
        // The schema is open with a short delay after the change.
        wait_until(PATIENCE, || {
            lab.try_kubectl(&["create", "--validate=false", "-f", "-"], &object.to_string()).map(drop)
        });
        lab.apply(&pod("hostile", &format!("{name}-pod"), name, NODES[1]));
    }
    lab.await_event("hostile", "a-text", "InvalidSpec: ");
    lab.await_event("hostile", "many", "InvalidAttachment: ");
    lab.await_event("hostile", "everything", "InvalidAttachment: ");
    // Objects that are created later, in its namespace and in another one.
    for namespace in ["hostile", "honest"] {
        let range = format!("x {namespace} {}.0.0/24", if namespace == "hostile" { "10.7" } else { "10.6" });
        lab.apply(&pod_config(namespace, "right", &[&range], &json!({})));
        lab.apply(&pod(namespace, "a", "right", NODES[0]));
    }
    for namespace in ["hostile", "honest"] {
        let range = if namespace == "hostile" { "10.7." } else { "10.6." };
        let found = await_configured(&lab, namespace, "right", "configured", 1);
        assert!(found["status"].to_string().contains(range), "{found}");
    }
    assert!(
        !daemon.metrics().contains("controller_runtime_reconcile_panics_total{controller=\"podConfig\"} 1")
    );
    // It is deleted like any other.
    lab.delete("podconfigs", "hostile", &["a-text", "a-list", "many", "everything"]);
}
