//! Child processes that are killed when their parent ends, however it ends, and whose output goes to a log.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Error, Result, anyhow};
use parking_lot::Mutex;

/// A running program with its output in a log file; killed when dropped.
pub struct Process {
    name: &'static str,
    program: PathBuf,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with its output appended to `log`.
    pub fn start(name: &'static str, program: &Path, args: &[String], log: PathBuf) -> Result<Self> {
        Self::start_with(name, program, args, &[], log)
    }

    /// The same with additional variables in its environment.
    pub fn start_with(
        name: &'static str,
        program: &Path,
        args: &[String],
        environment: &[(&str, &str)],
        log: PathBuf,
    ) -> Result<Self> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment: Vec<(String, String)> = environment.iter().map(owned).collect();
        let (program, args) = (program.to_path_buf(), args.to_vec());
        let child = child(&program, &args, &environment, &log)?;
        Ok(Self { name, program, args, environment, child, log })
    }

    /// Restarts the program if it has exited, as the kubelet would.
    pub fn start_again(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            self.child = child(&self.program, &self.args, &self.environment, &self.log)?;
        }
        Ok(())
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails with the end of the log if the program has exited.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.failure(&format!("ended ({status})"))),
        }
    }

    /// An error with the program's name, the problem, and the end of its log.
    pub fn failure(&self, what: &str) -> Error {
        anyhow!("{} {what}; the end of {}:\n{}", self.name, self.log.display(), tail(&self.log, 15))
    }

    /// Asks the program to end, as the kubelet does before it kills a process, and waits for its end.
    pub fn terminate(&mut self) {
        let asked = Command::new("kill").arg(self.id().to_string()).status();
        if asked.is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }

    /// Kills the program and waits for its end.
    pub fn kill(&mut self) {
        // Both fail only when the program has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program with its output appended to `log`.
fn child(program: &Path, args: &[String], environment: &[(String, String)], log: &Path) -> Result<Child> {
    let mut command = bound_to_parent(program);
    command.args(args).envs(environment.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
    let file = File::options().create(true).append(true).open(log)?;
    command.stdout(file.try_clone()?).stderr(file);
    spawn(command).map_err(|error| anyhow!("{} does not start: {error}", program.display()))
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last `lines` lines of a file; empty if it cannot be read.
pub fn tail(path: &Path, lines: usize) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// A command whose process the kernel kills when the thread that started it ends. This needs util-linux' `setpriv`,
/// and is omitted if that is not installed.
fn bound_to_parent(program: &Path) -> Command {
    static SETPRIV: LazyLock<Option<PathBuf>> = LazyLock::new(|| find_on_path("setpriv"));
    match &*SETPRIV {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn find_on_path(program: &str) -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// A command to start, and the channel for the result.
type Order = (Command, Sender<io::Result<Child>>);

/// Starts a command from one thread that lives as long as this process: the kernel sends the parent-death signal when
/// the *thread* that forked ends, and test threads end early.
fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
        let (sender, orders) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in orders {
                // In its own process group, so that Ctrl-C reaches only this process, which stops the others in
                // order. Sending fails only if the caller's thread has ended.
                let _ = answer.send(command.process_group(0).spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, result) = channel();
    let ended = || io::Error::other("the thread that starts programs has ended");
    let starter = STARTER.lock().clone();
    starter.send((command, answer)).map_err(|_| ended())?;
    result.recv().map_err(|_| ended())?
}
