//! The rules, in the order of the reference.

use std::time::Duration;

use Rule::{AtLeast, Between, Needed, OnlyWith, Other, Together};

use super::{Case, Rule};
use crate::config::duration::ConfigDuration;
use crate::config::instance::AccessMode;
use crate::config::mail::{MailConfig, MailTransport};
use crate::config::pool::Pool;
use crate::config::query_template::{QueryTemplate, check_expression};
use crate::config::types::Config;

const WEBHOOK: Case = Case { key: "server.webhook.enabled", value: "true", words: "webhook is enabled" };
const KEYCLOAK: Case =
    Case { key: "integrations.keycloak.enabled", value: "true", words: "keycloak is enabled" };
const IMAGE_LIST: Case =
    Case { key: "controllers.imageList.enabled", value: "true", words: "imageList is enabled" };
const EXAM_AGENT: Case =
    Case { key: "controllers.examAgent.enabled", value: "true", words: "examAgent is enabled" };
const GATEWAY_API: Case =
    Case { key: "controllers.instance.gatewayApi.enabled", value: "true", words: "gatewayApi is enabled" };
const PER_INSTANCE: Case = Case {
    key: "controllers.instance.access.mode",
    value: "perInstance",
    words: "access.mode is perInstance",
};
const MAIL_FOLDER: Case =
    Case { key: "integrations.mail.transport", value: "file", words: "transport is file" };
const WEB_SSH: Case = Case { key: "controllers.webSsh.enabled", value: "true", words: "webSsh is enabled" };

