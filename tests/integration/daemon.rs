//! The daemon as a child process.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How a daemon is started.
pub struct Options<'a> {
    /// The kubeconfig that it uses.
    pub kubeconfig: &'a Path,
    /// The value of the selector label: the daemon works in namespaces that have it.
    pub selector: &'a str,
    /// More lines of the configuration, at the top level.
    pub config: &'a str,
}

/// A running daemon. It is killed when it is dropped.
pub struct Daemon {
    child: Child,
    dir: TempDir,
    health: u16,
    metrics: u16,
}

/// A port that is free now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port()
}

/// A configuration with the lines `more`; leader election is off unless they contain it.
pub fn config(selector: &str, health: u16, metrics: u16, more: &str) -> String {
    // Lines `webhook: {…}` and `keycloakEvents: {…}` are members of `server`.
    let of_servers = |line: &&str| line.starts_with("webhook:") || line.starts_with("keycloakEvents:");
    let (mut servers, more): (Vec<&str>, Vec<&str>) = more.lines().partition(of_servers);
    // Several daemons on one machine cannot listen at the same port.
    if !servers.iter().any(|line| line.starts_with("keycloakEvents:")) {
        servers.push("keycloakEvents: {listen: \"\"}");
    }
    let (servers, more) = (servers.join(", "), more.join("\n"));
    let election = if more.contains("leaderElection:") { "" } else { "leaderElection: {enabled: false}\n" };
    format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {{crownlabs.polito.it/operator-selector: {selector}}}
server: {{health: \"127.0.0.1:{health}\", metrics: \"127.0.0.1:{metrics}\", {servers}}}
{election}{more}
"
    )
}

impl Daemon {
    /// Starts a daemon and waits until it is ready.
    pub fn start(options: &Options<'_>) -> Self {
        let daemon = Self::spawn(options);
        daemon.await_ready();
        daemon
    }

    /// Waits until it is ready.
    pub fn await_ready(&self) {
        self.wait_for("readiness", |daemon| daemon.ready().0 == 200);
    }

    /// Starts a daemon.
    pub fn spawn(options: &Options<'_>) -> Self {
        let dir = TempDir::new().expect("a folder");
        let (health, metrics) = (free_port(), free_port());
        let file = dir.path().join("crownlabs.yaml");
        fs::write(&file, config(options.selector, health, metrics, options.config)).expect("written");
        let child = launch(&file, options.kubeconfig, &dir.path().join("log"));
        Self { child, dir, health, metrics }
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join("crownlabs.yaml")
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The answer to `/readyz`: status and text. The status is 0 while nothing answers.
    pub fn ready(&self) -> (u16, String) {
        get(self.health, "/readyz")
    }

    /// The text of `/metrics`.
    pub fn metrics(&self) -> String {
        get(self.metrics, "/metrics").1
    }

    /// The answer of the health server to a path: status and text.
    pub fn page(&self, path: &str) -> (u16, String) {
        get(self.health, path)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, for example `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(status.expect("kill runs").success(), "kill -s {name}");
    }

    /// Kills it, if it runs, and waits for its end.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has ended; `None` when it runs longer than `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is a child of this process") {
                return Some(status);
            }
            if begin.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a condition is true. Panics after a minute with `what` and the end of the log.
    pub fn wait_for(&self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        super::lab::wait_until(Duration::from_mins(1), || {
            condition(self).then_some(()).ok_or_else(|| format!("{what}; its log:\n{}", tail(&self.log())))
        });
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            eprintln!("the daemon's log:\n{}", tail(&self.log()));
        }
    }
}

/// The last lines of a log.
pub fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Starts the binary.
fn launch(config: &Path, kubeconfig: &Path, log: &Path) -> Child {
    let log = File::create(log).expect("a log");
    Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(["run", "--config"])
        .arg(config)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .env("NO_COLOR", "1")
        .stderr(log)
        .spawn()
        .expect("the daemon starts")
}

/// Sends a GET request to a port of this machine.
fn get(port: u16, path: &str) -> (u16, String) {
    exchange(port, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
}

/// Posts a text to a port of this machine. Returns status and text of the answer; the status is 0 without one.
pub fn post(port: u16, path: &str, body: &str) -> (u16, String) {
    let length = body.len();
    exchange(
        port,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ),
    )
}

/// Sends a request over a new connection. Returns status and text of the answer; the status is 0 without one.
fn exchange(port: u16, request: &str) -> (u16, String) {
    use std::io::{Read, Write};
    let attempt = || -> std::io::Result<String> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let Ok(answer) = attempt() else { return (0, String::new()) };
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, body.to_owned())
}
