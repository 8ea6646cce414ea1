//! The keys of the loops that stop and delete Instances; see `docs/automation.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::ConfigDuration;
use super::mail::MailTransport;
use super::rules::Rule;
use super::types::Config;

/// The inactivity loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InactivityConfig {
    /// Whether this loop runs; if so, `integrations.prometheus.url` is required.
    pub enabled: bool,
    /// The number of Instances that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// Whether tenants are warned by mail, which requires `integrations.mail`; if not, Instances are stopped and
    /// deleted without a warning.
    pub notifications: bool,
    /// The number of warnings, from 0 to 100; the annotation `crownlabs.polito.it/custom-number-alerts` of a
    /// Template overrides it.
    #[schemars(with = "usize", range(min = 0, max = 100))]
    pub max_number_of_alerts: u32,
    /// The time between two warnings that an Instance is stopped, and between the last one and the stop.
    pub notification_interval: ConfigDuration,
    /// The time between two warnings that a stopped Instance is deleted, and between the last one and the deletion.
    pub destruction_notification_interval: ConfigDuration,
    /// How old the answer of Prometheus may be by which an Instance is warned or stopped; one round of queries
    /// serves all Instances for so long.
    pub check_interval: ConfigDuration,
}

impl Default for InactivityConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            concurrency: 16,
            notifications: true,
            max_number_of_alerts: 3,
            notification_interval: ConfigDuration::from_secs(86_400),
            destruction_notification_interval: ConfigDuration::from_secs(86_400),
            check_interval: ConfigDuration::from_secs(300),
        }
    }
}

/// The expiration loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExpirationConfig {
    /// Whether this loop runs; if not, it watches nothing and needs no RBAC permissions.
    pub enabled: bool,
    /// The number of Instances that are reconciled at the same time, from 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: usize,
    /// Whether tenants are warned by mail, which requires `integrations.mail`; if not, Instances are deleted without
    /// a warning.
    pub notifications: bool,
    /// The time between the warning and the deletion.
    pub notification_interval: ConfigDuration,
}

impl Default for ExpirationConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            concurrency: 4,
            notifications: true,
            notification_interval: ConfigDuration::from_secs(86_400),
        }
    }
}

/// The rules between these keys and those of the servers that the loops need.
pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["controllers.inactivity.enabled", "integrations.prometheus.url"],
        broken: |config| {
            let lacks =
                config.controllers.inactivity.enabled && config.integrations.prometheus.url.is_empty();
            lacks.then(|| "inactivity is enabled and integrations.prometheus.url is empty".to_owned())
        },
        expected: "expected the URL of the Prometheus that knows which Instances are used",
    },
    Rule {
        keys: &["controllers.inactivity.notifications", "integrations.mail.transport"],
        broken: |config| {
            let loop_ = &config.controllers.inactivity;
            lacks_mail(config, loop_.enabled && loop_.notifications, "inactivity")
        },
        expected: MAIL,
    },
    Rule {
        keys: &["controllers.expiration.notifications", "integrations.mail.transport"],
        broken: |config| {
            let loop_ = &config.controllers.expiration;
            lacks_mail(config, loop_.enabled && loop_.notifications, "expiration")
        },
        expected: MAIL,
    },
    Rule {
        keys: &["controllers.inactivity.notificationInterval"],
        broken: |config| too_short(config.controllers.inactivity.notification_interval),
        expected: "expected at least 1s",
    },
    Rule {
        keys: &["controllers.inactivity.destructionNotificationInterval"],
        broken: |config| too_short(config.controllers.inactivity.destruction_notification_interval),
        expected: "expected at least 1s",
    },
    Rule {
        keys: &["controllers.inactivity.checkInterval"],
        broken: |config| too_short(config.controllers.inactivity.check_interval),
        expected: "expected at least 1s",
    },
    Rule {
        keys: &["controllers.expiration.notificationInterval"],
        broken: |config| too_short(config.controllers.expiration.notification_interval),
        expected: "expected at least 1s",
    },
];

const MAIL: &str = "expected a transport in integrations.mail, or notifications: false, with which tenants lose \
                    Instances without a warning";

fn lacks_mail(config: &Config, warns: bool, name: &str) -> Option<String> {
    let lacks = warns && config.integrations.mail.transport == MailTransport::None;
    lacks.then(|| format!("{name} warns by mail and integrations.mail has no transport"))
}

fn too_short(interval: ConfigDuration) -> Option<String> {
    (interval < ConfigDuration::from_secs(1)).then(|| format!("{interval} is too short"))
}
