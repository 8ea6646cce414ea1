//! Live pages: which of them a change concerns, and the streams that tell them.

mod hub;
mod signals;

use std::time::Duration;

use futures::stream::{self, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use hyper::body::Bytes;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

pub use self::hub::{Hub, Listener, Since, Topic};
pub use self::signals::declare;
use crate::runtime::http_server::Body;

/// The time between two updates of a page.
const PAUSE: Duration = Duration::from_millis(500);
/// How often something is sent without a change, too, by which a connection that is gone is noticed: to all pages at the same time, so
/// that the processor sleeps in between. A proxy closes what is silent for a minute.
const SIGN_OF_LIFE: Duration = Duration::from_secs(50);
/// How long a page listens at most; then it listens anew, if the session goes on.
const LONGEST: Duration = Duration::from_hours(1);

/// The stream of the changes that a page listens to.
pub fn stream(listener: Listener) -> Response<Body> {
    // The head of the answer arrives with the first piece, so that the page knows that it is live.
    let first = stream::iter([": live\n\n"]);
    let pieces = first.chain(stream::unfold((listener, Instant::now()), told)).take_until(sleep(LONGEST));
    let mut answer = Response::new(Body::stream(pieces.map(|piece| Bytes::from_static(piece.as_bytes()))));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that collects the answer would keep the page waiting.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// The next piece for a page that is told nothing before a time.
async fn told((listener, from): (Listener, Instant)) -> Option<(&'static str, (Listener, Instant))> {
    sleep_until(from).await;
    Some(match timeout_at(next_sign(listener.epoch()), listener.changed()).await {
        Ok(()) => ("event: refresh\ndata:\n\n", (listener, Instant::now() + PAUSE)),
        Err(_) => (":\n\n", (listener, Instant::now())),
    })
}

/// When all pages get the next sign of life, which began to get them at this time.
fn next_sign(epoch: Instant) -> Instant {
    let passed = epoch.elapsed().as_secs() / SIGN_OF_LIFE.as_secs();
    epoch + SIGN_OF_LIFE * u32::try_from(passed + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::join;
    use tokio::time::advance;

    use super::*;
    use crate::runtime::clock;

    const SECOND: Duration = Duration::from_secs(1);

    /// The next piece of a stream, and after how long it has come.
    async fn next(answer: &mut Response<Body>) -> (Bytes, Duration) {
        let begin = Instant::now();
        let frame = answer.frame().await.expect("no end").expect("no error");
        (frame.into_data().expect("a piece"), begin.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_hears_at_once_then_twice_in_a_second_and_that_it_is_live_with_all_others() {
        let hub = Hub::new(10);
        let open = || {
            let since = hub.since(clock::now());
            stream(hub.listen(vec![Topic::Workspaces], since).expect("there is room"))
        };
        let mut first = open();
        assert_eq!(next(&mut first).await, (Bytes::from(": live\n\n"), Duration::ZERO));
        advance(SECOND * 20).await;
        let mut second = open();
        next(&mut second).await;
        // The second was opened 20 s after the first.
        let sign = |seconds| (Bytes::from(":\n\n"), SECOND * seconds);
        assert_eq!(join!(next(&mut first), next(&mut second)), (sign(30), sign(30)));
        assert_eq!(join!(next(&mut first), next(&mut second)), (sign(50), sign(50)));
        hub.changed(Topic::Workspaces);
        let event = |time| (Bytes::from("event: refresh\ndata:\n\n"), time);
        assert_eq!(next(&mut first).await, event(Duration::ZERO));
        hub.changed(Topic::Workspaces);
        assert_eq!(next(&mut first).await, event(PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_listens_anew_after_an_hour() {
        let hub = Hub::new(1);
        let since = hub.since(clock::now());
        let begin = Instant::now();
        let answer = stream(hub.listen(vec![Topic::Workspaces], since).expect("there is room"));
        let all = answer.collect().await.expect("no error").to_bytes();
        assert_eq!(begin.elapsed(), LONGEST);
        assert_eq!(all.len(), ": live\n\n".len() + 71 * ":\n\n".len(), "71 times 50 s are less than an hour");
        assert_eq!(hub.open(), 0);
    }
}
