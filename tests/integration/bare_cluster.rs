//! The samples on a cluster without storage classes, Ingress class, KubeVirt, Prometheus, mail server and Keycloak, applied as the
//! README says: each missing part is named, and the machines start once it is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options, config, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::webhook;
use cluster::Options as ClusterOptions;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/samples");
const BINARY: &str = env!("CARGO_BIN_EXE_crownlabs");
/// The namespace of the Instances.
const PERSONAL: &str = "tenant-ada-rossi";
/// The Instances of the samples.
const INSTANCES: [&str; 5] = ["desktop-1", "server-1", "wireshark-1", "notebook-1", "pair-1"];

const STATUS: [&str; 2] = ["status", "netlab"];

/// The output of the binary as an administrator.
fn tell(lab: &Lab, arguments: &[&str]) -> String {
    let output = Command::new(Path::new(BINARY)).args(arguments).env("KUBECONFIG", lab.admin()).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a text")
}

/// Waits until the output of the binary contains all of the words.
fn await_words(lab: &Lab, arguments: &[&str], words: &[&str]) {
    wait_until(PATIENCE, || {
        let told = tell(lab, arguments);
        let missing = words.iter().find(|words| !told.contains(**words));
        missing.map_or(Ok(()), |words| Err(format!("{arguments:?} does not say {words:?}:\n{told}")))
    });
}

/// The message of the condition `Ready` of a Template, if it has this status.
fn not_ready(lab: &Lab, name: &str, status: &str) -> Option<String> {
    let template = lab.get("templates", "workspace-netlab", name)?;
    let conditions = template["status"]["conditions"].as_array()?.clone();
    let ready = conditions.into_iter().find(|one| one["type"] == "Ready" && one["status"] == status)?;
    ready["message"].as_str().map(str::to_owned)
}

/// The configuration of an installation whose servers outside of the cluster are all at a port that nothing listens on.
fn without_servers(folder: &Path, port: u16) -> PathBuf {
    let secret = folder.join("secret");
    fs::write(&secret, "secret").expect("written");
    let integrations = json!({
        "keycloak": {"enabled": true, "url": format!("http://127.0.0.1:{port}"), "realm": "labs", "clientId": "operator",
            "clientSecretFile": secret},
        "prometheus": {"url": format!("http://127.0.0.1:{port}")},
        "mail": {"transport": "smtp", "host": "127.0.0.1", "port": port, "tls": "none", "from": "labs@example.org"},
    });
    let more = format!(
        "controllers: {{inactivity: {{enabled: true}}, termination: {{enabled: true}}}}\nintegrations: {integrations}\n"
    );
    let file = folder.join("crownlabs.yaml");
    fs::write(&file, config("production", &more)).expect("written");
    file
}

/// The lines of `config check --connect` that report an error.
fn faults(lab: &Lab, file: &Path) -> Vec<String> {
    let mut command = Command::new(BINARY);
    command
        .args(["config", "check"])
        .arg(file)
        .args(["--connect", "--kubeconfig"])
        .arg(lab.service_account());
    let output = command.output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("a text");
    text.lines().filter(|line| line.starts_with("failed")).map(str::to_owned).collect()
}

/// The lines of `config check --connect` about servers outside of the cluster.
fn faults_of_servers(port: u16) -> Vec<String> {
    let url = format!("http://127.0.0.1:{port}");
    let address = format!("127.0.0.1:{port}");
    [("Keycloak", &url), ("Prometheus", &url), ("mail server", &address), ("exam server", &address)]
        .map(|(what, place)| format!("failed  {what}: {place}: "))
        .into()
}

/// The lines of `config check --connect` about the cluster.
const FAULTS_OF_CLUSTER: [&str; 6] = [
    "failed  kinds: kubevirt.io/v1: ",
    "failed  kinds: cdi.kubevirt.io/v1beta1: ",
    "failed  storage class: rook-nfs of controllers.tenant.myDrive.storageClassName: ",
    "failed  storage class: rook-nfs of controllers.sharedVolume.storageClass: ",
    "failed  storage class: the default: ",
    "failed  Ingress class: none: ",
];

