//! When Instances end, and which warnings come before, as `crownlabs plan` prints it.

use std::path::Path;

use super::{crownlabs, text};

const TEMPLATES: &str = "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: aging, namespace: workspace-tea}
spec: {deleteAfter: 100d, environmentList: [{name: vm, environmentType: VirtualMachine, image: i, persistent: true}]}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: idle, namespace: workspace-tea}
spec: {inactivityTimeout: 10d, environmentList: [{name: vm, environmentType: VirtualMachine, image: i, persistent: true}]}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: left, namespace: workspace-tea}
spec: {cleanup: {deleteAfterInactivity: 10d}, environmentList: [{name: vm, environmentType: VirtualMachine, image: i, persistent: true}]}
";

/// The time of a creation, a use or a stop long ago, and the time of a warning far in the future: the messages do
/// not depend on the time of the test.
const PAST: &str = "2020-01-01T00:00:00Z";
const SOON: &str = "2999-01-01T00:00:00Z";

/// An Instance of a Template, with what follows in its metadata, and its status.
fn instance(name: &str, template: &str, metadata: &str, status: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {{name: {name}, namespace: tenant-ada, {metadata}}}
spec:
  running: {}
  template.crownlabs.polito.it/TemplateRef: {{name: {template}, namespace: workspace-tea}}
  tenant.crownlabs.polito.it/TenantRef: {{name: ada}}
status: {{{status}}}
",
        template != "left"
    )
}

/// A stored promise: this many warnings, the last one far in the future.
fn promise(field: &str, warnings: u32, deadline: &str) -> String {
    format!(
        "{field}: {{since: \"{PAST}\", warnings: {warnings}, lastWarning: \"{SOON}\", deadline: \"{deadline}\"}}"
    )
}

/// The messages about Instances while notifications are on: three warnings about inactivity, one about the age.
fn told(instances: &[String]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config(folder.path())).expect("written");
    let input = format!("{TEMPLATES}{}", instances.concat());
    let output =
        crownlabs(&["plan", "--allow-problems", "--config", &file.display().to_string(), "-f", "-"], &input);
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    messages
}

fn config(folder: &Path) -> String {
    format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {{crownlabs.polito.it/operator-selector: local}}
controllers: {{expiration: {{enabled: true}}, inactivity: {{enabled: true, maxNumberOfAlerts: 3}}}}
integrations:
  prometheus: {{url: \"http://prometheus.example.org\"}}
  mail: {{transport: file, folder: \"{}\", from: labs@example.org}}
",
        folder.display()
    )
}

fn assert_told(messages: &str, name: &str, wanted: &str) {
    let line = format!("Instance tenant-ada/{name}: {wanted}\n");
    assert!(messages.contains(&line), "{line}: {messages}");
}

#[test]
fn the_warning_before_an_expiration_is_reported() {
    let of = |time: &str| format!("creationTimestamp: \"{time}\"");
    let key = "crownlabs.polito.it/expiring-warning-notification-timestamp";
    let warned = format!("{}, annotations: {{{key}: \"2020-05-01T00:00:00Z\"}}", of(PAST));
    let messages = told(&[
        instance("young", "aging", &of(SOON), ""),
        instance("old", "aging", &of(PAST), ""),
        instance("warned", "aging", &of(PAST), &promise("expiration", 1, "2999-01-02T00:10:00Z")),
        instance("taken-over", "aging", &warned, ""),
    ]);
    let young = "a warning is due at 2999-04-11T00:00:00Z; the Instance is deleted at 2999-04-12T00:10:00Z at the \
                 earliest";
    assert_told(&messages, "young", young);
    let old = "Instance tenant-ada/old: a warning is due now; the Instance is deleted at ";
    let tells = |line: &str| line.starts_with(old) && line.ends_with(" at the earliest");
    assert!(messages.lines().any(tells), "{messages}");
    assert_told(&messages, "warned", "the Instance is deleted at 2999-01-02T00:10:00Z, after a last mail");
    assert_told(&messages, "taken-over", "the Instance is deleted now, after a last mail");
}

#[test]
fn the_warnings_before_a_stop_are_reported_without_prometheus() {
    let created = format!("creationTimestamp: \"{PAST}\"");
    let off = format!("annotations: {{crownlabs.polito.it/last-powered-off-timestamp: \"{PAST}\"}}");
    let used = format!("inactivity: {{since: \"{SOON}\", witness: ssh}}");
    let messages = told(&[
        instance("used", "idle", &created, &used),
        instance("unused", "idle", &created, &promise("inactivity", 1, "2999-01-04T00:10:00Z")),
        instance("last", "idle", &created, &promise("inactivity", 3, "2999-01-02T00:10:00Z")),
        instance("stopped", "left", &off, &promise("destruction", 2, "2999-01-03T00:10:00Z")),
    ]);
    let unasked = "; Prometheus was not queried and may have data about a later use";
    let warned = |warning: &str, action: &str, end: &str| {
        format!("a warning is due at {warning}; {action} at {end} at the earliest")
    };
    let stopped = "the Instance is stopped";
    // Three warnings, an interval of a day after each, and ten minutes for late mails.
    let line = warned("2999-01-11T00:00:00Z", stopped, "2999-01-14T00:10:00Z") + unasked;
    assert_told(&messages, "used", &line);
    let line = warned("2999-01-02T00:00:00Z", stopped, "2999-01-04T00:10:00Z") + unasked;
    assert_told(&messages, "unused", &line);
    let line = format!("{stopped} at 2999-01-02T00:10:00Z, after a last mail{unasked}");
    assert_told(&messages, "last", &line);
    let deleted = "the Instance is deleted";
    assert_told(&messages, "stopped", &warned("2999-01-02T00:00:00Z", deleted, "2999-01-03T00:10:00Z"));
}

#[test]
fn the_end_of_instances_is_reported() {
    let config = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {crownlabs.polito.it/operator-selector: local}
controllers: {expiration: {enabled: true, notifications: false}}
";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config).expect("written");
    let instance = |name: &str, created: &str| {
        format!(
            "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {{name: {name}, namespace: tenant-ada, creationTimestamp: \"{created}\"}}
spec:
  template.crownlabs.polito.it/TemplateRef: {{name: web, namespace: workspace-tea}}
  tenant.crownlabs.polito.it/TenantRef: {{name: ada}}
"
        )
    };
    let template = "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: web, namespace: workspace-tea}
spec: {prettyName: web, description: web, deleteAfter: 100d, environmentList: []}
";
    let input =
        [template, &instance("old", "2020-01-01T00:00:00Z"), &instance("young", "2999-01-01T00:00:00Z")];
    let output = crownlabs(
        &["plan", "--allow-problems", "--config", &file.display().to_string(), "-f", "-"],
        &input.concat(),
    );
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(messages.contains("Instance tenant-ada/old: the Instance is deleted now\n"), "{messages}");
    let later = "Instance tenant-ada/young: the Instance is deleted at 2999-04-11T00:00:00Z\n";
    assert!(messages.contains(later), "{messages}");
}
