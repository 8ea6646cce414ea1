//! Live pages: which of them a change concerns, and the streams that tell them.

mod hub;
mod signals;

use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use hyper::body::Bytes;
use tokio::time::{sleep, timeout};

pub use self::hub::{Hub, Listener, Since, Topic};
pub use self::signals::declare;
use crate::runtime::http_server::{Body, Gone, Sender};

/// The time between two updates of a page.
const PAUSE: Duration = Duration::from_millis(500);
/// After so long without a change, something is sent all the same, by which a connection that is gone is noticed.
const SIGN_OF_LIFE: Duration = Duration::from_secs(50);
/// How long a page listens at most; then it listens anew, if the session goes on.
const LONGEST: Duration = Duration::from_hours(1);

/// The stream of the changes that a page listens to.
pub fn stream(listener: Listener) -> Response<Body> {
    let (sender, body) = Body::stream();
    tokio::spawn(async move {
        // The browser has gone, or asks again.
        let _ = timeout(LONGEST, tell(listener, sender)).await;
    });
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that collects the answer would keep the page waiting.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

async fn tell(listener: Listener, mut sender: Sender) -> Result<(), Gone> {
    // The head of the answer arrives with it, so that the page knows that it is live.
    sender.send(Bytes::from_static(b": live\n\n")).await?;
    loop {
        let changed = tokio::select! {
            changed = timeout(SIGN_OF_LIFE, listener.changed()) => changed,
            () = sender.gone() => return Err(Gone),
        };
        if changed.is_ok() {
            sender.send(Bytes::from_static(b"event: refresh\ndata:\n\n")).await?;
            sleep(PAUSE).await;
        } else {
            sender.send(Bytes::from_static(b":\n\n")).await?;
        }
    }
}
