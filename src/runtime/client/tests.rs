use std::sync::Mutex;

use futures::FutureExt;
use serde_json::json;
use tower::service_fn;

use super::*;
use crate::runtime::api_server::ApiServer;
use crate::runtime::silent::SilentServer;

fn metrics() -> RequestMetrics {
    RequestMetrics { host: "here".into(), durations: Arc::default(), totals: Arc::default() }
}

/// A service behind this gate.
fn gated<S>(gate: &Gate, inner: S) -> Gated<S> {
    Gated { inner, url: "here".into(), gate: gate.clone(), metrics: metrics(), pauses: Pauses::default() }
}

fn answered(code: u16, retry_after: u64, body: &str) -> Answered {
    let retry_after = Some(Duration::from_secs(retry_after)).filter(|after| !after.is_zero());
    let code = StatusCode::from_u16(code).expect("a status code");
    Answered { code, retry_after, body: Bytes::copy_from_slice(body.as_bytes()) }
}

#[test]
fn an_error_has_the_message_of_the_api_server_or_its_proxy() {
    let status =
        json!({"kind": "Status", "code": 422, "reason": "Invalid", "message": "spec.x: no"}).to_string();
    assert_eq!(refusal(&answered(422, 0, &status)), ApiError::Invalid("spec.x: no".to_owned()));
    for (asked, expected) in [(0, None), (1, Some(Duration::from_secs(1))), (7, Some(Duration::from_secs(7)))]
    {
        let error = refusal(&answered(503, asked, " too busy\n"));
        let message = "HTTP 503: too busy".to_owned();
        assert_eq!(error, ApiError::Transient { message, retry_after: expected });
    }
    // If both the header and the body ask for a pause, the longer one counts.
    let status =
        json!({"kind": "Status", "code": 429, "message": "slowly", "details": {"retryAfterSeconds": 5}})
            .to_string();
    for (asked, expected) in [(0, 5), (4, 5), (6, 6)] {
        let error = refusal(&answered(429, asked, &status));
        assert_eq!(error.retry_after(), Duration::from_secs(expected));
    }
}

#[test]
fn only_reads_pass_a_closed_gate() {
    let gate = Gate::closed();
    let inner = service_fn(|_: Request<Body>| ready(Ok::<_, BoxError>(Response::new(()))));
    let mut service = gated(&gate, inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _inside = runtime.enter();
    let mut passes = |method: &Method| {
        let request = Request::builder().method(method).body(Body::empty()).expect("a request");
        let answer = service.call(request).now_or_never().expect("the service responds at once");
        answer.map(drop).map_err(|error| error.is::<NotLeader>())
    };
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert_eq!(passes(&method), Err(true), "{method}");
    }
    assert_eq!(passes(&Method::GET), Ok(()));
    gate.open_until(std::time::Instant::now() + Duration::from_mins(1));
    assert_eq!((passes(&Method::POST), passes(&Method::GET)), (Ok(()), Ok(())));
}

