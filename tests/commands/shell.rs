//! A shell that runs the blocks of a document one after the other.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Reads names of files, and runs each in this shell, with its output in a file beside it. A command that fails ends
/// the shell.
const LOOP: &str =
    r#"while IFS= read -r block; do . "$block" </dev/null >"$block.log" 2>&1; echo done; done"#;

/// Variables that Cargo sets for a test, and that a Cargo started by a block would use.
const OF_CARGO: [&str; 5] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY"];

/// A running `bash -euo pipefail`. It ends, with all its child processes, when it is dropped.
pub struct Shell {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    /// The folder with the blocks and their output.
    folder: PathBuf,
    blocks: usize,
}

impl Shell {
    /// Starts the shell in the folder `work`; `own` is an existing folder for its own files.
    pub fn start(work: &Path, own: &Path, environment: &BTreeMap<String, String>) -> Self {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", LOOP]).current_dir(work);
        for (name, _) in std::env::vars() {
            if OF_CARGO.iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        for name in ["CARGO", "LD_LIBRARY_PATH", "MAKEFLAGS", "MAKELEVEL", "OUT_DIR"] {
            command.env_remove(name);
        }
        command.envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("bash starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The receiver is gone if the shell was dropped.
                let _ = sender.send(line);
            }
        });
        Self { child, input, answers, folder: own.to_path_buf(), blocks: 0 }
    }

    /// Runs a block. Returns its output, or the error.
    pub fn run(&mut self, commands: &str, deadline: Duration) -> Result<String, String> {
        self.blocks += 1;
        let file = self.folder.join(format!("block-{}", self.blocks));
        fs::write(&file, format!("set -x\n{commands}\n{{ set +x; }} 2>/dev/null\n")).expect("written");
        let begin = Instant::now();
        let asked = writeln!(self.input, "{}", file.display()).and_then(|()| self.input.flush());
        let answer = asked.map_err(|_| RecvTimeoutError::Disconnected);
        let answer = answer.and_then(|()| self.answers.recv_timeout(deadline));
        let log = fs::read(file.with_extension("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        match answer {
            Ok(_) => Ok(log),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it has not ended after {deadline:?}:\n{}", end_of(&log)))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().expect("bash ends");
                Err(format!("it failed after {:?} ({status}):\n{}", begin.elapsed(), end_of(&log)))
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The whole group, including the processes that a block has started. It fails if all have ended.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// The last lines of a block's output.
fn end_of(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

#[test]
fn blocks_share_a_shell_and_the_first_failure_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = Duration::from_secs(20);
    let start =
        || Shell::start(folder.path(), folder.path(), &BTreeMap::from([("A".to_owned(), "1".to_owned())]));
    let mut shell = start();
    shell.run("b=2; f() { echo \"$A$b$1\"; }; cd /", limit).expect("it works");
    let log = shell.run("f 3\npwd", limit).expect("it works");
    let printed: Vec<&str> = log.lines().filter(|line| !line.starts_with('+')).collect();
    assert_eq!(printed, ["123", "/"], "{log}");
    for failing in ["false\ntrue", "false | true", "echo $nobody", "nobody_knows_this", "if"] {
        let error = start().run(failing, limit).expect_err(failing);
        assert!(error.starts_with("it failed after"), "{failing}: {error}");
    }
    let error = start().run("echo here; sleep 60", Duration::from_millis(300)).expect_err("it is late");
    assert!(error.contains("not ended after 300ms") && error.contains("here"), "{error}");
}
