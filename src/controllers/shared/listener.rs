//! The prerequisites of a replica loop's server: its address, and the files and rights that it needs to start.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::runtime::files::Awaited;
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

/// Waits until a file is available; `false` if the process is asked to stop first. Reports the reason in the meantime.
pub async fn awaited(mut file: Awaited, health: &Health, stop: &Stop) -> bool {
    loop {
        let Some(why) = file.borrow_and_update().clone() else { return true };
        health.failing(why);
        tokio::select! {
            changed = file.changed() => if changed.is_err() { return false },
            () = stop.asked() => return false,
        }
    }
}
