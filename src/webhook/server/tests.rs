//! Tests of the server with a TLS client on a socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http1 as client;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::runtime::certificate::pem::provider;
use crate::runtime::certificate::resolver::CertificateResolver;
use crate::runtime::clock;
use crate::webhook::certificate::bundle::Bundle;
use crate::webhook::certificate::clients::ClientVerifier;
use crate::webhook::decision::Denial;
use crate::webhook::setup::SERVED;

const NAME: &str = "webhook.example.org";

/// A certificate and its key.
type Certified = (CertificateDer<'static>, PrivateKeyDer<'static>);

fn bundle() -> Bundle {
    Bundle::create(&[NAME.to_owned()], clock::now()).expect("a bundle")
}

/// A server with a rule that admits, one that refuses, one that panics, and one that waits.
struct Server {
    address: SocketAddr,
    resolver: Arc<CertificateResolver>,
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), rustls::Error>>,
    /// Releases the rule that waits.
    release: Arc<Notify>,
    /// The number of requests that wait in that rule.
    waiting: watch::Receiver<usize>,
    calls: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(LIMITS).await
    }

    async fn start_with(limits: Limits) -> Self {
        Self::start_for(limits, None).await
    }

    /// Starts the server for clients with an accepted certificate.
    async fn start_for(limits: Limits, clients: Option<Arc<dyn ClientCertVerifier>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let (resolver, stop) = (Arc::new(CertificateResolver::new(SERVED)), watch::Sender::new(false));
        let (release, count, calls) = (Arc::new(Notify::new()), watch::Sender::new(0), Arc::default());
        let (released, waiting, called) = (Arc::clone(&release), count.subscribe(), Arc::clone(&calls));
        let admit: Rule = Arc::new(move |_| {
            AtomicUsize::fetch_add(&called, 1, Ordering::SeqCst);
            async { Decision::allowed().with_warning("look") }.boxed()
        });
        let refuse: Rule = Arc::new(|_| async { Decision::denied(Denial::forbidden("no")) }.boxed());
        let panic: Rule = Arc::new(|_| async { panic!("a defect") }.boxed());
        let wait: Rule = Arc::new(move |_| {
            let (released, count) = (Arc::clone(&released), count.clone());
            async move {
                let gone_on = released.notified();
                count.send_modify(|waiting| *waiting += 1);
                gone_on.await;
                Decision::allowed()
            }
            .boxed()
        });
        let rules = Rules::from([("/admit", admit), ("/refuse", refuse), ("/panic", panic), ("/wait", wait)]);
        let certificate: Arc<dyn ResolvesServerCert> = Arc::<CertificateResolver>::clone(&resolver);
        let task = tokio::spawn(serve(listener, certificate, clients, rules, limits, stop.subscribe()));
        Self { address, resolver, stop, task, release, waiting, calls }
    }

    /// Starts a server with a certificate, and returns it with the bundle of the certificate.
    async fn with_certificate() -> (Self, Bundle) {
        let (server, bundle) = (Self::start().await, bundle());
        server.resolver.set(bundle.certified().expect("a key"));
        (server, bundle)
    }

    /// Opens a connection that trusts the authorities of a bundle.
    async fn connect(&self, trusted: &Bundle) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_as(trusted, None).await
    }

    /// The same with a client certificate.
    async fn connect_as(
        &self,
        trusted: &Bundle,
        client: Option<Certified>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.authorities.iter().cloned());
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match client {
            Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).expect("a key"),
            None => config.with_no_client_auth(),
        };
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(NAME).expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    async fn sender(&self, trusted: &Bundle) -> client::SendRequest<Full<Bytes>> {
        let stream = self.connect(trusted).await.expect("a connection");
        let (sender, connection) = client::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        sender
    }
}

fn post(path: &str, body: impl Into<Bytes>) -> http::Request<Full<Bytes>> {
    http::Request::post(path).header("host", NAME).body(Full::new(body.into())).expect("a request")
}

fn review() -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "resource": {"group": "g", "version": "v", "resource": "r"}, "operation": "CREATE",
    }})
    .to_string()
}

