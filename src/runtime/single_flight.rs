//! A value that is requested by one caller at a time.

use tokio::sync::Mutex;
use tokio::time::Instant;

/// A value that is requested on demand. Callers that need it during a request wait, and get the same result, including
/// a failure: if each of them sent another request, each would wait for all the previous ones.
pub struct SingleFlight<T, E>(Mutex<Option<(Instant, Result<T, E>)>>);

impl<T, E> Default for SingleFlight<T, E> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone, E: Clone> SingleFlight<T, E> {
    /// Creates a value that is already known.
    pub fn known(value: T) -> Self {
        Self(Mutex::new(Some((Instant::now(), Ok(value)))))
    }

    /// Returns the value while it is `usable`; otherwise requests it again.
    ///
    /// # Errors
    /// The errors of `ask`. They are not kept for later callers.
    pub async fn get(
        &self,
        usable: impl Fn(&T) -> bool,
        ask: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let begin = Instant::now();
        let mut last = self.0.lock().await;
        match &*last {
            Some((_, Ok(value))) if usable(value) => return Ok(value.clone()),
            Some((since, answer)) if *since > begin => return answer.clone(),
            _ => {}
        }
        let answer = ask().await;
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    /// Calls `get` three times concurrently; each request takes a second. Returns the results: the number of the
    /// request. Even numbers are usable.
    async fn three(
        flight: &SingleFlight<u32, u32>,
        asked: &AtomicU32,
        succeeds: bool,
    ) -> Vec<Result<u32, u32>> {
        let ask = async || {
            sleep(Duration::from_secs(1)).await;
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            if succeeds { Ok(number) } else { Err(number) }
        };
        join_all((0..3).map(|_| flight.get(|number| number % 2 == 0, ask))).await
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_get_one_result() {
        let (flight, asked) = (SingleFlight::default(), AtomicU32::new(0));
        assert_eq!(three(&flight, &asked, false).await, [Err(1); 3]);
        assert_eq!(three(&flight, &asked, true).await, [Ok(2); 3], "a failure is not kept");
        assert_eq!(three(&flight, &asked, true).await, [Ok(2); 3], "a value is kept while it is usable");
        assert_eq!(
            three(&SingleFlight::known(1), &asked, true).await,
            [Ok(3); 3],
            "an unusable value is replaced"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_caller_hands_over_to_the_next() {
        let (flight, asked) = (SingleFlight::<u32, u32>::default(), AtomicU32::new(0));
        let never = flight.get(|_| true, std::future::pending);
        assert!(tokio::time::timeout(Duration::from_secs(1), never).await.is_err());
        assert_eq!(three(&flight, &asked, true).await, [Ok(1); 3]);
    }
}
