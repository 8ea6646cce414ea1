//! The current time. Only this module reads the clock; plans and reports get the time as a parameter.
//!
//! The clock of a host can be wrong, and step. The API server states its time in every response, so there are two
//! readings: [`stated`] is the time of the API server and dates promises; [`now`] is the earlier of both clocks and
//! decides whether a deadline has passed. A wrong host clock therefore never makes a deadline pass early.
//!
//! The `Date` header of a response is truncated to whole seconds and may arrive late, so it is a lower bound for the
//! time of the API server. The highest bound counts, and advances with the monotonic clock of this host. Neither
//! reading ever goes back: while a clock is behind an earlier reading, the earlier reading is returned again.

use std::time::{Duration, Instant};

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// The tolerated lag of a response behind the estimate: up to a second for truncation, and up to a second for the
/// transfer.
const SLACK: SignedDuration = SignedDuration::from_secs(2);
/// A response corrects the estimate by its excess over [`SLACK`], divided by this number. Several excesses in a row
/// mean that the API server's clock was set back; a single one means that the response was late.
const CORRECTION: i32 = 8;

static CLOCK: Mutex<Clock> = Mutex::new(Clock { stated: None, latest: None });

struct Clock {
    /// The estimated time of the API server at the last response, and the arrival time of that response.
    stated: Option<(Timestamp, Instant)>,
    /// The two most recent readings, once the API server has stated its time.
    latest: Option<(Timestamp, Timestamp)>,
}

/// Processes the header `Date` of an API server response. An invalid date is ignored.
pub fn state(date: &str) {
    if let Ok(time) = rfc2822::DateTimeParser::new().parse_timestamp(date) {
        CLOCK.lock().state(time, Instant::now());
    }
}

/// The current time: the earlier of this host's and the API server's.
pub fn now() -> Timestamp {
    CLOCK.lock().read(local(), Instant::now()).0
}

/// The current time of the API server; before the first response, the time of this host.
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

    /// Processes a time that the API server has stated.
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

    /// Returns the two readings: the earlier of both clocks, and the time of the API server.
    fn read(&mut self, local: Timestamp, now: Instant) -> (Timestamp, Timestamp) {
        let Some(stated) = self.estimate(now) else { return (local, local) };
        let (judged, dated) = self.latest.unwrap_or((Timestamp::MIN, Timestamp::MIN));
        *self.latest.insert((judged.max(stated.min(local)), dated.max(stated)))
    }
}

fn local() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
    Timestamp::now()
}

/// Formats a time in seconds, like Kubernetes: `2026-11-20T10:00:00Z`.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a duration like Go: `26h3m4s`, `72h0m0s`, `1m0s`, `1.5s`, `500ms`, `0s`.
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

    /// A clock without a stated time, and a function that returns the instant after some milliseconds.
    fn clock() -> (Clock, impl Fn(u64) -> Instant) {
        let begin = Instant::now();
        (Clock { stated: None, latest: None }, move |millis| begin + Duration::from_millis(millis))
    }

    #[test]
    fn a_wrong_clock_makes_no_deadline_early() {
        let (mut clock, after) = clock();
        assert_eq!(clock.read(at(9_000_000), after(0)), (at(9_000_000), at(9_000_000)), "no response yet");
        clock.state(at(95_000), after(0));
        assert_eq!(clock.read(at(9_000_000), after(5_000)), (at(100_000), at(100_000)), "ahead");
        let (mut clock, after) = self::clock();
        clock.state(at(95_000), after(0));
        assert_eq!(clock.read(at(50_000), after(5_000)), (at(50_000), at(100_000)), "behind");
        let (mut clock, after) = self::clock();
        clock.state(Timestamp::MAX, after(0));
        assert_eq!(clock.read(at(50_000), after(5_000)), (at(50_000), at(50_000)), "an impossible time");
    }

    #[test]
    fn the_reading_follows_a_clock_that_is_set_back_without_going_back() {
        let (mut clock, after) = clock();
        clock.state(at(1_000_000), after(0));
        clock.read(at(5_000_000), after(0));
        // The API server, now a minute behind, responds ten times a second.
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
        /// Responses have whole seconds and arrive up to a second late. The time never goes back, and is never ahead of
        /// the true time.
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
    fn the_date_of_a_response_is_the_time_of_the_api_server() {
        let begin = local();
        // The true time, which is also correct for the other tests of this process.
        state(&begin.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        state("tomorrow");
        assert!(CLOCK.lock().stated.is_some(), "the date was parsed");
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
