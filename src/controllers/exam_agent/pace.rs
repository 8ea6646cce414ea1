//! The rate limit of requests to the API server: a token bucket.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The longest time that a request waits for its turn. The client waits for the same time.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A bucket of tokens, one for each request. It refills at a constant rate.
#[derive(Debug)]
pub struct Pace {
    /// The number of tokens added per second.
    rate: f64,
    /// The capacity of the bucket.
    burst: f64,
    /// The number of tokens at `at`; below 0 if requests are waiting.
    level: f64,
    at: Instant,
}

/// The error for a request that would wait too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    /// How many seconds to wait before the next attempt, at least 1.
    pub retry_after: u64,
}

impl Pace {
    /// A full bucket.
    pub fn new(rate: u32, burst: u32, now: Instant) -> Self {
        let level = f64::from(burst);
        Self { rate: rate.into(), burst: level, level, at: now }
    }

    /// Takes a token and returns how long the request has to wait for it.
    ///
    /// # Errors
    /// If the wait would be too long.
    pub fn take(&mut self, now: Instant) -> Result<Duration, TooMany> {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.level = passed.mul_add(self.rate, self.level).min(self.burst);
        let left = self.level - 1.0;
        let wait = Duration::from_secs_f64((-left / self.rate).max(0.0));
        if wait > LONGEST_WAIT {
            return Err(TooMany { retry_after: wait.as_secs().max(1) });
        }
        self.level = left;
        Ok(wait)
    }
}

/// Lets a log message through at most once per second, because clients control how often it would be written.
#[derive(Debug, Default)]
pub struct OncePerSecond(Mutex<Option<Instant>>);

impl OncePerSecond {
    /// Whether a message may be written now.
    pub fn may(&self, now: Instant) -> bool {
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= Duration::from_secs(1));
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_burst_passes_at_once_and_the_rest_waits_its_turn() {
        let begin = Instant::now();
        let mut pace = Pace::new(10, 4, begin);
        let waits: Vec<u128> = (0..6).map(|_| pace.take(begin).expect("it may").as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 100, 200]);
        // Two tokens have been promised to waiting requests.
        let later = begin + Duration::from_millis(500);
        let waits: Vec<u128> = (0..4).map(|_| pace.take(later).expect("it may").as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100]);
    }

    #[test]
    fn a_request_that_would_wait_too_long_is_refused() {
        let begin = Instant::now();
        let mut pace = Pace::new(1, 10, begin);
        for _ in 0..20 {
            pace.take(begin).expect("it may");
        }
        assert_eq!(pace.take(begin), Err(TooMany { retry_after: 11 }), "ten wait already");
        assert_eq!(pace.take(begin + Duration::from_secs(1)), Ok(LONGEST_WAIT));
    }

    #[test]
    fn a_message_passes_once_in_a_second() {
        let (begin, messages) = (Instant::now(), OncePerSecond::default());
        let passed =
            [0, 1, 999, 1_000, 1_500, 2_100].map(|at| messages.may(begin + Duration::from_millis(at)));
        assert_eq!(passed, [true, false, false, true, false, true]);
    }

    #[test]
    fn the_smallest_bucket_serves_every_request() {
        let begin = Instant::now();
        let mut pace = Pace::new(1, 1, begin);
        assert_eq!(pace.take(begin), Ok(Duration::ZERO));
        assert_eq!(pace.take(begin), Ok(Duration::from_secs(1)));
    }

    proptest! {
        #[test]
        fn no_more_pass_than_the_rate_allows(
            rate in 1u32..100, burst in 1u32..100, steps in proptest::collection::vec(0u64..2_000, 1..200)
        ) {
            let begin = Instant::now();
            let (mut pace, mut now, mut passed) = (Pace::new(rate, burst, begin), begin, 0.0);
            for milliseconds in steps {
                now += Duration::from_millis(milliseconds);
                let Ok(wait) = pace.take(now) else { continue };
                prop_assert!(wait <= LONGEST_WAIT);
                passed += 1.0;
                let time = (now + wait - begin).as_secs_f64();
                prop_assert!(passed <= time.mul_add(f64::from(rate), f64::from(burst)) + 1e-6);
            }
        }
    }
}
