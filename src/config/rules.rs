//! Rules that the schema cannot express: between several keys, or about the value of one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::automation;
use super::duration::ConfigDuration;
use super::exam_agent;
use super::fault::Fault;
use super::image_list;
use super::instance;
use super::instance_metrics;
use super::integrations::KeycloakConfig;
use super::mail;
use super::pod_config_node;
use super::pool::Pool;
use super::prometheus;
use super::ssh_tracker;
use super::types::Config;
use super::web_ssh;

/// A rule that a configuration must follow.
pub(super) struct Rule {
    /// The keys that the rule reads. A fault is reported for the first of them that is in the file.
    pub keys: &'static [&'static str],
    /// Returns what is wrong, or `None` if the rule is followed.
    pub broken: fn(&Config) -> Option<String>,
    /// What would be valid.
    pub expected: &'static str,
}

/// What is wrong with an entry of a list.
pub(super) struct ItemFault {
    /// The key, for example `controllers.imageList.registries[1].url`.
    pub key: String,
    /// The key whose line is named if this one is not in the file: one that each entry has.
    pub instead: String,
    /// What is wrong.
    pub problem: String,
    /// What would be valid.
    pub expected: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        keys: &["resync.min"],
        broken: |config| {
            let min = config.resync.min;
            (min < ConfigDuration::from_secs(60)).then(|| format!("{min} is too short"))
        },
        expected: "expected at least 1m",
    },
    Rule {
        keys: &["resync.min", "resync.max"],
        broken: |config| {
            let (min, max) = (config.resync.min, config.resync.max);
            (min > max).then(|| format!("resync.min is {min} and resync.max is {max}"))
        },
        expected: "expected min to be at most max",
    },
    Rule {
        keys: &["leaderElection.leaseDuration"],
        broken: |config| {
            let length = config.leader_election.lease_duration;
            let whole = length.get().subsec_nanos() == 0 && !length.get().is_zero();
            (!whole).then(|| format!("{length} cannot be written into a Lease"))
        },
        expected: "expected whole seconds, at least 1s",
    },
    Rule {
        keys: &["leaderElection.renewDeadline", "leaderElection.leaseDuration"],
        broken: |config| {
            let (deadline, length) =
                (config.leader_election.renew_deadline, config.leader_election.lease_duration);
            (deadline >= length).then(|| format!("renewDeadline is {deadline} and leaseDuration is {length}"))
        },
        expected: "expected renewDeadline to be below leaseDuration",
    },
    Rule {
        keys: &["leaderElection.retryPeriod", "leaderElection.renewDeadline"],
        broken: |config| {
            let (period, deadline) =
                (config.leader_election.retry_period, config.leader_election.renew_deadline);
            // The election adds a random fifth at most to each wait.
            let longest = Duration::from(period).saturating_mul(6) / 5;
            (longest >= deadline.get())
                .then(|| format!("retryPeriod is {period} and renewDeadline is {deadline}"))
        },
        expected: "expected 1.2 times retryPeriod to be below renewDeadline",
    },
    Rule {
        keys: &["leaderElection.retryPeriod"],
        broken: |config| {
            config.leader_election.retry_period.get().is_zero().then(|| "0s is too short".to_owned())
        },
        expected: "expected more than 0s",
    },
    Rule {
        keys: &["server.health", "server.metrics"],
        broken: |config| {
            let (health, metrics) = (config.server.health.address()?, config.server.metrics.address()?);
            // Port 0 means any free port, so two servers may have it.
            (health == metrics && health.port() != 0)
                .then(|| format!("metrics and health are both at {health}"))
        },
        expected: "expected two addresses",
    },
    Rule {
        keys: &["server.webhook.listen", "server.webhook.enabled"],
        broken: |config| {
            let webhook = &config.server.webhook;
            (webhook.enabled && webhook.listen.address().is_none())
                .then(|| "webhook is enabled and listen is empty".to_owned())
        },
        expected: "expected an address and a port",
    },
    Rule {
        keys: &["server.webhook.bypassGroups"],
        broken: |config| {
            let groups = &config.server.webhook.bypass_groups;
            groups.iter().any(|group| group.trim().is_empty()).then(|| "a group name is empty".to_owned())
        },
        expected: "expected the names of groups",
    },
    Rule {
        keys: &["controllers.publicExposure.ipPool"],
        broken: |config| {
            Pool::parse(&config.controllers.public_exposure.ip_pool).err().map(|error| error.to_string())
        },
        expected: "expected at most 65536 addresses in all",
    },
    Rule {
        keys: &["controllers.tenant.verificationPoll"],
        broken: |config| {
            let poll = config.controllers.tenant.verification_poll;
            (poll < ConfigDuration::from_secs(10)).then(|| format!("{poll} is too short"))
        },
        expected: "expected at least 10s",
    },
    Rule {
        keys: &["controllers.tenant.keepAlive"],
        broken: |config| {
            config.controllers.tenant.keep_alive.get().is_zero().then(|| "0s is too short".to_owned())
        },
        expected: "expected more than 0s",
    },
    Rule {
        keys: &["controllers.termination.statusCheckTimeout"],
        broken: |config| {
            let timeout = config.controllers.termination.status_check_timeout;
            timeout.get().is_zero().then(|| format!("{timeout} is too short"))
        },
        expected: "expected more than 0s",
    },
    Rule {
        keys: &["controllers.termination.statusCheckInterval"],
        broken: |config| {
            let interval = config.controllers.termination.status_check_interval;
            (interval < ConfigDuration::from_secs(5)).then(|| format!("{interval} is too short"))
        },
        expected: "expected at least 5s",
    },
    Rule {
        keys: &["controllers.termination.confirmAfter"],
        broken: |config| {
            let time = config.controllers.termination.confirm_after;
            (time < ConfigDuration::from_secs(5)).then(|| format!("{time} is too short"))
        },
        expected: "expected at least 5s",
    },
    Rule {
        keys: &["integrations.keycloak.url", "integrations.keycloak.enabled"],
        broken: |config| keycloak_lacks(config, "url", |keycloak| &keycloak.url),
        expected: "expected the URL of the server",
    },
    Rule {
        keys: &["integrations.keycloak.realm", "integrations.keycloak.enabled"],
        broken: |config| keycloak_lacks(config, "realm", |keycloak| &keycloak.realm),
        expected: "expected the realm of the users",
    },
    Rule {
        keys: &["integrations.keycloak.clientId", "integrations.keycloak.enabled"],
        broken: |config| keycloak_lacks(config, "clientId", |keycloak| &keycloak.client_id),
        expected: "expected the client whose service account is used",
    },
    Rule {
        keys: &["integrations.keycloak.clientSecretFile", "integrations.keycloak.enabled"],
        broken: |config| keycloak_lacks(config, "clientSecretFile", |keycloak| &keycloak.client_secret_file),
        expected: "expected the file with the client's secret",
    },
    Rule {
        keys: &["integrations.keycloak.timeout"],
        broken: |config| {
            let timeout = config.integrations.keycloak.timeout;
            timeout.get().is_zero().then(|| format!("{timeout} is too short"))
        },
        expected: "expected more than 0s",
    },
];

