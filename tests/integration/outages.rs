//! Outages of systems outside of the cluster: the readiness, the metrics and the log, and `crownlabs config check --connect`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::daemon::{self, Daemon, Options, reserved_port};
use crate::lab::Lab;
use crate::mail::server::certificates;
use cluster::config::only;

/// A Prometheus that accepts connections, and answers only while `answers` is set.
struct Prometheus {
    port: u16,
    answers: Arc<AtomicBool>,
}

impl Prometheus {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let answers = Arc::new(AtomicBool::new(false));
        let does_answer = Arc::clone(&answers);
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for mut stream in listener.incoming().map_while(Result::ok) {
                if !does_answer.load(Ordering::SeqCst) {
                    silent.push(stream);
                    continue;
                }
                let _ = stream.read(&mut [0; 4_096]);
                let body = r#"{"status": "success", "data": {"resultType": "vector", "result": []}}"#;
                let length = body.len();
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                // The client may have given up.
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            }
        });
        Self { port, answers }
    }
}

/// How often the log has a warning with these words.
fn warnings(daemon: &Daemon, words: &str) -> usize {
    daemon.log().lines().filter(|line| line.contains("WARN") && line.contains(words)).count()
}

#[test]
fn a_prometheus_that_never_answers_is_reported_until_it_does() {
    let lab = Lab::shared();
    let prometheus = Prometheus::start();
    let url = format!("http://127.0.0.1:{}", prometheus.port);
    let config = format!(
        "{}integrations: {{prometheus: {{url: \"http://127.0.0.1:{}\", timeout: 1s}}}}\n",
        only(&[("inactivity", "notifications: false")]),
        prometheus.port
    );
    let kubeconfig = lab.service_account();
    let daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "silentmetrics", config: &config });
    let line = format!("[!] Prometheus {url}: failing for ");
    daemon.wait_for("the outage in the readiness", |daemon| {
        let (status, ready) = daemon.ready();
        status == 200
            && ready.contains(&line)
            && ready.contains("no Instance is stopped for inactivity: no answer within 1s")
    });
    let is_down = |daemon: &Daemon, count: u32| {
        daemon.metrics().contains(&format!("outside_systems_down{{system=\"prometheus\"}} {count}\n"))
    };
    assert!(is_down(&daemon, 1), "{}", daemon.metrics());
    assert_eq!(warnings(&daemon, "requests to this Prometheus fail"), 1, "{}", daemon.log());
    prometheus.answers.store(true, Ordering::SeqCst);
    daemon.wait_for("the end of the outage", |daemon| !daemon.ready().1.contains("Prometheus"));
    assert!(is_down(&daemon, 0), "{}", daemon.metrics());
    assert_eq!(warnings(&daemon, "requests to this Prometheus fail"), 1, "{}", daemon.log());
    assert_eq!(warnings(&daemon, "requests to this Prometheus succeed again"), 1, "{}", daemon.log());
}

/// The configuration of a dashboard whose issuer is at this port.
fn dashboard(folder: &Path, port: u16) -> String {
    certificates(folder, "127.0.0.1");
    fs::write(folder.join("secret"), "secret").expect("written");
    fs::write(folder.join("key"), "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n").expect("written");
    let file = |name: &str| folder.join(name).display().to_string();
    let keys = format!(
        "listen: \"127.0.0.1:{}\", publicUrl: \"https://dashboard.example.org\", \
         issuerUrl: \"https://127.0.0.1:{port}/realms/none\", clientId: labs, clientSecretFile: \"{}\", \
         sessionKeyFile: \"{}\", caFile: \"{}\"",
        reserved_port(),
        file("secret"),
        file("key"),
        file("ca.crt")
    );
    only(&[("dashboard", &keys)])
}