#[test]
fn requests_are_counted_by_code() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        let metrics = metrics();
        for code in [Some(200), Some(200), Some(409), None] {
            metrics.count(&Method::PUT, code, Duration::from_millis(1));
        }
    });
    let text = handle.render();
    for (code, count) in [("200", 2), ("409", 1), ("<error>", 1)] {
        let line =
            format!("rest_client_requests_total{{code=\"{code}\",method=\"PUT\",host=\"here\"}} {count}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_never_answered_fails_after_thirty_seconds() {
    let server = SilentServer::start();
    let writer = Writer::new(server.config(), Gate::open()).expect("a writer");
    for method in [Method::GET, Method::POST, Method::PATCH, Method::DELETE] {
        let begin = tokio::time::Instant::now();
        let request = Request::builder().method(&method).uri("/api/v1/pods").body(Full::default());
        let error = writer.send(request.expect("a request")).await.expect_err("no response");
        assert_eq!(error, ApiError::transient("the API server did not answer in time"), "{method}");
        assert_eq!(begin.elapsed().as_secs(), 30, "{method}");
        assert!(server.was_asked(), "{method}");
    }
    // `kube`'s client times out, too.
    let client = build(server.config(), Gate::open()).expect("a client");
    let begin = tokio::time::Instant::now();
    let request = Request::get("/api/v1/pods").body(Vec::new()).expect("a request");
    let error = client.request_text(request).await.expect_err("no response");
    let words = "no answer within 30 s; check the network, and the load of the API server";
    let expected = format!("the API server {} cannot be reached: {words}", server.config().cluster_url);
    assert_eq!((with_sources(&error), why(&error)), (expected, words.to_owned()));
    assert!(ApiError::from(error).is_transient());
    assert_eq!(begin.elapsed().as_secs(), 30);
    assert!(server.was_asked());
}

/// The requests: method, path with query, and time in seconds.
type Log = Arc<Mutex<Vec<(Method, String, u64)>>>;

/// A service that rejects every request with this status and `Retry-After: 7`.
fn refusing(
    code: u16,
    log: Log,
    begin: tokio::time::Instant,
) -> impl Service<Request<Body>, Response = Response<()>, Error = BoxError, Future: Send> {
    service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            let (method, path) = (request.method().clone(), request.uri().to_string());
            log.lock().expect("no panic").push((method, path, begin.elapsed().as_secs()));
            Ok(Response::builder()
                .status(code)
                .header(http::header::RETRY_AFTER, 7)
                .body(())
                .expect("an answer"))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_is_not_repeated_before_its_retry_after() {
    for code in [429, 503] {
        let (gate, log, begin) = (Gate::open(), Log::default(), tokio::time::Instant::now());
        let mut service = gated(&gate, refusing(code, Arc::clone(&log), begin));
        let mut send = |method: &Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Body::empty());
            service.call(request.expect("a request"))
        };
        let (list, watch) = ("/api/v1/pods?limit=100", "/api/v1/pods?watch=true");
        let lease = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l";
        for (method, path) in [
            (Method::GET, list),
            (Method::GET, watch),
            (Method::GET, "/api/v1/nodes"),
            (Method::PUT, lease),
            (Method::GET, lease),
            (Method::PUT, lease),
        ] {
            assert_eq!(send(&method, path).await.expect("an answer").status(), code);
        }
        let asked: Vec<_> = log.lock().expect("no panic").drain(..).collect();
        let asked: Vec<(&str, &str, u64)> =
            asked.iter().map(|(method, path, at)| (method.as_str(), path.as_str(), *at)).collect();
        assert_eq!(
            asked,
            [
                ("GET", list, 0),
                ("GET", watch, 7),
                ("GET", "/api/v1/nodes", 7),
                ("PUT", lease, 7),
                ("GET", lease, 7),
                ("PUT", lease, 14),
            ]
        );
        // A waiting write is not sent if the lease is lost meanwhile.
        let write = send(&Method::PUT, lease);
        gate.close();
        assert!(write.await.expect_err("not the leader").is::<NotLeader>());
        assert!(log.lock().expect("no panic").is_empty());
    }
}

/// Starts a server that responds with the status code in the path.
async fn server() -> ApiServer {
    ApiServer::start(|asked| (asked.name().parse().expect("a code"), json!("the answer"))).await
}

async fn send(writer: &Writer, method: Method, code: u16) -> Result<Bytes, ApiError> {
    let request = Request::builder().method(method).uri(format!("/{code}")).body(Full::default());
    writer.send(request.expect("a request")).await
}

#[tokio::test]
async fn a_response_is_an_error_from_400_on_and_is_counted_by_code() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let api = server().await;
    let writer = api.writer();
    for (code, is_accepted) in [(200, true), (201, true), (399, true), (400, false), (404, false)] {
        let answer = send(&writer, Method::PATCH, code).await;
        let expected = is_accepted.then(|| Bytes::from("\"the answer\""));
        assert_eq!(answer.ok(), expected, "{code}");
        let counted = format!("rest_client_requests_total{{code=\"{code}\",method=\"PATCH\"");
        assert!(handle.render().contains(&counted), "{counted}");
    }
}

#[tokio::test]
async fn a_writer_sends_only_reads_while_the_lease_is_not_held() {
    let api = server().await;
    let gate = Gate::closed();
    let writer = Writer::new(api.config.clone(), gate.clone()).expect("a writer");
    assert_eq!(send(&writer, Method::POST, 201).await, Err(ApiError::NotLeader));
    send(&writer, Method::GET, 200).await.expect("a read");
    assert_eq!(api.lines(), ["GET /200"]);
    gate.open_until(std::time::Instant::now() + Duration::from_mins(1));
    send(&writer, Method::POST, 201).await.expect("a write");
    send(&writer, Method::GET, 200).await.expect("a read");
    assert_eq!(api.lines(), ["POST /201", "GET /200"]);
}
