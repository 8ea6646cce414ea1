//! The rules, in the order of the reference.

use super::{Case, Rule, Test};
use crate::config::bound::Section;
use crate::config::prometheus::{PrometheusQueries, data_problem};
use crate::config::query_template::check_expression;
use crate::config::route_policy;
use crate::config::types::Resync;
use crate::config::{
    AppearanceConfig, Config, DashboardConfig, ExpirationConfig, ImageListConfig, InactivityConfig,
    InstanceMetricsConfig, KeycloakConfig, LeaderElection, MailConfig, PodConfigNodeConfig, PrometheusConfig,
    PublicExposureConfig, TenantConfig, TerminationConfig, WebSshConfig,
};

use Case::Enabled;
use Rule::{Bounds, Needed, Never, OnlyWith, Other, Together};
use Test::{Empty, Is, Set, True};

/// The rules.
pub const RULES: &[Rule] = &[
    Bounds("resync", Resync::BOUNDS),
    Other("resync", &["min", "max"], "min to be at most max", |config| {
        let (min, max) = (config.resync.min, config.resync.max);
        (min > max).then(|| format!("resync.min is {min} and resync.max is {max}"))
    }),
    Bounds("leaderElection", LeaderElection::BOUNDS),
    Other(
        "leaderElection",
        &["renewDeadline", "leaseDuration"],
        "renewDeadline to be below leaseDuration",
        |config| {
            let (deadline, length) =
                (config.leader_election.renew_deadline, config.leader_election.lease_duration);
            (deadline >= length).then(|| format!("renewDeadline is {deadline} and leaseDuration is {length}"))
        },
    ),
    Other(
        "leaderElection",
        &["retryPeriod", "renewDeadline"],
        "1.2 times retryPeriod to be below renewDeadline",
        |config| {
            let (period, deadline) =
                (config.leader_election.retry_period, config.leader_election.renew_deadline);
            // The election adds a random fifth at most to each wait.
            let longest = period.get().saturating_mul(6) / 5;
            (longest >= deadline.get())
                .then(|| format!("retryPeriod is {period} and renewDeadline is {deadline}"))
        },
    ),
    Other("server", &["health", "metrics"], "two addresses", |config| {
        let (health, metrics) = (config.server.health.address()?, config.server.metrics.address()?);
        // Port 0 means any free port, so two servers may have it.
        (health == metrics && health.port() != 0).then(|| format!("metrics and health are both at {health}"))
    }),
    Other("server", &["webhook.listen", "metrics", "health"], "an address of its own", |config| {
        let server = &config.server;
        let webhook =
            server.webhook.listen.address().filter(|it| server.webhook.enabled && it.port() != 0)?;
        let others = [("metrics", &server.metrics), ("health", &server.health)];
        let (other, _) = others.into_iter().find(|(_, listen)| listen.address() == Some(webhook))?;
        Some(format!("webhook.listen and {other} are both at {webhook}"))
    }),
    Needed("server.webhook", Enabled, &[("listen", "an address and a port")]),
    Bounds("controllers.publicExposure", PublicExposureConfig::BOUNDS),
    Bounds("controllers.tenant", TenantConfig::BOUNDS),
    Bounds("controllers.termination", TerminationConfig::BOUNDS),
    Needed(
        "integrations.keycloak",
        Enabled,
        &[
            ("url", "the URL of the server"),
            ("realm", "the realm of the users"),
            ("clientId", "the client whose service account is used"),
        ],
    ),
    Never(
        "integrations.keycloak",
        &["clientSecretFile", "username", "enabled"],
        &[&[("clientSecretFile", Empty), ("username", Empty), ("enabled", True)]],
        "the file with the client's secret, or username and passwordFile",
        "keycloak is enabled and clientSecretFile is empty",
    ),
    Together(
        "integrations.keycloak",
        "passwordFile",
        "username",
        "both, or none for the client's service account",
    ),
    OnlyWith("integrations.keycloak", "loginRealm", "username", "the user who logs in there"),
    Bounds("integrations.keycloak", KeycloakConfig::BOUNDS),
    Never(
        "",
        &["controllers.inactivity.enabled", "integrations.prometheus.url"],
        &[&[("integrations.prometheus.url", Empty), ("controllers.inactivity.enabled", True)]],
        "the URL of the Prometheus that knows which Instances are used",
        "inactivity is enabled and integrations.prometheus.url is empty",
    ),
    Never(
        "",
        &[
            "controllers.inactivity.notifications",
            "integrations.mail.transport",
            "controllers.inactivity.enabled",
        ],
        &[&[
            ("integrations.mail.transport", Is("none")),
            ("controllers.inactivity.notifications", True),
            ("controllers.inactivity.enabled", True),
        ]],
        MAIL,
        "inactivity warns by mail, but integrations.mail has no transport",
    ),
    Never(
        "",
        &[
            "controllers.expiration.notifications",
            "integrations.mail.transport",
            "controllers.expiration.enabled",
        ],
        &[&[
            ("integrations.mail.transport", Is("none")),
            ("controllers.expiration.notifications", True),
            ("controllers.expiration.enabled", True),
        ]],
        MAIL,
        "expiration warns by mail, but integrations.mail has no transport",
    ),
    Bounds("controllers.inactivity", InactivityConfig::BOUNDS),
    Bounds("controllers.expiration", ExpirationConfig::BOUNDS),
    Needed("controllers.imageList", Enabled, &[("registries", "at least one registry")]),
    Bounds("controllers.imageList", ImageListConfig::BOUNDS),
    Needed(
        "controllers.examAgent",
        Enabled,
        &[("namespace", "the namespace of the exams"), ("listen", "an address and a port")],
    ),
    Never(
        "controllers.examAgent",
        &["allowAnyone", "allowedIps"],
        &[&[("allowedIps", Set), ("allowAnyone", True)]],
        "one of them",
        "allowAnyone is true and allowedIps names networks",
    ),
    Needed(
        "controllers.instance.gatewayApi",
        Enabled,
        &[("parentRefs", "at least one Gateway as {name, namespace}")],
    ),
    Other("controllers.instance.gatewayApi", &["policy"], route_policy::EXPECTED, |config| {
        config.controllers.instance.gateway_api.policy.problem()
    }),
    Needed(
        "controllers.instance",
        Case::Is("access.mode", "perInstance"),
        &[
            ("access.oauth2Proxy.issuerUrl", "the URL of the realm"),
            ("access.oauth2Proxy.clientId", "the client ID that users log in with"),
            ("access.oauth2Proxy.clientSecretFile", "the file with the client's secret"),
        ],
    ),
    Needed("controllers.instance", Case::Is("access.mode", "daemon"), DAEMON_LOGIN),
    Needed("controllers.instance", Case::Is("access.exams", "daemon"), DAEMON_LOGIN),
    Never(
        "controllers.instance",
        &["access.mode", "urls"],
        &[&[("access.mode", Is("daemon")), ("urls", Is("path"))]],
        OWN_HOSTS,
        "access.mode is daemon and urls is path",
    ),
    Never(
        "controllers.instance",
        &["access.exams", "urls"],
        &[&[("access.exams", Is("daemon")), ("urls", Is("path"))]],
        OWN_HOSTS,
        "access.exams is daemon and urls is path",
    ),
    Never(
        "controllers.instance",
        &["access.mode", "urls"],
        &[&[("access.mode", Is("perInstance")), ("urls", Is("host"))]],
        "access.mode: daemon, which admits the same users without a proxy for each Instance, or urls: path",
        "access.mode is perInstance and urls is host",
    ),
    Never(
        "controllers.instance",
        &["access.mode", "gatewayApi.enabled"],
        &[&[("access.mode", Is("perInstance")), ("gatewayApi.enabled", True)]],
        "one of them: the proxies guard Ingresses, the Gateway has to guard the routes itself",
        "access.mode is perInstance and gatewayApi is enabled",
    ),
    Bounds("controllers.instanceMetrics", InstanceMetricsConfig::BOUNDS),
    Never(
        "integrations.mail",
        &["host", "transport", "configDir"],
        &[&[("host", Empty), ("transport", Is("smtp")), ("configDir", Empty)]],
        "the mail server, or configDir",
        "transport is smtp and host is empty",
    ),
    Never(
        "integrations.mail",
        &["from", "transport", "configDir"],
        &[&[("from", Empty), ("transport", Is("smtp")), ("configDir", Empty)]],
        "the address of the sender, or configDir",
        "transport is smtp and from is empty",
    ),
    Needed(
        "integrations.mail",
        Case::Is("transport", "file"),
        &[("folder", "the folder to write mails to"), ("from", "the address of the sender")],
    ),
    Together("integrations.mail", "passwordFile", "username", "both, or none for no login"),
    OnlyWith("integrations.mail", "identity", "username", "a login"),
    Never(
        "integrations.mail",
        &["configDir"],
        &[
            &[("host", Set), ("configDir", Set), ("transport", Is("smtp"))],
            &[("port", Set), ("configDir", Set), ("transport", Is("smtp"))],
            &[("username", Set), ("configDir", Set), ("transport", Is("smtp"))],
            &[("passwordFile", Set), ("configDir", Set), ("transport", Is("smtp"))],
            &[("identity", Set), ("configDir", Set), ("transport", Is("smtp"))],
            &[("from", Set), ("configDir", Set), ("transport", Is("smtp"))],
        ],
        "either configDir, or host, port, username, passwordFile, identity and from",
        "configDir is set together with keys that it replaces",
    ),
    Bounds("integrations.mail", MailConfig::BOUNDS),
    Bounds("controllers.podConfigNode", PodConfigNodeConfig::BOUNDS),
    Bounds(QUERIES, PrometheusQueries::BOUNDS),
    Other(QUERIES, &["openData"], OPEN, |config| {
        // The gauge is not queried if no connections are counted.
        let [.., open] = config.integrations.prometheus.queries.sources();
        data_problem(open.data, open.subject)
    }),
    Other(QUERIES, &["nginxAvailable", "nginxData"], AVAILABLE, |config| unavailable(config, 0)),
    Other(QUERIES, &["bastionSshAvailable", "bastionSshData"], AVAILABLE, |config| unavailable(config, 1)),
    Other(QUERIES, &["webSshAvailable", "webSshData"], AVAILABLE, |config| unavailable(config, 2)),
    Other(QUERIES, &["openAvailable", "openData"], AVAILABLE, |config| {
        // An empty query is replaced by the availability query of another source.
        let is_own = !config.integrations.prometheus.queries.open_available.is_empty();
        is_own.then(|| unavailable(config, 3)).flatten()
    }),
    Other(
        "integrations.prometheus",
        &["queries", "url"],
        "at least one, because otherwise every Instance would seem to be unused",
        |config| {
            let prometheus = &config.integrations.prometheus;
            let has_source = prometheus.queries.sources().iter().any(|source| !source.data.is_empty());
            (!prometheus.url.is_empty() && !has_source).then(|| "all queries of data are empty".to_owned())
        },
    ),
    Bounds("integrations.prometheus", PrometheusConfig::BOUNDS),
    Needed(
        "controllers.webSsh",
        Enabled,
        &[
            ("privateKeyFile", "the file with the private key that the machines accept"),
            ("listen", "an address and a port"),
            ("user", "the user that the machines accept"),
        ],
    ),
    Bounds("controllers.webSsh", WebSshConfig::BOUNDS),
    Needed(
        "controllers.dashboard",
        Enabled,
        &[
            ("listen", "an address and a port"),
            ("publicUrl", "the origin under which browsers open it, such as https://labs.example.com"),
            ("issuerUrl", "the URL of the realm that users log in to"),
            ("clientId", "the client ID that users log in with"),
            ("clientSecretFile", "the file with the client's secret"),
            ("sessionKeyFile", "the file with a key that `openssl rand -base64 32` makes"),
        ],
    ),
    Other(
        "controllers",
        &["dashboard.publicUrl", "instance.websiteBaseUrl", "dashboard.enabled"],
        "a separate host: an Instance serves content written by its users, which could act as a page of the dashboard",
        |config| {
            let dashboard = &config.controllers.dashboard;
            let shared = dashboard.shared_with(&config.controllers.instance).filter(|_| dashboard.enabled)?;
            Some(format!("Instances are also served at the host {shared}"))
        },
    ),
    Needed(
        "controllers.login",
        Enabled,
        &[
            ("listen", "an address and a port"),
            ("sessionKeyFile", "the file of controllers.dashboard.sessionKeyFile"),
            ("hostKeyFile", "the file with the key of the Secret crownlabs-machine-hosts"),
        ],
    ),
    Other(
        "controllers",
        &["login.enabled", "instance.access.daemon.signInUrl"],
        "the URL of the dashboard's page /login/machine",
        |config| {
            let is_missing = config.controllers.instance.access.daemon.sign_in_url.is_empty();
            (config.controllers.login.enabled && is_missing)
                .then(|| "login is enabled and instance.access.daemon.signInUrl is empty".to_owned())
        },
    ),
    Bounds("controllers.dashboard", DashboardConfig::BOUNDS),
    Bounds("controllers.dashboard.appearance", AppearanceConfig::BOUNDS),
];

