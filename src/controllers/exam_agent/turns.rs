//! The order of writes to an Instance. Requests of this process for the same name wait for each other. A request that
//! conflicts with another writer retries after a pause.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::pace::TooMany;

/// The number of queues. Names that share a queue wait for each other, too.
const QUEUES: usize = 128;
/// The longest time that a request waits for the requests before it.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// How often a conflicting write is retried.
const RETRIES: i32 = 10;
/// The first pause is at most this long, and each further one at most twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The queues of names.
pub struct Turns {
    queues: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Turns {
    /// Empty queues.
    pub fn new() -> Self {
        Self { queues: (0..QUEUES).map(|_| Mutex::new(())).collect(), hasher: RandomState::new() }
    }

    /// Waits until no other request of this process writes the Instance with this name.
    ///
    /// # Errors
    /// If the wait is too long.
    pub async fn wait(&self, name: &str) -> Result<Option<MutexGuard<'_, ()>>, TooMany> {
        let place = usize::try_from(self.hasher.hash_one(name) % QUEUES as u64).unwrap_or_default();
        let Some(queue) = self.queues.get(place) else { return Ok(None) };
        timeout(LONGEST_WAIT, queue.lock()).await.map(Some).map_err(|_| TooMany { retry_after: 1 })
    }
}

/// The pauses between the attempts of one request. They are random, so that two requests do not conflict again and
/// again.
pub fn pauses() -> impl Iterator<Item = Duration> {
    let random = RandomState::new();
    (0..RETRIES).map(move |taken| {
        let most = FIRST_PAUSE.mul_f64(2_f64.powi(taken)).min(LONGEST_PAUSE);
        // 32 bits are exact in an f64.
        let random = u32::try_from(random.hash_one(taken) >> 32).unwrap_or_default();
        most.mul_f64(f64::from(random) / f64::from(u32::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_differ_and_end() {
        let (one, other) = (pauses().collect::<Vec<_>>(), pauses().collect::<Vec<_>>());
        assert_ne!(one, other);
        assert_eq!(one.len(), 10);
        let limits = [10, 20, 40, 80, 160, 320, 500, 500, 500, 500].map(Duration::from_millis);
        for found in [one, other] {
            assert!(found.iter().zip(limits).all(|(pause, limit)| *pause <= limit), "{found:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_for_one_name_wait_for_each_other_until_a_timeout() {
        let turns = Turns::new();
        let first = turns.wait("exam").await.expect("its turn");
        assert_eq!(turns.wait("exam").await.map(drop), Err(TooMany { retry_after: 1 }));
        drop(first);
        assert!(turns.wait("exam").await.is_ok());
    }
}
