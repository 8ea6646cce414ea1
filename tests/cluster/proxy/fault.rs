//! The faults that the proxy can cause, and the requests that they affect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;

/// Decides by method and by path with query whether a request is affected. It may count, to affect only some requests.
pub type Matcher = Arc<dyn Fn(&Method, &str) -> bool + Send + Sync>;

/// A fault for the matching requests. All other requests are passed on.
#[derive(Clone, Default)]
pub enum Fault {
    /// Every request is passed on.
    #[default]
    None,
    /// Answered with an error instead of being passed on.
    Status {
        /// The HTTP status, for example 409, 429, 500 or 503.
        code: u16,
        /// The seconds in the `Retry-After` header.
        retry_after: Option<u32>,
        /// The requests that are affected.
        matching: Matcher,
    },
    /// The connection is broken before the request is passed on.
    Break {
        /// The requests that are affected.
        matching: Matcher,
    },
    /// The request is passed on and carried out, but the connection is broken before the answer.
    LoseAnswer {
        /// The requests that are affected.
        matching: Matcher,
    },
    /// The request is passed on twice, and the answer to the second one is the answer.
    Repeat {
        /// The requests that are affected.
        matching: Matcher,
    },
    /// Answered with this JSON text instead of being passed on.
    Answer {
        /// The body.
        body: &'static str,
        /// The requests that are affected.
        matching: Matcher,
    },
    /// Passed on after a delay.
    Delay {
        /// How long.
        pause: Duration,
        /// The requests that are affected.
        matching: Matcher,
    },
}

/// A matcher from a closure.
pub fn matching(rule: impl Fn(&Method, &str) -> bool + Send + Sync + 'static) -> Matcher {
    Arc::new(rule)
}

/// Every request.
pub fn everything() -> Matcher {
    matching(|_, _| true)
}

/// The request with this number, counted from 0, and no other.
pub fn nth(number: usize) -> Matcher {
    let seen = AtomicUsize::new(0);
    matching(move |_, _| seen.fetch_add(1, Ordering::SeqCst) == number)
}

/// Every write except leases and events.
pub fn writes() -> Matcher {
    matching(|method, path| is_write(method) && !is_lease_or_event(path))
}

/// Requests with this method whose path contains `part`, for example `"/deployments"`.
pub fn requests_of(method: Method, part: &'static str) -> Matcher {
    matching(move |asked, path| *asked == method && path.contains(part))
}

/// Whether a request with this method is a write.
pub fn is_write(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method)
}

/// Whether a path belongs to leases or events, which are written at any time.
pub fn is_lease_or_event(path: &str) -> bool {
    let mut parts = path.split('?').next().unwrap_or_default().split('/');
    parts.any(|part| part == "leases" || part == "events")
}

/// The `reason` in the API server's response for a status code.
pub fn reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}
