//! The keys of the log and of traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formats;
use super::rules::Rule;

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
    /// Traces, with a span for each reconcile; see `docs/traces.md`.
    pub traces: Traces,
}

/// Where traces are sent, by the OpenTelemetry protocol (OTLP) over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Traces {
    /// The URL of the collector without `/v1/traces`, such as `http://collector.monitoring:4318`; empty to send
    /// none. It needs a binary that is built with `--features otlp`, which that of the releases is not.
    #[schemars(extend("format" = formats::SERVER_URL.name))]
    pub endpoint: String,
    /// How many of a hundred reconciles are sent, from 1 to 100.
    #[schemars(with = "usize", range(min = 1, max = 100))]
    pub sample_percent: u32,
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
        Self { format: LogFormat::default(), filter: "info".to_owned(), traces: Traces::default() }
    }
}

impl Default for Traces {
    fn default() -> Self {
        Self { endpoint: String::new(), sample_percent: 10 }
    }
}

/// What is wrong with an endpoint where spans can be sent, or cannot.
fn refusal(endpoint: &str, can_send: bool) -> Option<String> {
    let is_refused = !endpoint.is_empty() && !can_send;
    is_refused.then(|| "this binary cannot send traces: it was built without them".to_owned())
}

/// The rules about the log.
pub(super) const RULES: &[Rule] = &[Rule {
    keys: &["log.traces.endpoint"],
    broken: |config| refusal(&config.log.traces.endpoint, cfg!(feature = "otlp")),
    expected: "expected \"\", or a binary that is built with --features otlp",
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn an_endpoint_needs_a_binary_that_can_send() {
        assert!(
            refusal("http://collector:4318", false).is_some_and(|problem| problem.contains("built without"))
        );
        assert_eq!(refusal("http://collector:4318", true), None);
        assert_eq!((refusal("", false), refusal("", true)), (None, None));
    }

    #[test]
    fn the_file_is_refused_as_the_binary_is_built() {
        let text = "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n\
                    log:\n  traces:\n    endpoint: http://collector:4318\n";
        let parsed = Config::parse("a.yaml", text);
        assert_eq!(parsed.is_ok(), cfg!(feature = "otlp"));
        if let Err(error) = parsed {
            let text = error.to_string();
            assert!(
                text.starts_with("a.yaml:5: log.traces.endpoint") && text.contains("--features otlp"),
                "{text}"
            );
        }
    }
}
