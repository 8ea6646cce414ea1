//! The current time. Only this module reads the clock; plans and reports get the time as a parameter.
//!
//! The clock of a machine can be wrong, and step. The API server states its time in every answer, so there are two
//! readings: [`stated`] is the time of the API server, by which promises are dated, and [`now`] the earlier one of
//! both, by which deadlines are judged. A clock of this machine that is wrong makes no deadline come early.

use std::time::{Duration, Instant};

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// The time of the API server in its last answer, and when that arrived.
static STATED: Mutex<Option<(Timestamp, Instant)>> = Mutex::new(None);

/// Takes the header `Date` of an answer of the API server. What is no date is ignored.
pub fn state(date: &str) {
    if let Ok(time) = rfc2822::DateTimeParser::new().parse_timestamp(date) {
        *STATED.lock() = Some((time, Instant::now()));
    }
}

/// The current time: the earlier one of this machine's and the API server's.
pub fn now() -> Timestamp {
    readings(local()).0
}

/// The current time of the API server; that of this machine before the first answer.
pub fn stated() -> Timestamp {
    readings(local()).1
}

fn readings(local: Timestamp) -> (Timestamp, Timestamp) {
    let stated = *STATED.lock();
    judged_and_stated(local, stated.map(|(time, since)| (time, since.elapsed())))
}

/// The two readings, from the time of this machine and the one that was stated so long ago.
fn judged_and_stated(local: Timestamp, stated: Option<(Timestamp, Duration)>) -> (Timestamp, Timestamp) {
    let stated = stated.and_then(|(time, ago)| time.checked_add(SignedDuration::try_from(ago).ok()?).ok());
    let stated = stated.unwrap_or(local);
    (stated.min(local), stated)
}

fn local() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    Timestamp::now()
}

/// A time in seconds, as Kubernetes writes it: `2026-11-20T10:00:00Z`.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A duration as Go writes it: `26h3m4s`, `72h0m0s`, `1m0s`, `1.5s`, `500ms`, `0s`.
pub fn go_duration(duration: Duration) -> String {
    let (minutes, seconds) = (duration.as_secs() / 60, duration.as_secs() % 60);
    let whole = match minutes {
        0 if seconds == 0 && !duration.is_zero() => return format!("{duration:?}"),
        0 => String::new(),
        1..60 => format!("{minutes}m"),
        _ => format!("{}h{}m", minutes / 60, minutes % 60),
    };
    let fraction = format!(".{:09}", duration.subsec_nanos());
    format!("{whole}{seconds}{}s", fraction.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_makes_nothing_early() {
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        let ago = Duration::from_secs(5);
        assert_eq!(judged_and_stated(at(100), None), (at(100), at(100)), "no answer yet");
        assert_eq!(judged_and_stated(at(9_000), Some((at(95), ago))), (at(100), at(100)), "ahead");
        assert_eq!(judged_and_stated(at(50), Some((at(95), ago))), (at(50), at(100)), "behind");
        assert_eq!(judged_and_stated(at(50), Some((Timestamp::MAX, ago))), (at(50), at(50)), "no such time");
    }

    #[test]
    fn the_date_of_an_answer_is_the_time_of_the_api_server() {
        let begin = local();
        // A time that is true for the other tests of this process, too.
        state(&begin.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        state("tomorrow");
        assert!(STATED.lock().is_some(), "the date is known");
        let (minute, stated) = (SignedDuration::from_mins(1), stated());
        assert!(stated.duration_since(begin).abs() < minute, "{stated}, not {begin}");
    }

    #[test]
    fn durations_are_written_as_in_go() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (500_000_000, "500ms"),
            (1_000_000_000, "1s"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (90_000_000_000, "1m30s"),
            (5_400_000_000_000, "1h30m0s"),
            (86_400_000_000_000, "24h0m0s"),
            (259_200_000_000_000, "72h0m0s"),
            (3_600_000_000_001, "1h0m0.000000001s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), text);
        }
        for (seconds, text) in
            [(59, "59s"), (240, "4m0s"), (3661, "1h1m1s"), (7200, "2h0m0s"), (90_000, "25h0m0s")]
        {
            assert_eq!(go_duration(Duration::from_secs(seconds)), text);
        }
    }
}