/// Checks that `config check --connect` reports exactly these errors, in lines that begin so.
fn expect_faults(lab: &Lab, file: &Path, expected: &[String]) {
    let found = faults(lab, file);
    for begin in expected {
        assert_eq!(found.iter().filter(|line| line.starts_with(begin)).count(), 1, "{begin}: {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

/// The samples wait, and `status`, `why` and the conditions name the missing parts.
fn parts_are_named(lab: &Lab) {
    await_words(
        lab,
        &STATUS,
        &[
            "  desktop: environment desktop: the cluster has no virtual machines (KubeVirt's CRDs are not installed)",
            "environment desktop: the storage class rook-nfs of MyDrive, which it mounts, does not exist",
            "  notebook: environment notebook: its disk has no storage class",
            "environment notebook: its web interface cannot be reached: the cluster has no Ingress class",
            "  server: environment server: the cluster has no virtual machines",
        ],
    );
    // The status of each machine, in the words of its Template.
    for (name, words) in [
        ("desktop-1", "environment desktop: the cluster has no virtual machines"),
        ("wireshark-1", "environment wireshark: the storage class rook-nfs of MyDrive"),
        ("notebook-1", "environment notebook: its disk has no storage class"),
        ("server-1", "environment server: the cluster has no virtual machines"),
        (
            "pair-1",
            "environment client: its web interface cannot be reached: the cluster has no Ingress class",
        ),
    ] {
        await_words(lab, &["why", &format!("{PERSONAL}/{name}")], &[words]);
    }
    for name in ["notebook-1", "desktop-1"] {
        let message = lab.await_fault(PERSONAL, name, "StorageClassNotFound");
        let template = not_ready(lab, name.trim_end_matches("-1"), "False").expect("it is not ready");
        let first = message.split("; ").next().expect("a sentence");
        assert!(template.contains(first), "{first} is not in {template}");
    }
}

/// Installs the missing parts; the machines start.
fn parts_are_installed(lab: &Lab) {
    lab.cluster.furnish().expect("classes, a provisioner, and a Secret");
    await_words(lab, &["why", &format!("{PERSONAL}/desktop-1")], &["KubeVirt's CRDs are not installed"]);
    for name in ["wireshark-1", "notebook-1"] {
        lab.await_phase(PERSONAL, name, "Ready");
    }
    lab.cluster.install_kubevirt().expect("KubeVirt's CRDs");
    let node = "  desktop: environment desktop: no node runs virtual machines: none of the nodes that it may run on (1)";
    await_words(lab, &STATUS, &[node]);
    lab.cluster.mark_nodes().expect("the label");
    for name in INSTANCES {
        lab.await_phase(PERSONAL, name, "Ready");
    }
    for name in ["desktop", "server", "wireshark", "notebook", "pair"] {
        wait_until(PATIENCE, || not_ready(lab, name, "True").ok_or_else(|| format!("Template {name}")));
    }
    let told = tell(lab, &STATUS);
    assert!(!told.contains("not ready"), "{told}");
    let ready: Value = serde_json::from_str(&tell(lab, &["status", "netlab", "-o", "json"])).expect("JSON");
    assert_eq!(ready["templatesNotReady"], json!([]));
}

#[test]
fn a_bare_cluster_names_each_missing_part_and_runs_once_they_are_installed() {
    let bare = ClusterOptions { furnished: false, kubevirt: false, ..ClusterOptions::default() };
    let lab = Lab::start(bare);
    let kubeconfig = lab.service_account();
    let port = reserved_port();
    let webhooks = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\"}}\n");
    let daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "production", config: &webhooks });
    webhook::grant_everybody(&lab);
    webhook::install(&lab, "production", port);
    lab.kubectl(&["apply", "-f", SAMPLES]);
    let nothing = reserved_port();
    let exam = json!({
        "metadata": {"labels": {"crownlabs.polito.it/watch-for-instance-termination": "true"}},
        "spec": {"statusCheckUrl": format!("http://127.0.0.1:{nothing}/exam")},
    })
    .to_string();
    lab.kubectl(&["patch", "instance", "notebook-1", "-n", PERSONAL, "--type=merge", "-p", &exam]);

    let folder = tempfile::tempdir().expect("a folder");
    let file = without_servers(folder.path(), nothing);
    let of_servers = faults_of_servers(nothing);
    let of_cluster = FAULTS_OF_CLUSTER.map(str::to_owned);
    expect_faults(&lab, &file, &[&of_servers[..], &of_cluster].concat());
    parts_are_named(&lab);
    // `/readyz` names the kinds that are not installed, and the daemon keeps working.
    let (code, report) = daemon.ready();
    assert!(code == 200 && report.contains("virtualmachines.kubevirt.io"), "{report}");
    parts_are_installed(&lab);
    expect_faults(&lab, &file, &of_servers);
}
