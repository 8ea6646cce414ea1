//! The servers outside the cluster.

use anyhow::Context;

use super::{Check, Checks, within};
#[cfg(feature = "daemon")]
use crate::clients::oidc::{Provider, Settings};
use crate::clients::registry::Registry;
use crate::config::Config;
use crate::manager::outages::{sends_mails, uses_prometheus};
use crate::manager::start_up;
use crate::runtime::gate::Gate;
use crate::runtime::outages::{System, shown};

/// Returns the checks of the servers that the enabled loops use.
pub fn checks(config: &Config) -> Vec<Checks<'_>> {
    let mut checks = Vec::new();
    let integrations = &config.integrations;
    if integrations.keycloak.enabled {
        checks.push(check(System::Keycloak, &integrations.keycloak.url, async {
            let accounts = start_up::accounts(config, &Gate::closed())?;
            accounts.context("it is disabled")?.ask().await.map_err(anyhow::Error::msg)
        }));
    }
    if uses_prometheus(config) && !integrations.prometheus.url.is_empty() {
        checks.push(check(System::Prometheus, &integrations.prometheus.url, async {
            let prometheus = start_up::prometheus(config)?;
            prometheus.context("it is disabled")?.ask().await.map_err(anyhow::Error::msg)
        }));
    }
    if sends_mails(config) {
        checks.push(within(System::Mail.name(), integrations.mail.host.clone(), mail(config)));
    }
    #[cfg(feature = "daemon")]
    let dashboard = &config.controllers.dashboard;
    #[cfg(feature = "daemon")]
    if dashboard.enabled && !dashboard.issuer_url.is_empty() {
        let settings = Settings {
            issuer: dashboard.issuer_url.clone(),
            client_id: dashboard.client_id.clone(),
            client_secret_file: dashboard.client_secret_file.clone(),
            ca_file: dashboard.ca_file.clone(),
            redirect_uri: String::new(),
        };
        checks.push(check(System::Issuer, &dashboard.issuer_url, async {
            let (provider, _file) = Provider::new(settings)?;
            provider.ask().await.map_err(anyhow::Error::msg)
        }));
    }
    let images = &config.controllers.image_list;
    for entry in images.registries.iter().filter(|_| images.enabled) {
        checks.push(check(System::Registry, &entry.url, async {
            Registry::new(entry.clone()).list().await.map(drop).map_err(anyhow::Error::msg)
        }));
    }
    checks
}

/// Returns the check of a server, which `ask` sends a request.
fn check<'a>(
    system: System,
    url: &str,
    ask: impl Future<Output = anyhow::Result<()>> + Send + 'a,
) -> Checks<'a> {
    let (what, place) = (system.name(), shown(url));
    within(what, place.clone(), async move {
        vec![Check::of(what, &place, ask.await.map_err(|error| format!("{error:#}")))]
    })
}

async fn mail(config: &Config) -> Vec<Check> {
    let (what, host) = (System::Mail.name(), &config.integrations.mail.host);
    match start_up::mailer(config, &Gate::closed()) {
        Ok(Some(mailer)) => {
            let Some(server) = mailer.server() else { return Vec::new() };
            vec![Check::of(what, &server, mailer.ask().await)]
        }
        Ok(None) => Vec::new(),
        Err(error) => vec![Check::failed(what, host, format!("{error:#}"))],
    }
}
