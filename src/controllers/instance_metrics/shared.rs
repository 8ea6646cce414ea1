//! The last result, for the service and `/metrics`.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::usage::{Sample, Usage, Usages};

/// How long a result is used if no newer one follows because the runtime does not answer. After that, it is unknown
/// which containers still exist.
pub const LIFETIME: Duration = Duration::from_secs(30);

/// The last result, and the time of its arrival.
#[derive(Debug, Default)]
pub struct Shared(Mutex<Option<(Instant, Usages)>>);

impl Shared {
    /// Adds the samples of a round.
    pub fn advance(&self, samples: &[Sample]) {
        let mut last = self.0.lock();
        let next = last.take().map(|(_, usages)| usages).unwrap_or_default().after(samples);
        *last = Some((Instant::now(), next));
    }

    /// Drops an outdated result.
    pub fn expire(&self) {
        let mut last = self.0.lock();
        last.take_if(|(at, _)| at.elapsed() > LIFETIME);
    }

    /// The use of the pod with this name.
    pub fn of_pod(&self, name: &str) -> Option<Usage> {
        self.read(|usages| usages.of_pod(name)).flatten()
    }

    /// Applies `read` to the result, if there is one.
    pub fn read<T>(&self, read: impl FnOnce(&Usages) -> T) -> Option<T> {
        let last = self.0.lock();
        last.as_ref().filter(|(at, _)| at.elapsed() <= LIFETIME).map(|(_, usages)| read(usages))
    }
}
