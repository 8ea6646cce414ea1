//! The current time. Only this module reads the clock; plans and reports get the time as a parameter.

use jiff::Timestamp;

/// The current time.
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    Timestamp::now()
}

/// A time in seconds, as Kubernetes writes it: `2026-11-20T10:00:00Z`.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
