//! The prerequisites of a replica loop's server: its address, and the files and rights that it needs to start.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::runtime::http_server::bind;
use crate::runtime::replica::{Health, Stop};

/// The delay between attempts.
const RETRY: Duration = Duration::from_secs(5);

/// Binds the address in the configuration `key` and retries until this succeeds; `None` if the process is asked to stop
/// first.
pub async fn listen(key: &str, address: SocketAddr, health: &Health, stop: &Stop) -> Option<TcpListener> {
    loop {
        match bind(key, address).await {
            Ok(listener) => return Some(listener),
            Err(error) if again(&error, health, stop).await => {}
            Err(_) => return None,
        }
    }
}

/// Reports why the loop cannot start yet and waits for the next attempt; `false` if the process is asked to stop first.
pub async fn again(error: &impl Display, health: &Health, stop: &Stop) -> bool {
    health.failing(error.to_string());
    tokio::select! {
        () = sleep(RETRY) => true,
        () = stop.asked() => false,
    }
}

/// Waits until the content of a file is available; `false` if the process is asked to stop first. `missing` is the
/// message for the meantime.
pub async fn awaited<T>(
    mut content: watch::Receiver<T>,
    is_there: impl Fn(&T) -> bool,
    missing: String,
    health: &Health,
    stop: &Stop,
) -> bool {
    if !is_there(&content.borrow()) {
        health.failing(missing);
    }
    tokio::select! {
        found = content.wait_for(is_there) => found.is_ok(),
        () = stop.asked() => false,
    }
}
