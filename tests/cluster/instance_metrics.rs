//! The client of the service `instmetrics.InstanceMetrics`, as in the desktop of an Instance.

use anyhow::{Context as _, Result};
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct ContainerMetricsRequest {
    #[prost(string, tag = "1")]
    pod_name: String,
}

/// The answer of the service about a pod.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContainerMetrics {
    /// The processor usage, in percent of one processor.
    #[prost(float, tag = "1")]
    pub cpu_perc: f32,
    /// The memory usage, in bytes.
    #[prost(uint64, tag = "2")]
    pub mem_bytes: u64,
    /// The size of its files, in bytes.
    #[prost(uint64, tag = "3")]
    pub disk_bytes: u64,
}

/// Asks the service at an address (host and port) about a pod. Fails if nothing answers.
pub async fn ask(address: &str, pod: &str) -> Result<Result<ContainerMetrics, Status>> {
    call(address, "/instmetrics.InstanceMetrics/ContainerMetrics", pod).await
}

/// The same through the method at that path.
pub async fn call(
    address: &str,
    method: &'static str,
    pod: &str,
) -> Result<Result<ContainerMetrics, Status>> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
    let mut grpc = Grpc::new(endpoint.connect().await.with_context(|| address.to_owned())?);
    grpc.ready().await?;
    let request = Request::new(ContainerMetricsRequest { pod_name: pod.to_owned() });
    let codec = ProstCodec::<ContainerMetricsRequest, ContainerMetrics>::default();
    let answer = grpc.unary(request, PathAndQuery::from_static(method), codec).await;
    Ok(answer.map(Response::into_inner))
}
