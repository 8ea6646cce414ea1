//! The daemon as a child process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::lab::running;
pub use super::lab::running::tail;

/// The binary under test.
const BINARY: &str = env!("CARGO_BIN_EXE_crownlabs");

/// The options of a daemon.
pub struct Options<'a> {
    /// The kubeconfig that it uses.
    pub kubeconfig: &'a Path,
    /// The value of the selector label: the daemon works in namespaces with this value.
    pub selector: &'a str,
    /// More lines of the configuration, at the top level.
    pub config: &'a str,
}

/// A running daemon. It is killed when it is dropped.
pub struct Daemon {
    child: Child,
    dir: TempDir,
    /// The host of its servers.
    host: String,
}

/// A network namespace of this machine.
pub struct Namespace<'a> {
    /// Its name.
    pub name: &'a str,
    /// An address in it that this process can reach.
    pub address: &'a str,
}

/// Returns a port that no other test of this machine gets while this process runs.
pub fn reserved_port() -> u16 {
    cluster::reserve_port().expect("a free port")
}

/// The lines with the layout `classic`, unless they set a layout.
fn classic(lines: &str) -> String {
    if lines.contains("layout:") {
        return lines.to_owned();
    }
    let mut keys: Value =
        if lines.trim().is_empty() { Value::Null } else { serde_saphyr::from_str(lines).expect("YAML") };
    keys["controllers"]["instance"]["layout"] = "classic".into();
    serde_saphyr::to_string(&keys).expect("YAML")
}

