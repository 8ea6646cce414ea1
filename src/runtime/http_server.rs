//! The plain HTTP servers: probes, metrics, events.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tracing::debug;

/// A page: its status and its text.
pub struct Page {
    /// HTTP status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Body.
    pub body: String,
}

impl Page {
    /// A page of plain text.
    pub fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// Answers a request, of which the body has been read.
pub type Handler = Arc<dyn Fn(&Request<Bytes>) -> Page + Send + Sync>;

/// A longer body is refused.
const BODY_LIMIT: usize = 256 << 10;
/// A client that has not sent its request after this long has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves pages that can only be read; `pages` finds the one of a path.
pub fn read_only(pages: impl Fn(&str) -> Option<Page> + Send + Sync + 'static) -> Handler {
    Arc::new(move |request| {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            let page = pages(request.uri().path());
            page.unwrap_or_else(|| Page::text(StatusCode::NOT_FOUND, "no such page\n"))
        } else {
            Page::text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n")
        }
    })
}

/// Binds the address of a server.
///
/// # Errors
/// When the address is in use or not ours; the message names it.
pub async fn bind(what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| anyhow::anyhow!("server.{what}: cannot listen on {address}: {error}"))
}

/// Serves, for ever.
pub async fn serve(listener: TcpListener, handler: Handler) {
    loop {
        let connection = match listener.accept().await {
            Ok((connection, _)) => connection,
            Err(error) => {
                // Out of file descriptors, or a connection that was gone before we took it.
                debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let handler = Arc::clone(&handler);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let handler = Arc::clone(&handler);
                async move { Ok::<_, Infallible>(answer(&handler, request).await) }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(30))
                .serve_connection(TokioIo::new(connection), service)
                .await;
            if let Err(error) = served {
                debug!(%error, "a connection ended early");
            }
        });
    }
}

async fn answer(handler: &Handler, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let page = match tokio::time::timeout(PATIENCE, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => handler(&Request::from_parts(head, body.to_bytes())),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Page::text(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long\n")
        }
        Ok(Err(_)) => Page::text(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be read\n"),
        Err(_) => Page::text(StatusCode::REQUEST_TIMEOUT, "the request took too long\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from(page.body)));
    *response.status_mut() = page.status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(page.content_type));
    response
}
