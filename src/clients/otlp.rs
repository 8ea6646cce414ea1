//! The client of an OpenTelemetry collector: sends spans by OTLP over HTTP. See `docs/traces.md`.

use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use prost::Message as _;

use super::http::{HttpClient, HttpError};

/// How long the collector may take to answer. While it does, spans wait in the queue.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A collector, and the program whose spans it gets.
#[derive(Debug)]
pub struct Otlp {
    http: HttpClient,
    url: String,
    resource: ResourceAttributesWithSchema,
}

/// Why spans were not taken.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// There is no answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The collector refuses them.
    #[error("the answer is {0}")]
    Status(StatusCode),
}

impl Otlp {
    /// The collector at `endpoint`, a URL to which `/v1/traces` is added. `identity` is that of this replica.
    ///
    /// # Errors
    /// When the URL cannot be read, or there are no authorities to check its certificate against.
    pub fn new(endpoint: &str, identity: String) -> anyhow::Result<Self> {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let http = HttpClient::new(&url.parse()?, None, TIMEOUT)?;
        let resource = Resource::builder_empty()
            .with_service_name("crownlabs")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", identity))
            .build();
        Ok(Self { http, url, resource: (&resource).into() })
    }

    /// Sends spans, once.
    ///
    /// # Errors
    /// When the collector does not take them, or does not answer within 5 s.
    pub async fn send(&self, spans: Vec<SpanData>) -> Result<(), OtlpError> {
        let resource_spans = group_spans_by_resource_and_scope(spans, &self.resource);
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let request = self.http.client().post(&self.url).header(CONTENT_TYPE, "application/x-protobuf");
        let status = self.http.send(request.body(body)).await?.status;
        if status.is_success() { Ok(()) } else { Err(OtlpError::Status(status)) }
    }
}
