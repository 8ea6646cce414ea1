//! The keys of the loops that stop and delete Instances; see `docs/automation.md`.

use super::duration::ConfigDuration;
use super::keys::keys;

keys! {
    /// The inactivity loop.
    pub struct InactivityConfig {
        /// Whether this loop runs; if so, `integrations.prometheus.url` is required.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 16,
        /// Whether tenants are warned by mail, which requires `integrations.mail`; if not, Instances are stopped and
        /// deleted without a warning.
        pub notifications: bool = true,
        /// The number of warnings, from 0 to 100; the annotation `crownlabs.polito.it/custom-number-alerts` of a
        /// Template overrides it.
        #[schemars(with = "usize", range(min = 0, max = 100))]
        pub max_number_of_alerts: u32 = 3,
        /// The time between two warnings that an Instance is stopped, and between the last one and the stop.
        pub notification_interval: ConfigDuration = ConfigDuration::from_secs(86_400),
        /// The time between two warnings that a stopped Instance is deleted, and between the last one and the deletion.
        pub destruction_notification_interval: ConfigDuration = ConfigDuration::from_secs(86_400),
        /// How old the answer of Prometheus may be by which an Instance is warned or stopped; one round of queries
        /// serves all Instances for so long.
        pub check_interval: ConfigDuration = ConfigDuration::from_secs(300),
    }

    /// The expiration loop.
    pub struct ExpirationConfig {
        /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
        pub enabled: bool,
        /// The number of Instances that are reconciled at the same time, from 1 to 256.
        #[schemars(range(min = 1, max = 256))]
        pub concurrency: usize = 4,
        /// Whether tenants are warned by mail, which requires `integrations.mail`; if not, Instances are deleted
        /// without a warning.
        pub notifications: bool = true,
        /// The time between the warning and the deletion.
        pub notification_interval: ConfigDuration = ConfigDuration::from_secs(86_400),
    }
}
