//! The path of one request through the proxy.

use std::sync::Arc;

use futures::future::{Either, select};
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use serde_json::json;

use super::fault::{self, Fault};
use super::{Answered, Passage, Shared};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Error>;

/// Answers a request. An error breaks its connection.
pub async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let (method, path) = (request.method().clone(), request.uri().to_string());
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (user_agent, accept) = (text(header::USER_AGENT).to_owned(), text(header::ACCEPT).to_owned());
    let answer = apply(&shared, request).await;
    let status = answer.as_ref().ok().map(Response::status);
    shared.state.lock().log.push(Answered { method, path, user_agent, accept, status });
    answer
}

/// Applies the current fault, or passes the request on.
async fn apply(shared: &Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts, body.collect().await?.to_bytes());
    let (method, path) = (request.method().clone(), request.uri().to_string());
    let current = shared.state.lock().fault.clone();
    match current {
        Fault::Status { code, retry_after, matching } if matching(&method, &path) => {
            refusal(code, retry_after)
        }
        Fault::Break { matching } if matching(&method, &path) => Err("broken before the request".into()),
        Fault::LoseAnswer { matching } if matching(&method, &path) => {
            pass_on(shared, request).await?;
            Err("broken before the answer".into())
        }
        Fault::Repeat { matching } if matching(&method, &path) => {
            pass_on(shared, request.clone()).await?;
            pass_on(shared, request).await
        }
        Fault::Answer { body, matching } if matching(&method, &path) => {
            let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
            let body = Full::new(Bytes::from_static(body.as_bytes()));
            Ok(response.body(body.map_err(|never| match never {}).boxed_unsync())?)
        }
        Fault::Delay { pause, matching } if matching(&method, &path) => {
            tokio::time::sleep(pause).await;
            pass_on(shared, request).await
        }
        _ => pass_on(shared, request).await,
    }
}

/// Sends a request to the API server and returns the answer, whose body is streamed.
async fn pass_on(shared: &Arc<Shared>, request: Request<Bytes>) -> Result<Response<Body>, Error> {
    let (mut parts, body) = request.into_parts();
    let (method, path) = (parts.method.clone(), parts.uri.to_string());
    remove_connection_headers(&mut parts.headers);
    let hidden = shared.state.lock().hidden_prefix;
    if let Some(prefix) = hidden {
        let Some(rest) = path.strip_prefix(prefix) else { return refusal(404, None) };
        parts.uri = rest.parse()?;
    }
    if fault::is_write(&method) {
        let passage = shared.state.lock().passage();
        match passage {
            Passage::Pass => {}
            Passage::Break => return Err("broken before a write".into()),
            Passage::BreakAfter(action) => {
                let shared = Arc::clone(shared);
                // Completes even if the client has disconnected and its request is dropped.
                let work = move || {
                    action();
                    shared.state.lock().hook.take_if(|hook| hook.action.is_none());
                };
                tokio::task::spawn_blocking(work).await?;
                return Err("broken before a write".into());
            }
        }
    }
    let answer = shared.upstream.send(Request::from_parts(parts, kube::client::Body::from(body))).await?;
    if fault::is_write(&method) && answer.status().is_success() {
        let action = shared.state.lock().count(&path);
        if let Some(action) = action {
            tokio::task::spawn_blocking(action).await?;
            return Err("broken after the n-th write".into());
        }
    }
    let (mut parts, body) = answer.into_parts();
    remove_connection_headers(&mut parts.headers);
    let body = body.map_err(Error::from);
    let body = body.boxed_unsync();
    let body = if is_watch(&path) { until_dropped(shared, path, body) } else { body };
    Ok(Response::from_parts(parts, body))
}

fn is_watch(path: &str) -> bool {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// Removes the headers that concern one connection only; each connection has its own.
fn remove_connection_headers(headers: &mut HeaderMap) {
    for name in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
        headers.remove(name);
    }
}

/// The body of a watch, which ends with an error when the watches are dropped. While it is silenced, it has no frames
/// and no end.
fn until_dropped(shared: &Arc<Shared>, path: String, body: Body) -> Body {
    let dropped = shared.watches.subscribe();
    let frames = stream::unfold(Some((body, dropped, Arc::clone(shared), path)), |state| async {
        let (mut body, mut dropped, shared, path) = state?;
        loop {
            let next = match select(body.frame(), Box::pin(dropped.changed())).await {
                Either::Left((frame, _)) => frame,
                Either::Right(_) => return Some((Err(Error::from("the watch is dropped")), None)),
            };
            match next {
                Some(_) if shared.is_silent(&path) => {}
                None if shared.is_silent(&path) => {
                    // An error means that the proxy has ended.
                    let _ = dropped.changed().await;
                    return Some((Err(Error::from("the watch is dropped")), None));
                }
                next => return Some((next?, Some((body, dropped, shared, path)))),
            }
        }
    });
    StreamBody::new(frames.boxed()).boxed_unsync()
}

/// An error in the format of the API server.
fn refusal(code: u16, retry_after: Option<u32>) -> Result<Response<Body>, Error> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("refused by the fault proxy with {code}"),
        "reason": fault::reason(code),
        "code": code,
    });
    let mut response = Response::builder().status(StatusCode::from_u16(code)?);
    response = response.header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        response = response.header(header::RETRY_AFTER, seconds);
    }
    let body = Full::new(Bytes::from(serde_json::to_vec(&status)?));
    Ok(response.body(body.map_err(|never| match never {}).boxed_unsync())?)
}
