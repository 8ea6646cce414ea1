//! Keeps the file of public keys up to date.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::info;

use super::key_file::KeyFile;
use crate::api::tenant::TenantKind;
use crate::api::text::Text;
use crate::runtime::metrics::precise;
use crate::runtime::queue::Backoff;
use crate::runtime::replace::replace;
use crate::runtime::replica::Health;
use crate::runtime::store::Store;

/// Changes within this time of each other are written together.
const QUIET: Duration = Duration::from_millis(50);
/// The longest time that a change waits for others.
const LONGEST: Duration = Duration::from_millis(500);
/// The delays after failed attempts.
pub const RETRY: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(30) };
/// A write that takes longer than this is reported.
const PATIENCE: Duration = Duration::from_secs(10);
/// Public keys may be read by all users: the SSH server runs as a different user than the daemon.
const MODE: u32 = 0o644;

/// Writes the file.
pub struct Writer {
    /// All Tenants.
    pub tenants: Arc<Store<TenantKind>>,
    /// The Tenants whose keys have changed.
    pub changed: Arc<Changed>,
    /// The path of the file.
    pub path: PathBuf,
    /// The options before each key.
    pub options: String,
    /// The current content; `None` before the first version with all Tenants.
    pub file: Mutex<Option<KeyFile>>,
}

/// The Tenants whose keys have changed since the last write, including Tenants that were created or deleted.
#[derive(Default)]
pub struct Changed {
    names: Mutex<BTreeSet<Text>>,
    notify: Notify,
}

impl Changed {
    /// Adds a Tenant.
    pub fn add(&self, name: Text) {
        self.names.lock().insert(name);
        self.notify.notify_one();
    }
}

impl Writer {
    /// Writes the file now, and after each burst of changes. Never returns.
    pub async fn run(self, health: Health) {
        let writer = Arc::new(self);
        let mut failures = 0;
        loop {
            match Arc::clone(&writer).write(&health).await {
                Ok(()) => {
                    health.ready();
                    failures = 0;
                    burst(&writer.changed.notify).await;
                }
                Err(failure) => {
                    health.failing(failure);
                    failures += 1;
                    sleep(RETRY.wait(failures)).await;
                }
            }
        }
    }

    /// Writes the file once. The error is a sentence.
    async fn write(self: Arc<Self>, health: &Health) -> Result<(), String> {
        let path = self.path.display().to_string();
        // The disk may be slow, and ten thousand Tenants take some milliseconds.
        let mut written = tokio::task::spawn_blocking(move || self.write_now());
        let ended = if let Ok(ended) = timeout(PATIENCE, &mut written).await {
            ended
        } else {
            let patience = PATIENCE.as_secs();
            health.failing(format!("writing {path} has taken more than {patience} s: check its volume"));
            written.await
        };
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!(
                "cannot write {path}: {error}; its folder has to exist and be writable for the daemon"
            )),
            Err(error) => Err(format!("cannot write {path}: {error}")),
        }
    }

    fn write_now(&self) -> std::io::Result<()> {
        let begin = Instant::now();
        let mut kept = self.file.lock();
        // Names that are added while the Tenants are read are processed by the next write.
        let mut names = std::mem::take(&mut *self.changed.names.lock());
        let file = kept.get_or_insert_with(|| {
            names.extend(self.tenants.keys().into_iter().map(|key| key.name));
            KeyFile::default()
        });
        file.update(names, &self.options, |name| self.tenants.get("", name));
        let (keys, skipped) = (file.keys(), file.skipped());
        let is_new = replace(&self.path, file.content().as_bytes(), MODE)?;
        gauge!("bastion_keys").set(precise(keys));
        gauge!("bastion_keys_skipped").set(precise(skipped));
        if is_new {
            let milliseconds = begin.elapsed().as_millis();
            info!(keys, skipped, %milliseconds, "wrote the keys of the bastion");
        }
        Ok(())
    }
}

/// Waits for a change, and then until no change has followed for [`QUIET`], for at most [`LONGEST`] in total.
async fn burst(changed: &Notify) {
    changed.notified().await;
    let end = Instant::now() + LONGEST;
    while Instant::now() < end {
        let quiet = end.min(Instant::now() + QUIET);
        if timeout_at(quiet, changed.notified()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_ends_when_it_is_quiet_and_after_half_a_second_at_the_latest() {
        let changed = Arc::new(Notify::new());
        let took = async |changes: u32, apart: Duration| {
            let telling = Arc::clone(&changed);
            let teller = tokio::spawn(async move {
                for _ in 0..changes {
                    telling.notify_one();
                    sleep(apart).await;
                }
            });
            let begin = Instant::now();
            burst(&changed).await;
            let took = begin.elapsed();
            teller.abort();
            took
        };
        let milliseconds = Duration::from_millis;
        assert_eq!(took(1, milliseconds(20)).await, milliseconds(50));
        assert_eq!(took(5, milliseconds(20)).await, milliseconds(4 * 20 + 50));
        assert_eq!(took(100, milliseconds(20)).await, milliseconds(500));
    }
}