#[test]
fn a_missing_issuer_of_the_dashboard_is_reported_before_the_first_login() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let port = reserved_port();
    let config = dashboard(folder.path(), port);
    let kubeconfig = lab.service_account();
    let daemon = Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: "noissuer", config: &config });
    let line = format!("[!] issuer https://127.0.0.1:{port}/realms/none: failing for ");
    daemon.wait_for("the outage in the readiness", |daemon| {
        let ready = daemon.ready().1;
        ready.contains(&line)
            && ready.contains("logins at the dashboard fail")
            && ready.contains("Connection refused")
    });
    assert_eq!(warnings(&daemon, "requests to this issuer fail"), 1, "{}", daemon.log());
}

/// Runs `config check --connect`. Returns the exit code and standard output.
fn check(file: &Path, kubeconfig: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(["config", "check"])
        .arg(file)
        .args(["--connect", "--kubeconfig"])
        .arg(kubeconfig)
        .args(more)
        .output()
        .expect("it starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn config_check_connect_names_failures_and_successes() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    let port = reserved_port();
    let integrations = format!(
        "integrations: {{prometheus: {{url: \"http://127.0.0.1:{port}\"}}, \
         mail: {{transport: smtp, host: 127.0.0.1, port: {port}, tls: none, from: labs@example.org}}}}\n"
    );
    let loops = only(&[("tenant", "myDrive: {storageClassName: missing}"), ("inactivity", "")]);
    fs::write(&file, daemon::config("connect", &format!("{loops}{integrations}"))).expect("written");
    let (code, text) = check(&file, &lab.service_account(), &[]);
    assert_eq!(code, Some(4), "{text}");
    for line in [
        "ok      API server: https://",
        "ok      kinds: v1\n",
        "ok      CRDs: all have the fields of this version\n",
        "ok      rights: all that the loop tenant needs\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    for (begin, cause) in [
        (format!("failed  Prometheus: http://127.0.0.1:{port}: "), "Connection refused"),
        (format!("failed  mail server: 127.0.0.1:{port}: "), "Connection refused"),
        (
            "failed  storage class: missing of controllers.tenant.myDrive.storageClassName: ".to_owned(),
            "does not exist; set the key to a class in the cluster",
        ),
    ] {
        let line = text.lines().find(|line| line.starts_with(&begin));
        assert!(line.is_some_and(|line| line.contains(cause)), "{begin}{cause} is not in\n{text}");
    }
    let (_, text) = check(&file, &lab.service_account(), &["-o", "json"]);
    let checks: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let prometheus = checks.iter().find(|check| check["what"] == "Prometheus").expect("a check");
    assert_eq!(prometheus["ok"], false, "{prometheus}");
    // An account without rights.
    let other = lab.cluster.service_account_kubeconfig("default", "default").expect("a token");
    let (code, text) = check(&file, &other, &[]);
    assert_eq!(code, Some(4), "{text}");
    let line = text.lines().find(|line| line.starts_with("failed  rights: tenant: this account may not "));
    assert!(
        line.is_some_and(|line| line.contains("list") && line.contains("manifests/10-rbac.yaml")),
        "{text}"
    );
}

#[test]
fn config_check_connect_succeeds_without_failures_and_names_an_unreachable_api_server() {
    let lab = Lab::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    fs::write(&file, daemon::config("connect", &only(&[("template", "")]))).expect("written");
    let (code, text) = check(&file, &lab.service_account(), &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("failed"), "{text}");
    let away = folder.path().join("kubeconfig");
    let kubeconfig = fs::read_to_string(lab.admin()).expect("read");
    let mut kubeconfig: Value = serde_json::from_str(&kubeconfig).expect("JSON");
    kubeconfig["clusters"][0]["cluster"]["server"] = format!("https://127.0.0.1:{}", reserved_port()).into();
    fs::write(&away, kubeconfig.to_string()).expect("written");
    let (code, text) = check(&file, &away, &[]);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.starts_with("failed  API server: https://127.0.0.1:") && text.contains("refused"), "{text}");
}
