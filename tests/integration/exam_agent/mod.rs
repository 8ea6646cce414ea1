//! The exam agent with the real daemon and API server, and HTTP clients: exam servers, students, and hostile ones.

mod cluster;
mod exam;
mod fuzz;
mod liars;
mod limits;
mod replicas;
mod routes;
mod tls;
mod tokens;

use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use ::cluster::config::only;

/// An exam server, which is on the allow-list, and a student, who is not.
const SERVER: &str = "192.0.2.10";
const STUDENT: &str = "203.0.113.9";
/// The allow-list.
const ALLOWED: &str = "allowedIps: [192.0.2.0/24]";

/// The keys of the exam agent, and more of them.
fn agent(port: u16, name: &str, keys: &str) -> String {
    format!("listen: \"127.0.0.1:{port}\", namespace: workspace-{name}, {keys}")
}

/// A daemon that serves the exams of the namespace `workspace-<name>`, which has Templates, with an account that has
/// exactly the rights of the manifests.
struct Site {
    lab: Arc<Lab>,
    name: &'static str,
    kubeconfig: PathBuf,
    daemon: Daemon,
    port: u16,
}

/// A daemon with the exam agent and `others`, which lists further loops with their keys; `keys` are more keys of the
/// agent.
fn daemon(kubeconfig: &Path, name: &str, others: &[(&str, &str)], keys: &str) -> (Daemon, u16) {
    let port = reserved_port();
    let config = only(&[others, &[("examAgent", &agent(port, name, keys))]].concat());
    let daemon = Daemon::start(&Options { kubeconfig, selector: name, config: &config });
    // The replica is ready without its replica loops.
    daemon.wait_for("the exam agent", |daemon| daemon.page("/readyz/examAgent").0 == 200);
    (daemon, port)
}

/// Creates an account with the rights of the manifest, in the namespace of a site.
fn account(lab: &Lab, name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/exam-agent/exam-agent.yaml");
    let text = std::fs::read_to_string(file).expect("the manifest");
    let account = format!("exam-agent-{name}");
    lab.apply(&format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {account}, namespace: crownlabs-system}}\n"
    ));
    let rights: Vec<String> = text
        .split("\n---\n")
        .filter(|document| document.contains("kind: Role\n") || document.contains("kind: RoleBinding\n"))
        .map(|document| document.replace("crownlabs-exam\n", &format!("workspace-{name}\n")))
        .map(|document| document.replace("name: crownlabs,", &format!("name: {account},")))
        .collect();
    assert_eq!(rights.len(), 2, "a Role and its binding");
    lab.apply(&rights.join("\n---\n"));
    lab.cluster.service_account_kubeconfig("crownlabs-system", &account).expect("a token")
}

impl Site {
    /// Starts only the exam agent.
    fn start(name: &'static str, keys: &str) -> Self {
        let lab = Lab::shared();
        lab.create_fixtures(name);
        let kubeconfig = account(&lab, name);
        let (daemon, port) = daemon(&kubeconfig, name, &[], keys);
        Self { lab, name, kubeconfig, daemon, port }
    }

    fn namespace(&self) -> String {
        format!("workspace-{}", self.name)
    }

    /// The response to an exam server.
    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        send(self.port, method, path, &[("X-Forwarded-For", SERVER)], body)
    }

    /// The response to the browser of a student.
    fn browse(&self, path: &str) -> Answer {
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        send(self.port, "GET", path, &[("X-Forwarded-For", STUDENT), ("Accept", accept)], "")
    }

    fn instance(&self, name: &str) -> Option<Value> {
        self.lab.get("instances", &self.namespace(), name)
    }

    /// Waits until the watch has delivered an Instance with this phase: clients outside of the allow-list are answered
    /// from it. Returns the response to a student.
    fn await_shown(&self, name: &str, phase: &str) -> Answer {
        let path = format!("/api/instances/{name}");
        let ask = || send(self.port, "GET", &path, &[("X-Forwarded-For", STUDENT)], "");
        awaited(ask, |shown| shown.status == 200 && shown.json()["phase"] == phase)
    }

    /// Sets the status of an Instance, as the instance loop would.
    fn set_status(&self, name: &str, status: &Value) {
        let status = serde_json::json!({"status": status}).to_string();
        self.lab.patch_status("instances", &self.namespace(), name, &status);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.daemon.stop();
        self.lab.begin_delete("serviceaccounts", "crownlabs-system", &[&format!("exam-agent-{}", self.name)]);
        self.lab.delete_fixtures(self.name);
    }
}

/// An answer.
#[derive(Debug, Clone)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn kind(&self) -> &str {
        self.header("content-type").unwrap_or_default()
    }
}

/// Repeats a request until the response is the expected one, and returns it.
fn awaited(ask: impl Fn() -> Answer, is_it: impl Fn(&Answer) -> bool) -> Answer {
    wait_until(PATIENCE, || {
        let answer = ask();
        if is_it(&answer) { Ok(answer) } else { Err(format!("{answer:?}")) }
    })
}

/// The bytes of a request.
fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: exams\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

/// Sends a request over a new connection.
fn send(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(90))).expect("a limit");
    stream.write_all(request(method, path, headers, body).as_bytes()).expect("sent");
    read_answer(&mut stream)
}

/// Reads an answer up to the end of the connection.
fn read_answer(stream: &mut impl std::io::Read) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// The status of the response to GET.
pub fn status(port: u16, path: &str) -> u16 {
    send(port, "GET", path, &[], "").status
}
