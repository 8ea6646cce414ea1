//! A gRPC server: HTTP/2 without TLS, for services inside the cluster. Memory is bounded for any client: by the number
//! of connections and by the number of requests in each. If there are too many connections, the one that has waited
//! longest closes. The handler limits the length of messages.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tracing::debug;

use super::connections::{Connection, UNREAD, accept};

/// Handles a request, including its body.
pub type Handler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// The maximum number of concurrent connections.
const CONNECTIONS: usize = 256;
/// The maximum number of concurrent requests in one connection.
const REQUESTS: u32 = 16;
/// The flow control window in bytes. It is the minimum that HTTP/2 allows, and larger than any request.
const WINDOW: u32 = 65_535;
/// The maximum size of a request's headers, in bytes.
const LONGEST_HEADERS: u32 = 8 << 10;
/// The time limit for a request to arrive and for its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The server checks that the client still responds after a connection was idle for this long.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// The time limit of a connection that is asked to close. Its requests are processed until then.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Serves until `stop` completes, and then for up to 5 s, so that running requests can finish.
pub async fn serve(listener: TcpListener, handler: Handler, stop: impl Future<Output = ()>) {
    let serve = move |stream, _, place| connection(stream, Arc::clone(&handler), place);
    accept(listener, CONNECTIONS, KEEP_ALIVE, |_| false, stop, serve).await;
}

async fn connection(stream: TcpStream, handler: Handler, place: Connection) {
    let place = Arc::new(place);
    let of_requests = Arc::clone(&place);
    let service = service_fn(move |request| {
        let (handler, place) = (Arc::clone(&handler), Arc::clone(&of_requests));
        async move {
            place.serve();
            let late = |_| Status::deadline_exceeded("the request did not arrive in time").into_http();
            let response = timeout(REQUEST_TIMEOUT, handler(request)).await.unwrap_or_else(late);
            place.wait();
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(REQUESTS)
        .max_header_list_size(LONGEST_HEADERS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(KEEP_ALIVE)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = &mut connection => if let Err(error) = ended {
            debug!(%error, "a connection ended early");
        },
        _ = place.ended() => {
            if timeout(UNREAD, &mut connection).await.is_ok() {
                return;
            }
            connection.as_mut().graceful_shutdown();
            // A connection whose client never completes the handshake would not close otherwise.
            let _ = timeout(END_LIMIT, connection).await;
        }
    }
}
