//! The lifetime of cookies that last for a login.

use jiff::{SignedDuration, Timestamp};

/// The maximum duration of a login, and of a form that waits for a login.
pub const SHORT: SignedDuration = SignedDuration::from_mins(10);

/// Whether a cookie that was set at this time, in seconds, is still valid.
pub fn is_recent(since: i64, now: Timestamp) -> bool {
    // The clock of another replica may be a little ahead.
    now.as_second().checked_sub(since).is_some_and(|age| (-60..=SHORT.as_secs()).contains(&age))
}
