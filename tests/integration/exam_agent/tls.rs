//! TLS of the exam agent itself.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{ALLOWED, Site, account, agent};
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::config::only;

/// Writes a certificate for this name, signed by its own key, into a folder.
fn certificate(folder: &Path, name: &str) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join("tls.crt"), certificate.pem()).expect("written");
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).expect("written");
}

/// The output of OpenSSL's client about a connection: the certificate, and the response to a request.
fn answer(port: u16) -> String {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_quiet", "-connect", &format!("127.0.0.1:{port}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl starts");
    let mut input = client.stdin.take().expect("a pipe");
    input.write_all(super::request("GET", "/healthz", &[], "").as_bytes()).expect("sent");
    let output = client.wait_with_output().expect("it ends");
    drop(input);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The names in the server's certificate.
fn names(port: u16) -> String {
    let script = format!(
        "openssl s_client -connect 127.0.0.1:{port} </dev/null 2>/dev/null | openssl x509 -noout -ext subjectAltName"
    );
    let output = Command::new("sh").args(["-c", &script]).output().expect("openssl runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_certificate_is_awaited_served_and_replaced() {
    let (lab, name) = (Lab::shared(), "exam-tls");
    lab.create_fixtures(name);
    let (kubeconfig, folder, port) =
        (account(&lab, name), tempfile::tempdir().expect("a folder"), reserved_port());
    let keys = format!("{ALLOWED}, certificateDir: {}", folder.path().display());
    let config = only(&[("examAgent", &agent(port, name, &keys))]);
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    daemon.wait_for("the missing file", |daemon| {
        daemon.page("/readyz/examAgent").1.contains("the folder has neither tls.crt nor tls.key; add both")
    });
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nothing is served without it");
    certificate(folder.path(), "exams.example.org");
    daemon.wait_for("the certificate", |daemon| daemon.page("/readyz/examAgent").0 == 200);
    let site = Site { lab, name, kubeconfig, daemon, port };
    let answer = answer(port);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("OK"), "{answer}");
    assert!(names(port).contains("exams.example.org"));
    certificate(folder.path(), "other.example.org");
    wait_until(PATIENCE, || {
        let names = names(port);
        names.contains("other.example.org").then_some(()).ok_or(names)
    });
    assert!(site.daemon.metrics().contains("exam_agent_certificate_expiration_timestamp_seconds "));
}
