//! The HTTP/1.1 server behind every port that the daemon listens on, with or without TLS. It accepts connections, reads
//! each request within [`Limits`], and passes it to a [`Handler`]. A handler may respond with a stream
//! ([`Body::stream`]), after a wait ([`Body::late`]), or with 101 and continue the connection in another protocol
//! (`hyper::upgrade`).
//!
//! Memory is bounded for any client. The limits are the number of connections, the total size of long request bodies,
//! the total size of unsent responses, the kernel's buffer for each connection, and the time that a client may read
//! nothing. Short requests never wait for long ones.

mod body;
mod handlers;
mod progress;
mod streams;
mod unsent;

pub use body::Body;
pub use handlers::{immediate, read_only, response, text};

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use rustls::server::danger::ClientCertVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, error, warn};

use self::progress::{Progress, prepare};
use self::streams::{Streaming, streaming};
use self::unsent::Unsent;
use super::connections::{Connection, Open, UNREAD, accept};

/// Handles a request whose body was read. A panic results in a 500 response.
pub type Handler = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// The client of the connection that a request arrived on, in the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// Called with every response: the path of the request, the response, and the time between the request's headers and
/// the response.
pub type Observer = Arc<dyn Fn(&str, &Response<Body>, Duration) + Send + Sync>;

/// The maximum length in bytes of a body that is read at once; a longer one waits for space in the budget for long
/// bodies.
const SHORT_BODY: usize = 64 << 10;
/// The maximum number of unread bytes that a connection buffers.
const READ_BUFFER: usize = 64 << 10;

/// The time that a client has, when its connection has to close, to read the rest of a response or to send the rest of
/// a request.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// The limits for clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of concurrent connections, without streams. If there is another one, the connection that has
    /// waited longest for a complete request is closed.
    pub connections: usize,
    /// The maximum total size of all request bodies longer than 64 KiB, in bytes; at least [`Limits::body`]. A request
    /// waits for space within its `receive_timeout`.
    pub long_bodies: usize,
    /// The maximum total size of responses that clients have not read yet, in bytes. A new response beyond it closes
    /// the connections of the oldest ones. A single response may exceed it.
    pub answers: usize,
    /// The maximum size of a request body, in bytes. A larger one gets a 413 response.
    pub body: usize,
    /// The time limit of the TLS handshake and of a request body. A late handshake closes the connection; a late body
    /// gets a 408 response.
    pub receive_timeout: Duration,
    /// The time that an open connection may be without a request, or a request without its last header, before the
    /// connection is closed.
    pub idle_timeout: Duration,
    /// The time that a client may read nothing of the available data before its connection is closed.
    pub send_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            long_bodies: 1 << 20,
            answers: 16 << 20,
            body: 256 << 10,
            receive_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            send_timeout: Duration::from_secs(30),
        }
    }
}

/// Binds the address of a server. `key` is the configuration key that holds the address.
///
/// # Errors
/// When the address is in use or does not belong to this host; the message names key and address.
pub async fn bind(key: &str, address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("{key}: cannot listen on {address}: {error}")))
}

/// An HTTP server.
pub struct Server {
    /// The handler of the requests.
    pub handler: Handler,
    /// The observer of the responses, if any.
    pub observer: Option<Observer>,
    /// The limits for clients.
    pub limits: Limits,
    /// The acceptor of TLS connections, see [`Server::with_certificate`]; `None` for plain connections.
    pub tls: Option<TlsAcceptor>,
}

/// A running server.
struct Running {
    server: Server,
    /// The bytes that are left for long bodies.
    long_bodies: Arc<Semaphore>,
    unsent: Arc<Unsent>,
}

impl Server {
    /// Creates a server without TLS, with the default limits.
    pub fn new(handler: Handler) -> Self {
        Self { handler, observer: None, limits: Limits::default(), tls: None }
    }

