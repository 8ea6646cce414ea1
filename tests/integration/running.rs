//! The running daemons of each test. A wait fails at once when a daemon of its test has ended.
//!
//! Tests run in parallel in threads of one process. A daemon belongs to the thread that started it.

use std::fs;
use std::path::PathBuf;
use std::thread::{self, ThreadId};

use parking_lot::Mutex;

/// A daemon that must not end by itself.
struct Running {
    /// The thread that started it.
    thread: ThreadId,
    process: u32,
    /// The file with its log.
    log: PathBuf,
}

static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// Adds a daemon of this thread: its process id and the file with its log.
pub fn add(process: u32, log: PathBuf) {
    RUNNING.lock().push(Running { thread: thread::current().id(), process, log });
}

/// Removes a daemon, if it is in the list. It may end from then on.
pub fn remove(process: u32) {
    RUNNING.lock().retain(|running| running.process != process);
}

/// A message with the end of the log if a daemon of this thread has ended. `None` while the thread panics,
/// because a second panic would end the process with all tests.
pub fn ended() -> Option<String> {
    if thread::panicking() {
        return None;
    }
    let this = thread::current().id();
    let all = RUNNING.lock();
    let ended = all.iter().find(|running| running.thread == this && has_ended(running.process))?;
    let log = fs::read_to_string(&ended.log).unwrap_or_default();
    Some(format!("the daemon has ended; its log:\n{}", tail(&log)))
}

/// Panics with the message of [`ended`] and what is still missing.
pub fn check(missing: &str) {
    if let Some(ended) = ended() {
        panic!("{ended}\nstill missing: {missing}");
    }
}

/// Whether a process has ended. It is a zombie until its parent waits for it.
pub fn has_ended(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state follows the name of the program, which is in parentheses.
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
}

/// The last lines of a log.
pub fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
