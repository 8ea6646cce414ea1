//! The keys of the submission loop; see `docs/exams.md`.

use super::duration::ConfigDuration;
use super::formats;
use super::keys::keys;

keys! {
    /// The submission loop.
    pub struct SubmissionConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256. It does not limit the number of
        /// running Jobs.
        pub concurrency: usize as 1..=256 = 4,
        /// Whether an upload waits until the Instance is off, so that it does not contain half-written files.
        pub wait_for_off: bool = true,
        /// The time limit of this wait.
        pub wait_for_off_timeout: ConfigDuration = ConfigDuration::from_secs(600),
        /// The image that uploads the content of a volume; `make uploader-image` builds it. With
        /// `crownlabs/content-uploader` or `crownlabs/content-tools`, uploads have no receipts.
        pub uploader_image: String as formats::IMAGE = concat!("crownlabs/uploader:", env!("CARGO_PKG_VERSION")).to_owned(),
        /// The arguments of the container: none for `crownlabs/uploader` and `crownlabs/content-uploader`, `[upload]`
        /// for `crownlabs/content-tools`.
        pub uploader_args: Vec<String>,
        /// The number of Jobs after which an upload counts as failed, from 1 to 100. Each Job makes up to eleven
        /// attempts.
        pub max_attempts: usize as 1..=100 = 5,
        /// The minimum time between the creation of the first and of the second Job. It doubles for each further Job,
        /// up to `1h`.
        pub retry_delay: ConfigDuration = ConfigDuration::from_secs(300),
        /// Whether tenants get the receipts of their uploads by mail, if `integrations.mail` has a transport.
        pub notifications: bool = true,
    }
}