/// The rules.
pub const RULES: &[Rule] = &[
    AtLeast("resync.min", ConfigDuration::from_secs(60)),
    Other(
        &["resync.min", "resync.max"],
        |config| {
            let (min, max) = (config.resync.min, config.resync.max);
            (min > max).then(|| format!("resync.min is {min} and resync.max is {max}"))
        },
        "expected min to be at most max",
    ),
    Other(
        &["leaderElection.leaseDuration"],
        |config| {
            let length = config.leader_election.lease_duration;
            let whole = length.get().subsec_nanos() == 0 && !length.get().is_zero();
            (!whole).then(|| format!("{length} cannot be written into a Lease"))
        },
        "expected whole seconds, at least 1s",
    ),
    Other(
        &["leaderElection.renewDeadline", "leaderElection.leaseDuration"],
        |config| {
            let (deadline, length) =
                (config.leader_election.renew_deadline, config.leader_election.lease_duration);
            (deadline >= length).then(|| format!("renewDeadline is {deadline} and leaseDuration is {length}"))
        },
        "expected renewDeadline to be below leaseDuration",
    ),
    Other(
        &["leaderElection.retryPeriod", "leaderElection.renewDeadline"],
        |config| {
            let (period, deadline) =
                (config.leader_election.retry_period, config.leader_election.renew_deadline);
            // The election adds a random fifth at most to each wait.
            let longest = Duration::from(period).saturating_mul(6) / 5;
            (longest >= deadline.get())
                .then(|| format!("retryPeriod is {period} and renewDeadline is {deadline}"))
        },
        "expected 1.2 times retryPeriod to be below renewDeadline",
    ),
    AtLeast("leaderElection.retryPeriod", ConfigDuration::SHORTEST),
    Other(
        &["server.health", "server.metrics"],
        |config| {
            let (health, metrics) = (config.server.health.address()?, config.server.metrics.address()?);
            // Port 0 means any free port, so two servers may have it.
            (health == metrics && health.port() != 0)
                .then(|| format!("metrics and health are both at {health}"))
        },
        "expected two addresses",
    ),
    Needed("server.webhook.listen", WEBHOOK, "expected an address and a port"),
    Other(
        &["server.webhook.bypassGroups"],
        |config| {
            let groups = &config.server.webhook.bypass_groups;
            groups.iter().any(|group| group.trim().is_empty()).then(|| "a group name is empty".to_owned())
        },
        "expected the names of groups",
    ),
    Other(
        &["controllers.publicExposure.ipPool"],
        |config| {
            Pool::parse(&config.controllers.public_exposure.ip_pool).err().map(|error| error.to_string())
        },
        "expected at most 65536 addresses in all",
    ),
    AtLeast("controllers.tenant.verificationPoll", ConfigDuration::from_secs(10)),
    AtLeast("controllers.tenant.keepAlive", ConfigDuration::SHORTEST),
    AtLeast("controllers.termination.statusCheckTimeout", ConfigDuration::SHORTEST),
    AtLeast("controllers.termination.statusCheckInterval", ConfigDuration::from_secs(5)),
    AtLeast("controllers.termination.confirmAfter", ConfigDuration::from_secs(5)),
    Needed("integrations.keycloak.url", KEYCLOAK, "expected the URL of the server"),
    Needed("integrations.keycloak.realm", KEYCLOAK, "expected the realm of the users"),
    Needed("integrations.keycloak.clientId", KEYCLOAK, "expected the client whose service account is used"),
    Other(
        &["integrations.keycloak.clientSecretFile", "integrations.keycloak.username", KEYCLOAK.key],
        |config| {
            let keycloak = &config.integrations.keycloak;
            let lacks =
                keycloak.enabled && keycloak.client_secret_file.is_empty() && keycloak.username.is_empty();
            lacks.then(|| "keycloak is enabled and clientSecretFile is empty".to_owned())
        },
        "expected the file with the client's secret, or username and passwordFile",
    ),
    Together(
        "integrations.keycloak.passwordFile",
        "integrations.keycloak.username",
        "expected both, or none for the client's service account",
    ),
    OnlyWith(
        "integrations.keycloak.loginRealm",
        "integrations.keycloak.username",
        "expected the user who logs in there",
    ),
    AtLeast("integrations.keycloak.timeout", ConfigDuration::SHORTEST),
    Other(
        &["controllers.inactivity.enabled", "integrations.prometheus.url"],
        |config| {
            let lacks =
                config.controllers.inactivity.enabled && config.integrations.prometheus.url.is_empty();
            lacks.then(|| "inactivity is enabled and integrations.prometheus.url is empty".to_owned())
        },
        "expected the URL of the Prometheus that knows which Instances are used",
    ),
    Other(
        &["controllers.inactivity.notifications", "integrations.mail.transport"],
        |config| {
            let loop_ = &config.controllers.inactivity;
            lacks_mail(config, loop_.enabled && loop_.notifications, "inactivity")
        },
        MAIL,
    ),
    Other(
        &["controllers.expiration.notifications", "integrations.mail.transport"],
        |config| {
            let loop_ = &config.controllers.expiration;
            lacks_mail(config, loop_.enabled && loop_.notifications, "expiration")
        },
        MAIL,
    ),
    AtLeast("controllers.inactivity.notificationInterval", ConfigDuration::from_secs(1)),
    AtLeast("controllers.inactivity.destructionNotificationInterval", ConfigDuration::from_secs(1)),
    AtLeast("controllers.inactivity.checkInterval", ConfigDuration::from_secs(1)),
    AtLeast("controllers.expiration.notificationInterval", ConfigDuration::from_secs(1)),
    Needed("controllers.imageList.registries", IMAGE_LIST, "expected at least one registry"),
    Other(
        &["controllers.imageList.registries"],
        |config| {
            let count = config.controllers.image_list.registries.len();
            (count > MOST_REGISTRIES).then(|| format!("there are {count} registries"))
        },
        "expected at most 64",
    ),
    Between(
        "controllers.imageList.updateInterval",
        ConfigDuration::from_secs(5),
        ConfigDuration::from_secs(86_400),
        "is not possible",
    ),
    Needed("controllers.examAgent.namespace", EXAM_AGENT, "expected the namespace of the exams"),
    Needed("controllers.examAgent.listen", EXAM_AGENT, "expected an address and a port"),
    Other(
        &["controllers.examAgent.allowAnyone", "controllers.examAgent.allowedIps"],
        |config| {
            let keys = &config.controllers.exam_agent;
            let both = keys.allow_anyone && !keys.allowed_ips.is_empty();
            both.then(|| "allowAnyone is true and allowedIps names networks".to_owned())
        },
        "expected one of them",
    ),
    Needed(
        "controllers.instance.gatewayApi.parentRefs",
        GATEWAY_API,
        "expected at least one Gateway as {name, namespace}",
    ),
    Needed(
        "controllers.instance.access.oauth2Proxy.issuerUrl",
        PER_INSTANCE,
        "expected the URL of the realm",
    ),
    Needed(
        "controllers.instance.access.oauth2Proxy.clientId",
        PER_INSTANCE,
        "expected the client that users are logged in with",
    ),
    Needed(
        "controllers.instance.access.oauth2Proxy.clientSecretFile",
        PER_INSTANCE,
        "expected the file with the client's secret",
    ),
    Other(
        &["controllers.instance.access.mode", "controllers.instance.gatewayApi.enabled"],
        |config| {
            let instance = &config.controllers.instance;
            (instance.access.mode == AccessMode::PerInstance && instance.gateway_api.enabled)
                .then(|| "access.mode is perInstance and gatewayApi is enabled".to_owned())
        },
        "expected one of them: the proxies guard Ingresses, the Gateway has to guard the routes itself",
    ),
    Between(
        "controllers.instanceMetrics.connectionTimeout",
        ConfigDuration::from_millis(100),
        ConfigDuration::from_secs(30),
        "is out of range",
    ),
    Between(
        "controllers.instanceMetrics.updatePeriod",
        ConfigDuration::from_millis(100),
        ConfigDuration::from_secs(15),
        "is out of range",
    ),
    Other(
        &["integrations.mail.host", "integrations.mail.transport"],
        |config| smtp_lacks(config, "host", |mail| &mail.host),
        "expected the mail server, or configDir",
    ),
    Other(
        &["integrations.mail.from", "integrations.mail.transport"],
        |config| smtp_lacks(config, "from", |mail| &mail.from),
        "expected the address of the sender, or configDir",
    ),
    Needed("integrations.mail.folder", MAIL_FOLDER, "expected the folder to write mails to"),
    Needed("integrations.mail.from", MAIL_FOLDER, "expected the address of the sender"),
    Together(
        "integrations.mail.passwordFile",
        "integrations.mail.username",
        "expected both, or none for no login",
    ),
    OnlyWith("integrations.mail.identity", "integrations.mail.username", "expected a login"),
    Other(
        &["integrations.mail.configDir"],
        |config| {
            let mail = &config.integrations.mail;
            let own = [&mail.host, &mail.username, &mail.password_file, &mail.identity, &mail.from];
            let is_mixed = mail.port != 0 || own.iter().any(|value| !value.is_empty());
            let is_used = mail.transport == MailTransport::Smtp && !mail.config_dir.is_empty();
            (is_used && is_mixed).then(|| "configDir is set beside keys whose place it takes".to_owned())
        },
        "expected either configDir, or host, port, username, passwordFile, identity and from",
    ),
    AtLeast("integrations.mail.timeout", ConfigDuration::SHORTEST),
    Other(
        &["controllers.podConfigNode.resync"],
        |config| {
            let resync = config.controllers.pod_config_node.resync;
            (resync.get() < std::time::Duration::from_secs(1)).then(|| format!("{resync} is too short"))
        },
        "expected 1s or more",
    ),
    Other(
        &["integrations.prometheus.queries.nginxData"],
        |config| bad_template(config, "nginxData"),
        EXPECTED_SERVICE,
    ),
    Other(
        &["integrations.prometheus.queries.bastionSshData"],
        |config| bad_template(config, "bastionSshData"),
        EXPECTED_ADDRESS,
    ),
    Other(
        &["integrations.prometheus.queries.webSshData"],
        |config| bad_template(config, "webSshData"),
        EXPECTED_ADDRESS,
    ),
    Other(
        &["integrations.prometheus.queries.openData"],
        |config| bad_template(config, "openData"),
        EXPECTED_OPEN,
    ),
    Other(
        &["integrations.prometheus.queries.nginxAvailable", "integrations.prometheus.queries.nginxData"],
        |config| bad_availability(config, "nginxData"),
        EXPECTED_AVAILABLE,
    ),
    Other(
        &[
            "integrations.prometheus.queries.bastionSshAvailable",
            "integrations.prometheus.queries.bastionSshData",
        ],
        |config| bad_availability(config, "bastionSshData"),
        EXPECTED_AVAILABLE,
    ),
    Other(
        &["integrations.prometheus.queries.webSshAvailable", "integrations.prometheus.queries.webSshData"],
        |config| bad_availability(config, "webSshData"),
        EXPECTED_AVAILABLE,
    ),
    Other(
        &["integrations.prometheus.queries.openAvailable", "integrations.prometheus.queries.openData"],
        // Without one of its own, it has that of another source.
        |config| {
            let is_own = !config.integrations.prometheus.queries.open_available.is_empty();
            is_own.then(|| bad_availability(config, "openData")).flatten()
        },
        EXPECTED_AVAILABLE,
    ),
    Other(
        &["integrations.prometheus.queries", "integrations.prometheus.url"],
        |config| {
            let prometheus = &config.integrations.prometheus;
            let has_source = prometheus.queries.sources().iter().any(|source| !source.data.is_empty());
            (!prometheus.url.is_empty() && !has_source).then(|| "all queries of data are empty".to_owned())
        },
        "expected at least one, because without any every Instance would seem to be unused",
    ),
    AtLeast("integrations.prometheus.timeout", ConfigDuration::SHORTEST),
    Other(
        &["integrations.prometheus.queryStep"],
        |config| {
            let step = config.integrations.prometheus.query_step;
            let seconds = step.get().as_secs();
            let is_whole = step.get().subsec_nanos() == 0;
            (!is_whole || !(1..=3_600).contains(&seconds)).then(|| format!("{step} is not possible"))
        },
        "expected whole seconds, from 1s to 1h",
    ),
    Other(
        &["controllers.sshTracker.interface"],
        |config| {
            let name = &config.controllers.ssh_tracker.interface;
            // What the kernel accepts as a name.
            let is_name = (1..=15).contains(&name.len())
                && ![".", ".."].contains(&name.as_str())
                && !name
                    .contains(|letter: char| matches!(letter, '/' | ':' | '\0') || letter.is_whitespace());
            (!is_name).then(|| format!("{name:?} is not the name of an interface"))
        },
        "expected `any`, or 1 to 15 bytes without spaces, `/` and `:`",
    ),
    Needed(
        "controllers.webSsh.privateKeyFile",
        WEB_SSH,
        "expected the file with the private key that the machines accept",
    ),
    Needed("controllers.webSsh.listen", WEB_SSH, "expected an address and a port"),
    Needed("controllers.webSsh.user", WEB_SSH, "expected the user that the machines accept"),
    AtLeast("controllers.webSsh.sendTimeout", ConfigDuration::SHORTEST),
];

