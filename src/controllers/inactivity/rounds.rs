//! Rounds of queries. One round asks each source of metrics for the last use of all Instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::Mutex;
use tracing::warn;

use crate::clients::prometheus::{Activity, Prometheus};
use crate::controllers::cleanup::promise::earlier;
use crate::runtime::clock;

/// The longest time that a round looks back. For an Instance that may be unused for longer, the last use that earlier
/// rounds have written into its status counts, too.
pub const LONGEST: Duration = Duration::from_hours(90 * 24);

/// The overlap of a round with the previous one, because samples may arrive late.
const OVERLAP: Duration = Duration::from_mins(30);

/// The latest round.
pub struct Rounds {
    prometheus: Prometheus,
    latest: RwLock<Option<Arc<Activity>>>,
    /// Held while a round is running.
    under_way: Mutex<()>,
    /// The time limit of a round, and the maximum age of its answers.
    interval: Duration,
    /// Whether the last round took longer than the interval.
    is_slow: AtomicBool,
}

impl Rounds {
    /// No round has been made yet.
    pub fn new(prometheus: Prometheus, interval: Duration) -> Self {
        let (latest, under_way, is_slow) = (RwLock::default(), Mutex::default(), AtomicBool::default());
        Self { prometheus, latest, under_way, interval, is_slow }
    }

    /// The latest round.
    pub fn latest(&self) -> Option<Arc<Activity>> {
        self.latest.read().clone()
    }

    /// Asks the sources about the last `window`, unless a recent round has already covered it. Concurrent callers share
    /// one round, and no new round starts immediately after it.
    pub async fn refresh(&self, window: Duration) {
        let _turn = self.under_way.lock().await;
        let now = clock::now();
        let since = earlier(now, window.min(LONGEST));
        let counts =
            |latest: &Arc<Activity>| latest.answered >= earlier(now, self.interval) && latest.since <= since;
        if self.latest().is_some_and(|latest| counts(&latest)) {
            return;
        }
        // Keep the results of the previous rounds, and ask only for the time since then.
        let before = self.latest().filter(|before| before.since <= since);
        let known = before.filter(|before| before.observed_since().is_some());
        let begin = known.as_ref().map_or(since, |known| earlier(known.until, OVERLAP).max(since));
        let clock = Instant::now();
        let activity = self.prometheus.activity(begin, now).await;
        self.tell(clock.elapsed());
        let activity = match known {
            Some(known) => activity.after(&known, since),
            None => activity,
        };
        *self.latest.write() = Some(Arc::new(activity));
    }

    /// Logs once that rounds take longer than their interval, until a round is fast enough again.
    fn tell(&self, took: Duration) {
        let is_slow = took > self.interval;
        let was_slow = self.is_slow.swap(is_slow, Ordering::Relaxed);
        if is_slow && !was_slow {
            let interval = self.interval;
            warn!(
                ?took,
                ?interval,
                "a round of queries to Prometheus takes longer than controllers.inactivity.checkInterval"
            );
        }
    }
}
