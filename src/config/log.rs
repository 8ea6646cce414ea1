//! The keys of the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use super::formats::Format;
use super::keys::keys;

keys! {
    /// The format and the filter of the log.
    pub struct Log {
        /// The format of a line: `text` to be read by people, `json` to be processed by programs.
        pub format: LogFormat,
        /// The lowest level that is logged, and others for single modules, such as
        /// `info,crownlabs::runtime=debug`; a change is applied while the daemon runs.
        pub filter: String as LOG_FILTER = "info".to_owned(),
    }
}

/// The format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LogFormat {
    /// Text to be read by people.
    #[default]
    Text,
    /// One JSON object on each line.
    Json,
}

/// The format of filters.
pub(super) const LOG_FILTER: Format = Format::new(
    "crownlabs-log-filter",
    "a level (error, warn, info, debug, trace, off), and others for modules, such as \
     info,crownlabs::runtime=debug",
    is_log_filter,
);

/// Whether a text is a filter of `tracing-subscriber`. This is stricter than the library, which reads a
/// misspelt level such as `inof` or `info=` as the name of a module, so that nothing else would be logged.
fn is_log_filter(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let is_directive = |part: &str| match part.rsplit_once('=') {
        Some((_, level)) => is_level(level),
        None => is_level(part) || part.contains("::") || part.contains('['),
    };
    text.split(',').all(is_directive) && EnvFilter::try_new(text).is_ok()
}