/// A configuration with the lines `more`; leader election is off unless they contain it, and the objects of Instances
/// with one environment have the same names as the Instances unless the lines say otherwise. Health and metrics are
/// served on ports that the system chooses.
pub fn config(selector: &str, more: &str) -> String {
    // Lines `webhook: {…}` and `keycloakEvents: {…}` are members of `server`.
    let of_servers = |line: &&str| line.starts_with("webhook:") || line.starts_with("keycloakEvents:");
    let (mut servers, more): (Vec<&str>, Vec<&str>) = more.lines().partition(of_servers);
    // Several daemons on one machine cannot listen on the same port.
    if !servers.iter().any(|line| line.starts_with("keycloakEvents:")) {
        servers.push("keycloakEvents: {listen: \"\"}");
    }
    let (servers, more) = (servers.join(", "), classic(&more.join("\n")));
    let election = if more.contains("leaderElection:") { "" } else { "leaderElection: {enabled: false}\n" };
    format!(
        "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {{crownlabs.polito.it/operator-selector: {selector}}}
server: {{health: \"127.0.0.1:0\", metrics: \"127.0.0.1:0\", {servers}}}
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
        Self::spawn_through(&[], options)
    }

    /// The same, through the command `through`, which gets the binary and its arguments as further arguments.
    pub fn spawn_through(through: &[&str], options: &Options<'_>) -> Self {
        let config = config(options.selector, options.config);
        Self::launch(&[through, &[BINARY]].concat(), &config, options.kubeconfig, "127.0.0.1".to_owned())
    }

    /// Starts a daemon with this whole configuration in a network namespace. It serves health and metrics on the
    /// default ports.
    pub fn spawn_in(namespace: &Namespace<'_>, config: &str, kubeconfig: &Path) -> Self {
        let command = ["ip", "netns", "exec", namespace.name, BINARY];
        Self::launch(&command, config, kubeconfig, namespace.address.to_owned())
    }

    /// Starts a daemon with this whole configuration. The command is the path of the binary, optionally after programs
    /// that start it. Its servers listen on the address `host`.
    pub fn launch(command: &[&str], config: &str, kubeconfig: &Path, host: String) -> Self {
        let dir = TempDir::new().expect("a folder");
        let file = dir.path().join("crownlabs.yaml");
        fs::write(&file, config).expect("written");
        let log_file = dir.path().join("log");
        let log = File::create(&log_file).expect("a log");
        let child = Command::new(command[0])
            .args(&command[1..])
            .args(["run", "--config"])
            .arg(&file)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("NO_COLOR", "1")
            .stderr(log)
            .spawn()
            .expect("the daemon starts");
        running::add(child.id(), log_file);
        Self { child, dir, host }
    }

    /// Allows the daemon to end. Otherwise, the waits of its test fail when it has ended.
    pub fn that_may_end(self) -> Self {
        running::remove(self.id());
        self
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join("crownlabs.yaml")
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The response to `/readyz`: status and text. The status is 0 while nothing answers.
    pub fn ready(&self) -> (u16, String) {
        self.page("/readyz")
    }

    /// The text of `/metrics`.
    pub fn metrics(&self) -> String {
        self.get("metrics", "/metrics").1
    }

    /// The number of finished reconciles of a loop, by its name in the metrics.
    pub fn reconciles(&self, controller: &str) -> usize {
        let begin = format!("controller_runtime_reconcile_total{{controller=\"{controller}\"");
        let metrics = self.metrics();
        let counts = metrics.lines().filter(|line| line.starts_with(&begin));
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
    }

    /// The response of the health server to a path: status and text.
    pub fn page(&self, path: &str) -> (u16, String) {
        self.get("health", path)
    }

    /// The response of a server of the daemon to a path; the status is 0 while it does not serve yet.
    fn get(&self, server: &str, path: &str) -> (u16, String) {
        self.port(server).map_or_else(Default::default, |port| get(&self.host, port, path))
    }

    /// The port of a server, which the daemon has logged: `serving health address=127.0.0.1:40123`.
    pub fn port(&self, server: &str) -> Option<u16> {
        let serving = format!("serving {server}");
        let log = self.log();
        let line = log.lines().find(|line| line.contains(&serving))?;
        // In JSON: `"address":"127.0.0.1:40123"`.
        let (_, address) = line.split_once("address")?;
        let (_, port) = address.trim_start_matches(['"', ':', '=']).split_once(':')?;
        port.split(|end: char| !end.is_ascii_digit()).next()?.parse().ok()
    }

    /// A size in the status of its process, such as `VmHWM` (see `proc_pid_status(5)`), in MiB.
    pub fn size(&self, name: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("its status");
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a size");
        line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).expect("a number") / 1024
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, for example `TERM`. It may end from then on.
    pub fn signal(&self, name: &str) {
        running::remove(self.id());
        let status = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(status.expect("kill runs").success(), "kill -s {name}");
    }

    /// Kills it, if it runs, and waits for its end.
    pub fn stop(&mut self) {
        running::remove(self.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has ended; `None` if it runs longer than `limit`. It may end from then on.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        running::remove(self.id());
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

    /// Waits until a condition is true. Panics with `what` and the end of the log after [`PATIENCE`](super::lab::PATIENCE), and
    /// at once when the daemon has ended.
    pub fn wait_for(&self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        super::lab::wait_until(super::lab::PATIENCE, || {
            let has_ended = running::has_ended(self.id());
            if condition(self) {
                return Ok(());
            }
            assert!(!has_ended, "the daemon has ended, so there will be no {what}");
            Err(format!("{what}; its log:\n{}", tail(&self.log())))
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

/// Sends a GET request.
fn get(host: &str, port: u16, path: &str) -> (u16, String) {
    exchange(host, port, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
}

/// Posts a text to a port of this machine. Returns status and text of the response; the status is 0 without one.
pub fn post(port: u16, path: &str, body: &str) -> (u16, String) {
    let length = body.len();
    exchange(
        "127.0.0.1",
        port,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ),
    )
}

/// Sends a request over a new connection. Returns status and text of the response; the status is 0 without one.
fn exchange(host: &str, port: u16, request: &str) -> (u16, String) {
    use std::io::{Read, Write};
    let attempt = || -> std::io::Result<String> {
        let mut stream = std::net::TcpStream::connect((host, port))?;
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
