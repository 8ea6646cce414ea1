//! The lease as a standby sees it.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;

/// The lease as a standby has observed it.
pub(super) struct Observed {
    pub lease: Option<Lease>,
    /// When the lease may be taken, by the local clock.
    pub free_at: Instant,
    /// When the API server last reported the lease.
    pub heard: Instant,
    /// Whether a read has returned a state that the watch has not delivered yet.
    pub is_watch_behind: bool,
    /// Whether the state of the lease is known.
    pub is_known: bool,
    /// Whether the list in progress contains the lease; `None` before the first list.
    pub is_listed: Option<bool>,
}

impl Observed {
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            lease: None,
            free_at: now,
            heard: now,
            is_watch_behind: false,
            is_known: false,
            is_listed: None,
        }
    }

    /// How long to wait for news of the lease before it is read; its holder renews it every `retry`.
    pub fn patience(&self, retry: Duration) -> Duration {
        if self.is_watch_behind { retry / 2 } else { retry * 3 / 2 }
    }
}
