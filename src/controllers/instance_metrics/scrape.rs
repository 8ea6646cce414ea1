//! One round of requests to the container runtime.

use std::time::Duration;

use tokio::time::timeout;
use tracing::{debug, info};

use super::select::{Namespaces, containers, pods, samples};
use super::usage::Sample;
use crate::clients::cri::messages::{
    ContainerFilter, ContainerState, ContainerStateValue, ContainerStats, ContainerStatsFilter,
    PodSandboxFilter, PodSandboxState, PodSandboxStateValue,
};
use crate::clients::cri::{Cri, CriError};

/// Asks a runtime, which is looked for when it is first needed.
pub struct Scraper {
    /// The configured endpoint; empty for the usual ones.
    endpoint: String,
    deadline: Duration,
    namespaces: Namespaces,
    client: Option<Cri>,
}

impl Scraper {
    /// A scraper of the pods in `namespaces` that has asked nothing yet. A request may take `deadline`.
    pub fn new(endpoint: &str, deadline: Duration, namespaces: Namespaces) -> Self {
        Self { endpoint: endpoint.to_owned(), deadline, namespaces, client: None }
    }

    /// The samples of all containers that count. Three requests, however many there are.
    pub async fn scrape(&mut self) -> Result<Vec<Sample>, CriError> {
        let known = self.client.take();
        let client = if let Some(client) = known { client } else { self.connect().await? };
        let samples = self.samples(&client).await;
        // Without an answer, the runtime is looked for again: it may be another one after an upgrade of the node.
        if !matches!(samples, Err(CriError::Unreachable { .. } | CriError::Deadline { .. })) {
            self.client = Some(client);
        }
        samples
    }

    async fn connect(&self) -> Result<Cri, CriError> {
        let (client, version) = Cri::connect(&self.endpoint, self.deadline).await?;
        let (name, version) = (version.runtime_name, version.runtime_version);
        info!(socket = %client.socket().display(), name, version, "the container runtime answers");
        Ok(client)
    }

    async fn samples(&self, client: &Cri) -> Result<Vec<Sample>, CriError> {
        let ready = PodSandboxStateValue { state: PodSandboxState::Ready.into() };
        let filter = PodSandboxFilter { state: Some(ready), ..PodSandboxFilter::default() };
        let pods = pods(&self.namespaces, client.list_pod_sandboxes(filter).await?);
        if pods.is_empty() {
            return Ok(Vec::new());
        }
        let running = ContainerStateValue { state: ContainerState::Running.into() };
        let filter = ContainerFilter { state: Some(running), ..ContainerFilter::default() };
        let containers = containers(&pods, client.list_containers(filter).await?);
        if containers.is_empty() {
            return Ok(Vec::new());
        }
        let stats = match client.list_container_stats(ContainerStatsFilter::default()).await {
            // One container that cannot be measured fails the whole list in some versions of runtimes.
            Err(error @ CriError::Refused { .. }) => {
                debug!(%error, "the containers are asked for one by one");
                self.one_by_one(client, containers.keys(), error).await?
            }
            answered => answered?,
        };
        Ok(samples(&pods, &containers, stats))
    }

    /// What each container uses, without those that the runtime refuses to measure; `error`, if there are only such. All
    /// requests together have the time of one.
    async fn one_by_one(
        &self,
        client: &Cri,
        containers: impl Iterator<Item = &String>,
        error: CriError,
    ) -> Result<Vec<ContainerStats>, CriError> {
        let mut found = Vec::new();
        let all = async {
            for id in containers {
                match client.container_stats(id).await {
                    Ok(stats) => found.extend(stats),
                    Err(CriError::Refused { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        timeout(self.deadline, all).await.unwrap_or_else(|_| Err(error.clone()))?;
        if found.is_empty() { Err(error) } else { Ok(found) }
    }
}
