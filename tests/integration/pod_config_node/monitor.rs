//! Changes to the links, addresses and routes of a network namespace.

use std::fs::{self, File};
use std::process::{Child, Command};

use tempfile::TempDir;

use crate::lab::{PATIENCE, wait_until};
use cluster::network::Namespace;

/// The kernel's messages about links, addresses and routes, from the start of this value.
pub struct Monitor<'n> {
    namespace: &'n Namespace,
    child: Child,
    dir: TempDir,
}

impl<'n> Monitor<'n> {
    /// Starts to listen.
    pub fn start(namespace: &'n Namespace) -> Self {
        let dir = TempDir::new().expect("a folder");
        let log = File::create(dir.path().join("log")).expect("a log");
        // Not from a thread of the namespace: the program would be killed when that thread ends.
        let net = format!("--net={}", namespace.path().display());
        let ip = ["ip", "-d", "monitor", "link", "address", "route"];
        let command = [&["--pdeathsig", "KILL", "nsenter", &net], &ip[..]].concat();
        let child = Command::new("setpriv").args(command).stdout(log).spawn().expect("ip runs");
        let monitor = Self { namespace, child, dir };
        monitor.await_mark("begin");
        monitor
    }

    /// Stops, and returns the messages about links whose names, or the names of their bridges, contain this text, and
    /// about the addresses and routes of such links.
    pub fn messages(self, about: &str) -> Vec<String> {
        self.await_mark("end");
        let log = self.log();
        // The marks are changes, too: to the loopback device, which nothing else changes.
        let begin = log.rfind("alias begin").map_or(0, |at| at + "alias begin".len());
        let end = log[begin..].find("1: lo:").map_or(log.len(), |at| begin + at);
        let is_about = |line: &&str| line.contains(about) && !is_of_bridge(line);
        log[begin..end].lines().filter(is_about).map(str::to_owned).collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).expect("the log")
    }

    /// Repeats a change until the kernel reports it. All later (or earlier) messages are then complete.
    fn await_mark(&self, mark: &str) {
        wait_until(PATIENCE, || {
            self.namespace.ip(&format!("link set lo alias {mark}"));
            let log = self.log();
            log.contains(&format!("alias {mark}")).then_some(()).ok_or_else(|| format!("{mark} in {log}"))
        });
    }
}

impl Drop for Monitor<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a message comes from a bridge about the state of a port. A bridge sends one when its forward delay of 15 s
/// has passed. A message from the link itself names its queue.
fn is_of_bridge(line: &str) -> bool {
    line.contains(" mtu ") && !line.contains(" qdisc ")
}
