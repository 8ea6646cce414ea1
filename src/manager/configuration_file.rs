//! The configuration file while the process runs.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{info, warn};

use super::logging::LogFilter;
use crate::config::Config;
use crate::runtime::files::WatchedFile;

/// Watches the configuration file: a new log filter counts at once, anything else at the next start.
pub fn configuration_file(path: PathBuf, running: Arc<Config>, filter: LogFilter) -> WatchedFile {
    let name = path.display().to_string();
    let mut current = running.log.filter.clone();
    WatchedFile::new("--config", path, move |content: Option<&[u8]>| {
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
    })
}