async fn sent(
    sender: &mut client::SendRequest<Full<Bytes>>,
    request: http::Request<Full<Bytes>>,
) -> (u16, String) {
    sender.ready().await.expect("open");
    let response = sender.send_request(request).await.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn reviews_are_answered_and_other_requests_refused() {
    let (server, bundle) = Server::with_certificate().await;
    // All requests use one connection, and none of them closes it.
    let mut sender = server.sender(&bundle).await;
    let (status, answer) = sent(&mut sender, post("/admit", review())).await;
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(
        (status, &answer["response"]),
        (200, &json!({"uid": "u", "allowed": true, "warnings": ["look"]}))
    );
    let (status, answer) = sent(&mut sender, post("/refuse", review())).await;
    assert!(status == 200 && answer.contains(r#""code":403"#), "{answer}");
    let mut get = post("/admit", "");
    *get.method_mut() = Method::GET;
    for (request, expected) in [
        (post("/nowhere", review()), 404),
        (post("/", review()), 404),
        (get, 405),
        (post("/admit", "{}"), 400),
        (post("/admit", ""), 400),
        (post("/panic", review()), 500),
        (post("/panic", review()), 500),
        (post("/admit?timeout=5s", review()), 200),
    ] {
        let place = request.uri().to_string();
        let (status, answer) = sent(&mut sender, request).await;
        assert_eq!(status, expected, "{place}: {answer}");
    }
    assert_eq!(server.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn bodies_up_to_the_limit_are_read() {
    let (server, bundle) = Server::with_certificate().await;
    let padded = |length: usize| {
        let text = review();
        format!("{text}{}", " ".repeat(length - text.len()))
    };
    let mut sender = server.sender(&bundle).await;
    assert_eq!(sent(&mut sender, post("/admit", padded(LIMITS.body))).await.0, 200);
    assert_eq!(sent(&mut sender, post("/admit", padded(LIMITS.body + 1))).await.0, 413);
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_authority_fails() {
    let (server, _) = Server::with_certificate().await;
    let error = server.connect(&bundle()).await.expect_err("another authority").to_string();
    assert!(error.contains("UnknownIssuer") || error.contains("BadSignature"), "{error}");
}

/// Returns a client authority in PEM, and a client certificate that it has signed.
fn authority_of_clients() -> (String, Certified) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let trusted = params.self_signed(&key).expect("a certificate").pem();
    let authority = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &authority).expect("a certificate").der().clone();
    (trusted, (certificate, PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
}

#[tokio::test]
async fn a_client_with_a_certificate_of_another_authority_is_refused() {
    let ((trusted, ours), (_, theirs)) = (authority_of_clients(), authority_of_clients());
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), trusted).expect("written");
    let (clients, _) = ClientVerifier::watched(file.path());
    let (server, bundle) = (Server::start_for(LIMITS, Some(clients)).await, bundle());
    server.resolver.set(bundle.certified().expect("a key"));
    let mut answers = Vec::new();
    for client in [Some(ours), Some(theirs), None] {
        // A client with TLS 1.3 learns of a refusal only after it has sent its first bytes.
        let answer = async {
            let stream = server.connect_as(&bundle, client).await.map_err(|error| error.to_string())?;
            let (mut sender, connection) =
                client::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            let answer = sender.send_request(post("/admit", review())).await;
            answer.map(|answer| answer.status().as_u16()).map_err(|error| error.to_string())
        };
        answers.push(answer.await.ok());
    }
    assert_eq!(answers, [Some(200), None, None]);
    assert_eq!(server.calls.load(Ordering::SeqCst), 1, "the rule is not called for other clients");
}

#[tokio::test]
async fn the_certificate_changes_while_connections_last() {
    let server = Server::start().await;
    let (first, second) = (bundle(), bundle());
    server.connect(&first).await.expect_err("no certificate exists yet");
    assert!(server.resolver.watch().borrow().is_some(), "it is awaited");
    server.resolver.set(first.certified().expect("a key"));
    assert_eq!(*server.resolver.watch().borrow(), None);
    let mut open = server.sender(&first).await;
    assert_eq!(sent(&mut open, post("/admit", review())).await.0, 200);
    server.resolver.set(second.certified().expect("a key"));
    server.connect(&first).await.expect_err("the old certificate is no longer served");
    let mut new = server.sender(&second).await;
    for sender in [&mut open, &mut new] {
        assert_eq!(sent(sender, post("/admit", review())).await.0, 200);
    }
}

#[tokio::test]
async fn requests_that_have_begun_are_answered_during_shutdown() {
    let (server, bundle) = Server::with_certificate().await;
    let mut idle = server.sender(&bundle).await;
    assert_eq!(sent(&mut idle, post("/admit", review())).await.0, 200);
    let mut busy = server.sender(&bundle).await;
    let (done, answered) = oneshot::channel();
    tokio::spawn(async move { done.send(sent(&mut busy, post("/wait", review())).await) });
    server.waiting.clone().wait_for(|waiting| *waiting == 1).await.expect("it waits");
    server.stop.send_replace(true);
    // The idle connection is closed, and no new one is accepted.
    let closed = async {
        while idle.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), closed).await.expect("the idle connection is closed");
    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), refused).await.expect("the listener is closed");
    assert!(!server.task.is_finished());
    server.release.notify_waiters();
    assert_eq!(answered.await.expect("an answer").0, 200);
    server.task.await.expect("no panic").expect("no fault");
}

#[tokio::test(start_paused = true)]
async fn silent_clients_are_dropped_after_the_timeout() {
    let server = Server::start_with(Limits { receive_timeout: Duration::from_millis(300), ..LIMITS }).await;
    let bundle = bundle();
    server.resolver.set(bundle.certified().expect("a key"));
    // No handshake.
    let silent = TcpStream::connect(server.address).await.expect("a connection");
    silent.readable().await.expect("news");
    assert_eq!(silent.try_read(&mut [0; 16]).expect("the end"), 0);
    // A body that never arrives.
    let stream = server.connect(&bundle).await.expect("a connection");
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    let nothing = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let request = http::Request::post("/admit").header("host", NAME).body(nothing).expect("a request");
    assert_eq!(sender.send_request(request).await.expect("an answer").status(), 408);
}

#[test]
fn answers_are_counted_by_path_and_code() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (server, bundle) = Server::with_certificate().await;
            let mut sender = server.sender(&bundle).await;
            for path in ["/admit", "/admit", "/refuse", "/panic", "/nowhere"] {
                sent(&mut sender, post(path, review())).await;
            }
        });
    });
    let text = handle.render();
    for line in [
        "controller_runtime_webhook_requests_total{webhook=\"/admit\",code=\"200\"} 2",
        "controller_runtime_webhook_requests_total{webhook=\"/refuse\",code=\"200\"} 1",
        "controller_runtime_webhook_requests_total{webhook=\"/panic\",code=\"500\"} 1",
        "controller_runtime_webhook_requests_total{webhook=\"/wait\",code=\"200\"} 0",
        "controller_runtime_webhook_latency_seconds_count{webhook=\"/admit\"} 2",
        "crownlabs_webhook_certificate_expiration_timestamp_seconds ",
    ] {
        assert!(text.contains(line), "{line} is missing:\n{text}");
    }
    assert!(!text.contains("nowhere"), "{text}");
}
