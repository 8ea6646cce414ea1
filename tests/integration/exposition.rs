//! `promtool check metrics` accepts the exposition of a daemon with every loop.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::tenants::{tenant, workspace};
use cluster::sshd::key_pair;

/// A family of each part of the daemon.
const FAMILIES: [&str; 15] = [
    "bastion_instance_ssh_connections_total",
    "bastion_keys",
    "bastion_ssh_connections_total",
    "bastion_ssh_open_connections",
    "bastion_web_ssh_connections_total",
    "controller_runtime_reconcile_total",
    "crownlabs_build_info",
    "crownlabs_instances",
    "crownlabs_workspace_quota_used",
    "exam_agent_requests_total",
    "image_list_queries_total",
    "public_exposure_pool_addresses",
    "process_cpu_seconds_total",
    "rest_client_requests_total",
    "tenant_operator_internal_errors_total",
];
/// The names in dashboards of the Go operators and of former versions.
const FORMER: [&str; 4] = [
    "bastion_instance_ssh_connections",
    "bastion_ssh_connections",
    "bastion_web_ssh_connections",
    "tenant_operator_internal_errors",
];

/// A configuration with every loop. Its files are in `folder`; the exam agent listens on `exams`.
fn config(folder: &Path, exams: u16) -> String {
    let file = |name: &str, content: &str| {
        let file = folder.join(name);
        std::fs::write(&file, content).expect("written");
        file.display().to_string()
    };
    let key = key_pair(&folder.join("key")).expect("a key");
    let host_keys = folder.join("host-keys");
    std::fs::create_dir(&host_keys).expect("a folder");
    format!(
        "controllers:
  instance: {{websshMasterKeyFile: \"{key}.pub\", access: {{daemon: {{signInUrl: \"https://labs.example.com/login/machine\"}}}}}}
  publicExposure: {{ipPool: [10.99.0.0/24]}}
  inactivity: {{enabled: true, notifications: false}}
  expiration: {{enabled: true, notifications: false}}
  termination: {{enabled: true, allowCidrs: [127.0.0.0/8]}}
  submission: {{enabled: true}}
  imageList: {{enabled: true, registries: [{{imageListName: exposition, url: \"http://127.0.0.1:1\", registryName: r.example.org}}]}}
  examAgent: {{enabled: true, listen: \"127.0.0.1:{exams}\", namespace: workspace-exposition, allowAnyone: true}}
  podConfig: {{enabled: true}}
  podConfigNode: {{enabled: true, nodeName: exposition, runtimeEndpoint: {nothing}}}
  instanceMetrics: {{enabled: true, listen: \"127.0.0.1:0\", runtimeEndpoint: {nothing}}}
  bastion: {{enabled: true, authorizedKeysFile: \"{folder}/authorized-keys\", hostKeys: {{folder: \"{host_keys}\"}}}}
  sshTracker: {{enabled: true}}
  webSsh: {{enabled: true, listen: \"127.0.0.1:{terminals}\", privateKeyFile: \"{key}\"}}
  dashboard: {{enabled: true, listen: \"127.0.0.1:{pages}\", publicUrl: \"https://labs.example.com\",
    issuerUrl: \"https://127.0.0.1:1/realms/labs\", clientId: dashboard, clientSecretFile: \"{secret}\", sessionKeyFile: \"{session}\"}}
  login: {{enabled: true, listen: \"127.0.0.1:{logins}\", sessionKeyFile: \"{session}\", hostKeyFile: \"{hosts}\"}}
integrations:
  prometheus: {{url: \"http://127.0.0.1:1\"}}
",
        key = key.display(),
        nothing = folder.join("nothing.sock").display(),
        folder = folder.display(),
        host_keys = host_keys.display(),
        terminals = reserved_port(),
        pages = reserved_port(),
        logins = reserved_port(),
        hosts = file("hosts", &"h".repeat(32)),
        secret = file("secret", "secret"),
        session = file("session", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"),
    )
}

/// The output of promtool for an exposition.
fn promtool(metrics: &str) -> String {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, which Debian's package prometheus has");
    let mut input = promtool.stdin.take().expect("its input");
    input.write_all(metrics.as_bytes()).expect("written");
    drop(input);
    let output = promtool.wait_with_output().expect("it ends");
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    if output.status.success() { said } else { format!("{}: {said}", output.status) }
}

#[test]
fn promtool_accepts_the_metrics_of_a_daemon_with_every_loop() {
    let (lab, folder, exams) = (Lab::shared(), TempDir::new().expect("a folder"), reserved_port());
    let _course = lab.course("exposition");
    let config = config(folder.path(), exams);
    let daemon =
        Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "exposition", config: &config });
    lab.apply(&workspace("exposition", "exposition-course", ""));
    lab.apply(&tenant("exposition", "exposition.t", ", workspaces: [{name: exposition-course, role: user}]"));
    lab.apply(&instance("exposition", "vm", "vm"));
    daemon.wait_for("the exam agent", |daemon| daemon.page("/readyz/examAgent").0 == 200);
    assert_eq!(crate::exam_agent::status(exams, "/api/templates/"), 200);
    let has = |metrics: &str, family: &str| metrics.contains(&format!("\n# TYPE {family} "));
    let metrics = wait_until(PATIENCE, || {
        let metrics = daemon.metrics();
        let missing: Vec<&&str> =
            FAMILIES.iter().chain(&FORMER).filter(|family| !has(&metrics, family)).collect();
        if missing.is_empty() { Ok(metrics) } else { Err(format!("{missing:?}; the log:\n{}", daemon.log())) }
    });
    assert_eq!(promtool(&metrics), "", "{metrics}");
    // The former names have the same series, and are not typed as counters.
    for former in FORMER {
        assert!(metrics.contains(&format!("\n# TYPE {former} untyped\n")), "{former}");
        let samples = |name: &str| -> Vec<String> {
            let lines = metrics.lines().filter_map(|line| line.strip_prefix(name));
            lines.filter(|rest| rest.starts_with(['{', ' '])).map(str::to_owned).collect()
        };
        assert_eq!(samples(former), samples(&format!("{former}_total")), "{former}");
    }
    // promtool does report a counter without `_total`.
    assert!(
        promtool(&metrics.replace("errors untyped", "errors counter"))
            .contains("tenant_operator_internal_errors")
    );
    drop(daemon);
    // The finalizer would wait for Keycloak.
    lab.kubectl(&[
        "patch",
        "tenant",
        "exposition.t",
        "--type=merge",
        "-p",
        r#"{"metadata": {"finalizers": null}}"#,
    ]);
    lab.delete("tenants", "", &["exposition.t"]);
    lab.begin_delete("workspaces", "", &["exposition-course"]);
}
