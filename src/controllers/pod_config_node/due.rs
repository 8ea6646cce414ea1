//! When a part of the work of a node is to be done.

use std::time::Duration;

use tokio::time::Instant;

use crate::runtime::queue::Backoff;

/// The waits after failures.
pub const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };

/// When a part of the work is due, and how often in a row it has failed.
#[derive(Default)]
pub struct Schedule {
    /// When; `None` if it is not.
    pub at: Option<Instant>,
    /// How often in a row.
    pub failures: u32,
}

impl Schedule {
    /// It is due after this time, or earlier if it was.
    pub fn after(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.at = Some(self.at.map_or(at, |known| known.min(at)));
    }

    /// Whether it is due; it is not any more.
    pub fn take(&mut self) -> bool {
        self.at.take_if(|at| *at <= Instant::now()).is_some()
    }

    /// It failed, and is due again after a while.
    pub fn failed(&mut self) {
        self.failures += 1;
        self.after(RETRY.wait(self.failures));
    }
}
