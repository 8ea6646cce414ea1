//! Files that are read again when they change: the configuration's log filter, and those that `…File` keys
//! name. Kubernetes replaces mounted ConfigMaps and Secrets within a minute; reading the files every few
//! seconds costs less than watching folders that are replaced through symbolic links.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tracing::warn;

/// The time between two checks.
const PERIOD: Duration = Duration::from_secs(5);

/// Called with the new content; `None` when the file cannot be read.
type Changed = Box<dyn FnMut(Option<&[u8]>) + Send>;

/// A file, and what to do when its content has changed.
pub struct WatchedFile {
    /// The key of the configuration that names it.
    pub key: &'static str,
    /// The path of the file.
    pub path: PathBuf,
    content: Option<Vec<u8>>,
    changed: Changed,
}

impl WatchedFile {
    /// The file that a `key` of the configuration names. Reads it now and calls `changed` with its content
    /// (`None` when it cannot be read), and again after each change.
    pub fn new(
        key: &'static str,
        path: PathBuf,
        mut changed: impl FnMut(Option<&[u8]>) + Send + 'static,
    ) -> Self {
        let content = std::fs::read(&path).ok();
        changed(content.as_deref());
        Self { key, path, content, changed: Box::new(changed) }
    }

    /// Whether the file could be read at the last check.
    pub fn is_readable(&self) -> bool {
        self.content.is_some()
    }
}

/// What the content of a file comes to; `None` while there is none that can be used. Clones share it.
#[derive(Clone)]
pub struct FileCell<T>(Arc<RwLock<Option<T>>>);

impl<T> Default for FileCell<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> FileCell<T> {
    /// What the file says now.
    pub fn get(&self) -> Option<T> {
        self.0.read().clone()
    }

    /// Watches the file that a `key` of the configuration names: `read` says what its content comes to. While it comes to nothing,
    /// the log says what follows from that.
    pub fn watch(
        &self,
        key: &'static str,
        path: &str,
        read: fn(&[u8]) -> Option<T>,
        otherwise: &'static str,
    ) -> WatchedFile {
        let (cell, file) = (self.clone(), path.to_owned());
        WatchedFile::new(key, PathBuf::from(path), move |content| {
            let value = content.and_then(read);
            if value.is_none() {
                warn!(file, "{otherwise}");
            }
            *cell.0.write() = value;
        })
    }

    /// One that has this value.
    #[cfg(test)]
    pub fn holding(value: T) -> Self {
        Self(Arc::new(RwLock::new(Some(value))))
    }
}

/// Checks the files periodically. Never returns.
pub async fn watch(mut files: Vec<WatchedFile>) {
    let mut tick = tokio::time::interval(PERIOD);
    loop {
        tick.tick().await;
        for file in &mut files {
            // Small local files: a read is quicker than the hand-over to another thread.
            let content = std::fs::read(&file.path).ok();
            if content != file.content {
                (file.changed)(content.as_deref());
                file.content = content;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_is_told_of_when_its_content_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let told: Arc<Mutex<Vec<Option<Vec<u8>>>>> = Arc::default();
        let sink = Arc::clone(&told);
        let file = WatchedFile::new("a.key", path.clone(), move |content| {
            sink.lock().expect("no panic").push(content.map(<[u8]>::to_vec));
        });
        assert!(!file.is_readable());
        std::fs::write(&path, "one").expect("written");
        assert!(WatchedFile::new("a.key", path.clone(), |_| ()).is_readable());
        let news = || std::mem::take(&mut *told.lock().expect("no panic"));
        assert_eq!(news(), [None], "at first there was none");
        let watching = tokio::spawn(watch(vec![file]));
        for (content, expected) in [
            (Some("one"), vec![Some(b"one".to_vec())]),
            (Some("one"), vec![]),
            (Some("two"), vec![Some(b"two".to_vec())]),
            (None, vec![None]),
            (None, vec![]),
        ] {
            match content {
                Some(content) => std::fs::write(&path, content).expect("written"),
                None => drop(std::fs::remove_file(&path)),
            }
            tokio::time::sleep(PERIOD).await;
            assert_eq!(news(), expected, "{content:?}");
        }
        watching.abort();
    }
}
