//! What the server of a replica loop waits for: its address, and the files that it cannot begin without.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::runtime::http_server::bind;
use crate::runtime::replica::{Health, Stop};

/// How long to wait before the address is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Binds the address that `key` of the configuration names, as soon as that is possible; `None` if the process is asked to stop
/// before.
pub async fn listen(key: &str, address: SocketAddr, health: &Health, stop: &Stop) -> Option<TcpListener> {
    loop {
        match bind(key, address).await {
            Ok(listener) => return Some(listener),
            Err(error) => health.failing(error.to_string()),
        }
        tokio::select! {
            () = sleep(RETRY) => {}
            () = stop.asked() => return None,
        }
    }
}

/// Waits until the content of a file is there; `false` if the process is asked to stop before. `missing` says what is awaited.
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
