//! The stream of a live page: server-sent events that ask it to load its content again.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream::{self, StreamExt};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use tokio::time::{Instant, sleep, sleep_until};

use super::broadcast::Listener;
use crate::runtime::client::Silence;

/// The time between two updates of a page.
const PAUSE: Duration = Duration::from_millis(500);
/// The time between two keep-alive comments, which reveal lost connections. All pages get them at the same time, so
/// that the processor can sleep in between. Proxies close connections that are idle for a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(50);
/// The maximum length of a stream. The page then opens the next one if its session still exists.
const MAX_LENGTH: Duration = Duration::from_hours(1);

/// Asks the page to load its content again.
const REFRESH: &str = "event: refresh\ndata:\n\n";
/// Tells the page that the API server does not answer, and that it answers again.
const SILENT: &str = "event: silent\ndata:\n\n";
const ANSWERS: &str = "event: answers\ndata:\n\n";

/// The stream of a page.
struct Page<F> {
    listener: Listener,
    silence: Silence,
    /// Whether the session has ended.
    has_ended: F,
    /// Whether the page knows that the API server does not answer.
    knows_silence: bool,
    /// The earliest time of the next event.
    from: Instant,
}

/// Returns the stream of a page, which ends with the session of the page.
pub fn stream(
    listener: Listener,
    silence: Silence,
    has_ended: impl Fn() -> bool + Send + 'static,
) -> Response {
    // The first comment flushes the head of the response, so that the page knows that it is live.
    let first = stream::iter([": live\n\n"]);
    let page = Page { listener, silence, has_ended, knows_silence: false, from: Instant::now() };
    let pieces = first.chain(stream::unfold(page, next_event)).take_until(sleep(MAX_LENGTH));
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

/// Returns the next event of a page; `None` if its session has ended. A logout changes the Tenant, which is a topic of
/// each page.
async fn next_event<F: Fn() -> bool>(mut page: Page<F>) -> Option<(&'static str, Page<F>)> {
    sleep_until(page.from).await;
    let keep_alive = next_keep_alive(page.listener.broadcast.epoch);
    let (event, pause) = tokio::select! {
        biased;
        () = page.silence.becomes(!page.knows_silence) => {
            page.knows_silence = !page.knows_silence;
            (if page.knows_silence { SILENT } else { ANSWERS }, PAUSE)
        }
        () = page.listener.changed() => (REFRESH, PAUSE),
        () = sleep_until(keep_alive) => (":\n\n", Duration::ZERO),
    };
    page.from = Instant::now() + pause;
    (!(page.has_ended)()).then_some((event, page))
}

/// Returns the time of the next keep-alive comment; they are counted from `epoch`.
fn next_keep_alive(epoch: Instant) -> Instant {
    let passed = epoch.elapsed().as_secs() / KEEP_ALIVE.as_secs();
    epoch + KEEP_ALIVE * u32::try_from(passed + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt;
    use tokio::join;
    use tokio::sync::watch;
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

    /// Opens a page of a broadcast.
    fn open(broadcast: &Arc<Broadcast>, silence: &watch::Sender<bool>) -> Response {
        let since = broadcast.since(clock::now());
        let listener = broadcast.listen(vec![Topic::Workspaces], since).expect("there is room");
        stream(listener, silence.subscribe().into(), || false)
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_gets_at_most_two_events_per_second_and_keep_alives_at_the_same_time_as_others() {
        let (broadcast, silence) = (Broadcast::new(10), watch::Sender::new(false));
        let open = || open(&broadcast, &silence);
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
        let begin = Instant::now();
        let answer = open(&broadcast, &watch::Sender::new(false));
        let all = answer.into_body().collect().await.expect("no error").to_bytes();
        assert_eq!(begin.elapsed(), MAX_LENGTH);
        assert_eq!(all.len(), ": live\n\n".len() + 71 * ":\n\n".len(), "71 times 50 s are less than an hour");
        assert_eq!(broadcast.open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_page_and_a_new_one_learn_that_the_api_server_is_silent_and_that_it_answers_again() {
        let (broadcast, silence) = (Broadcast::new(10), watch::Sender::new(false));
        let mut opened = open(&broadcast, &silence);
        next(&mut opened).await;
        silence.send_replace(true);
        let mut new = open(&broadcast, &silence);
        next(&mut new).await;
        for (is_silent, event) in [(true, SILENT), (false, ANSWERS), (true, SILENT)] {
            silence.send_replace(is_silent);
            for page in [&mut opened, &mut new] {
                assert_eq!(next(page).await.0, event);
            }
        }
        // A change in between is not lost.
        broadcast.changed(Topic::Workspaces);
        silence.send_replace(false);
        assert_eq!([next(&mut new).await.0, next(&mut new).await.0], [ANSWERS, REFRESH]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_its_session_at_the_next_change_or_keep_alive() {
        for (has_changed, expected) in [(true, Duration::ZERO), (false, KEEP_ALIVE)] {
            let (broadcast, silence) = (Broadcast::new(1), watch::Sender::new(false));
            let listener = broadcast.listen(vec![Topic::Workspaces], broadcast.since(clock::now()));
            let has_ended = Arc::new(AtomicBool::new(false));
            let ended = Arc::clone(&has_ended);
            let is_over = move || ended.load(Ordering::Relaxed);
            let mut answer = stream(listener.expect("there is room"), silence.subscribe().into(), is_over);
            next(&mut answer).await;
            has_ended.store(true, Ordering::Relaxed);
            if has_changed {
                broadcast.changed(Topic::Workspaces);
            }
            let begin = Instant::now();
            assert!(answer.body_mut().frame().await.is_none());
            assert_eq!((begin.elapsed(), has_changed), (expected, has_changed));
        }
    }
}
