//! A server with scripted responses.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex as Lock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// The response of the server.
#[derive(Clone)]
pub enum Reply {
    Json(u16, Value),
    Text(u16, String),
    /// A redirect to another path of the server.
    Redirect,
    /// No response.
    Silence,
}

/// A request that the server received.
pub struct Seen {
    pub path: String,
    pub authorization: String,
    pub body: String,
}

/// The script of a server, and the requests that it received.
pub struct Script {
    pub discovery: Lock<Reply>,
    pub answer: Lock<Reply>,
    pub keys: Lock<Reply>,
    pub seen: Lock<Vec<Seen>>,
    /// A request has arrived.
    pub arrived: Notify,
}

/// Answers each request according to the script.
pub async fn serve(listener: TcpListener, acceptor: TlsAcceptor, script: Arc<Script>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, script) = (acceptor.clone(), Arc::clone(&script));
        let answer = move |request: Request<Incoming>| {
            let script = Arc::clone(&script);
            async move { Ok::<_, Infallible>(answered(request, &script).await) }
        };
        tokio::spawn(async move {
            // A client that does not trust the certificate aborts the handshake.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let _ended =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answered(request: Request<Incoming>, script: &Script) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let authorization = head.headers.get(header::AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let path = head.uri.path().replace("/realms/labs", "");
    let reply = match &*path {
        "/.well-known/openid-configuration" => &script.discovery,
        "/keys" => &script.keys,
        _ => &script.answer,
    };
    let reply = reply.lock().clone();
    script.seen.lock().push(Seen { path, authorization: authorization.to_owned(), body });
    script.arrived.notify_one();
    let (status, body) = match reply {
        Reply::Json(status, body) => (status, body.to_string()),
        Reply::Text(status, body) => (status, body),
        Reply::Redirect => (302, String::new()),
        Reply::Silence => std::future::pending().await,
    };
    let answer = Response::builder().status(status).header(header::LOCATION, "/elsewhere");
    answer.body(Full::new(Bytes::from(body))).unwrap()
}
