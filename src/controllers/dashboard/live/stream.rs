//! The stream of a live page: server-sent events that ask it to load its content again.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream::{self, StreamExt};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::broadcast::Listener;

/// The time between two updates of a page.
const PAUSE: Duration = Duration::from_millis(500);
/// The time between two keep-alive comments, which reveal lost connections. All pages get them at the same time, so
/// that the processor can sleep in between. Proxies close connections that are idle for a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(50);
/// The maximum length of a stream. The page then opens the next one if its session still exists.
const MAX_LENGTH: Duration = Duration::from_hours(1);

/// Returns the stream of a page.
pub fn stream(listener: Listener) -> Response {
    // The first comment flushes the head of the response, so that the page knows that it is live.
    let first = stream::iter([": live\n\n"]);
    let pieces =
        first.chain(stream::unfold((listener, Instant::now()), next_event)).take_until(sleep(MAX_LENGTH));
    let mut answer = Response::new(Body::from_stream(
        pieces.map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes()))),
    ));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that buffers the answer would delay the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// Returns the next event of a page, but not before the time `from`.
async fn next_event((listener, from): (Listener, Instant)) -> Option<(&'static str, (Listener, Instant))> {
    sleep_until(from).await;
    Some(match timeout_at(next_keep_alive(listener.broadcast.epoch), listener.changed()).await {
        Ok(()) => ("event: refresh\ndata:\n\n", (listener, Instant::now() + PAUSE)),
        Err(_) => (":\n\n", (listener, Instant::now())),
    })
}

/// Returns the time of the next keep-alive comment; they are counted from `epoch`.
fn next_keep_alive(epoch: Instant) -> Instant {
    let passed = epoch.elapsed().as_secs() / KEEP_ALIVE.as_secs();
    epoch + KEEP_ALIVE * u32::try_from(passed + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::join;
    use tokio::time::advance;

    use super::super::broadcast::{Broadcast, Topic};
    use super::*;
    use crate::runtime::clock;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the next piece of a stream, and the time until it came.
    async fn next(answer: &mut Response) -> (Bytes, Duration) {
        let begin = Instant::now();
        let frame = answer.body_mut().frame().await.expect("no end").expect("no error");
        (frame.into_data().expect("a piece"), begin.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_gets_at_most_two_events_per_second_and_keep_alives_at_the_same_time_as_others() {
        let broadcast = Broadcast::new(10);
        let open = || {
            let since = broadcast.since(clock::now());
            stream(broadcast.listen(vec![Topic::Workspaces], since).expect("there is room"))
        };
        let mut first = open();
        assert_eq!(next(&mut first).await, (Bytes::from(": live\n\n"), Duration::ZERO));
        advance(SECOND * 20).await;
        let mut second = open();
        next(&mut second).await;
        // The second was opened 20 s after the first.
        let keep_alive = |seconds| (Bytes::from(":\n\n"), SECOND * seconds);
        assert_eq!(join!(next(&mut first), next(&mut second)), (keep_alive(30), keep_alive(30)));
        assert_eq!(join!(next(&mut first), next(&mut second)), (keep_alive(50), keep_alive(50)));
        broadcast.changed(Topic::Workspaces);
        let event = |time| (Bytes::from("event: refresh\ndata:\n\n"), time);
        assert_eq!(next(&mut first).await, event(Duration::ZERO));
        broadcast.changed(Topic::Workspaces);
        assert_eq!(next(&mut first).await, event(PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_after_an_hour() {
        let broadcast = Broadcast::new(1);
        let since = broadcast.since(clock::now());
        let begin = Instant::now();
        let answer = stream(broadcast.listen(vec![Topic::Workspaces], since).expect("there is room"));
        let all = answer.into_body().collect().await.expect("no error").to_bytes();
        assert_eq!(begin.elapsed(), MAX_LENGTH);
        assert_eq!(all.len(), ": live\n\n".len() + 71 * ":\n\n".len(), "71 times 50 s are less than an hour");
        assert_eq!(broadcast.open(), 0);
    }
}
