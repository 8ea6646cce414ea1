//! `crownlabs config check --connect`: whether the daemon could work with a configuration. It checks each server that
//! the configuration names, and each part of the cluster that the enabled loops need.
//!
//! | module | contents |
//! |---|---|
//! | [`servers`] | the servers outside of the cluster |
//! | [`cluster`] | the API server, the kinds that it serves, classes, exam servers |
//! | [`webhook`] | the webhooks |
//! | [`rights`] | whether the account may send the requests of the enabled loops |
//!
//! Nothing is written: the API server does not store access reviews and dry runs.

mod cluster;
mod rights;
mod servers;
mod webhook;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use serde_json::{Value, json};

use crate::config::Config;
use crate::manager::start_up::ClusterOptions;
use crate::offline::format::Format;
use crate::preview::Findings;
use crate::runtime::store::Rights;

/// The time limit of each check; all checks run concurrently.
const LIMIT: Duration = Duration::from_secs(20);
/// The time limit of each server within a check of several servers.
const EACH: Duration = Duration::from_secs(5);

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
struct Check {
    /// The checked component, such as `Prometheus`.
    what: String,
    /// Its URL or name.
    place: String,
    /// The fault and how to fix it; `None` if there is no fault.
    fault: Option<String>,
}

impl Check {
    fn ok(what: &str, place: impl Into<String>) -> Self {
        Self { what: what.to_owned(), place: place.into(), fault: None }
    }

    fn failed(what: &str, place: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { what: what.to_owned(), place: place.into(), fault: Some(fault.into()) }
    }

    fn of<E: ToString>(what: &str, place: &str, result: Result<(), E>) -> Self {
        let fault = result.err().map(|error| error.to_string());
        Self { what: what.to_owned(), place: place.to_owned(), fault }
    }
}

/// The requests of each loop, by loop name.
type RightsOfLoops = BTreeMap<&'static str, Rights>;

/// The results of checks of one part.
type Checks<'a> = BoxFuture<'a, Vec<Check>>;

/// Runs a check with a time limit.
fn within<'a>(
    what: &'static str,
    place: String,
    checks: impl Future<Output = Vec<Check>> + Send + 'a,
) -> Checks<'a> {
    async move {
        let late = |_| vec![Check::failed(what, place, format!("no answer within {} s", LIMIT.as_secs()))];
        tokio::time::timeout(LIMIT, checks).await.unwrap_or_else(late)
    }
    .boxed()
}

/// The results of all checks, one line each, and whether all have passed.
///
/// # Errors
/// When the results cannot be serialised in the requested format.
pub async fn connections(
    config: &Config,
    cluster: &ClusterOptions,
    format: Option<Format>,
) -> anyhow::Result<Findings> {
    let mut checks = servers::checks(config);
    checks.push(cluster::checks(config, cluster).boxed());
    let checks: Vec<Check> = join_all(checks).await.into_iter().flatten().collect();
    let is_clean = checks.iter().all(|check| check.fault.is_none());
    let text = match format {
        Some(format) => format.write(&checks.iter().map(value).collect())?,
        None => text(&checks),
    };
    Ok(Findings { text, is_clean })
}

fn value(Check { what, place, fault }: &Check) -> Value {
    json!({"what": what, "place": place, "ok": fault.is_none(), "fault": fault})
}

fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    for Check { what, place, fault } in checks {
        let _ = match fault {
            None => writeln!(text, "ok      {what}: {place}"),
            Some(fault) => writeln!(text, "failed  {what}: {place}: {fault}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{KeycloakConfig, MailConfig, MailTls, MailTransport, PrometheusConfig};
    use crate::runtime::silent::SilentServer;

    /// A configuration with all servers at this port of the local host.
    fn config(port: u16) -> Config {
        let url = format!("http://127.0.0.1:{port}");
        let mut config = Config::default();
        let folder = tempfile::tempdir().expect("a folder").keep();
        let file = folder.join("secret");
        std::fs::write(&file, "secret").expect("written");
        let file = file.display().to_string();
        config.integrations.keycloak = KeycloakConfig {
            enabled: true,
            url: url.clone(),
            client_id: "labs".to_owned(),
            client_secret_file: file.clone(),
            ..KeycloakConfig::default()
        };
        config.controllers.inactivity.enabled = true;
        config.integrations.prometheus = PrometheusConfig { url: url.clone(), ..PrometheusConfig::default() };
        config.integrations.mail = MailConfig {
            transport: MailTransport::Smtp,
            host: "127.0.0.1".to_owned(),
            port,
            tls: MailTls::None,
            from: "labs@example.com".to_owned(),
            ..MailConfig::default()
        };
        config.controllers.image_list.enabled = true;
        let entry =
            json!({"imageListName": "all", "type": "docker", "url": url, "registryName": "r.example.com"});
        config.controllers.image_list.registries = vec![serde_json::from_value(entry).expect("a registry")];
        config.controllers.dashboard.enabled = true;
        config.controllers.dashboard.issuer_url = url;
        config.controllers.dashboard.client_secret_file = file;
        config
    }

    async fn checked(config: &Config) -> Vec<Check> {
        join_all(servers::checks(config)).await.into_iter().flatten().collect()
    }

    #[tokio::test]
    async fn a_closed_port_is_the_first_cause_of_each_server() {
        // Nothing listens at port 1.
        let checks = checked(&config(1)).await;
        let names: Vec<&str> = checks.iter().map(|check| check.what.as_str()).collect();
        assert_eq!(names, ["Keycloak", "Prometheus", "mail server", "issuer", "registry"]);
        for check in checks {
            let fault = check.fault.expect("a fault");
            assert!(fault.contains("Connection refused"), "{}: {fault}", check.what);
            assert!(check.place.ends_with(":1"), "{}", check.place);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_given_up_in_time() {
        let server = SilentServer::start();
        let port = server.config().cluster_url.port_u16().expect("a port");
        let checks = checked(&config(port)).await;
        assert_eq!(checks.len(), 5);
        for check in checks {
            let fault = check.fault.expect("a fault");
            assert!(fault.contains("within"), "{}: {fault}", check.what);
        }
        assert!(server.was_asked());
    }

    #[test]
    fn a_check_is_a_line_and_an_object() {
        let checks = [Check::ok("a", "here"), Check::failed("b", "there", "no answer")];
        assert_eq!(text(&checks), "ok      a: here\nfailed  b: there: no answer\n");
        assert_eq!(
            value(&checks[1]),
            json!({"what": "b", "place": "there", "ok": false, "fault": "no answer"})
        );
    }
}
