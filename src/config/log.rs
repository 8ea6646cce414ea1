//! The keys of the log.

use macro_rules_attribute::apply;
use tracing_subscriber::EnvFilter;

use super::formats::formats;
use super::keys::{choice, keys};

keys! {
    /// The format and the filter of the log.
    pub struct Log {
        /// The format of a line: `text` for people, `json` for programs.
        pub format: LogFormat,
        /// The lowest level that is logged, optionally followed by levels for single modules, such as
        /// `info,crownlabs::runtime=debug`. A change is applied while the daemon runs.
        pub filter: String as LOG_FILTER = "info".to_owned(),
    }
}

/// The format of a log line.
#[apply(choice)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object on each line.
    Json,
}

formats! {
    LOG_FILTER = "crownlabs-log-filter", is_log_filter,
        "a level (error, warn, info, debug, trace, off), and others for modules, such as info,crownlabs::runtime=debug",
        concat!("^", pattern!(directive), "(,", pattern!(directive), ")*$");
}

/// Whether a text is a filter of `tracing-subscriber`. This is stricter than the library: it reads a misspelt level
/// such as `inof` or `info=` as the name of a module, and then nothing else would be logged.
fn is_log_filter(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let is_directive = |part: &str| match part.rsplit_once('=') {
        Some((_, level)) => is_level(level),
        None => is_level(part) || part.contains("::") || part.contains('['),
    };
    text.split(',').all(is_directive) && EnvFilter::try_new(text).is_ok()
}
