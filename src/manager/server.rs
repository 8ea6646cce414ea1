//! The probe and metrics servers: plain HTTP, read-only.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
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

/// Finds the page of a path; `None` where there is none.
pub type Pages = Arc<dyn Fn(&str) -> Option<Page> + Send + Sync>;

/// Binds the address of a server.
///
/// # Errors
/// When the address is in use or not ours; the message names it.
pub async fn bind(what: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| anyhow::anyhow!("server.{what}: cannot listen on {address}: {error}"))
}

/// Serves pages, for ever.
pub async fn serve(listener: TcpListener, pages: Pages) {
    loop {
        let connection = match listener.accept().await {
            Ok((connection, _)) => connection,
            Err(error) => {
                // Out of file descriptors, or a connection that was gone before we took it.
                debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let pages = Arc::clone(&pages);
        tokio::spawn(async move {
            let service = service_fn(move |request| ready(Ok::<_, Infallible>(answer(&pages, &request))));
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(std::time::Duration::from_secs(30))
                .serve_connection(TokioIo::new(connection), service)
                .await;
            if let Err(error) = served {
                debug!(%error, "a probe connection ended early");
            }
        });
    }
}

fn answer(pages: &Pages, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let page = if matches!(*request.method(), Method::GET | Method::HEAD) {
        pages(request.uri().path()).unwrap_or_else(|| Page::text(StatusCode::NOT_FOUND, "no such page\n"))
    } else {
        Page::text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n")
    };
    let mut response = Response::new(Full::new(Bytes::from(page.body)));
    *response.status_mut() = page.status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(page.content_type));
    response
}
