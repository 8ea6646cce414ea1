//! The client of the service `instmetrics.InstanceMetrics`, as the desktop of an Instance has it.

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

/// What the service says of a pod.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ContainerMetrics {
    /// Processors, in percent of one.
    #[prost(float, tag = "1")]
    pub cpu_perc: f32,
    /// Memory, in bytes.
    #[prost(uint64, tag = "2")]
    pub mem_bytes: u64,
    /// Files, in bytes.
    #[prost(uint64, tag = "3")]
    pub disk_bytes: u64,
}

/// Asks the service at an address, as host and port, about a pod. Fails where nothing answers.
pub async fn ask(address: &str, pod: &str) -> Result<Result<ContainerMetrics, Status>> {
    call(address, "/instmetrics.InstanceMetrics/ContainerMetrics", pod).await
}

/// The same by a method of that path.
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
