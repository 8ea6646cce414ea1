//! Files that are read again when they change: the configuration's log filter, and the files named by `…File` keys.
//! Kubernetes replaces mounted ConfigMaps and Secrets within a minute. Reading the files every few seconds costs less
//! than watching folders that are replaced through symbolic links.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tracing::warn;

/// The time between two checks.
const PERIOD: Duration = Duration::from_secs(5);

/// Called with the new content; `None` if the file cannot be read.
type Changed = Box<dyn FnMut(Option<&[u8]>) + Send>;

/// A file, with a callback for changes of its content.
pub struct WatchedFile {
    /// The configuration key that names it.
    pub key: &'static str,
    /// The path of the file.
    pub path: PathBuf,
    content: Option<Vec<u8>>,
    changed: Changed,
}

impl WatchedFile {
    /// Watches the file that the configuration key `key` names. Reads it now and calls `changed` with its content
    /// (`None` if it cannot be read), and again after each change.
    pub fn new(
        key: &'static str,
        path: PathBuf,
        mut changed: impl FnMut(Option<&[u8]>) + Send + 'static,
    ) -> Self {
        let content = std::fs::read(&path).ok();
        changed(content.as_deref());
        Self { key, path, content, changed: Box::new(changed) }
    }

    /// Whether the last check could read the file.
    pub fn is_readable(&self) -> bool {
        self.content.is_some()
    }
}

/// The parsed content of a file; `None` while the file is missing or invalid. Clones share it.
#[derive(Clone)]
pub struct FileCell<T>(Arc<RwLock<Option<T>>>);

impl<T> Default for FileCell<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> FileCell<T> {
    /// Returns the current value.
    pub fn get(&self) -> Option<T> {
        self.0.read().clone()
    }

    /// Watches the file that the configuration key `key` names, and parses its content with `read`. While there is no
    /// valid value, the consequence `otherwise` is logged.
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

    /// Creates a cell with this value.
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
            // The files are small and local: reading one takes less time than handing it over to another thread.
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
    async fn a_change_of_the_content_is_reported() {
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
        assert_eq!(news(), [None], "the file did not exist at first");
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
