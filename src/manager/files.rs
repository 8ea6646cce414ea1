//! Files that are read again when they change: the configuration's log filter, and what `…File`
//! keys name. Kubernetes replaces mounted ConfigMaps and Secrets within a minute; a look every few
//! seconds costs less than a watch on a folder that is replaced through symbolic links.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::logging::LogFilter;
use crate::config::Config;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);

/// Takes the new content; `None` when the file cannot be read.
type Changed = Box<dyn FnMut(Option<&[u8]>) + Send>;

/// A file, and what to do when its content has changed.
pub struct Watched {
    path: PathBuf,
    content: Option<Vec<u8>>,
    changed: Changed,
}

impl Watched {
    /// Reads the file now and hands over its content (`None` when it cannot be read), then again
    /// after each change.
    pub fn new(path: PathBuf, mut changed: impl FnMut(Option<&[u8]>) + Send + 'static) -> Self {
        let content = std::fs::read(&path).ok();
        changed(content.as_deref());
        Self { path, content, changed: Box::new(changed) }
    }

    /// The configuration file: a new log filter counts at once, anything else at the next start.
    pub fn config(path: PathBuf, running: Arc<Config>, filter: LogFilter) -> Self {
        let content = std::fs::read(&path).ok();
        let name = path.display().to_string();
        let mut current = running.log.filter.clone();
        let changed = move |content: Option<&[u8]>| {
            let text = content.and_then(|content| std::str::from_utf8(content).ok()).unwrap_or_default();
            let mut config = match Config::parse(&name, text) {
                Ok(config) => config,
                Err(error) => {
                    warn!(%error, "the configuration has changed and cannot be used; the old one stays");
                    return;
                }
            };
            if config.log.filter != current {
                match filter.set(&config.log.filter) {
                    Ok(()) => info!(filter = config.log.filter, "the log filter has changed"),
                    Err(error) => warn!(%error, "the log filter cannot be used"),
                }
                current.clone_from(&config.log.filter);
            }
            config.log.filter.clone_from(&running.log.filter);
            if config != *running {
                info!("the configuration has changed; what is not the log filter counts at the next start");
            }
        };
        Self { path, content, changed: Box::new(changed) }
    }
}

/// Looks at the files, for ever.
pub async fn watch(mut files: Vec<Watched>) {
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