/// The keys of the daemon's own login.
const DAEMON_LOGIN: &[(&str, &str)] = &[
    ("access.daemon.authUrl", "the URL of the login's Service that ends with /auth"),
    ("access.daemon.signInUrl", "the URL of the dashboard's page /login/machine"),
];
const OWN_HOSTS: &str = "urls: host, because the login sets a cookie for the host of each machine";

const MAIL: &str = "a transport in integrations.mail, or notifications: false (tenants then lose Instances without a \
                    warning)";

/// The section of the queries.
const QUERIES: &str = "integrations.prometheus.queries";
const OPEN: &str = "a gauge with the IP address, as open{ip=%q}, or with the namespace and the Instance, as \
                    open{namespace=%q, instance=%q}, or \"\" for none";
const AVAILABLE: &str = "a query such as count(up{container=\"webssh\"}), or an empty query of data";

/// Returns the problem with the availability query of a source that is on.
fn unavailable(config: &Config, source: usize) -> Option<String> {
    let source = config.integrations.prometheus.queries.sources().into_iter().nth(source)?;
    match (source.data, source.available.trim()) {
        ("", _) => None,
        (_, "") => Some(format!("{} is given and its query of availability is empty", source.data_key)),
        _ => check_expression(source.available).err().map(|error| error.to_string()),
    }
}
