//! Traces: spans of reconciles, from the log's own spans to the collector. Nothing waits for the collector: what does not fit
//! into a queue is dropped, and counted. See `docs/traces.md`.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use metrics::counter;
use opentelemetry::Context;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, Span, SpanData, SpanProcessor};
use tokio::sync::{mpsc, watch};
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber, info, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::clients::otlp::Otlp;
use crate::config::Traces;
use crate::runtime::task::Task;

/// Spans that may wait.
const QUEUE: usize = 2048;
/// Spans in one request.
const BATCH: usize = 512;
/// The time between two requests, as long as all spans fit into one.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the end of the process waits for the last spans to be sent.
const LAST: Duration = Duration::from_secs(2);

/// The spans that have ended, until they are sent.
pub type Spans = mpsc::Receiver<SpanData>;

/// Puts spans that have ended into the queue.
#[derive(Debug)]
struct Queue(mpsc::Sender<SpanData>);

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.0.try_send(span).is_err() {
            count("dropped", 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Counts spans by what has become of them.
fn count(result: &'static str, spans: usize) {
    counter!("crownlabs_spans_total", "result" => result).increment(spans as u64);
}

/// The layer that takes a part of the spans of reconciles, with what is logged in them, and the queue that they come from.
pub fn layer<S>(config: &Traces) -> (impl Layer<S> + Send + Sync, Spans)
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let (queue, spans) = mpsc::channel(QUEUE);
    let sampler = Sampler::TraceIdRatioBased(f64::from(config.sample_percent) / 100.0);
    let provider =
        SdkTracerProvider::builder().with_span_processor(Queue(queue)).with_sampler(sampler).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("crownlabs"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    (layer.with_filter(filter_fn(is_traced).with_max_level_hint(LevelFilter::INFO)), spans)
}

/// Reconciles, and what is logged in them. Spans and events of libraries are not ours.
fn is_traced(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("crownlabs") && (metadata.is_event() || metadata.name() == "reconcile")
}

/// The task that sends the spans, and what sends the last of them, within 2 s.
///
/// # Errors
/// When there is no client for the collector.
pub fn start(
    spans: Spans,
    config: &Traces,
    identity: String,
) -> anyhow::Result<(Task, BoxFuture<'static, ()>)> {
    let collector = Otlp::new(&config.endpoint, identity)?;
    for result in ["sent", "dropped", "failed"] {
        count(result, 0);
    }
    let (stop, ended) = (watch::Sender::new(false), watch::Sender::new(false));
    let mut has_ended = ended.subscribe();
    let sender = Sender { collector, is_failing: false };
    let sending = send(spans, sender, stop.subscribe(), ended);
    let last = async move {
        stop.send_replace(true);
        drop(tokio::time::timeout(LAST, has_ended.wait_for(|ended| *ended)).await);
    };
    Ok((Task::new("traces", sending), last.boxed()))
}

/// Sends spans until `stop`, then those that are left. Never returns, because a task that ends counts as a failure.
async fn send(
    mut spans: Spans,
    mut sender: Sender,
    mut stop: watch::Receiver<bool>,
    ended: watch::Sender<bool>,
) {
    loop {
        let is_last = tokio::select! {
            () = tokio::time::sleep(PERIOD) => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        loop {
            let batch: Vec<SpanData> = std::iter::from_fn(|| spans.try_recv().ok()).take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            sender.send(batch).await;
        }
        if is_last {
            break;
        }
    }
    ended.send_replace(true);
    std::future::pending::<()>().await;
}

/// Sends spans, and says when that begins to fail and when it works again.
struct Sender {
    collector: Otlp,
    is_failing: bool,
}

impl Sender {
    async fn send(&mut self, batch: Vec<SpanData>) {
        let spans = batch.len();
        match self.collector.send(batch).await {
            Ok(()) => {
                count("sent", spans);
                if std::mem::take(&mut self.is_failing) {
                    info!("the collector takes spans again");
                }
            }
            Err(error) => {
                count("failed", spans);
                if !std::mem::replace(&mut self.is_failing, true) {
                    warn!(%error, "the collector takes no spans (log.traces.endpoint); they are dropped");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::StatusCode;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use prost::Message as _;
    use tracing::{debug, info_span};
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::runtime::http_server::{Server, bind, immediate, text};

    /// The spans that are collected while `work` is done.
    fn collected(percent: u32, work: impl FnOnce()) -> Spans {
        let (layer, spans) = layer(&Traces { endpoint: String::new(), sample_percent: percent });
        tracing::subscriber::with_default(Registry::default().with(layer), work);
        spans
    }

    fn reconcile() {
        let _span = info_span!("reconcile", controller = "instance", object = "ns/a").entered();
        info!("it is done");
    }

    #[test]
    fn reconciles_are_collected_with_what_is_logged_in_them_and_nothing_else() {
        let mut spans = collected(100, || {
            reconcile();
            drop(info_span!("other").entered());
            drop(info_span!(target: "hyper", "reconcile").entered());
            let _span = info_span!("reconcile").entered();
            debug!("too much");
        });
        let first = spans.try_recv().expect("a span");
        assert_eq!((&*first.name, first.events.len()), ("reconcile", 1));
        assert_eq!(&*first.events[0].name, "it is done");
        assert_eq!(spans.try_recv().expect("a span").events.len(), 0);
        assert!(spans.try_recv().is_err(), "two are ours");
    }

    #[test]
    fn a_part_of_the_spans_is_collected() {
        let spans = collected(10, || (0..2000).for_each(|_| reconcile()));
        // 200 on average, with a standard deviation of 13.
        assert!((100..300).contains(&spans.len()), "{}", spans.len());
    }

    #[test]
    fn what_does_not_fit_into_the_queue_is_dropped_and_counted() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let spans = metrics::with_local_recorder(&recorder, || {
            collected(100, || (0..QUEUE + 5).for_each(|_| reconcile()))
        });
        assert_eq!(spans.len(), QUEUE);
        let text = handle.render();
        assert!(text.contains("crownlabs_spans_total{result=\"dropped\"} 5\n"), "{text}");
    }

    #[tokio::test]
    async fn what_is_left_at_the_end_is_sent_in_batches() {
        let received = Arc::<Mutex<Vec<usize>>>::default();
        let listener = bind("test", ([127, 0, 0, 1], 0).into()).await.expect("a port");
        let endpoint = format!("http://{}/", listener.local_addr().expect("an address"));
        let kept = Arc::clone(&received);
        let handler = immediate(move |request| {
            let message = ExportTraceServiceRequest::decode(request.body().clone()).expect("OTLP");
            let scopes = message.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
            kept.lock().expect("no panic").push(scopes.map(|scope| scope.spans.len()).sum());
            text(StatusCode::OK, "")
        });
        tokio::spawn(Server::new(handler).serve(listener, std::future::pending()));
        let spans = collected(100, || (0..BATCH + 3).for_each(|_| reconcile()));
        let config = Traces { endpoint, sample_percent: 100 };
        let (task, last) = start(spans, &config, "me".to_owned()).expect("a client");
        let running = tokio::spawn(crate::runtime::task::first_ended(vec![task]));
        last.await;
        assert_eq!(*received.lock().expect("no panic"), [BATCH, 3]);
        assert!(!running.is_finished(), "a task that ends counts as a failure");
        running.abort();
    }
}
