//! `crownlabs why` and `crownlabs status`, also as a plugin of `kubectl`, about Instances of a real API server.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, instance};

/// Runs the binary under a name. Returns whether it succeeded, and its output.
fn run(program: &Path, arguments: &[&str], lab: &Lab) -> (bool, String) {
    let output =
        Command::new(program).args(arguments).env("KUBECONFIG", lab.admin()).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// Asserts that the binary is a plugin of `kubectl` under another name, and its output about an Instance that is ready.
fn assert_plugin(lab: &Lab, binary: &Path) {
    // As a plugin, the same binary has another name.
    let folder = tempfile::tempdir().expect("a folder");
    let plugin = folder.path().join("kubectl-crownlabs");
    std::os::unix::fs::symlink(binary, &plugin).expect("a link");
    let (is_success, text) = run(&plugin, &["why", "tenant-explain/works"], lab);
    assert!(is_success, "{text}");
    for line in [
        "Instance tenant-explain/works of Tenant explain, Template workspace-explain/container\n",
        "Phase Ready; it should run, for ",
        "  Its Template sets no time limit for stopping or deleting it\n",
        "  manager of its course: explain-prof\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("It waits for") && !text.contains("liar"), "{text}");
    let (is_success, text) = run(&plugin, &["why", "works"], lab);
    assert!(!is_success && text.contains("Instance default/works not found"), "{text}");
    let (is_success, text) = run(&plugin, &["why", "tenant-explain/works", "-n", "default"], lab);
    assert!(!is_success && text.contains("omit one of them"), "{text}");
    let (is_success, text) = run(&plugin, &["why"], lab);
    assert!(!is_success && text.contains("Usage: kubectl crownlabs why"), "{text}");
    for (name, problem) in [
        ("tenant-explain/absent", "absent not found; Instances of this namespace include "),
        ("tenant-explain/work", "work not found; did you mean works?"),
        (
            "instance/works",
            "works not found; the namespace instance has no Instance: list all with `kubectl ",
        ),
        ("tenant-explain/../../x", "not a valid name of Instance"),
    ] {
        let (is_success, text) = run(binary, &["why", name], lab);
        assert!(!is_success && text.contains(problem), "{text}");
    }
}

/// Asserts the output for programs, and that namespace and context come from the options.
fn assert_read_by_programs(lab: &Lab, binary: &Path) {
    let json = |arguments: &[&str]| -> Value {
        let (is_success, text) = run(binary, arguments, lab);
        assert!(is_success, "{text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let why = json(&["why", "lost", "-n", "tenant-explain", "--context", "test", "-o", "json"]);
    assert_eq!((&why["name"], &why["tenant"]), (&json!("lost"), &json!("explain")));
    let waits = &why["waitsFor"][0];
    for (key, expected) in [
        ("kind", json!("Instance")),
        ("namespace", json!("tenant-explain")),
        ("name", json!("lost")),
        ("condition", json!("Reconciled")),
        ("reason", json!("TemplateNotFound")),
        ("whoCanAct", json!(["teacher"])),
    ] {
        assert_eq!(waits[key], expected, "{key}: {why}");
    }
    assert!(waits["since"].is_string() && waits["message"].is_string(), "{why}");
    assert_eq!((&why["ready"], &why["notRead"]), (&json!(false), &json!([])));
    let status = json(&["status", "explain", "-o", "json"]);
    let names: Vec<&str> = status["instances"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["instance"].as_str())
        .collect();
    assert!(names.contains(&"tenant-explain/works") && names.contains(&"tenant-explain/stopped"), "{status}");
    assert_eq!(
        json(&["status", "explain", "-n", "tenant-explain", "-o", "json"])["instances"],
        status["instances"]
    );
    let (is_success, text) = run(binary, &["why", "lost", "--context", "nowhere"], lab);
    assert!(!is_success && text.contains("--context nowhere cannot be used"), "{text}");
}

/// Asserts that the exit code says on request whether an Instance is ready.
fn assert_exit_codes(lab: &Lab, binary: &Path) {
    for (name, option, expected) in [
        ("works", Some("--exit-code"), 0),
        ("stopped", Some("--exit-code"), 0),
        ("lost", Some("--exit-code"), 4),
        ("lost", None, 0),
        ("absent", Some("--exit-code"), 1),
    ] {
        let mut command = Command::new(binary);
        command.args(["why", name, "-n", "tenant-explain"]).args(option).env("KUBECONFIG", lab.admin());
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(expected), "{name} {option:?}: {output:?}");
    }
}

/// Asserts that an Instance in a file is planned with the Template in the cluster.
fn assert_planned_beside_the_cluster(lab: &Lab, binary: &Path) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("instance.yaml");
    let namespace = ", namespace: tenant-explain}\nspec";
    std::fs::write(&file, instance("explain", "planned", "standalone").replace(namespace, "}\nspec"))
        .expect("written");
    let file = file.to_str().expect("a path");
    let (is_success, text) = run(binary, &["plan", "-n", "tenant-explain", "-f", file], lab);
    assert!(!is_success && text.contains("Template workspace-explain/standalone not found"), "{text}");
    let beside = ["plan", "-n", "tenant-explain", "--context", "test", "-o", "json", "-f", file];
    let (is_success, text) = run(binary, &beside, lab);
    assert!(is_success, "{text}");
    let list: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let items = list["items"].as_array().expect("a list");
    let of = |kind: &str| items.iter().filter(|item| item["kind"] == kind).count();
    assert_eq!((of("Instance"), of("Deployment"), of("Template"), of("Tenant")), (1, 1, 0, 0), "{text}");
}

/// Asserts that a missing Workspace and an unreachable API server are reported in plain words.
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
    for command in [
        &["why", "tenant-explain/works"][..],
        &["status"],
        &["status", "explain"],
        &["release", "--selector", "a=b"],
        &["plan"],
    ] {
        let (is_success, text) = run(binary, &[command, &["--kubeconfig", away]].concat(), lab);
        let expected = "the API server https://127.0.0.1:1/ cannot be reached: client error";
        assert!(!is_success && text.contains(expected), "{command:?}: {text}");
        assert!(text.contains("; check host and port") && text.matches("https:").count() == 1, "{text}");
        assert!(!text.contains("ServiceError") && !text.contains("Os {"), "{text}");
    }
}

#[test]
fn why_and_status_name_the_cause_the_tenants_and_the_managers() {
    let lab = Lab::shared();
    let _course = lab.course("explain");
    // A manager of the course by the spec, and a Tenant that only has the label of one.
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
    // The sentence of the condition, which equals the sentence of the event.
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
    let rest =
        "1 of them running, 1 core\n\nTemplates that are not ready:\n  cloudvm: Workspace explain, which ";
    assert!(text.contains(rest), "{text}");
    assert_plain_errors(&lab, binary);
    assert_exit_codes(&lab, binary);
    assert_read_by_programs(&lab, binary);
    assert_planned_beside_the_cluster(&lab, binary);
    lab.delete("tenants", "", &["explain-prof", "explain-liar"]);
}
