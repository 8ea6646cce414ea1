//! When something is to be done.

use std::time::Duration;

use tokio::time::Instant;

/// The longest wait after a failure.
pub const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The wait after a failure that follows so many others: a second, doubled each time up to `longest`.
pub fn backoff(failures: u32, longest: Duration) -> Duration {
    Duration::from_secs(1 << failures.min(16)).min(longest)
}

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
        self.after(backoff(self.failures, LONGEST_WAIT));
        self.failures += 1;
    }
}
