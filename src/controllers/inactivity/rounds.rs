//! Rounds of queries: one round asks each source of metrics for the last use of all Instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::Mutex;
use tracing::warn;

use crate::clients::prometheus::{Activity, Prometheus};
use crate::controllers::cleanup::promise::earlier;
use crate::runtime::clock;

/// The longest time that a round looks back. An Instance that may be unused for longer is judged by what earlier
/// rounds have written into its status, too.
pub const LONGEST: Duration = Duration::from_hours(90 * 24);

/// By how much a round overlaps with the one before: samples may be late.
const OVERLAP: Duration = Duration::from_mins(30);

/// The latest round.
pub struct Rounds {
    prometheus: Prometheus,
    latest: RwLock<Option<Arc<Activity>>>,
    /// Held while a round is under way.
    under_way: Mutex<()>,
    /// How long one may take: after this time its answers are asked for again.
    interval: Duration,
    /// Whether the last one took longer.
    is_slow: AtomicBool,
}

impl Rounds {
    /// No round yet.
    pub fn new(prometheus: Prometheus, interval: Duration) -> Self {
        let (latest, under_way, is_slow) = (RwLock::default(), Mutex::default(), AtomicBool::default());
        Self { prometheus, latest, under_way, interval, is_slow }
    }

    /// The latest round.
    pub fn latest(&self) -> Option<Arc<Activity>> {
        self.latest.read().clone()
    }

    /// Asks the sources for the last `window`, unless a round whose answers still count has done that: whoever calls at the
    /// same time shares one round, and none follows at once.
    pub async fn refresh(&self, window: Duration) {
        let _turn = self.under_way.lock().await;
        let now = clock::now();
        let since = earlier(now, window.min(LONGEST));
        let counts =
            |latest: &Arc<Activity>| latest.answered >= earlier(now, self.interval) && latest.since <= since;
        if self.latest().is_some_and(|latest| counts(&latest)) {
            return;
        }
        // What the rounds before have seen is kept: only the time after them is asked for.
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

    /// Logs that rounds take longer than their interval, once, until one does not.
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
