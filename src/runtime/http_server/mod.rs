//! The HTTP/1.1 server behind every port that the daemon listens on, with or without TLS. It accepts
//! connections, reads each request within [`Limits`], and gives it to a [`Handler`]. A handler may answer with a stream
//! ([`Body::stream`]), or with 101 and go on with the connection in another protocol (`hyper::upgrade`).
//!
//! Memory is bounded whatever clients send or do not take: by the number of connections, by what all long bodies take
//! together, by what all answers take that are not sent yet, by what the kernel keeps for each connection, and by the time after
//! which a connection ends whose client takes nothing. Short requests never wait for long ones.

mod body;
mod progress;
mod unsent;

pub use body::Body;

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, error, warn};

use self::body::Served;
use self::progress::Progress;
use self::unsent::Unsent;
use super::connections::{Connection, Open, accept};
use crate::api::shown;

/// Answers a request whose body has been read. A panic is answered with 500.
pub type Handler = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// Who has opened the connection that a request came by, in the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// Called with every response: the path of the request, the response, and the time between the headers of
/// the request and the response.
pub type Observer = Arc<dyn Fn(&str, &Response<Body>, Duration) + Send + Sync>;

/// A body up to this length, in bytes, is read at once; a longer one waits until the other long ones leave room.
const SHORT_BODY: usize = 64 << 10;
/// The most that a connection buffers of what it has not read yet, in bytes.
const READ_BUFFER: usize = 64 << 10;

/// How long a client has, when its connection has to end, to take the rest of an answer, or to send that of a request.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// The limits that clients have to keep.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most connections at the same time. For one more, the one that has waited longest for a request is closed.
    pub connections: usize,
    /// What the bodies of all requests that are longer than 64 KiB may take together, in bytes; at least [`Limits::body`].
    /// A request waits, within its `receive_timeout`, until there is room.
    pub long_bodies: usize,
    /// What the answers take together that clients have not taken yet, in bytes. For one more, the connections of the oldest ones are
    /// closed; of a single one, there is no limit.
    pub answers: usize,
    /// The largest body of a request, in bytes. A larger one is answered with 413.
    pub body: usize,
    /// How long the TLS handshake may take before the connection is closed, and how long the body of a
    /// request may take before it is answered with 408.
    pub receive_timeout: Duration,
    /// How long an open connection may be without a request, or a request without its last header,
    /// before it is closed.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what is there for it, before its connection is closed.
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

/// A response with that content type. In JSON and plain text, control characters are written out: who reads an answer in a
/// terminal sees what others wrote into it, and no more.
pub fn response(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let body = body.into();
    let escaped = match (content_type, std::str::from_utf8(&body)) {
        ("application/json", Ok(text)) => shown::escaped_json(text),
        (text_type, Ok(text)) if text_type.starts_with("text/plain") => shown::escaped_lines(text),
        _ => Cow::Borrowed(""),
    };
    let body = match escaped {
        Cow::Owned(text) => Bytes::from(text),
        Cow::Borrowed(_) => body,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A response in plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    response(status, "text/plain; charset=utf-8", body)
}

/// A handler that returns its response at once.
pub fn immediate(handle: impl Fn(&Request<Bytes>) -> Response<Bytes> + Send + Sync + 'static) -> Handler {
    Arc::new(move |request| ready(handle(&request).map(Body::from)).boxed())
}

/// A handler for GET and HEAD; `page` returns the response for a path, or `None` where there is none (404).
pub fn read_only(page: impl Fn(&str) -> Option<Response<Bytes>> + Send + Sync + 'static) -> Handler {
    immediate(move |request| {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            page(request.uri().path()).unwrap_or_else(|| text(StatusCode::NOT_FOUND, "no such page\n"))
        } else {
            text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n")
        }
    })
}

/// An HTTP server.
pub struct Server {
    /// The handler of the requests.
    pub handler: Handler,
    /// The observer of the responses, if any.
    pub observer: Option<Observer>,
    /// The limits that clients have to keep.
    pub limits: Limits,
    /// The acceptor of TLS connections, see [`Server::with_certificate`]; `None` for plain connections.
    pub tls: Option<TlsAcceptor>,
}

/// A server while it serves.
struct Running {
    server: Server,
    /// The bytes that long bodies may still take.
    long_bodies: Arc<Semaphore>,
    unsent: Arc<Unsent>,
}

impl Server {
    /// A server without TLS, with the default limits.
    pub fn new(handler: Handler) -> Self {
        Self { handler, observer: None, limits: Limits::default(), tls: None }
    }

    /// The same server with TLS. `certificate` is asked for the certificate of every new connection, and `clients`, if
    /// given, whether the certificate of the client is accepted.
    ///
    /// # Errors
    /// When the TLS library does not accept its own default versions.
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

    /// Serves until `stop` completes, and then until all requests that have arrived are answered. Streams end then. A client
    /// that is slow to send a request, or to take its answer, has a second for that.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let limit = self.limits.connections;
        let long_bodies = Arc::new(Semaphore::new(self.limits.long_bodies.max(self.limits.body)));
        let unsent = Unsent::new(self.limits.answers);
        let server = Arc::new(Running { server: self, long_bodies, unsent });
        let serve = |stream, address: SocketAddr, place| {
            Arc::clone(&server).connection(stream, Peer(address.ip().to_canonical()), place)
        };
        accept(listener, limit, stop, serve).await;
    }
}

impl Running {
    async fn connection(self: Arc<Self>, stream: TcpStream, peer: Peer, place: Connection) {
        let stream = match Progress::new(stream, self.server.limits.send_timeout) {
            Ok(stream) => stream,
            Err(error) => return debug!(%error, "a connection could not be prepared"),
        };
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
        let idle_timeout = self.server.limits.idle_timeout;
        let place = Arc::new(place);
        let of_requests = Arc::clone(&place);
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            let (server, place) = (Arc::clone(&self), Arc::clone(&of_requests));
            async move {
                place.serve();
                let response = server.respond(request, &place).await;
                Ok::<_, Infallible>(response.map(|body| Served::new(body, place, &server.unsent)))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(READ_BUFFER)
            .header_read_timeout(idle_timeout)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            is_in_the_way = place.ended() => {
                // It may have sent half of a request, and somebody else needs its place at once.
                if is_in_the_way && matches!(place.open(), Open::Fresh | Open::Untaken) {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                last_answer(connection, &place).await
            }
        };
        if let Err(error) = ended {
            debug!(%error, "a connection ended early");
        }
    }

    async fn respond(&self, request: Request<Incoming>, place: &Connection) -> Response<Body> {
        let begin = Instant::now();
        let (head, body) = request.into_parts();
        let uri = head.uri.clone();
        let answer = async {
            match self.read(body, place).await {
                // A long body keeps its room until it is answered.
                Ok((body, _room)) => (self.server.handler)(Request::from_parts(head, body)).await,
                Err((status, reason)) => text(status, reason + "\n").map(Body::from),
            }
        };
        // A panic in one request must not end the others of its connection.
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

    /// Reads the body of a request, and returns it with its room among the long ones. The error is the status and the
    /// text of the response instead.
    async fn read(
        &self,
        body: Incoming,
        place: &Connection,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Unread> {
        let Limits { body: limit, receive_timeout, .. } = self.server.limits;
        // Of a body that does not say its length, the longest is expected.
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

/// Completes when a connection that begins no further request has ended. It has a second, and as long as its request is
/// served.
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

/// The status and the text of the response to a request that could not be read.
type Unread = (StatusCode, String);

/// The body, of which `length` bytes are expected and `limit` bytes are allowed, in one piece.
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
