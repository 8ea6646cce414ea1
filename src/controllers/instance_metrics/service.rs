//! The gRPC service `instmetrics.InstanceMetrics`. The desktop of an Instance uses it to show its resource use.

use std::sync::Arc;

use futures::FutureExt;
use http::Request;
use hyper::body::Incoming;
use tonic::server::Grpc;
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

use super::shared::Shared;
use super::usage::Usage;
use crate::runtime::grpc_server::Handler;

/// The path of its only method.
const METHOD: &str = "/instmetrics.InstanceMetrics/ContainerMetrics";
/// The maximum length of a request in bytes. A name has at most 253.
const LONGEST_REQUEST: usize = 4 << 10;

/// The requested pod.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerMetricsRequest {
    /// The name of the pod.
    #[prost(string, tag = "1")]
    pub pod_name: String,
}

/// The use of the pod.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ContainerMetricsResponse {
    /// Processor use, in percent of one core.
    #[prost(float, tag = "1")]
    pub cpu_perc: f32,
    /// Memory, in bytes.
    #[prost(uint64, tag = "2")]
    pub mem_bytes: u64,
    /// Files written outside volumes, in bytes.
    #[prost(uint64, tag = "3")]
    pub disk_bytes: u64,
}

/// Answers the requests of the service.
pub fn handler(shared: Arc<Shared>) -> Handler {
    Arc::new(move |request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move {
            if request.uri().path() != METHOD {
                return Status::unimplemented("there is no such method").into_http();
            }
            let codec = ProstCodec::<ContainerMetricsResponse, ContainerMetricsRequest>::default();
            let answer = tower::service_fn(move |request: tonic::Request<ContainerMetricsRequest>| {
                let answered = answer(&shared, &request.get_ref().pod_name);
                async move { answered.map(Response::new) }
            });
            Grpc::new(codec).max_decoding_message_size(LONGEST_REQUEST).unary(answer, request).await
        }
        .boxed()
    })
}

/// The response about a pod, with the texts of the former Go program.
fn answer(shared: &Shared, pod: &str) -> Result<ContainerMetricsResponse, Status> {
    if pod.is_empty() {
        return Err(Status::invalid_argument("wrong request: valid CustomMetricsRequest required"));
    }
    let missing = || format!("no existing application container for requested PodName {pod}");
    let Usage { millipercent, memory, disk } =
        shared.of_pod(pod).ok_or_else(|| Status::not_found(missing()))?;
    #[expect(clippy::cast_possible_truncation, reason = "the message has 24 bits of precision")]
    let cpu_perc = (f64::from(millipercent) / 1_000.0) as f32;
    Ok(ContainerMetricsResponse { cpu_perc, mem_bytes: memory, disk_bytes: disk })
}
