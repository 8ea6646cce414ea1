//! The promise that tenants are warned before they lose work. This module decides the next step for an Instance that is
//! to be stopped or deleted, and how the promise in its status changes.
//!
//! - A warning names a deadline. It counts once the mail server has accepted it.
//! - The next warning, or the deadline, is at least one interval after the last accepted warning.
//! - At most one mail of a kind is accepted per interval, even if the status changes in between.
//! - The deadline never moves to an earlier time; a late mail moves it to a later one.
//! - Nothing is stopped or deleted before the stored deadline has passed and all warnings are accepted.
//! - The mail that says that the deadline has passed is tried for one interval. After that, the Instance ends without
//!   it.
//!
//! [`next`] alone decides which step comes next and when. [`due`] derives the step to take at a given time. Plans,
//! conditions, `nextWarning` in the status and `crownlabs plan` are derived from them. Events and metrics show the
//! stored deadline; [`next`] never ends an Instance before it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::delivery::Sent;
use crate::api::lifetime::Lifetime;
use crate::api::promise::Promise;

/// The maximum slack that is added to a deadline, so that a mail that is accepted after some retries still names the
/// right deadline. With short intervals, the slack is a tenth of the interval.
const SLACK: Duration = Duration::from_mins(10);
/// The time between a permanently rejected mail and the next attempt, or one interval if that is shorter.
const REFUSED_RETRY: Duration = Duration::from_hours(1);
/// From this interval on, deadlines are whole minutes: a mail names them without seconds.
const MINUTES_FROM: Duration = Duration::from_hours(1);

/// The terms for the ending of an Instance, from its Template and the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The time until the Instance is overdue.
    pub after: Lifetime,
    /// The number of warnings that must be accepted before the end; 0 if no warnings are sent.
    pub warnings: u32,
    /// The time between two warnings, and between the last one and the deadline.
    pub interval: Duration,
    /// Whether a mail is sent when the deadline has passed.
    pub final_mail: bool,
    /// When the last mails about the Instance were accepted.
    pub mailed: LastMails,
}

/// When the last mails of one kind of ending were accepted, for any promise; `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastMails {
    /// The last warning.
    pub warning: Option<Timestamp>,
    /// The last mail that said that the deadline had passed.
    pub last: Option<Timestamp>,
}

/// The next step, independent of the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Never,
    /// A warning, from this time on.
    Warning(Timestamp),
    /// The end, from this time on. The final mail is sent first.
    End(Timestamp),
}

/// The step that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing, no matter how much time passes.
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

/// The next step. [`Terms::after`] counts from `since`.
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

/// When the next warning is due, as the status stores it; `None` if no warning is left.
pub fn next_warning(terms: &Terms, since: Timestamp, promise: &Promise) -> Option<Time> {
    let Next::Warning(at) = next(terms, since, promise) else { return None };
    time(at)
}

/// When a permanently rejected mail is retried; `None` if the last mail was not rejected.
fn again(terms: &Terms, promise: &Promise) -> Option<Timestamp> {
    promise.undeliverable.as_ref().map(|refused| later(refused.0, REFUSED_RETRY.min(terms.interval)))
}

/// The number of accepted warnings.
pub fn number(promise: &Promise) -> u32 {
    u32::try_from(promise.warnings.max(0)).unwrap_or(u32::MAX)
}

/// The promise that applies at `now`:
///
/// - Warnings of the Go operator have no deadline; they get the deadline that its mails have named.
/// - If fewer warnings are required now, a warning that was being sent may have been accepted, so its deadline counts.
/// - While the Instance is not overdue, the promise is withdrawn. The promise is also withdrawn if the Template was
///   changed to allow more time, so that the Instance becomes overdue only at or after the deadline.
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

/// The earliest end after `sent` warnings, if the last of them was accepted at `last`: the remaining intervals, plus
/// the interval after the last warning.
fn end(terms: &Terms, sent: u32, last: Timestamp) -> Timestamp {
    let left = terms.warnings.saturating_sub(sent).saturating_add(1);
    later(last, terms.interval.saturating_mul(left))
}

/// The deadline of a warning that must be followed by `left` intervals, including its own. The deadline of a warning
/// that is already being sent is kept if it leaves enough time.
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
    let (last_warning, deadline) = (time(accepted), time(named.fold(needed, Timestamp::max)));
    Promise { warnings, last_warning, sending: None, deadline, ..promise.clone() }
}

/// The promise after the current warning was accepted or refused.
pub fn sent(terms: &Terms, promise: &Promise, sent: Sent) -> Promise {
    let undeliverable = sent.refused.and_then(time);
    if let Some(at) = sent.accepted {
        return Promise { undeliverable, ..accepted(terms, promise, at) };
    }
    let undeliverable = undeliverable.or_else(|| promise.undeliverable.clone());
    Promise { undeliverable, ..promise.clone() }
}

/// The promise without any warnings or deadline.
pub fn withdrawn(promise: &Promise) -> Promise {
    let Promise { since, witness, generation, .. } = promise.clone();
    Promise { since, witness, generation, ..Promise::default() }
}

/// Adds a duration to a time; saturates at the latest representable time.
pub fn later(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// Rounds a time up to a multiple of `of` seconds.
fn whole(time: Timestamp, of: i64) -> Timestamp {
    let seconds = time.as_second().saturating_add(i64::from(time.subsec_nanosecond() > 0));
    let up = seconds.saturating_add((of - seconds.rem_euclid(of)) % of);
    Timestamp::from_second(up).unwrap_or(Timestamp::MAX)
}

/// Rounds a time up to the next whole second, as the status stores it, so that no waiting time becomes shorter.
#[expect(clippy::unnecessary_wraps, reason = "the times of a status are optional")]
pub fn time(time: Timestamp) -> Option<Time> {
    Some(Time(whole(time, 1)))
}

/// Subtracts a duration from a time; saturates at the earliest representable time.
pub fn earlier(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_sub(duration).unwrap_or(Timestamp::MIN)
}
