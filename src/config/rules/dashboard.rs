//! The rules of the dashboard.

use Rule::{Needed, Other};

use super::{Case, Rule};

const DASHBOARD: Case =
    Case { key: "controllers.dashboard.enabled", value: "true", words: "dashboard is enabled" };

/// The rules.
pub const RULES: &[Rule] = &[
    Needed("controllers.dashboard.listen", DASHBOARD, "expected an address and a port"),
    Needed(
        "controllers.dashboard.publicUrl",
        DASHBOARD,
        "expected the origin at which browsers open it, such as https://labs.example.com",
    ),
    Needed(
        "controllers.dashboard.issuerUrl",
        DASHBOARD,
        "expected the URL of the realm in which users log in",
    ),
    Needed("controllers.dashboard.clientId", DASHBOARD, "expected the client by which users log in"),
    Needed("controllers.dashboard.clientSecretFile", DASHBOARD, "expected the file with the client's secret"),
    Needed(
        "controllers.dashboard.sessionKeyFile",
        DASHBOARD,
        "expected the file with a key that `openssl rand -base64 32` makes",
    ),
    Other(
        &["controllers.dashboard.publicUrl", "controllers.instance.websiteBaseUrl", DASHBOARD.key],
        |config| {
            let dashboard = &config.controllers.dashboard;
            let shared = dashboard.shared_with(&config.controllers.instance).filter(|_| dashboard.enabled)?;
            Some(format!("Instances are served at the host {shared}, too"))
        },
        "expected a host of its own: an Instance serves whatever its users write, and its pages could act as those of the \
         dashboard",
    ),
    Other(
        &["controllers.dashboard.languages"],
        |config| config.controllers.dashboard.languages.is_empty().then(|| "there is none".to_owned()),
        "expected at least one of en and it",
    ),
];
