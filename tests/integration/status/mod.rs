//! `crownlabs status` without a Workspace, and `crownlabs --version`. The API server reaches the daemon as a pod.

use std::path::{Path, PathBuf};
use std::process::Command;

use cluster::config::only;
use cluster::sshd::LocalAddress;
use serde_json::{Value, json};

use crate::daemon::{Daemon, config};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_crownlabs");
/// The namespace of the installation.
const NAMESPACE: &str = "status-system";
/// The name of the pod of the daemon.
const POD: &str = "crownlabs-0";
/// The address of the pod. API servers send no requests to 127.0.0.0/8.
const ADDRESS: &str = "198.51.100.47";

/// Runs the binary. Returns its exit code and its output.
fn run(arguments: &[&str], kubeconfig: &Path) -> (Option<i32>, String) {
    let output =
        Command::new(BINARY).args(arguments).env("KUBECONFIG", kubeconfig).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Returns the state of the installation as JSON.
fn status(kubeconfig: &Path) -> Value {
    let (code, text) = run(&["status", "-n", NAMESPACE, "--all", "-o", "json"], kubeconfig);
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The parts that could not be read.
fn not_read(status: &Value) -> Vec<&str> {
    let parts = status["notRead"].as_array().expect("a list").iter();
    parts.map(|part| part["what"].as_str().expect("a text")).collect()
}

/// Starts a daemon whose pod has an address of this machine. Its Prometheus does not answer.
fn start(lab: &Lab) -> Daemon {
    lab.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"));
    let keys = format!(
        "{}integrations: {{prometheus: {{url: \"http://127.0.0.1:1\", timeout: 1s}}}}\n\
         leaderElection: {{namespace: {NAMESPACE}, name: crownlabs}}\n",
        only(&[("instance", ""), ("inactivity", "notifications: false")])
    );
    let config =
        config("status", &keys).replace("health: \"127.0.0.1:0\"", &format!("health: \"{ADDRESS}:0\""));
    let identity = format!("POD_NAME={POD}");
    let daemon = Daemon::launch(&["env", &identity, BINARY], &config, &lab.admin(), ADDRESS.to_owned());
    daemon.await_ready();
    let port = daemon.port("health").expect("it serves");
    let pod = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {POD}, namespace: {NAMESPACE}, labels: {{app.kubernetes.io/part-of: crownlabs}}}}
spec:
  schedulerName: none
  containers:
  - name: crownlabs
    image: crownlabs/crownlabs:0.1.0
    args: [run]
    ports: [{{name: health, containerPort: {port}}}]
"
    );
    // Pods can be created once the namespace has its service account.
    wait_until(PATIENCE, || lab.try_kubectl(&["create", "-f", "-"], &pod));
    let patch = json!({"status": {"phase": "Running", "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    lab.patch_status("pods", NAMESPACE, POD, &patch.to_string());
    daemon
}

/// Creates a service account that may list only the objects of CrownLabs, and returns its kubeconfig.
fn viewer(lab: &Lab) -> PathBuf {
    lab.apply(&format!(
        "apiVersion: v1
kind: ServiceAccount
metadata: {{name: viewer, namespace: {NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: status-objects}}
rules:
- {{apiGroups: [crownlabs.polito.it, podconfig.opdev.io], resources: [\"*\"], verbs: [list]}}
---
{}",
        binding("ClusterRoleBinding", "status-objects", "ClusterRole")
    ));
    lab.cluster.service_account_kubeconfig(NAMESPACE, "viewer").expect("a token")
}

/// A binding of a role to the service account.
fn binding(kind: &str, role: &str, role_kind: &str) -> String {
    let namespace = if role_kind == "Role" { format!(", namespace: {NAMESPACE}") } else { String::new() };
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata: {{name: {role}{namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role_kind}, name: {role}}}
subjects: [{{kind: ServiceAccount, name: viewer, namespace: {NAMESPACE}}}]
"
    )
}

/// The roles in the documents, with the namespace of the test.
fn documented_roles() -> String {
    let page = include_str!("../../../docs/operating.md");
    let mut blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains("name: crownlabs-view-installation")).expect("the roles");
    block.replace("crownlabs-system", NAMESPACE)
}

/// Asserts the output for people.
fn assert_text(lab: &Lab) {
    let (code, text) = run(&["status", "-n", NAMESPACE, "--all"], &lab.admin());
    assert_eq!(code, Some(0), "{text}");
    // The widths of columns depend on all rows.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let version = crownlabs::VERSION;
    for line in [
        &*format!("Client {version} API server v1."),
        "Leader crownlabs-0, for ",
        " ago (Lease status-system/crownlabs, selector crownlabs.polito.it/operator-selector=status)",
        &*format!("status-system/crownlabs-0 {version} yes 0 leader "),
        "instance ready crownlabs-0 ready",
        "Prometheus http://127.0.0.1:1 failing for ",
        "instances.crownlabs.polito.it v1alpha2 (stored)",
        "Instance tenant-status/lost: ",
    ] {
        assert!(words.contains(line), "{line:?} is not in\n{text}");
    }
    assert!(!text.contains("Not read"), "{text}");
}

/// Asserts the output for programs: the state of a daemon, and the problem of an Instance.
fn assert_value(lab: &Lab) {
    let status = status(&lab.admin());
    assert_eq!(status["leases"][0]["pod"], POD, "{status}");
    let pod = json!({"namespace": NAMESPACE, "name": POD, "image": "crownlabs/crownlabs:0.1.0",
        "version": crownlabs::VERSION, "ready": true, "restarts": 0, "leads": true});
    assert_eq!(status["pods"], json!([pod]), "{status}");
    let problems = status["problems"].as_array().expect("a list");
    let problem = problems.iter().find(|problem| problem["namespace"] == "tenant-status").expect("a problem");
    assert_eq!(
        (&problem["name"], &problem["reason"]),
        (&json!("lost"), &json!("TemplateNotFound")),
        "{problem}"
    );
    assert_eq!(problem["whoCanAct"], json!(["teacher"]), "{problem}");
    let count =
        status["objects"].as_array().expect("a list").iter().find(|count| count["kind"] == "Instance");
    assert!(count.expect("Instances")["states"].is_object(), "{status}");
}

/// Asserts that a user sees the parts that they may read, and all of it with the documented roles.
fn assert_rights(lab: &Lab) {
    let viewer = viewer(lab);
    let is_listed = |status: &Value| status["problemsTotal"].as_u64().is_some_and(|total| total > 0);
    wait_until(PATIENCE, || {
        let status = status(&viewer);
        let missing = not_read(&status);
        let expected = ["Leases", "pods of namespace status-system", "CRDs"];
        if missing == expected && is_listed(&status) {
            Ok(())
        } else {
            Err(format!("{expected:?}: {missing:?}"))
        }
    });
    let name = "crownlabs-view-installation";
    let bindings = [binding("ClusterRoleBinding", name, "ClusterRole"), binding("RoleBinding", name, "Role")];
    lab.apply(&format!("{}---\n{}", documented_roles(), bindings.join("---\n")));
    wait_until(PATIENCE, || {
        let status = status(&viewer);
        if not_read(&status).is_empty() { Ok(()) } else { Err(format!("{}", status["notRead"])) }
    });
}

#[test]
fn status_shows_the_daemon_its_systems_and_the_problems_with_the_rights_of_the_user() {
    let lab = Lab::shared();
    let _course = lab.course("status");
    let _address = LocalAddress::add(ADDRESS.parse().expect("an address")).expect("added");
    let mut daemon = start(&lab);
    lab.apply(&instance("status", "lost", "absent"));
    lab.await_fault("tenant-status", "lost", "TemplateNotFound");
    daemon.wait_for("the outage", |daemon| daemon.ready().1.contains("[!] Prometheus"));
    daemon.wait_for("leading", |daemon| daemon.ready().1.contains("[+] instance: ready"));
    assert_text(&lab);
    assert_value(&lab);
    assert_rights(&lab);
    let (code, text) = run(&["--version"], &lab.admin());
    let expected = format!("crownlabs {0}\ndaemon {0}, 1 pod\nAPI server v1.", crownlabs::VERSION);
    assert!(code == Some(0) && text.starts_with(&expected), "{text}");
    // A pod that does not answer is a part that cannot be read.
    daemon.stop();
    let status = status(&lab.admin());
    assert_eq!(not_read(&status), ["state of crownlabs-0"], "{status}");
    assert_eq!(status["pods"][0]["version"], Value::Null, "{status}");
    for kind in ["clusterrolebinding", "clusterrole"] {
        lab.kubectl(&["delete", kind, "status-objects", "crownlabs-view-installation"]);
    }
    lab.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
}

#[test]
fn version_needs_no_cluster() {
    let own = format!("crownlabs {}\n", crownlabs::VERSION);
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    assert_eq!(run(&["--version"], &missing), (Some(0), own.clone()));
    let (code, text) = run(&["--version", "--kubeconfig", missing.to_str().expect("a path")], &missing);
    assert!(code == Some(1) && text.starts_with(&own) && text.contains("cannot be read"), "{text}");
    // Nothing listens at port 1.
    let away = folder.path().join("away");
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "away",
        "contexts": [{"name": "away", "context": {"cluster": "away", "user": "away"}}],
        "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "away", "user": {}}]});
    std::fs::write(&away, kubeconfig.to_string()).expect("written");
    let (code, text) = run(&["-V"], &away);
    let expected =
        format!("{own}API server not read: the API server http://127.0.0.1:1/ cannot be reached: ");
    assert!(code == Some(0) && text.starts_with(&expected), "{text}");
    let (code, text) = run(&["status"], &away);
    assert!(
        code == Some(1) && text.contains("the API server http://127.0.0.1:1/ cannot be reached: "),
        "{text}"
    );
}
