//! The current time. Only this module reads the clock; plans and reports get the time as a parameter.
//!
//! The clock of a machine can be wrong, and step. The API server states its time in every answer, so there are two
//! readings: [`stated`] is the time of the API server, by which promises are dated, and [`now`] the earlier one of
//! both, by which deadlines are judged. A clock of this machine that is wrong makes no deadline come early.
//!
//! An answer has whole seconds, cut off, and may arrive late: it says that the time of the API server is at least so much. The
//! highest of these counts, and goes on with the monotonic clock of this machine. Neither reading ever goes back: while
//! a clock is behind what was read before, that is read again.

use std::time::{Duration, Instant};

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// How far an answer may be behind the estimate: it has whole seconds, and may have been on its way for one.
const SLACK: SignedDuration = SignedDuration::from_secs(2);
/// By which part of what is beyond [`SLACK`] an answer corrects the estimate: several in a row say that the clock of the API
/// server was set back, and a single one that it was late.
const CORRECTION: i32 = 8;

static CLOCK: Mutex<Clock> = Mutex::new(Clock { stated: None, latest: None });

struct Clock {
    /// The estimated time of the API server at the last answer, and when that arrived.
    stated: Option<(Timestamp, Instant)>,
    /// The two readings that were given last, once the API server has stated its time.
    latest: Option<(Timestamp, Timestamp)>,
}

/// Takes the header `Date` of an answer of the API server. What is no date is ignored.
pub fn state(date: &str) {
    if let Ok(time) = rfc2822::DateTimeParser::new().parse_timestamp(date) {
        CLOCK.lock().state(time, Instant::now());
    }
}

/// The current time: the earlier one of this machine's and the API server's.
pub fn now() -> Timestamp {
    CLOCK.lock().read(local(), Instant::now()).0
}

/// The current time of the API server; that of this machine before the first answer.
pub fn stated() -> Timestamp {
    CLOCK.lock().read(local(), Instant::now()).1
}

impl Clock {
    /// The estimated time of the API server.
    fn estimate(&self, now: Instant) -> Option<Timestamp> {
        let (time, since) = self.stated?;
        let passed = SignedDuration::try_from(now.saturating_duration_since(since)).ok()?;
        time.checked_add(passed).ok()
    }

    /// Takes a time that the API server has stated.
    fn state(&mut self, time: Timestamp, now: Instant) {
        let corrected = match self.estimate(now) {
            Some(estimate) if estimate >= time => {
                let beyond = estimate.duration_since(time) - SLACK;
                if beyond.is_positive() { estimate - beyond / CORRECTION } else { estimate }
            }
            _ => time,
        };
        self.stated = Some((corrected, now));
    }

    /// The two readings, of which the first is the earlier one of both clocks, and the second that of the API server.
    fn read(&mut self, local: Timestamp, now: Instant) -> (Timestamp, Timestamp) {
        let Some(stated) = self.estimate(now) else { return (local, local) };
        let (mut judged, mut dated) = (stated.min(local), stated);
        if let Some(latest) = self.latest {
            (judged, dated) = (judged.max(latest.0), dated.max(latest.1));
        }
        self.latest = Some((judged, dated));
        (judged, dated)
    }
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

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a time")
    }

    /// A clock that has not been told anything, and an instant from which milliseconds are counted.
    fn clock() -> (Clock, impl Fn(u64) -> Instant) {
        let begin = Instant::now();
        (Clock { stated: None, latest: None }, move |millis| begin + Duration::from_millis(millis))
    }

    #[test]
    fn a_wrong_clock_makes_nothing_early() {
        let (mut clock, after) = clock();
        assert_eq!(clock.read(at(9_000_000), after(0)), (at(9_000_000), at(9_000_000)), "no answer yet");
        clock.state(at(95_000), after(0));
        assert_eq!(clock.read(at(9_000_000), after(5_000)), (at(100_000), at(100_000)), "ahead");
        let (mut clock, after) = self::clock();
        clock.state(at(95_000), after(0));
        assert_eq!(clock.read(at(50_000), after(5_000)), (at(50_000), at(100_000)), "behind");
        let (mut clock, after) = self::clock();
        clock.state(Timestamp::MAX, after(0));
        assert_eq!(clock.read(at(50_000), after(5_000)), (at(50_000), at(50_000)), "no such time");
    }

    #[test]
    fn a_clock_that_is_set_back_is_followed_without_going_back() {
        let (mut clock, after) = clock();
        clock.state(at(1_000_000), after(0));
        clock.read(at(5_000_000), after(0));
        // The API server, a minute behind by now, answers ten times a second.
        let mut before = at(0);
        for tenth in 1..=1_500 {
            let time = 100 * tenth;
            let true_time = i64::try_from(940_000 + time).expect("a number");
            clock.state(at(true_time / 1000 * 1000), after(time));
            let (_, dated) = clock.read(at(5_000_000), after(time));
            assert!(dated >= before, "{dated} after {before}");
            before = dated;
        }
        let behind = before.duration_since(at(940_000 + 150_000));
        assert!(behind.abs() <= SLACK, "{behind} from the true time");
    }

    proptest::proptest! {
        /// Answers have whole seconds and arrive up to a second late; the time never goes back, and is never ahead of the true one.
        #[test]
        fn the_time_never_goes_back(answers in proptest::collection::vec((1..2_000_u64, 0..1_000_u64), 1..100)) {
            let (mut clock, after) = clock();
            let (mut time, mut before) = (1_000_000_u64, at(0));
            for (pause, late) in answers {
                time += pause;
                let sent = i64::try_from((time - late) / 1000 * 1000).expect("a number");
                clock.state(at(sent), after(time));
                let true_time = at(i64::try_from(time).expect("a number"));
                let (judged, dated) = clock.read(true_time, after(time));
                proptest::prop_assert!(judged >= before && judged <= dated && dated <= true_time);
                proptest::prop_assert!(true_time.duration_since(judged) <= SLACK);
                before = judged;
            }
        }
    }

    #[test]
    fn the_date_of_an_answer_is_the_time_of_the_api_server() {
        let begin = local();
        // A time that is true for the other tests of this process, too.
        state(&begin.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        state("tomorrow");
        assert!(CLOCK.lock().stated.is_some(), "the date is known");
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
