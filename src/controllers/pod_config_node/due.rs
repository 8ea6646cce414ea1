//! The schedule of one part of a node's work.

use std::time::Duration;

use tokio::time::Instant;

use crate::runtime::queue::Backoff;

/// The delays after failures.
pub const RETRY: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };

/// The time when a part of the work is due, and the number of its failures in a row.
#[derive(Default)]
pub struct Schedule {
    /// The due time; `None` if it is not due.
    pub at: Option<Instant>,
    /// The number of failures in a row.
    pub failures: u32,
}

impl Schedule {
    /// Schedules the work after this delay, unless it is due earlier.
    pub fn after(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.at = Some(self.at.map_or(at, |known| known.min(at)));
    }

    /// Whether the work is due. If it is, it is no longer scheduled.
    pub fn take(&mut self) -> bool {
        self.at.take_if(|at| *at <= Instant::now()).is_some()
    }

    /// Records a failure, and schedules a retry.
    pub fn failed(&mut self) {
        self.failures += 1;
        self.after(RETRY.wait(self.failures));
    }
}
