//! The use of containers, with real pods on a real containerd.

mod runtime;

use std::time::Instant;

use crate::lab::PATIENCE;

/// Awaits `probe` until it has a value.
async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(begin.elapsed() < PATIENCE, "still missing: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