const MAIL: &str = "expected a transport in integrations.mail, or notifications: false, with which tenants lose \
                    Instances without a warning";

fn lacks_mail(config: &Config, warns: bool, name: &str) -> Option<String> {
    let lacks = warns && config.integrations.mail.transport == MailTransport::None;
    lacks.then(|| format!("{name} warns by mail and integrations.mail has no transport"))
}

/// The problem that mail goes to a server and a key for it is empty; `None` if it is not so.
fn smtp_lacks(config: &Config, key: &str, value: fn(&MailConfig) -> &str) -> Option<String> {
    let mail = &config.integrations.mail;
    (mail.transport == MailTransport::Smtp && mail.config_dir.is_empty() && value(mail).is_empty())
        .then(|| format!("transport is smtp and {key} is empty"))
}

const EXPECTED_SERVICE: &str = "expected a counter with the namespace and the Service, in this order, as \
     requests{namespace=%q, service=%q}, or \"\" for none";
const EXPECTED_ADDRESS: &str = "expected a counter with the IP address, as connections{ip=%q}, or with the \
     namespace and the Instance, as connections{namespace=%q, instance=%q}, or \"\" for none";
const EXPECTED_OPEN: &str = "expected a gauge with the IP address, as open{ip=%q}, or with the namespace and the Instance, \
     as open{namespace=%q, instance=%q}, or \"\" for none";
const EXPECTED_AVAILABLE: &str = "expected a query such as count(up{container=\"webssh\"}), or an empty \
     query of data";

/// What is wrong with a query of data.
fn bad_template(config: &Config, data_key: &str) -> Option<String> {
    let sources = config.integrations.prometheus.queries.sources();
    let source = sources.into_iter().find(|source| source.data_key == data_key && !source.data.is_empty())?;
    QueryTemplate::parse(source.data, source.subject).err().map(|error| error.to_string())
}

/// What is wrong with the query of availability of a source that is not off.
fn bad_availability(config: &Config, data_key: &str) -> Option<String> {
    let sources = config.integrations.prometheus.queries.sources();
    let source = sources.into_iter().find(|source| source.data_key == data_key && !source.data.is_empty())?;
    if source.available.trim().is_empty() {
        return Some(format!("{data_key} is given and its query of availability is empty"));
    }
    check_expression(source.available).err().map(|error| error.to_string())
}

/// The most registries that are read; each is a task with a bounded amount of memory.
const MOST_REGISTRIES: usize = 64;
