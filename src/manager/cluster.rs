//! The API server, and whether the process needs one.

use std::path::Path;

use kube::Client;

use super::start_up::{connect, kubeconfig};
use crate::config::Config;
use crate::controllers::LOOPS;
use crate::runtime::client::{self, UserReader, Writer};
use crate::runtime::context::Connections;
use crate::runtime::gate::Gate;

/// The clients of the API server.
pub struct Cluster {
    /// Sends requests whoever leads.
    pub ungated: Client,
    /// Reads as a user.
    pub users: UserReader,
    /// What the loops of the leader read and write with.
    pub connections: Connections,
}

/// Whether anything that is enabled needs the API server: a loop that uses it, the webhooks, or the leader election. A
/// configuration without any loop needs it too, because nothing else of it says what the process is for.
pub fn is_needed(config: &Config) -> bool {
    let mut enabled = LOOPS.iter().filter(|entry| (entry.toggle)(&config.controllers).enabled).peekable();
    config.leader_election.enabled
        || config.server.webhook.enabled
        || enabled.peek().is_none()
        || enabled.any(|entry| entry.uses_api_server)
}

impl Cluster {
    /// Waits for the API server of a kubeconfig, or of the environment, to answer. Writes of the loops pass `gate`.
    ///
    /// # Errors
    /// When there is no kubeconfig, it cannot be used, or the API server refuses the account.
    pub async fn connect(
        file: Option<&Path>,
        config: &Config,
        gate: &Gate,
        identity: &str,
    ) -> anyhow::Result<Self> {
        let kubeconfig = kubeconfig(file).await?;
        let ungated = client::build(kubeconfig.clone(), Gate::open())?;
        let gated = client::build(kubeconfig.clone(), gate.clone())?;
        let users = UserReader::new(&kubeconfig)?;
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

    fn needed(more: &str) -> bool {
        let head = "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n";
        is_needed(&Config::parse("test", &format!("{head}{more}")).expect("a configuration"))
    }

    #[test]
    fn what_the_process_needs_follows_from_what_is_enabled() {
        let off: Vec<String> = LOOPS
            .iter()
            .filter(|entry| (entry.toggle)(&Config::default().controllers).enabled)
            .map(|entry| format!("{}: {{enabled: false}}", entry.name))
            .collect();
        let off = off.join(", ");
        let only = |server: &str, election: bool, more: &str| {
            needed(&format!(
                "leaderElection: {{enabled: {election}}}\nserver: {{{server}}}\ncontrollers: {{{off}{more}}}\n"
            ))
        };
        let metrics = ", instanceMetrics: {enabled: true}";
        assert!(needed(""), "the defaults");
        assert!(!only("", false, metrics));
        assert!(only("", true, metrics), "the lease is in the cluster");
        assert!(only("webhook: {enabled: true}", false, metrics));
        assert!(only("", false, &format!("{metrics}, sshTracker: {{enabled: true}}")));
        assert!(only("", false, ""), "no loop at all");
    }
}
