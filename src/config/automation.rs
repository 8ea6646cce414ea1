//! The keys of the loops that stop and delete Instances; see `docs/automation.md`.

use super::duration::ConfigDuration;
use super::keys::keys;

keys! {
    /// The inactivity loop.
    pub struct InactivityConfig {
        /// Whether this loop runs; if so, `integrations.prometheus.url` is required.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 16,
        /// Whether tenants are warned by mail, which requires `integrations.mail`; if not, Instances are stopped and
        /// deleted without a warning.
        pub notifications: bool = true,
        /// The number of warnings, from 0 to 100; the annotation `crownlabs.polito.it/custom-number-alerts` of a
        /// Template overrides it.
        #[schemars(with = "usize")]
        pub max_number_of_alerts: u32 as 0..=100 = 3,
        /// The time between two warnings before an Instance is stopped, and between the last warning and the stop.
        pub notification_interval: ConfigDuration where "1s".. = ConfigDuration::from_secs(86_400),
        /// The time between two warnings before a stopped Instance is deleted, and between the last warning and the
        /// deletion.
        pub destruction_notification_interval: ConfigDuration where "1s".. = ConfigDuration::from_secs(86_400),
        /// How old data from Prometheus may be when an Instance is warned about or stopped. One round of queries serves
        /// all Instances for this time.
        pub check_interval: ConfigDuration where "1s".. = ConfigDuration::from_secs(300),
    }

    /// The expiration loop.
    pub struct ExpirationConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256.
        pub concurrency: usize as 1..=256 = 4,
        /// Whether tenants are warned by mail, which requires `integrations.mail`; if not, Instances are deleted
        /// without a warning.
        pub notifications: bool = true,
        /// The time between the warning and the deletion.
        pub notification_interval: ConfigDuration where "1s".. = ConfigDuration::from_secs(86_400),
    }
}
