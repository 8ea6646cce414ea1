//! The keys of the submission loop; see `docs/exams.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::formats;

/// The submission loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SubmissionConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of Instances that are reconciled at the same time, from 1 to 256; it does not limit the
    /// number of Jobs that run.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// Whether an upload waits until the Instance is off, so that it does not contain files that are half written.
    pub wait_for_off: bool,
    /// The time after which it waits no longer.
    pub wait_for_off_timeout: ConfigDuration,
    /// The image that uploads the content of a volume.
    #[schemars(extend("format" = formats::IMAGE.name))]
    pub uploader_image: String,
    /// The arguments of the container: none for `crownlabs/content-uploader`, `[upload]` for
    /// `crownlabs/content-tools`.
    pub uploader_args: Vec<String>,
    /// The number of Jobs that are created until an upload counts as failed, from 1 to 100; each Job tries it up to
    /// eleven times.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: usize,
    /// The shortest time from the creation of the first Job to that of the second; it is doubled for each further Job,
    /// up to `1h`.
    pub retry_delay: ConfigDuration,
}

impl Default for SubmissionConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            concurrency: 4,
            wait_for_off: true,
            wait_for_off_timeout: ConfigDuration::from_secs(600),
            uploader_image: "crownlabs/content-uploader:latest".to_owned(),
            uploader_args: Vec::new(),
            max_attempts: 5,
            retry_delay: ConfigDuration::from_secs(300),
        }
    }
}
