//! The keys of the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;

/// The format and the filter of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Log {
    /// The format of a line: `text` to be read by people, `json` to be processed by programs.
    pub format: LogFormat,
    /// The lowest level that is logged, and others for single modules, such as
    /// `info,crownlabs::runtime=debug`; a change is applied while the daemon runs.
    #[schemars(extend("format" = formats::LOG_FILTER.name))]
    pub filter: String,
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

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::default(), filter: "info".to_owned() }
    }
}
