//! This process: its name in the election, and the metrics that every Prometheus client exports.

use std::fs;

use metrics::{counter, gauge};

use crate::runtime::clock;
use crate::runtime::metrics::precise;

/// Ticks of `/proc` a second: `USER_HZ`, fixed on Linux (`man 5 proc`).
const TICKS: f64 = 100.0;

/// A name that no other process has: the pod's, or the host's, and a random part.
pub fn identity() -> String {
    let host = std::env::var("POD_NAME")
        .or_else(|_| fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()))
        .unwrap_or_else(|_| "crownlabs".to_owned());
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")
        .unwrap_or_else(|_| format!("{}-{}", std::process::id(), clock::now().as_nanosecond()));
    format!("{host}_{}", random.trim())
}

/// Sets the `process_*` metrics to what the kernel says now.
pub fn record() {
    // Fields after the command's name, which may hold anything: `man 5 proc`, /proc/pid/stat.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    if let (Some(user), Some(system)) = (number(11), number(12)) {
        // Whole seconds: a counter of the recorder holds integers.
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        counter!("process_cpu_seconds_total").absolute(((user + system) as f64 / TICKS) as u64);
    }
    if let Some(pages) = number(21).and_then(|pages| usize::try_from(pages).ok()) {
        gauge!("process_resident_memory_bytes").set(precise(pages) * 4096.0);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        gauge!("process_open_fds").set(precise(open.count()));
    }
}
