//! The promise that nobody loses work without having been warned: what is due next for an Instance that is to be
//! stopped or deleted, and how the promise in its status changes.
//!
//! - A warning names a deadline. It counts once the mail server has accepted it.
//! - The next warning, or the deadline, is at least one interval after the last accepted warning.
//! - The deadline never moves to an earlier time; a mail that is late moves it to a later one.
//! - Nothing is stopped or deleted before the stored deadline has passed and all warnings are accepted.
//! - The mail that the deadline has passed is tried for one interval; then the end comes without it.
//!
//! [`due`] is the one function that says what comes next. Plans, reports, `crownlabs plan` and metrics call it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::lifetime::Lifetime;
use crate::api::promise::Promise;

/// By how much, at most, a deadline is later than the warnings need, so that a mail that the server accepts after
/// some attempts still names the right one. With short intervals it is a tenth of one.
const SLACK: Duration = Duration::from_mins(10);
/// From this interval on, deadlines are whole minutes: a mail names them without seconds.
const MINUTES_FROM: Duration = Duration::from_hours(1);

/// What a Template and the configuration say about the end of an Instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The time after which it is overdue.
    pub after: Lifetime,
    /// The number of warnings that must be accepted before; 0 where nobody is warned.
    pub warnings: u32,
    /// The time between two warnings, and between the last one and the deadline.
    pub interval: Duration,
    /// Whether a mail says that the deadline has passed.
    pub final_mail: bool,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing, whatever time passes.
    Never,
    /// Nothing before this time.
    At(Timestamp),
    /// A warning that names this deadline.
    Warn(Timestamp),
    /// The mail that this deadline has passed.
    Final(Timestamp),
    /// The Instance is to be stopped or deleted.
    Act,
}

/// What is due at `now`. `since` is the time from which [`Terms::after`] counts.
pub fn due(terms: &Terms, since: Timestamp, promise: &Promise, now: Timestamp) -> Due {
    let Lifetime::After(after) = terms.after else { return Due::Never };
    let overdue = later(since, after);
    if now < overdue {
        return Due::At(overdue);
    }
    let accepted = u32::try_from(promise.warnings.max(0)).unwrap_or(u32::MAX);
    let rested = promise.last_warning.as_ref().map_or(overdue, |time| later(time.0, terms.interval));
    if accepted < terms.warnings {
        if now < rested && accepted > 0 {
            return Due::At(rested);
        }
        return Due::Warn(deadline(terms, promise, terms.warnings - accepted, now));
    }
    let rested = if accepted == 0 { overdue } else { rested };
    let end = promise.deadline.as_ref().map_or(rested, |deadline| deadline.0.max(rested));
    if now < end {
        return Due::At(end);
    }
    let is_given_up = promise.sending.as_ref().is_some_and(|until| now >= until.0);
    if terms.final_mail && promise.final_mail.is_none() && !is_given_up { Due::Final(end) } else { Due::Act }
}

/// The deadline of a warning after which `left` intervals must pass, this one's included. One that is being sent
/// already is kept while it leaves them.
fn deadline(terms: &Terms, promise: &Promise, left: u32, now: Timestamp) -> Timestamp {
    let needed = later(now, terms.interval.saturating_mul(left));
    let stored = promise.deadline.as_ref().map_or(Timestamp::MIN, |deadline| deadline.0);
    match &promise.sending {
        Some(sending) if sending.0 >= needed && sending.0 >= stored => sending.0,
        _ => {
            let wanted = later(needed, SLACK.min(terms.interval / 10));
            whole(wanted, if terms.interval >= MINUTES_FROM { 60 } else { 1 }).max(stored)
        }
    }
}

/// The promise after the mail server has accepted, at `accepted`, the warning that is being sent.
pub fn accepted(terms: &Terms, promise: &Promise, accepted: Timestamp) -> Promise {
    let warnings = promise.warnings.max(0).saturating_add(1);
    let sent = u32::try_from(warnings).unwrap_or(u32::MAX);
    // The intervals that are left, and the one after the last warning in any case.
    let left = terms.warnings.saturating_sub(sent).saturating_add(1);
    let needed = later(accepted, terms.interval.saturating_mul(left));
    let named = [&promise.sending, &promise.deadline].into_iter().flatten().map(|time| time.0);
    Promise {
        warnings,
        last_warning: time(accepted),
        sending: None,
        next_warning: (sent < terms.warnings).then(|| later(accepted, terms.interval)).and_then(time),
        deadline: time(named.fold(needed, Timestamp::max)),
        ..promise.clone()
    }
}

/// The promise while nobody has to be warned: that which was made is withdrawn.
pub fn withdrawn(promise: &Promise) -> Promise {
    Promise {
        since: promise.since.clone(),
        witness: promise.witness.clone(),
        generation: promise.generation,
        ..Promise::default()
    }
}

/// A time plus a duration; the latest time that exists where that is later.
pub fn later(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// The next time that is a multiple of so many seconds.
fn whole(time: Timestamp, of: i64) -> Timestamp {
    let seconds = time.as_second().saturating_add(i64::from(time.subsec_nanosecond() > 0));
    let up = seconds.saturating_add((of - seconds.rem_euclid(of)) % of);
    Timestamp::from_second(up).unwrap_or(Timestamp::MAX)
}

/// A time as a status holds it: the next whole second, so that no time that is waited for becomes shorter.
#[expect(clippy::unnecessary_wraps, reason = "the times of a status are optional")]
pub fn time(time: Timestamp) -> Option<Time> {
    Some(Time(whole(time, 1)))
}

/// A time minus a duration; the earliest time that exists where that is earlier.
pub fn earlier(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_sub(duration).unwrap_or(Timestamp::MIN)
}
