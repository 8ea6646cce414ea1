//! The program of the daemon. `--daemon PATH` names it. With `--daemon -`, its path arrives as a line on standard input
//! once cargo has built it. Without the option, it is beside this program.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::interrupted_already;

/// The file name of the program.
const NAME: &str = "crownlabs";
/// The program, once it exists.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program that [`Build::wait`] has waited for.
pub fn program() -> Result<&'static PathBuf> {
    PROGRAM.get().context("the daemon is not built yet")
}

/// The build of the program.
pub struct Build {
    /// The value of `--daemon`.
    daemon: Option<String>,
    /// The process group of cargo, `--build`.
    group: Option<String>,
}

impl Build {
    /// The build that the command line names.
    pub fn of_arguments() -> Self {
        let argument = |name: &str| {
            let mut arguments = std::env::args().skip_while(|argument| argument != name);
            arguments.nth(1)
        };
        Self { daemon: argument("--daemon"), group: argument("--build") }
    }

    /// Waits until the program exists.
    pub fn wait(mut self) -> Result<()> {
        let program = match self.daemon.as_deref() {
            Some("-") => announced()?,
            Some(path) => PathBuf::from(path),
            None => std::env::current_exe()?.with_file_name(NAME),
        };
        ensure!(program.exists(), "there is no {}: make demo builds it", program.display());
        // Nothing is left to end.
        self.group = None;
        PROGRAM.get_or_init(|| program);
        Ok(())
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            // `kill` fails if the build has already ended.
            let _ = Command::new("kill").args(["-TERM", "--", &format!("-{group}")]).status();
        }
    }
}

/// The path of the program, from the standard input.
fn announced() -> Result<PathBuf> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    loop {
        ensure!(!interrupted_already(), "interrupted");
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) if line.ends_with(&format!("/{NAME}")) => return Ok(PathBuf::from(line)),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("cargo has not built the daemon"),
        }
    }
}
