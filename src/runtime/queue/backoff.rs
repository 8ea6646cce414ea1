//! The backoff of failed objects.

use std::time::Duration;

/// The backoff after failures.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// The wait after the first failure.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Backoff {
    /// Returns the wait after this number of failures in a row, without jitter: the base after the first failure,
    /// doubled with each further one.
    pub fn wait(self, failures: u32) -> Duration {
        self.base.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(self.cap)
    }
}
