//! One round of requests to the container runtime.

use std::time::Duration;

use tokio::time::timeout;
use tracing::debug;

use super::select::{containers, pods, samples};
use super::usage::Sample;
use crate::clients::cri::messages::{
    CONTAINER_RUNNING, ContainerFilter, ContainerStats, PodSandboxFilter, SANDBOX_READY,
};
use crate::clients::cri::{Cri, CriError, Runtime};

/// Queries a container runtime.
pub struct Scraper {
    runtime: Runtime,
    deadline: Duration,
    /// The namespaces whose pods are measured, as patterns.
    namespaces: Vec<String>,
}

impl Scraper {
    /// A scraper of the pods in `namespaces`. A request may take `deadline`.
    pub fn new(endpoint: &str, deadline: Duration, namespaces: Vec<String>) -> Self {
        Self { runtime: Runtime::new(endpoint, deadline), deadline, namespaces }
    }

    /// The samples of all selected containers. It takes three requests, whatever the number of containers.
    pub async fn scrape(&self) -> Result<Vec<Sample>, CriError> {
        let samples = self.samples(&*self.runtime.client().await?).await;
        if matches!(samples, Err(CriError::Unreachable { .. } | CriError::Deadline { .. })) {
            self.runtime.forget();
        }
        samples
    }

    async fn samples(&self, client: &Cri) -> Result<Vec<Sample>, CriError> {
        let filter = PodSandboxFilter { state: Some(SANDBOX_READY), ..PodSandboxFilter::default() };
        let pods = pods(&self.namespaces, client.list_pod_sandboxes(filter).await?);
        if pods.is_empty() {
            return Ok(Vec::new());
        }
        let filter = ContainerFilter { state: Some(CONTAINER_RUNNING), ..ContainerFilter::default() };
        let containers = containers(&pods, client.list_containers(filter).await?);
        if containers.is_empty() {
            return Ok(Vec::new());
        }
        let stats = match client.list_container_stats().await {
            // In some versions of runtimes, one container that cannot be measured fails the whole list.
            Err(error @ CriError::Refused { .. }) => {
                debug!(%error, "the containers are queried one by one");
                self.one_by_one(client, containers.keys(), error).await?
            }
            answered => answered?,
        };
        Ok(samples(&pods, &containers, stats))
    }

    /// The use of each container, without the containers that the runtime refuses to measure; `error` if it refuses
    /// all. All requests together share the time limit of one.
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
