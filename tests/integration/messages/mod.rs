//! What the daemon says about mistakes of administrators: each message names the problem, its place, and how to fix it.
//! On an idle machine, it appears within ten seconds after the start or the change; `--nocapture` prints the times.

mod authorities;
mod certificates;
mod definitions;
mod election;
mod encodings;
mod keycloak;
mod kubeconfig;
mod secrets;
mod server;
mod servers;

use std::process::Command;
use std::time::Instant;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

/// Waits until a line of the readiness, or of the log, has all of these words, and returns the line. Prints the time.
fn await_line(daemon: &Daemon, words: &[&str]) -> String {
    let begin = Instant::now();
    let line = wait_until(PATIENCE, || {
        let text = daemon.ready().1 + &daemon.log();
        let found = text.lines().find(|line| words.iter().all(|word| line.contains(word)));
        found.map(str::to_owned).ok_or_else(|| format!("a line with {words:?} in\n{text}"))
    });
    println!("after {:.1} s: {words:?}", begin.elapsed().as_secs_f64());
    line
}

/// The number of lines of the log that have this level and these words.
fn logged(daemon: &Daemon, level: &str, words: &str) -> usize {
    daemon.log().lines().filter(|line| line.contains(level) && line.contains(words)).count()
}

/// Starts a daemon with this configuration, and returns the log of its end with an error.
fn failed_start(lab: &Lab, config: &str) -> String {
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "messages", config };
    let mut daemon = Daemon::spawn(&options).that_may_end();
    let status = daemon.wait(PATIENCE).expect("it ends");
    assert_eq!(status.code(), Some(1), "{}", daemon.log());
    daemon.log()
}

/// Runs a command of the binary that fails, and returns the text of its error.
fn failed_command(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_crownlabs")).args(arguments).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}
