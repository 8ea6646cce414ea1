//! Detects packets that repeat one that was counted: retransmissions, and packets that pass several devices on their
//! way out.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use super::packet::Attempt;

/// An attempt is a repetition if an equal one was seen within this time. Linux waits at most 32 s between
/// retransmissions, except before the last one.
const WINDOW: Duration = Duration::from_mins(1);
/// The number of sets. The table takes 256 KiB and holds 32,768 attempts.
const SETS: usize = 4096;
/// The attempts of a set, which fill one cache line.
const WAYS: usize = 8;
/// An entry is a hash. These bits of it hold the time instead.
const TIME: u64 = 0xffff;

/// The recent attempts, in a table of fixed size. Each set keeps the attempts seen last. The hashes have a random key,
/// so a sender cannot craft packets that evict others.
pub struct Repeats {
    keys: RandomState,
    sets: Box<[[u64; WAYS]]>,
    begin: Instant,
}

impl Repeats {
    /// An empty table.
    pub fn new(now: Instant) -> Self {
        Self { keys: RandomState::new(), sets: vec![[0; WAYS]; SETS].into(), begin: now }
    }

    /// Records an attempt, and returns whether it is new. Two different attempts count as one with a probability of
    /// 2^-48 for each entry of a set.
    pub fn is_first(&mut self, attempt: &Attempt, now: Instant) -> bool {
        let hash = self.keys.hash_one(attempt);
        // The time in seconds. It wraps around after 18 hours, which matters only to a reused sequence number.
        let time = now.saturating_duration_since(self.begin).as_secs() & TIME;
        let (tag, set) = (hash & !TIME, usize::try_from(hash & TIME).unwrap_or_default() % SETS);
        let Some(entries) = self.sets.get_mut(set) else { return true };
        let found = entries.iter().position(|entry| entry & !TIME == tag);
        let age = found.and_then(|at| entries.get(at)).map(|entry| time.wrapping_sub(*entry) & TIME);
        // Entries are sorted by age, the newest first; the oldest is evicted.
        entries.copy_within(..found.unwrap_or(WAYS - 1), 1);
        entries[0] = tag | time;
        age.is_none_or(|age| age > WINDOW.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(port: u16, sequence: u32) -> Attempt {
        let address = |port| std::net::SocketAddr::from(([10, 0, 0, 1], port));
        Attempt { source: address(port), destination: address(22), sequence }
    }

    #[test]
    fn a_retransmission_is_found_within_a_minute_of_the_previous_one() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut repeats = Repeats::new(begin);
        assert!(repeats.is_first(&attempt(1, 7), at(0)));
        // As Linux sends them: 1, 3, 7, 15, 31 and 63 s after the first packet.
        for seconds in [1, 3, 7, 15, 31, 63] {
            assert!(!repeats.is_first(&attempt(1, 7), at(seconds)), "{seconds} s");
        }
        assert!(repeats.is_first(&attempt(1, 8), at(63)), "another sequence number");
        assert!(repeats.is_first(&attempt(2, 7), at(63)), "another port");
        assert!(!repeats.is_first(&attempt(1, 7), at(123)));
        assert!(repeats.is_first(&attempt(1, 7), at(184)), "61 s later");
    }

    #[test]
    fn the_time_may_wrap_around() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut repeats = Repeats::new(begin);
        assert!(repeats.is_first(&attempt(1, 7), at(0xffff - 10)));
        assert!(!repeats.is_first(&attempt(1, 7), at(0xffff + 20)));
        assert!(repeats.is_first(&attempt(1, 7), at(0xffff + 100)));
    }

    #[test]
    fn a_thousand_attempts_do_not_evict_each_other() {
        let now = Instant::now();
        let mut repeats = Repeats::new(now);
        let attempts: Vec<Attempt> = (0..1000).map(|n| attempt(n, u32::from(n))).collect();
        assert_eq!(attempts.iter().filter(|attempt| repeats.is_first(attempt, now)).count(), 1000);
        // The probability that nine of a thousand attempts fall into one of 4,096 sets is 10^-7.
        assert_eq!(attempts.iter().filter(|attempt| repeats.is_first(attempt, now)).count(), 0);
    }
}
