//! The pauses that the API server asks for: a response 429 or 5xx with `Retry-After` says after how many seconds the
//! same request may be repeated.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The longest pause that is honoured.
const LONGEST: Duration = Duration::from_mins(1);

/// The key of a pause: method and path, without the query.
type Target = (Method, String);

/// The pauses of one client. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Pauses(Arc<Mutex<HashMap<Target, Instant>>>);

impl Pauses {
    /// Waits until the pause of a request is over, if there is one.
    pub async fn wait(&self, method: &Method, path: &str) {
        if let Some(end) = self.end(method, path) {
            tokio::time::sleep_until(end).await;
        }
    }

    /// Returns the end of a request's pause.
    fn end(&self, method: &Method, path: &str) -> Option<Instant> {
        let pauses = self.0.lock();
        // Nearly always there is no pause, so no key is allocated.
        if pauses.is_empty() { None } else { pauses.get(&(method.clone(), path.to_owned())).copied() }
    }

    /// Records the pause in a response, if there is one.
    pub fn note(&self, method: &Method, path: &str, status: StatusCode, headers: &HeaderMap) {
        if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
            return;
        }
        let Some(pause) = asked(headers) else { return };
        let now = Instant::now();
        let mut pauses = self.0.lock();
        pauses.retain(|_, end| *end > now);
        pauses.insert((method.clone(), path.to_owned()), now + pause.min(LONGEST));
    }
}

/// Parses the header `Retry-After` in seconds; `None` if it is missing. The API server never sends a date.
pub fn asked(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|pause| !pause.is_zero())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Returns how long a request has to wait after a request to `/api/v1/pods` got this response.
    async fn waits(answer: (u16, Option<&str>), method: &Method, path: &str) -> u64 {
        let pauses = Pauses::default();
        let mut headers = HeaderMap::new();
        headers.extend(answer.1.map(|value| (RETRY_AFTER, HeaderValue::from_str(value).expect("a value"))));
        let status = StatusCode::from_u16(answer.0).expect("a status");
        pauses.note(&Method::GET, "/api/v1/pods", status, &headers);
        let begin = Instant::now();
        pauses.wait(method, path).await;
        begin.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_as_long_as_the_last_response_asks() {
        for (answer, expected) in [
            ((429, Some("7")), 7),
            ((503, Some("7")), 7),
            ((500, Some("1")), 1),
            ((429, Some("3600")), 60),
            ((429, Some("0")), 0),
            ((429, None), 0),
            ((429, Some("Wed, 21 Oct 2026 07:28:00 GMT")), 0),
            ((429, Some("-1")), 0),
            // Only errors can ask for a pause.
            ((200, Some("7")), 0),
            ((403, Some("7")), 0),
        ] {
            assert_eq!(waits(answer, &Method::GET, "/api/v1/pods").await, expected, "{answer:?}");
        }
        // Other requests do not wait.
        assert_eq!(waits((429, Some("7")), &Method::GET, "/api/v1/nodes").await, 0);
        assert_eq!(waits((429, Some("7")), &Method::POST, "/api/v1/pods").await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn expired_pauses_are_removed() {
        let (pauses, headers) = (Pauses::default(), HeaderMap::from_iter([(RETRY_AFTER, 2.into())]));
        for n in 0..1000 {
            let path = format!("/api/v1/namespaces/n/pods/{n}");
            pauses.note(&Method::PUT, &path, StatusCode::SERVICE_UNAVAILABLE, &headers);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(pauses.0.lock().len() <= 2);
    }
}
