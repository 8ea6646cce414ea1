//! Traces, as a collector receives them. The binary of these tests is built with the feature `otlp`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// A collector that speaks OTLP over HTTP. Its threads end with the test process.
struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    /// Starts one that answers, or one that takes requests and never does.
    fn start(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::<Mutex<Vec<_>>>::default();
        let shared = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = Arc::clone(&shared);
                thread::spawn(move || {
                    while let Some(request) = read(&stream) {
                        received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                        if !answers {
                            thread::park();
                        }
                        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
                        (&stream).write_all(answer.as_bytes()).expect("the daemon reads");
                    }
                });
            }
        });
        Self { address, received }
    }

    /// The configuration of a daemon that sends every span.
    fn config(&self) -> String {
        format!("log: {{traces: {{endpoint: \"http://{}\", samplePercent: 100}}}}\n", self.address)
    }

    fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The spans about an object.
    fn spans(&self, controller: &str, object: &str) -> Vec<Span> {
        let resources = self.requests().into_iter().flat_map(|request| request.resource_spans);
        let spans = resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
        let is_about = |span: &Span| {
            text(&span.attributes, "controller") == controller && text(&span.attributes, "object") == object
        };
        spans.filter(is_about).collect()
    }
}

/// The next request of a connection; `None` at its end.
fn read(stream: &TcpStream) -> Option<ExportTraceServiceRequest> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).ok()? > 0 && line != "\r\n" {
        head.push(line.trim().to_lowercase());
        line.clear();
    }
    let header = |name: &str| head.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    assert!(head.first()?.starts_with("post /v1/traces "), "{head:?}");
    assert_eq!(header("content-type"), Some("application/x-protobuf"), "{head:?}");
    let mut body = vec![0; header("content-length").expect("a length").parse().expect("a number")];
    reader.read_exact(&mut body).expect("the body");
    Some(ExportTraceServiceRequest::decode(&*body).expect("OTLP"))
}

/// An attribute that is a text; empty without it.
fn text(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.clone()?.value) {
        Some(any_value::Value::StringValue(text)) => text,
        _ => String::new(),
    }
}

/// The value of the metric that counts spans.
fn counted(daemon: &Daemon, result: &str) -> u64 {
    let begin = format!("crownlabs_spans_total{{result=\"{result}\"}} ");
    let metrics = daemon.metrics();
    metrics.lines().find_map(|line| line.strip_prefix(&*begin)?.parse().ok()).unwrap_or_default()
}

#[test]
fn a_collector_gets_a_span_for_each_reconcile_up_to_the_last() {
    let lab = Lab::shared();
    lab.create_fixtures("spans");
    let collector = Collector::start(true);
    let (admin, config) = (lab.admin(), collector.config());
    let mut daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "spans", config: &config });
    lab.apply(&instance("spans", "one", "standalone"));
    lab.await_phase("tenant-spans", "one", "Ready");
    let spans = wait_until(PATIENCE, || {
        let spans = collector.spans("instance", "tenant-spans/one");
        (!spans.is_empty()).then_some(spans).ok_or_else(|| "spans".to_owned())
    });
    let span = spans.first().expect("a span");
    assert_eq!((&*span.name, span.trace_id.len(), span.span_id.len()), ("reconcile", 16, 8));
    assert!(
        span.start_time_unix_nano > 0 && span.start_time_unix_nano <= span.end_time_unix_nano,
        "{span:?}"
    );
    let resource = collector.requests()[0].resource_spans[0].resource.clone().expect("a resource").attributes;
    assert_eq!(text(&resource, "service.name"), "crownlabs");
    assert_eq!(text(&resource, "service.version"), env!("CARGO_PKG_VERSION"));
    assert!(!text(&resource, "service.instance.id").is_empty(), "{resource:?}");
    // What a reconcile has logged is part of its span.
    let events = |span: &Span| span.events.iter().map(|event| event.name.clone()).collect::<Vec<_>>();
    wait_until(PATIENCE, || {
        let spans = collector.spans("instance", "tenant-spans/one");
        let named: Vec<_> = spans.iter().flat_map(events).collect();
        named.iter().any(|name| name.contains("phase")).then_some(()).ok_or_else(|| format!("{named:?}"))
    });
    daemon.wait_for("the count", |daemon| counted(daemon, "sent") > 0);
    assert_eq!(counted(&daemon, "failed"), 0);
    // What has just ended is sent before the process ends.
    let before = daemon.reconciles("instance");
    lab.apply(&instance("spans", "last", "absent"));
    lab.await_fault("tenant-spans", "last", "TemplateNotFound");
    daemon.wait_for("the reconcile", |daemon| daemon.reconciles("instance") > before);
    daemon.signal("TERM");
    assert!(daemon.wait(PATIENCE).expect("it ends").success());
    assert!(!collector.spans("instance", "tenant-spans/last").is_empty());
    lab.delete_fixtures("spans");
}

#[test]
fn a_collector_that_hangs_or_is_away_delays_nothing() {
    let lab = Lab::shared();
    lab.create_fixtures("silent");
    let admin = lab.admin();
    let hangs = Collector::start(false);
    let away = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let away = Collector { address: away, received: Arc::default() };
    for (name, collector) in [("hangs", hangs), ("away", away)] {
        let config = collector.config();
        let mut daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "silent", config: &config });
        lab.apply(&instance("silent", name, "standalone"));
        lab.await_phase("tenant-silent", name, "Ready");
        daemon.wait_for("the failure", |daemon| counted(daemon, "failed") > 0);
        daemon.wait_for("the log", |daemon| daemon.log().contains("the collector takes no spans"));
        assert_eq!(counted(&daemon, "sent"), 0);
        // A span is left that cannot be sent: the end waits for it as long as it says, not longer.
        let before = daemon.reconciles("instance");
        lab.patch("instances", "tenant-silent", name, r#"{"spec": {"running": false}}"#);
        daemon.wait_for("the reconcile", |daemon| daemon.reconciles("instance") > before);
        let begin = Instant::now();
        daemon.signal("TERM");
        assert!(daemon.wait(PATIENCE).expect("it ends").success());
        assert!(begin.elapsed() < Duration::from_secs(10), "{name}: {:?}", begin.elapsed());
        assert!(daemon.log().contains("stopped"), "{}", daemon.log());
    }
    lab.delete_fixtures("silent");
}
