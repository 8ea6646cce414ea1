//! The thread that ends a process whose lease was not renewed in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tracing::{error, warn};

use crate::runtime::gate::Gate;

/// Ends the process when the deadline of the gate passes, even if the async runtime hangs or the process was stopped
/// and continued. It is started when this replica leads, and dropped (and so ended) before a clean stop.
pub struct Watchdog {
    /// The thread ends when this is dropped.
    _armed: Arc<()>,
}

impl Watchdog {
    /// Starts the thread. Once `stopping` is set, the process is shutting down and may lose the lease.
    ///
    /// # Errors
    /// When the operating system cannot start a thread.
    pub fn start(gate: Gate, stopping: Arc<AtomicBool>) -> std::io::Result<Self> {
        let armed = Arc::new(());
        let alive = Arc::downgrade(&armed);
        thread::Builder::new().name("lease-watchdog".to_owned()).spawn(move || {
            while let Some(left) = gate.remaining() {
                if alive.upgrade().is_none() {
                    return;
                }
                thread::sleep(left.min(Duration::from_secs(1)));
            }
            if alive.upgrade().is_none() {
                return;
            }
            if stopping.load(Ordering::SeqCst) {
                warn!("the lease was not renewed in time while the process was stopping; it ends at once");
                std::process::exit(0);
            }
            error!("the lease was not renewed in time; the process ends");
            std::process::exit(crate::manager::EXIT_LEASE_LOST.into());
        })?;
        Ok(Self { _armed: armed })
    }
}
