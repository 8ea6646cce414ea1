//! The client against a scripted server: cases that Prometheus itself causes only when it is old, overloaded or
//! behind a proxy. The queries are tested with a real Prometheus in `tests/integration`.

use std::convert::Infallible;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::config::ConfigDuration;
use crate::fixtures::at;
use crate::runtime::clock::rfc3339;

/// A request that the server received.
#[derive(Clone)]
struct Seen {
    method: Method,
    path: String,
    authorization: String,
    /// The parameters of a query, from the body or the URL.
    parameters: String,
}

impl Seen {
    fn is_for(&self, text: &str) -> bool {
        self.parameters.contains(text)
    }
}

type Script = dyn Fn(&Seen) -> (u16, Value) + Send + Sync;
type Log = Arc<Mutex<Vec<Seen>>>;

/// A server that responds according to a script.
struct Scripted {
    seen: Log,
    config: PrometheusConfig,
}

impl Scripted {
    async fn start(script: impl Fn(&Seen) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/prefix/", listener.local_addr().unwrap());
        let seen = Log::default();
        tokio::spawn(serve(listener, Arc::clone(&seen), Arc::new(script)));
        let config = PrometheusConfig { url, ..PrometheusConfig::default() };
        Self { seen, config }
    }

    async fn activity(&self) -> Activity {
        let prometheus = Prometheus::new(&self.config).unwrap();
        prometheus.activity(at(NOW - 3_600), at(NOW)).await
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap()
    }
}

