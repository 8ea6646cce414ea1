//! The promise that nobody loses work without having been warned: what is due next for an Instance that is to be
//! stopped or deleted, and how the promise in its status changes.
//!
//! - A warning names a deadline. It counts once the mail server has accepted it.
//! - The next warning, or the deadline, is at least one interval after the last accepted warning.
//! - At most one mail of a kind is accepted in an interval, whatever has become of the status meanwhile.
//! - The deadline never moves to an earlier time; a mail that is late moves it to a later one.
//! - Nothing is stopped or deleted before the stored deadline has passed and all warnings are accepted.
//! - The mail that the deadline has passed is tried for one interval; then the end comes without it.
//!
//! [`next`] is the one function that says what comes next and when, and [`due`] what of that is to be done at a time.
//! Plans, conditions, `nextWarning` in the status and `crownlabs plan` are made from them. Events and metrics tell what
//! is stored: the deadline, before which [`next`] ends nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::delivery::Sent;
use crate::api::lifetime::Lifetime;
use crate::api::promise::Promise;

/// By how much, at most, a deadline is later than the warnings need, so that a mail that the server accepts after
/// some attempts still names the right one. With short intervals it is a tenth of one.
const SLACK: Duration = Duration::from_mins(10);
/// How long after a mail that was refused for good the next one is tried, or an interval, if that is shorter.
const REFUSED_RETRY: Duration = Duration::from_hours(1);
/// From this interval on, deadlines are whole minutes: a mail names them without seconds.
const MINUTES_FROM: Duration = Duration::from_hours(1);

/// The terms of the ending of an Instance, by its Template and the configuration.
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
    /// When the last mails about the Instance were accepted.
    pub mailed: LastMails,
}

/// When the last mails of a way to the end were accepted, in whatever promise; `None` where none is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastMails {
    /// The last warning.
    pub warning: Option<Timestamp>,
    /// The last mail that said that the deadline has passed.
    pub last: Option<Timestamp>,
}

/// The next step, whatever the time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Never,
    /// A warning, from this time on.
    Warning(Timestamp),
    /// The end, from this time on; the last mail comes before it.
    End(Timestamp),
}

/// The step that is due.
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

/// The next step. `since` is the time from which [`Terms::after`] counts.
pub fn next(terms: &Terms, since: Timestamp, promise: &Promise) -> Next {
    let Lifetime::After(after) = terms.after else { return Next::Never };
    let overdue = later(since, after);
    let last = promise.last_warning.as_ref().filter(|_| promise.warnings > 0);
    let rested = last.map_or(overdue, |time| later(time.0, terms.interval).max(overdue));
    if number(promise) < terms.warnings {
        let mailed = terms.mailed.warning.map(|time| later(time, terms.interval));
        return Next::Warning(
            [mailed, again(terms, promise)].into_iter().flatten().fold(rested, Timestamp::max),
        );
    }
    Next::End(promise.deadline.as_ref().map_or(rested, |deadline| deadline.0.max(rested)))
}

/// The step that is due at `now`.
pub fn due(terms: &Terms, since: Timestamp, promise: &Promise, now: Timestamp) -> Due {
    match next(terms, since, promise) {
        Next::Never => Due::Never,
        Next::Warning(time) | Next::End(time) if now < time => Due::At(time),
        Next::Warning(_) => {
            Due::Warn(deadline(terms, promise, terms.warnings.saturating_sub(number(promise)), now))
        }
        Next::End(end) => {
            let is_given_up = promise.sending.as_ref().is_some_and(|until| now >= until.0);
            let is_mailed = terms.mailed.last.is_some_and(|last| now < later(last, terms.interval));
            let is_told = !terms.final_mail || promise.final_mail.is_some() || is_given_up || is_mailed;
            match again(terms, promise).filter(|again| now < *again) {
                _ if is_told => Due::Act,
                Some(again) => Due::At(promise.sending.as_ref().map_or(again, |until| again.min(until.0))),
                None => Due::Final(end),
            }
        }
    }
}

/// The time from which the next warning is due, as a status holds it; `None` where none is left.
pub fn next_warning(terms: &Terms, since: Timestamp, promise: &Promise) -> Option<Time> {
    match next(terms, since, promise) {
        Next::Warning(at) => time(at),
        Next::Never | Next::End(_) => None,
    }
}

/// When a mail is tried again that was refused for good; `None` if the last one was not.
fn again(terms: &Terms, promise: &Promise) -> Option<Timestamp> {
    promise.undeliverable.as_ref().map(|refused| later(refused.0, REFUSED_RETRY.min(terms.interval)))
}

/// The number of warnings that were accepted.
pub fn number(promise: &Promise) -> u32 {
    u32::try_from(promise.warnings.max(0)).unwrap_or(u32::MAX)
}

/// The promise that counts at `now`:
///
/// - Warnings without a deadline, which are the Go operator's, get the one that its mails have named.
/// - Where fewer warnings suffice now, one that was being sent may have been accepted all the same: the deadline in it
///   counts.
/// - While the Instance is not overdue, what was promised is withdrawn. So is a promise whose deadline is not after
///   the time at which the Instance is overdue: since it was made, the Template has come to allow more time.
pub fn standing(terms: &Terms, since: Timestamp, mut promise: Promise, now: Timestamp) -> Promise {
    let Lifetime::After(after) = terms.after else { return withdrawn(&promise) };
    if let Some(last) = promise.last_warning.as_ref().filter(|_| promise.warnings > 0) {
        let named = end(terms, number(&promise), last.0);
        promise.deadline = promise.deadline.or_else(|| time(named));
    }
    if number(&promise) >= terms.warnings && promise.next_warning.is_some() {
        let sending = promise.sending.take().map(|sending| sending.0);
        let named = sending.into_iter().chain(promise.deadline.map(|deadline| deadline.0)).max();
        promise.deadline = named.and_then(time);
    }
    let overdue = later(since, after);
    let is_void = promise.deadline.as_ref().is_some_and(|deadline| deadline.0 <= overdue);
    if now < overdue || is_void { withdrawn(&promise) } else { promise }
}

/// The earliest end after `sent` warnings, of which the last one was accepted at `last`: the intervals that are left, and
/// the one after the last warning in any case.
fn end(terms: &Terms, sent: u32, last: Timestamp) -> Timestamp {
    let left = terms.warnings.saturating_sub(sent).saturating_add(1);
    later(last, terms.interval.saturating_mul(left))
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
    let needed = end(terms, u32::try_from(warnings).unwrap_or(u32::MAX), accepted);
    let named = [&promise.sending, &promise.deadline].into_iter().flatten().map(|time| time.0);
    Promise {
        warnings,
        last_warning: time(accepted),
        sending: None,
        deadline: time(named.fold(needed, Timestamp::max)),
        ..promise.clone()
    }
}

/// The promise after what became of the warning that is being sent.
pub fn sent(terms: &Terms, promise: &Promise, sent: Sent) -> Promise {
    let undeliverable = sent.refused.and_then(time);
    if let Some(at) = sent.accepted {
        return Promise { undeliverable, ..accepted(terms, promise, at) };
    }
    let undeliverable = undeliverable.or_else(|| promise.undeliverable.clone());
    Promise { undeliverable, ..promise.clone() }
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