    /// Adds TLS. `certificate` returns the certificate for every new connection, and `clients`, if given, verifies
    /// client certificates.
    ///
    /// # Errors
    /// When the TLS library rejects its own default versions.
    pub fn with_certificate(
        self,
        certificate: Arc<dyn ResolvesServerCert>,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<Self, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?;
        let builder = match clients {
            Some(clients) => builder.with_client_cert_verifier(clients),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(certificate);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Some(TlsAcceptor::from(Arc::new(config))), ..self })
    }

    /// Serves until `stop` completes, and then until all requests that have arrived got a response. Streams end at the
    /// stop. A client that is slow to send a request or to read its response has one more second.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let Limits { connections: limit, receive_timeout, idle_timeout, .. } = self.limits;
        // The first byte of a TLS connection belongs to its handshake.
        let silence = if self.tls.is_some() { receive_timeout } else { idle_timeout };
        let long_bodies = Arc::new(Semaphore::new(self.limits.long_bodies.max(self.limits.body)));
        let unsent = Unsent::new(self.limits.answers);
        let server = Arc::new(Running { server: self, long_bodies, unsent });
        let serve = move |stream, address: SocketAddr, place| {
            Arc::clone(&server).connection(stream, Peer(address.ip().to_canonical()), place)
        };
        // The first letter of a method. A TLS connection does not show it.
        let is_write = |first| matches!(first, b'P' | b'D');
        accept(listener, limit, silence, is_write, stop, serve).await;
    }
}

impl Running {
    async fn connection(self: Arc<Self>, stream: TcpStream, peer: Peer, place: Connection) {
        if let Err(error) = prepare(&stream, self.server.limits.send_timeout) {
            return debug!(%error, "a connection could not be prepared");
        }
        let Some(acceptor) = &self.server.tls else {
            return self.requests(stream, peer, place).await;
        };
        let shaken = tokio::select! {
            shaken = timeout(self.server.limits.receive_timeout, acceptor.accept(stream)) => shaken,
            _ = place.ended() => return,
        };
        match shaken {
            Ok(Ok(stream)) => self.requests(stream, peer, place).await,
            Ok(Err(error)) => warn!(%error, "the TLS handshake with a client failed"),
            Err(_) => debug!("a client did not finish the TLS handshake in time"),
        }
    }

