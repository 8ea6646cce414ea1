//! When something is to be done.

use std::time::Duration;

use tokio::time::Instant;

/// The wait after the first failure, doubled up to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// When something is due, and how often in a row it has failed.
#[derive(Default)]
pub struct Due {
    /// When; `None` if it is not.
    pub at: Option<Instant>,
    /// How often in a row.
    pub failures: u32,
}

impl Due {
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
        self.after(RETRY.0.saturating_mul(1 << self.failures.min(16)).min(RETRY.1));
        self.failures += 1;
    }
}
