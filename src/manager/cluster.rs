//! The API server, and whether the process needs one.

use std::path::PathBuf;

use kube::Client;
use tracing::info;

use super::start_up::{ClusterOptions, connect, kubeconfig};
use crate::config::{Config, Identity};
use crate::loops::{LOOPS, Loop, RunsIn};
use crate::runtime::client::{self, UserClient, Writer};
use crate::runtime::context::Connections;
use crate::runtime::gate::Gate;

/// The clients of the API server.
pub struct Cluster {
    /// Sends requests whoever leads.
    pub ungated: Client,
    /// Reads as a user.
    pub users: UserClient,
    /// What the loops of the leader read and write with.
    pub connections: Connections,
}

/// Whether anything that is enabled needs the API server: a loop that uses it, or the webhooks. A configuration without
/// any loop needs it too, because nothing else of it says what the process is for.
pub fn is_needed(config: &Config) -> bool {
    let mut enabled = enabled(config).peekable();
    config.server.webhook.enabled || enabled.peek().is_none() || enabled.any(|entry| entry.uses_api_server)
}

/// Whether the process takes part in the leader election: it is on, and something of the process works for the leader
/// only, which is a loop of the leader, or the renewal of the webhooks' own certificate. A process with loops of every
/// replica or node alone would take the lease from those that have something to do with it.
pub fn takes_part(config: &Config) -> bool {
    let webhook = &config.server.webhook;
    let renews = webhook.enabled && webhook.certificate_dir.is_empty();
    config.leader_election.enabled && (renews || enabled(config).any(|entry| entry.runs_in == RunsIn::Leader))
}

/// The gate of the process: closed until it leads, if it takes part in the election. Says so if it does not, although the
/// election is on.
pub fn gate(config: &Config) -> Gate {
    if takes_part(config) {
        return Gate::closed();
    }
    if config.leader_election.enabled {
        info!("nothing that is enabled needs the lease, so this process leaves it to others");
    }
    Gate::open()
}

/// The loops that are enabled.
fn enabled(config: &Config) -> impl Iterator<Item = &'static Loop> {
    LOOPS.iter().filter(|entry| (entry.toggle)(&config.controllers).enabled)
}

impl Cluster {
    /// Waits for the API server of a kubeconfig, or of the environment, to answer. Writes of the loops pass `gate`.
    ///
    /// # Errors
    /// When there is no kubeconfig, it cannot be used, or the API server refuses the account.
    pub async fn connect(
        file: Option<PathBuf>,
        config: &Config,
        gate: &Gate,
        identity: &str,
    ) -> anyhow::Result<Self> {
        let options = ClusterOptions { kubeconfig: file, ..ClusterOptions::default() };
        let kubeconfig = kubeconfig(&options).await?;
        let ungated = client::build(kubeconfig.clone(), Gate::open())?;
        let gated = client::build(kubeconfig.clone(), gate.clone())?;
        let mut users = UserClient::new(&kubeconfig)?;
        if config.controllers.dashboard.identity == Identity::Impersonate {
            users = users.impersonating(kubeconfig.clone())?;
        }
        let writer = Writer::new(kubeconfig, gate.clone())?;
        connect(&ungated).await?;
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

    /// A configuration with these loops only.
    fn only(server: &str, election: bool, loops: &[(&str, &str)]) -> Config {
        let controllers = ::cluster::config::only(loops);
        parsed(&format!("leaderElection: {{enabled: {election}}}\nserver: {{{server}}}\n{controllers}"))
    }

    const METRICS: (&str, &str) = ("instanceMetrics", "");
    const TRACKER: (&str, &str) = ("sshTracker", "");

    /// The tests and the bench start daemons with few loops.
    #[test]
    fn only_the_loops_that_a_test_names_are_enabled() {
        for loops in [&[][..], &[METRICS], &[TRACKER, METRICS], &[("tenant", "concurrency: 2")]] {
            let config = only("", true, loops);
            let mut found: Vec<&str> = enabled(&config).map(|entry| entry.name).collect();
            found.sort_unstable_by_key(|name| loops.iter().position(|(wanted, _)| wanted == name));
            assert_eq!(found, loops.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_the_process_needs_follows_from_what_is_enabled() {
        assert!(is_needed(&parsed("")), "the defaults");
        for election in [false, true] {
            assert!(!is_needed(&only("", election, &[METRICS])), "it does not lead");
            assert!(is_needed(&only("webhook: {enabled: true}", election, &[METRICS])));
            assert!(is_needed(&only("", election, &[METRICS, TRACKER])));
            assert!(is_needed(&only("", election, &[])), "no loop at all");
        }
    }

    #[test]
    fn only_who_has_work_for_a_leader_takes_part_in_the_election() {
        assert!(takes_part(&parsed("")), "the defaults");
        for loops in [&[][..], &[METRICS], &[("podConfigNode", "nodeName: a"), TRACKER]] {
            assert!(!takes_part(&only("", true, loops)), "{loops:?}");
            assert!(
                takes_part(&only("webhook: {enabled: true}", true, loops)),
                "{loops:?}: it renews the certificate"
            );
            let of_others = "webhook: {enabled: true, certificateDir: /c}";
            assert!(!takes_part(&only(of_others, true, loops)), "{loops:?}: somebody else renews it");
            let with_leader = [loops, &[("podConfig", "")]].concat();
            assert!(takes_part(&only("", true, &with_leader)), "{with_leader:?}");
            assert!(!takes_part(&only("", false, &with_leader)), "{with_leader:?}");
        }
    }
}
