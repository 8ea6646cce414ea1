//! A gRPC server: HTTP/2 without TLS, for services inside of the cluster. Memory is bounded whatever clients send: by the
//! number of connections, of which the one that has waited longest ends for a new one, and by the number of requests in
//! each. How long a message may be is a matter of the handler.

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

use super::connections::{Connection, accept};

/// Answers a request, whose body it reads.
pub type Handler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// The most connections at the same time.
const CONNECTIONS: usize = 256;
/// The most requests of one connection at the same time.
const REQUESTS: u32 = 16;
/// What a connection may send before it is read, in bytes; the least that HTTP/2 allows is more than any request has.
const WINDOW: u32 = 65_535;
/// The longest headers of a request, in bytes.
const LONGEST_HEADERS: u32 = 8 << 10;
/// How long a request may take to arrive and to be answered.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection on which nothing came for this time is asked whether its client is still there.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// How long a connection has to end that is asked to: its requests are answered until then.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Serves until `stop` completes, and then for at most 5 s, in which the requests that have begun are answered.
pub async fn serve(listener: TcpListener, handler: Handler, stop: impl Future<Output = ()>) {
    let serve = |stream, _, place| connection(stream, Arc::clone(&handler), place);
    accept(listener, CONNECTIONS, stop, serve).await;
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
            connection.as_mut().graceful_shutdown();
            // One whose client never finishes the first exchange would not end by itself.
            let _ = timeout(END_LIMIT, connection).await;
        }
    }
}