/// The problem that Keycloak is enabled and a required key of it is empty; `None` if it is not so.
fn keycloak_lacks(config: &Config, key: &str, value: fn(&KeycloakConfig) -> &str) -> Option<String> {
    let keycloak = &config.integrations.keycloak;
    (keycloak.enabled && value(keycloak).is_empty())
        .then(|| format!("keycloak is enabled and {key} is empty"))
}

/// The rules.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    let of_parts = [
        automation::RULES,
        image_list::RULES,
        exam_agent::RULES,
        instance::RULES,
        instance_metrics::RULES,
        mail::RULES,
        pod_config_node::RULES,
        prometheus::RULES,
        ssh_tracker::RULES,
        web_ssh::RULES,
    ];
    RULES.iter().chain(of_parts.into_iter().flatten())
}

/// The faults of a configuration. Rules that read a key in `doubtful` are skipped: the value of that key was
/// refused before, and the configuration has its default instead.
pub(super) fn broken(
    config: &Config,
    file: &str,
    lines: &BTreeMap<String, u64>,
    doubtful: &BTreeSet<String>,
) -> Vec<Fault> {
    let certain =
        |rule: &&Rule| !rule.keys.iter().any(|key| doubtful.iter().any(|other| overlap(key, other)));
    let fault = |rule: &Rule| {
        let problem = (rule.broken)(config)?;
        let place = rule.keys.iter().find_map(|key| Some((*key, *lines.get(*key)?)));
        let key = place.map_or_else(|| rule.keys.first().copied().unwrap_or_default(), |(key, _)| key);
        Some(Fault::new(file, place.map(|(_, line)| line), key, problem, rule.expected))
    };
    let of_item = |item: ItemFault| {
        let line = lines.get(&item.key).or_else(|| lines.get(&item.instead)).copied();
        Fault::new(file, line, &item.key, item.problem, item.expected)
    };
    // Entries that were refused before are not in the list, so those after them have other places.
    let is_certain = !doubtful.iter().any(|key| overlap("controllers.imageList.registries", key));
    let of_items = is_certain.then(|| image_list::faults(config)).into_iter().flatten();
    all().filter(certain).filter_map(fault).chain(of_items.map(of_item)).collect()
}

/// Whether two keys are the same, or one contains the other.
fn overlap(key: &str, other: &str) -> bool {
    let above = |upper: &str, lower: &str| {
        lower.strip_prefix(upper).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    above(key, other) || above(other, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn keys_of_rules_exist() {
        let schema = schema();
        for key in all().flat_map(|rule| rule.keys) {
            let pointer = key.split('.').fold(String::new(), |pointer, part| pointer + "/properties/" + part);
            assert!(schema.pointer(&pointer).is_some(), "{key}");
        }
    }

    #[test]
    fn keys_overlap_with_those_above_and_below() {
        assert!(overlap("a.b", "a.b"));
        assert!(overlap("a.b", "a"));
        assert!(overlap("a", "a.b"));
        assert!(overlap("a.b", "a.b[0].c"));
        assert!(!overlap("a.b", "a.bc"));
        assert!(!overlap("a.b", "a.c"));
    }
}
