//! Files that are read again when they change: the configuration's log filter, and what `…File`
//! keys name. Kubernetes replaces mounted ConfigMaps and Secrets within a minute; a look every few
//! seconds costs less than a watch on a folder that is replaced through symbolic links.

use std::path::PathBuf;
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);

/// Takes the new content; `None` when the file cannot be read.
type Changed = Box<dyn FnMut(Option<&[u8]>) + Send>;

/// A file, and what to do when its content has changed.
pub struct WatchedFile {
    /// The key of the configuration that names it.
    pub key: &'static str,
    /// Where it is.
    pub path: PathBuf,
    content: Option<Vec<u8>>,
    changed: Changed,
}

impl WatchedFile {
    /// The file that a `key` of the configuration names. Reads it now and hands over its content (`None` when it cannot be read), then again
    /// after each change.
    pub fn new(
        key: &'static str,
        path: PathBuf,
        mut changed: impl FnMut(Option<&[u8]>) + Send + 'static,
    ) -> Self {
        let content = std::fs::read(&path).ok();
        changed(content.as_deref());
        Self { key, path, content, changed: Box::new(changed) }
    }
}

impl WatchedFile {
    /// Whether the file could be read when it was looked at last.
    pub fn is_readable(&self) -> bool {
        self.content.is_some()
    }
}

/// Looks at the files, for ever.
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
