//! The keys of the submission loop; see `docs/exams.md`.

use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;

keys! {
    /// The submission loop.
    pub struct SubmissionConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256; it does not limit the
        /// number of Jobs that run.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 4,
        /// Whether an upload waits until the Instance is off, so that it does not contain files that are half written.
        pub wait_for_off: bool = true,
        /// The time after which it waits no longer.
        pub wait_for_off_timeout: ConfigDuration = ConfigDuration::from_secs(600),
        /// The image that uploads the content of a volume.
        pub uploader_image: String as formats::IMAGE = "crownlabs/content-uploader:latest".to_owned(),
        /// The arguments of the container: none for `crownlabs/content-uploader`, `[upload]` for
        /// `crownlabs/content-tools`.
        pub uploader_args: Vec<String>,
        /// The number of Jobs that are created until an upload counts as failed, from 1 to 100; each Job tries it up to
        /// eleven times.
        #[schemars(range(min = 1, max = 100))]
        pub max_attempts: usize = 5,
        /// The shortest time from the creation of the first Job to that of the second; it is doubled for each further
        /// Job, up to `1h`.
        pub retry_delay: ConfigDuration = ConfigDuration::from_secs(300),
    }
}