    async fn requests<S>(self: Arc<Self>, stream: S, peer: Peer, place: Connection)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Limits { idle_timeout, send_timeout, .. } = self.server.limits;
        let stream = Progress::new(stream, send_timeout);
        let (place, socket) = (Arc::new(place), stream.clone());
        let (streams, mut streaming) = mpsc::channel(1);
        let of_requests = Arc::clone(&place);
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            let (server, place, streams) = (Arc::clone(&self), Arc::clone(&of_requests), streams.clone());
            async move { Ok::<_, Infallible>(server.answer(request, &place, &streams).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(READ_BUFFER)
            .header_read_timeout(idle_timeout)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = Box::pin(connection);
        let served = async {
            tokio::select! {
                ended = &mut connection => ended,
                is_in_the_way = place.ended() => {
                    if place.open() != Open::Untaken
                        && let Ok(ended) = timeout(UNREAD, &mut connection).await
                    {
                        return ended;
                    }
                    // The connection may have sent half of a request, and its slot is needed at once.
                    if is_in_the_way && matches!(place.open(), Open::Fresh | Open::Untaken) {
                        return Ok(());
                    }
                    connection.as_mut().graceful_shutdown();
                    last_answer(connection.as_mut(), &place).await
                }
            }
        };
        tokio::select! {
            ended = served => if let Err(error) = ended {
                debug!(%error, "a connection ended early");
            },
            Some(response) = streaming.recv() => {
                drop(connection);
                place.stream();
                tokio::spawn(streams::send(response, socket, place));
            }
        }
    }

    /// Returns the response to a request. A stream is passed on instead, and ends the HTTP connection.
    async fn answer(
        &self,
        request: Request<Incoming>,
        place: &Arc<Connection>,
        streams: &mpsc::Sender<Streaming>,
    ) -> Response<Full<Bytes>> {
        let is_head = request.method() == Method::HEAD;
        let (mut head, body) = self.respond(request, place).await.into_parts();
        let bytes = match body {
            Body::Whole(bytes) => bytes,
            Body::Stream(_) if is_head => Bytes::new(),
            body @ (Body::Stream(_) | Body::Late(_)) => {
                // The receiver drops this future.
                let _ = streams.send(streaming(&head, body, is_head)).await;
                return pending().await;
            }
        };
        if head.status != StatusCode::SWITCHING_PROTOCOLS && !place.keep() {
            // The client has to know before its next request: the connection may have to close for a new one.
            head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        place.wait();
        Response::from_parts(head, Full::new(self.unsent.count(bytes, place)))
    }

    async fn respond(&self, request: Request<Incoming>, place: &Connection) -> Response<Body> {
        let begin = Instant::now();
        let (head, body) = request.into_parts();
        let uri = head.uri.clone();
        let answer = async {
            place.wait();
            match self.read(body, place).await {
                // A long body keeps its share of the budget until the response.
                Ok((body, _room)) => {
                    place.serve();
                    (self.server.handler)(Request::from_parts(head, body)).await
                }
                Err((status, reason)) => text(status, reason + "\n").map(Body::from),
            }
        };
        // A panic in one request must not affect the other requests of its connection.
        let response = AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
            let message = "the handler panicked; this is a defect of the daemon";
            error!(path = uri.path(), "{message}");
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("{message}\n")).map(Body::from)
        });
        if let Some(observe) = &self.server.observer {
            observe(uri.path(), &response, begin.elapsed());
        }
        response
    }

    /// Reads the body of a request, and returns it with its share of the budget for long bodies. The error is the
    /// status and text of the response to send instead.
    async fn read(
        &self,
        body: Incoming,
        place: &Connection,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Unread> {
        let Limits { body: limit, receive_timeout, .. } = self.server.limits;
        // A body without a content length may have the maximum length.
        let length = body.size_hint().upper().and_then(|length| usize::try_from(length).ok());
        let length = length.map_or(limit, |length| length.min(limit));
        let read = async {
            let room = match u32::try_from(length) {
                Ok(room) if length > SHORT_BODY => {
                    // The semaphore is never closed.
                    Arc::clone(&self.long_bodies).acquire_many_owned(room).await.ok()
                }
                _ => None,
            };
            Ok((collect(body, length, limit).await?, room))
        };
        let late = async {
            tokio::select! {
                () = sleep(receive_timeout) => {}
                () = async { place.stopping().await; sleep(LAST_ANSWER).await } => {}
            }
        };
        tokio::select! {
            read = read => read,
            () = late => Err((StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time".to_owned())),
        }
    }
}

/// Completes when a connection that accepts no further request is closed. It has a second, extended while its request
/// is being handled.
async fn last_answer<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    place: &Connection,
) -> hyper::Result<()> {
    loop {
        match timeout(LAST_ANSWER, &mut connection).await {
            Ok(ended) => return ended,
            Err(_) if place.open() == Open::Serving => {}
            Err(_) => return Ok(()),
        }
    }
}

/// The status and text of the response to a request that could not be read.
type Unread = (StatusCode, String);

/// Collects the body, which is expected to have `length` bytes and must not exceed `limit` bytes.
async fn collect(mut body: Incoming, length: usize, limit: usize) -> Result<Bytes, Unread> {
    let mut whole = Vec::with_capacity(length);
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| (StatusCode::BAD_REQUEST, format!("the request broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > limit {
            let message = format!("the request is longer than {limit} bytes");
            return Err((StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

#[cfg(test)]
mod tests;
