//! The requests of each client: how many run, and how many may begin.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use hashlink::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum number of clients that are known. Above it, the client that was seen longest ago begins again.
const MOST: usize = 20_000;

/// The requests that one client may send.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// The maximum number of requests that run at the same time.
    pub running: usize,
    /// The average number of requests in a second.
    pub rate: u32,
    /// The maximum number of requests at once after a pause.
    pub burst: u32,
}

/// The clients, by their key.
pub struct Clients<K: Eq + Hash> {
    allowance: Allowance,
    known: Mutex<LruCache<K, Client>>,
}

struct Client {
    running: usize,
    /// When the next request is due at the average rate.
    due: Instant,
}

/// A request that runs until this is dropped.
pub struct Running<K: Clone + Eq + Hash> {
    clients: Arc<Clients<K>>,
    key: K,
}

impl<K: Clone + Eq + Hash> Clients<K> {
    /// Creates clients with this allowance for each of them.
    pub fn new(allowance: Allowance) -> Arc<Self> {
        Arc::new(Self { allowance, known: Mutex::new(LruCache::new(MOST)) })
    }

    /// Begins a request of a client; `None` if it has sent too many.
    pub fn begin(self: &Arc<Self>, key: &K) -> Option<Running<K>> {
        let Allowance { running, rate, burst } = self.allowance;
        let (now, interval) = (Instant::now(), Duration::from_secs(1) / rate);
        let mut known = self.known.lock();
        let client = known.entry(key.clone()).or_insert_with(|| Client { running: 0, due: now });
        let due = client.due.max(now);
        if client.running >= running || due.duration_since(now) > interval * (burst - 1) {
            return None;
        }
        client.running += 1;
        client.due = due + interval;
        drop(known);
        Some(Running { clients: Arc::clone(self), key: key.clone() })
    }
}

impl<K: Clone + Eq + Hash> Drop for Running<K> {
    fn drop(&mut self) {
        if let Some(client) = self.clients.known.lock().peek_mut(&self.key) {
            // A client that was forgotten has begun again with zero.
            client.running = client.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWANCE: Allowance = Allowance { running: 3, rate: 10, burst: 5 };

    #[tokio::test(start_paused = true)]
    async fn a_client_above_its_rate_is_refused_and_others_are_not() {
        let clients = Clients::new(ALLOWANCE);
        let sent = |key: u8| (0..100).filter(|_| clients.begin(&key).is_some()).count();
        assert_eq!([sent(1), sent(1), sent(2)], [5, 0, 5]);
        tokio::time::advance(Duration::from_millis(250)).await;
        assert_eq!([sent(1), sent(2)], [2, 2], "ten a second");
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(sent(1), 5, "a pause gives no more than a burst");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_too_many_running_requests_is_refused_until_one_ends() {
        let clients = Clients::new(ALLOWANCE);
        let mut running: Vec<_> = (0..3).map(|_| clients.begin(&1).expect("allowed")).collect();
        assert!(clients.begin(&1).is_none() && clients.begin(&2).is_some());
        running.pop();
        let last = clients.begin(&1);
        assert!(last.is_some() && clients.begin(&1).is_none());
    }
}
