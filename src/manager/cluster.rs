//! The API server, and whether the process needs one.

use std::path::PathBuf;

use kube::Client;
use tracing::info;

use super::start_up::{ClusterOptions, connect, kubeconfig};
use crate::config::{Config, Identity};
use crate::loops::{RunsIn, enabled};
use crate::runtime::client::{self, UserClient, Writer};
use crate::runtime::context::Connections;
use crate::runtime::gate::Gate;
use crate::runtime::readiness::Readiness;

/// The clients of the API server.
pub struct Cluster {
    /// Sends requests whether or not this replica leads.
    pub ungated: Client,
    /// Reads as a user.
    pub users: UserClient,
    /// The connections that the loops of the leader read and write with.
    pub connections: Connections,
}

/// Whether an enabled component needs the API server: a loop that uses it, or the webhooks. A configuration without any
/// loop also needs it, because nothing else in it states the purpose of the process.
pub fn is_needed(config: &Config) -> bool {
    let mut enabled = enabled(&config.controllers).peekable();
    config.server.webhook.enabled || enabled.peek().is_none() || enabled.any(|entry| entry.uses_api_server)
}

/// Whether the process takes part in the leader election: the election is on, and a component of the process works only
/// on the leader. Such a component is a loop of the leader, or the renewal of the webhooks' own certificate. A process
/// that only has replica or node loops would take the lease from processes that need it.
pub fn takes_part(config: &Config) -> bool {
    let webhook = &config.server.webhook;
    let renews = webhook.enabled && webhook.certificate_dir.is_empty();
    let mut loops = enabled(&config.controllers);
    config.leader_election.enabled && (renews || loops.any(|entry| entry.runs_in == RunsIn::Leader))
}

/// The gate of the process. It is closed until the process leads, if the process takes part in the election. Logs a
/// message if the election is on but the process does not take part.
pub fn gate(config: &Config) -> Gate {
    if takes_part(config) {
        return Gate::closed();
    }
    if config.leader_election.enabled {
        info!("no enabled component needs the lease, so this process does not take part in the election");
    }
    Gate::open()
}

impl Cluster {
    /// Waits until the API server of a kubeconfig, or of the environment, answers, and reports to `readiness` why it
    /// does not. Writes of the loops pass through `gate`.
    ///
    /// # Errors
    /// When there is no kubeconfig, it is invalid, or the API server rejects the account.
    pub async fn connect(
        file: Option<PathBuf>,
        config: &Config,
        gate: &Gate,
        identity: &str,
        readiness: &Readiness,
    ) -> anyhow::Result<Self> {
        let options = ClusterOptions { kubeconfig: file, ..ClusterOptions::default() };
        let kubeconfig = kubeconfig(&options).await?;
        let url = kubeconfig.cluster_url.clone();
        let ungated = client::build(kubeconfig.clone(), Gate::open())?;
        let gated = client::build(kubeconfig.clone(), gate.clone())?;
        let mut users = UserClient::new(&kubeconfig)?;
        if config.controllers.dashboard.identity == Identity::Impersonate {
            users = users.impersonating(kubeconfig.clone())?;
        }
        let writer = Writer::new(kubeconfig, gate.clone())?;
        connect(&ungated, &url, readiness).await?;
        let resync = (config.resync.min.into(), config.resync.max.into());
        let connections = Connections { client: gated, writer, identity: identity.to_owned(), resync };
        Ok(Self { ungated, users, connections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(more: &str) -> Config {
        let head = "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n";
        Config::parse("test", &format!("{head}{more}")).expect("a configuration")
    }

    /// A configuration that enables only these loops.
    fn only(server: &str, election: bool, loops: &[(&str, &str)]) -> Config {
        let controllers = ::cluster::config::only(loops);
        parsed(&format!("leaderElection: {{enabled: {election}}}\nserver: {{{server}}}\n{controllers}"))
    }

    const METRICS: (&str, &str) = ("instanceMetrics", "");
    const TRACKER: (&str, &str) = ("sshTracker", "");

    /// The tests and the benchmark start daemons with few loops.
    #[test]
    fn only_the_loops_that_a_test_names_are_enabled() {
        for loops in [&[][..], &[METRICS], &[TRACKER, METRICS], &[("tenant", "concurrency: 2")]] {
            let config = only("", true, loops);
            let mut found: Vec<&str> = enabled(&config.controllers).map(|entry| entry.name).collect();
            found.sort_unstable_by_key(|name| loops.iter().position(|(wanted, _)| wanted == name));
            assert_eq!(found, loops.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_api_server_is_needed_by_enabled_loops_that_use_it_and_by_webhooks() {
        assert!(is_needed(&parsed("")), "the defaults");
        for election in [false, true] {
            assert!(!is_needed(&only("", election, &[METRICS])), "it does not lead");
            assert!(is_needed(&only("webhook: {enabled: true}", election, &[METRICS])));
            assert!(is_needed(&only("", election, &[METRICS, TRACKER])));
            assert!(is_needed(&only("", election, &[])), "no loop at all");
        }
    }

    #[test]
    fn only_a_process_with_work_for_a_leader_takes_part_in_the_election() {
        assert!(takes_part(&parsed("")), "the defaults");
        for loops in [&[][..], &[METRICS], &[("podConfigNode", "nodeName: a"), TRACKER]] {
            assert!(!takes_part(&only("", true, loops)), "{loops:?}");
            assert!(
                takes_part(&only("webhook: {enabled: true}", true, loops)),
                "{loops:?}: it renews the certificate"
            );
            let of_others = "webhook: {enabled: true, certificateDir: /c}";
            assert!(
                !takes_part(&only(of_others, true, loops)),
                "{loops:?}: its certificate comes from a folder"
            );
            let with_leader = [loops, &[("podConfig", "")]].concat();
            assert!(takes_part(&only("", true, &with_leader)), "{with_leader:?}");
            assert!(!takes_part(&only("", false, &with_leader)), "{with_leader:?}");
        }
    }
}
