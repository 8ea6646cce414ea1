//! `crownlabs why` and `crownlabs status`, also as a plugin of `kubectl`, about Instances of a real API server.

use std::path::Path;
use std::process::Command;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, instance};

/// Runs the binary under a name. Returns whether it succeeded, and its output.
fn run(program: &Path, arguments: &[&str], lab: &Lab) -> (bool, String) {
    let output =
        Command::new(program).args(arguments).env("KUBECONFIG", lab.admin()).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// Asserts that the binary is a plugin of `kubectl` under another name, and what it says of an Instance that is ready.
fn assert_plugin(lab: &Lab, binary: &Path) {
    // As a plugin, the same binary has another name.
    let folder = tempfile::tempdir().expect("a folder");
    let plugin = folder.path().join("kubectl-crownlabs");
    std::os::unix::fs::symlink(binary, &plugin).expect("a link");
    let (is_success, text) = run(&plugin, &["why", "tenant-explain/works"], lab);
    assert!(is_success, "{text}");
    for line in [
        "Instance tenant-explain/works of Tenant explain, Template workspace-explain/container\n",
        "Phase Ready; it is to run, for ",
        "  Its Template sets no time after which it is stopped or deleted\n",
        "  explain-prof, who manage its course\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("It waits for") && !text.contains("liar"), "{text}");
    let (is_success, text) = run(&plugin, &["why", "tenant-explain"], lab);
    assert!(!is_success && text.contains("expected NAMESPACE/INSTANCE"), "{text}");
    let (is_success, text) = run(&plugin, &["why"], lab);
    assert!(!is_success && text.contains("Usage: kubectl crownlabs why"), "{text}");
    for (name, problem) in
        [("tenant-explain/absent", "not found"), ("tenant-explain/../../x", "no name of Instance")]
    {
        let (is_success, text) = run(binary, &["why", name], lab);
        assert!(!is_success && text.contains(problem), "{text}");
    }
}

/// Asserts that a Workspace that is not there, and an API server that is not reached, are said in plain words.
fn assert_plain_errors(lab: &Lab, binary: &Path) {
    let (is_success, text) = run(binary, &["status", "expalin"], lab);
    assert!(!is_success && text.contains("Workspace expalin not found"), "{text}");
    let kubeconfig = std::fs::read_to_string(lab.admin()).expect("a kubeconfig");
    let mut kubeconfig: serde_json::Value = serde_json::from_str(&kubeconfig).expect("JSON");
    kubeconfig["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
    let folder = tempfile::tempdir().expect("a folder");
    let away = folder.path().join("away");
    std::fs::write(&away, kubeconfig.to_string()).expect("written");
    let away = away.to_str().expect("a path");
    let (is_success, text) = run(binary, &["why", "tenant-explain/works", "--kubeconfig", away], lab);
    assert!(!is_success && text.contains("the API server cannot be reached: "), "{text}");
    assert!(!text.contains("ServiceError") && !text.contains("Os {"), "{text}");
}

#[test]
fn people_are_told_what_an_instance_waits_for_and_who_runs_what() {
    let lab = Lab::shared();
    lab.create_fixtures("explain");
    // Who manages the course by the spec, and one who only says so by a label.
    lab.apply(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: explain-prof}
spec: {firstName: A, lastName: B, email: prof@example.org, workspaces: [{name: explain, role: manager}]}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: explain-liar, labels: {crownlabs.polito.it/workspace-explain: manager}}
spec: {firstName: A, lastName: B, email: liar@example.org}
",
    );
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "explain", config: "" });
    lab.apply(&instance("explain", "works", "container"));
    lab.apply(
        &instance("explain", "stopped", "container-persistent")
            .replace("spec:\n", "spec:\n  running: false\n"),
    );
    lab.apply(&instance("explain", "lost", "absent"));
    lab.await_phase("tenant-explain", "works", "Ready");
    lab.await_phase("tenant-explain", "stopped", "Off");
    lab.await_fault("tenant-explain", "lost", "TemplateNotFound");
    let binary = Path::new(env!("CARGO_BIN_EXE_crownlabs"));
    let (is_success, text) = run(binary, &["why", "tenant-explain/lost"], &lab);
    assert!(is_success, "{text}");
    // The sentence of the condition, which is that of the event.
    let conditions =
        lab.get("instances", "tenant-explain", "lost").expect("it")["status"]["conditions"].clone();
    let reconciled = conditions.as_array().expect("a list").iter().find(|c| c["type"] == "Reconciled");
    let message = reconciled.expect("Reconciled")["message"].as_str().expect("a text").to_owned();
    assert!(
        text.contains(&format!("It waits for:\n  {message} (Reconciled: TemplateNotFound, for ")),
        "{text}"
    );

    assert_plugin(&lab, binary);

    let (is_success, text) = run(binary, &["status", "explain"], &lab);
    assert!(is_success, "{text}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..4], ["explain", "tenant-explain/works", "container", "Ready"], "{text}");
    assert_eq!(rows[1].last(), Some(&"1"), "the cores of its Template: {text}");
    assert!(rows.iter().any(|row| row.starts_with(&["explain", "tenant-explain/stopped"])), "{text}");
    assert!(text.ends_with("1 of them running, 1 cores\n"), "{text}");
    assert_plain_errors(&lab, binary);
    lab.delete("tenants", "", &["explain-prof", "explain-liar"]);
    lab.delete_fixtures("explain");
}
