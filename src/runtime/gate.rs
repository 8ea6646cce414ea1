//! The gate in front of the API server: writes are sent only while the lease is held.
//!
//! The gate is the outermost layer of the client that the leader loops use, so no code path can bypass it. It uses
//! `CLOCK_MONOTONIC`, which also advances while the process is stopped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Whether writes may be sent. Clones share one state.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Milliseconds since [`EPOCH`] until which writes are sent.
    open_until: Arc<AtomicU64>,
}

/// The start of this process's count of milliseconds.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

fn millis(time: Instant) -> u64 {
    u64::try_from(time.saturating_duration_since(*EPOCH).as_millis()).unwrap_or(u64::MAX)
}

impl Gate {
    /// Creates a closed gate.
    pub fn closed() -> Self {
        LazyLock::force(&EPOCH);
        Self { open_until: Arc::new(AtomicU64::new(0)) }
    }

    /// Creates a gate that is always open, for a process without leader election.
    pub fn open() -> Self {
        Self { open_until: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// Opens the gate until `deadline`.
    pub fn open_until(&self, deadline: Instant) {
        self.open_until.store(millis(deadline), Ordering::SeqCst);
    }

    /// Closes the gate.
    pub fn close(&self) {
        self.open_until.store(0, Ordering::SeqCst);
    }

    /// Whether a write may be sent now.
    pub fn is_open(&self) -> bool {
        self.remaining().is_some()
    }

    /// Returns the remaining time of an open gate; `None` if the gate is closed.
    pub fn remaining(&self) -> Option<Duration> {
        let until = self.open_until.load(Ordering::SeqCst);
        let left = until.checked_sub(millis(Instant::now()))?;
        (left > 0).then(|| Duration::from_millis(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_is_open_until_its_deadline() {
        let gate = Gate::closed();
        assert!(!gate.is_open());
        gate.open_until(Instant::now() + Duration::from_mins(1));
        assert!(gate.clone().is_open());
        gate.open_until(Instant::now().checked_sub(Duration::from_millis(1)).unwrap_or_else(Instant::now));
        assert!(!gate.is_open());
        gate.open_until(Instant::now() + Duration::from_mins(1));
        gate.close();
        assert!(!gate.is_open());
        assert!(Gate::open().is_open());
    }
}