async fn serve(listener: TcpListener, seen: Log, script: Arc<Script>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
            async move {
                let (head, body) = request.into_parts();
                let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
                let authorization = head.headers.get(header::AUTHORIZATION);
                let one = Seen {
                    method: head.method,
                    path: head.uri.path().to_owned(),
                    authorization: authorization.map_or("", |value| value.to_str().unwrap()).to_owned(),
                    parameters: format!("{body}{}", head.uri.query().unwrap_or_default()),
                };
                let (status, body) = script(&one);
                seen.lock().unwrap().push(one);
                if status == SILENT {
                    std::future::pending::<()>().await;
                }
                let body = Full::new(Bytes::from(body.to_string()));
                Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// A status that stands for no response.
const SILENT: u16 = 0;
const NOW: i64 = 1_790_000_123;

/// A response with these series.
fn vector(series: &Value) -> (u16, Value) {
    (200, json!({"status": "success", "data": {"resultType": "vector", "result": series}}))
}

/// The responses of a server with complete data of every source, and with one use of the address 10.0.0.1 by SSH.
fn healthy(seen: &Seen) -> (u16, Value) {
    if seen.is_for("min_over_time") || seen.is_for("unless+on+%28%29+%28max_over_time") {
        vector(&json!([]))
    } else if seen.is_for("bastion_ssh_connections") {
        vector(&json!([{"metric": {"destination_ip": "10.0.0.1"}, "value": [NOW, "1789999800"]}]))
    } else if seen.is_for("last_over_time") || seen.is_for("open_connections") {
        vector(&json!([]))
    } else {
        vector(&json!([{"metric": {}, "value": [NOW, "2"]}]))
    }
}

fn machine(address: &str) -> Target<'_> {
    Target { namespace: "tenant-a", instance: "x", environments: &[], address }
}

#[tokio::test(start_paused = true)]
async fn a_round_with_all_responses_is_complete() {
    let server = Scripted::start(healthy).await;
    let activity = server.activity().await;
    assert_eq!(activity.problems(), [""; 0]);
    assert!(activity.is_complete());
    assert_eq!((activity.since, activity.until), (at(NOW - 3_600), at(NOW)));
    assert_eq!(activity.observed_since(), Some(at(NOW - 3_600)));
    assert_eq!(activity.last_use(&machine("10.0.0.1")), Some((at(1_789_999_800), "ssh")));
    assert_eq!(activity.last_use(&machine("10.0.0.2")), None);
    assert_eq!(activity.last_use(&machine("")), None);
    let seen = server.seen();
    // One request for health, and for each source three: now, the history, one part. The SSH sources share one
    // availability query.
    assert_eq!(seen.len(), 11);
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("GET", "/prefix/-/healthy"));
    assert!(seen[1..].iter().all(|seen| seen.method == Method::POST && seen.path == "/prefix/api/v1/query"));
    assert!(seen[1..].iter().all(|seen| seen.is_for("&time=") && seen.is_for("&timeout=5000ms")));
    assert!(seen.iter().all(|seen| seen.authorization.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn the_token_is_sent_and_read_again() {
    let mut server = Scripted::start(healthy).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    server.config.bearer_token_file = file.display().to_string();
    let prometheus = Prometheus::new(&server.config).unwrap();
    for token in ["one", "two"] {
        fs::write(&file, format!("{token}\n")).unwrap();
        assert!(prometheus.activity(at(NOW - 3_600), at(NOW)).await.is_complete());
        let expected = format!("Bearer {token}");
        assert!(server.seen().drain(..).all(|seen| seen.authorization == expected));
    }
    fs::write(&file, "\n").unwrap();
    let activity = prometheus.activity(at(NOW - 3_600), at(NOW)).await;
    assert!(server.seen().is_empty(), "nothing is sent without the token");
    assert!(!activity.is_complete());
    let problem = &activity.problems()[1];
    assert!(
        problem.starts_with("the source ssh cannot be read from Prometheus at http://127.0.0.1:"),
        "{problem}"
    );
    assert!(problem.ends_with("/token cannot be used: it is empty; write the value into it"), "{problem}");
    assert!(!format!("{prometheus:?}").contains("two"));
}

#[tokio::test(start_paused = true)]
async fn get_is_used_if_post_is_rejected() {
    for status in [405, 501] {
        let server =
            Scripted::start(
                move |seen| {
                    if seen.method == Method::POST { (status, Value::Null) } else { healthy(seen) }
                },
            );
        let server = server.await;
        let activity = server.activity().await;
        assert_eq!(activity.problems(), [""; 0]);
        assert_eq!(activity.last_use(&machine("10.0.0.1")), Some((at(1_789_999_800), "ssh")));
        let posts = server.seen().iter().filter(|seen| seen.method == Method::POST).count();
        assert_eq!(posts, 1, "only the first query");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_server_is_not_queried() {
    let server = Scripted::start(|seen| match &*seen.path {
        "/prefix/-/healthy" => (503, Value::Null),
        _ => healthy(seen),
    });
    let server = server.await;
    let activity = server.activity().await;
    assert_eq!(server.seen().len(), 1);
    assert!(!activity.is_complete());
    assert_eq!(activity.observed_since(), None);
    let problems = activity.problems();
    assert_eq!(problems.len(), 4);
    for (problem, source) in problems.iter().zip(["ingress", "ssh", "webSsh", "open"]) {
        assert!(problem.starts_with(&format!("the source {source} cannot be read")), "{problem}");
        assert!(
            problem.ends_with("it says that it is not healthy (HTTP 503 Service Unavailable)"),
            "{problem}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_warning_makes_the_source_incomplete_and_keeps_its_uses() {
    let server = Scripted::start(|seen| {
        let (status, mut answer) = healthy(seen);
        if seen.is_for("bastion_ssh_connections") && seen.is_for("last_over_time") {
            answer["warnings"] = json!(["a store does not answer"]);
        }
        (status, answer)
    });
    let activity = server.await.activity().await;
    assert_eq!(activity.problems(), ["Prometheus warns about the source ssh: a store does not answer"]);
    assert!(!activity.is_complete());
    assert_eq!(activity.last_use(&machine("10.0.0.1")), Some((at(1_789_999_800), "ssh")));
}

#[tokio::test(start_paused = true)]
async fn a_failing_source_is_not_queried_further_but_other_sources_are() {
    let server =
        Scripted::start(|seen| if seen.is_for("webssh") { (502, json!("<html>")) } else { healthy(seen) });
    let server = server.await;
    let activity = server.activity().await;
    let problems = activity.problems();
    assert!(problems.len() == 1 && problems[0].contains("webSsh"), "{problems:?}");
    assert!(problems[0].ends_with("the answer is HTTP 502 Bad Gateway"), "{problems:?}");
    assert_eq!(server.seen().iter().filter(|seen| seen.is_for("webssh")).count(), 1);
    assert_eq!(server.seen().iter().filter(|seen| seen.is_for("bastion_web_ssh")).count(), 0);
    assert_eq!(activity.last_use(&machine("10.0.0.1")), Some((at(1_789_999_800), "ssh")));
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_one_timeout_for_each_source() {
    let mut server =
        Scripted::start(|seen| if seen.is_for("query=") { (SILENT, Value::Null) } else { healthy(seen) })
            .await;
    server.config.timeout = ConfigDuration::from_millis(300);
    let begin = tokio::time::Instant::now();
    let activity = server.activity().await;
    let took = begin.elapsed();
    // A timer of the runtime may be late by a millisecond.
    assert!((Duration::from_millis(1_200)..Duration::from_millis(1_210)).contains(&took), "{took:?}");
    assert_eq!(activity.problems().len(), 4);
    assert!(activity.problems()[0].ends_with(": no answer within 300ms"), "{:?}", activity.problems());
}

#[tokio::test(start_paused = true)]
async fn a_gap_of_a_source_is_reported() {
    // It exists again since 1,800 s.
    let missing = NOW / 300 * 300 - 2_100;
    let server = Scripted::start(move |seen| {
        let is_history = seen.is_for("unless+on+%28%29+%28max_over_time") && seen.is_for("webssh");
        if is_history {
            vector(&json!([{"metric": {}, "value": [NOW, missing.to_string()]}]))
        } else {
            healthy(seen)
        }
    });
    let activity = server.await.activity().await;
    let begin = at(missing + 300);
    assert_eq!(
        activity.problems(),
        [format!("the source webSsh was missing in Prometheus before {}", rfc3339(begin))]
    );
    assert!(!activity.is_complete());
    assert_eq!(activity.observed_since(), Some(begin));
}

#[tokio::test(start_paused = true)]
async fn disabled_sources_are_not_queried() {
    let mut server = Scripted::start(healthy).await;
    server.config.queries.nginx_data = String::new();
    server.config.queries.web_ssh_data = String::new();
    assert!(server.activity().await.is_complete());
    // Open connections come from a bastion.
    assert_eq!(server.seen().len(), 5);
    server.config.queries.bastion_ssh_data = String::new();
    assert!(!server.activity().await.is_complete(), "without a source, nothing is known");
}

#[test]
fn invalid_settings_are_reported_before_the_first_request() {
    let setup = |change: fn(&mut PrometheusConfig)| {
        let mut config =
            PrometheusConfig { url: "http://127.0.0.1:1".to_owned(), ..PrometheusConfig::default() };
        change(&mut config);
        Prometheus::new(&config).map(drop).unwrap_err().to_string()
    };
    assert_eq!(
        setup(|config| config.queries.web_ssh_data = "c{ip=%s}".to_owned()),
        "integrations.prometheus.queries.webSshData: %s is not in quotes; write \"%s\" or %q"
    );
    assert!(setup(|config| config.url = String::new()).starts_with("integrations.prometheus.url: "));
    let error = setup(|config| config.ca_file = "/does/not/exist".to_owned());
    assert!(
        error.starts_with("integrations.prometheus.caFile: /does/not/exist cannot be used: its folder does"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_queries_is_an_outage_until_it_answers_one() {
    let is_refused = Arc::new(AtomicBool::new(true));
    let refuses = Arc::clone(&is_refused);
    let server = Scripted::start(move |seen| match seen.path.as_str() {
        "/prefix/api/v1/query" if refuses.load(Ordering::SeqCst) => (401, Value::Null),
        _ => healthy(seen),
    })
    .await;
    let outages = Outages::default();
    let prometheus = Prometheus::new(&server.config).unwrap().reporting_to(&outages);
    prometheus.activity(at(NOW - 3_600), at(NOW)).await;
    assert!(outages.lines().ends_with(": the answer is HTTP 401 Unauthorized\n"), "{}", outages.lines());
    assert_eq!(prometheus.ask().await, Err("the answer is HTTP 401 Unauthorized".to_owned()));
    is_refused.store(false, Ordering::SeqCst);
    prometheus.activity(at(NOW - 3_600), at(NOW)).await;
    assert_eq!(outages.lines(), "");
    assert_eq!(prometheus.ask().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_queries_all_fail_is_an_outage_until_it_answers_one() {
    let busy = json!({"status": "error", "errorType": "timeout", "error": "query timed out"});
    // The response to all queries, or to all but some, and the end of the line about the outage.
    for (status, body, error) in [
        (SILENT, Value::Null, "no answer within 300ms"),
        (503, busy, "query timed out"),
        (502, json!("<html>"), "the answer is HTTP 502 Bad Gateway"),
    ] {
        let answers = Arc::new(AtomicBool::new(false));
        let does_answer = Arc::clone(&answers);
        let mut server = Scripted::start(move |seen| {
            let is_one = seen.is_for("webssh") && does_answer.load(Ordering::SeqCst);
            if seen.is_for("query=") && !is_one { (status, body.clone()) } else { healthy(seen) }
        })
        .await;
        if status == SILENT {
            server.config.timeout = ConfigDuration::from_millis(300);
        }
        let outages = Outages::default();
        let prometheus = Prometheus::new(&server.config).unwrap().reporting_to(&outages);
        let round = async || {
            prometheus.activity(at(NOW - 3_600), at(NOW)).await;
            outages.lines()
        };
        let ends = |lines: &str| lines.lines().count() == 1 && lines.trim_end().ends_with(error);
        let lines = round().await;
        assert!(ends(&lines), "{lines}");
        // Prometheus is healthy, but that does not end the outage.
        let lines = round().await;
        assert!(ends(&lines), "{lines}");
        assert!(prometheus.ask().await.is_err(), "{error}");
        answers.store(true, Ordering::SeqCst);
        let lines = round().await;
        // A proxy without a server behind it would affect all queries.
        assert_eq!(lines.is_empty(), status != 502, "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_of_the_connection_needs_one_query_that_has_a_result() {
    let refusal = json!({"status": "error", "errorType": "bad_data", "error": "parse error"});
    for (refused, expected) in [("nginx", true), ("query=", false)] {
        let refusal = refusal.clone();
        let server =
            Scripted::start(
                move |seen| {
                    if seen.is_for(refused) { (400, refusal.clone()) } else { healthy(seen) }
                },
            )
            .await;
        let result = Prometheus::new(&server.config).unwrap().ask().await;
        assert_eq!(result.is_ok(), expected, "{refused}: {result:?}");
    }
}
