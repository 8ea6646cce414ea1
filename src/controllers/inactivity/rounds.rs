//! Rounds of queries: one round asks each source of metrics for the last use of all Instances.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::RwLock;
use tokio::sync::Mutex;

use crate::clients::prometheus::{Activity, Prometheus};
use crate::controllers::cleanup::promise::{earlier, later};
use crate::runtime::clock;

/// The longest time that a round looks back. An Instance that may be unused for longer is judged by what earlier
/// rounds have written into its status, too.
pub const LONGEST: Duration = Duration::from_hours(90 * 24);

/// By how much a round overlaps with the one before: samples may be late.
const OVERLAP: Duration = Duration::from_mins(30);
/// How much later than wanted the first round may begin: Templates change, and time passes.
const FORGOTTEN: Duration = Duration::from_mins(30);

/// The latest round.
pub struct Rounds {
    prometheus: Prometheus,
    latest: RwLock<Option<Arc<Activity>>>,
    /// Held while a round is under way.
    under_way: Mutex<()>,
}

impl Rounds {
    /// No round yet.
    pub fn new(prometheus: Prometheus) -> Self {
        Self { prometheus, latest: RwLock::default(), under_way: Mutex::default() }
    }

    /// The latest round.
    pub fn latest(&self) -> Option<Arc<Activity>> {
        self.latest.read().clone()
    }

    /// Asks the sources for the last `window`, unless that was done after this call began: whoever calls at the same
    /// time shares one round.
    pub async fn refresh(&self, window: Duration) -> Timestamp {
        let asked = clock::now();
        let _turn = self.under_way.lock().await;
        if let Some(latest) = self.latest().filter(|latest| latest.until >= asked) {
            return latest.until;
        }
        let now = clock::now();
        let since = earlier(now, window.min(LONGEST));
        // What the rounds before have seen is kept: only the time after them is asked for.
        let before = self.latest().filter(|before| before.since <= later(since, FORGOTTEN));
        let known = before.filter(|before| before.observed_since().is_some());
        let begin = known.as_ref().map_or(since, |known| earlier(known.until, OVERLAP).max(since));
        let activity = self.prometheus.activity(begin, now).await;
        let activity = match known {
            Some(known) => activity.after(&known, since),
            None => activity,
        };
        *self.latest.write() = Some(Arc::new(activity));
        now
    }
}
