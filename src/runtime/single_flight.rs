//! A value that is asked for by one caller at a time.

use tokio::sync::Mutex;
use tokio::time::Instant;

/// A value that is asked for when it is needed. Those who need it while one asks wait, and get the same answer, also a failure: if
/// each asked again, each would wait as long as the one before it.
pub struct SingleFlight<T, E>(Mutex<Option<(Instant, Result<T, E>)>>);

impl<T, E> Default for SingleFlight<T, E> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone, E: Clone> SingleFlight<T, E> {
    /// One that knows the value already.
    pub fn known(value: T) -> Self {
        Self(Mutex::new(Some((Instant::now(), Ok(value)))))
    }

    /// The value, as long as it is `usable`; else it is asked for anew.
    ///
    /// # Errors
    /// Those of `ask`. They are not kept for those who come later.
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

    /// Asks three at once, each of which would take a second; the answer is the number of times that one asked, until `even`.
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
    async fn those_who_wait_get_one_answer() {
        let (flight, asked) = (SingleFlight::default(), AtomicU32::new(0));
        assert_eq!(three(&flight, &asked, false).await, [Err(1); 3]);
        assert_eq!(three(&flight, &asked, true).await, [Ok(2); 3], "a failure is not kept");
        assert_eq!(three(&flight, &asked, true).await, [Ok(2); 3], "a value is, while it is usable");
        assert_eq!(
            three(&SingleFlight::known(1), &asked, true).await,
            [Ok(3); 3],
            "one that is not is replaced"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_hands_over_to_the_next() {
        let (flight, asked) = (SingleFlight::<u32, u32>::default(), AtomicU32::new(0));
        let never = flight.get(|_| true, std::future::pending);
        assert!(tokio::time::timeout(Duration::from_secs(1), never).await.is_err());
        assert_eq!(three(&flight, &asked, true).await, [Ok(1); 3]);
    }
}
