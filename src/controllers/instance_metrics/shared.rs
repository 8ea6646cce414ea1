//! The last result, which the service and `/metrics` read.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::usage::{Sample, Usage, Usages};

/// How long a result is given to others when no other one follows it: the runtime does not answer, and nobody knows which
/// containers are still there.
pub const LIFETIME: Duration = Duration::from_secs(30);

/// The last result, and when it came.
#[derive(Debug, Default)]
pub struct Shared(Mutex<Option<(Instant, Usages)>>);

impl Shared {
    /// Takes the samples of a round.
    pub fn advance(&self, samples: &[Sample]) {
        let mut last = self.0.lock();
        let next = last.take().map(|(_, usages)| usages).unwrap_or_default().after(samples);
        *last = Some((Instant::now(), next));
    }

    /// Forgets a result that is too old to be given.
    pub fn expire(&self) {
        let mut last = self.0.lock();
        last.take_if(|(at, _)| at.elapsed() > LIFETIME);
    }

    /// The use of the pod of that name.
    pub fn of_pod(&self, name: &str) -> Option<Usage> {
        self.read(|usages| usages.of_pod(name)).flatten()
    }

    /// What `read` makes of the result, while there is one.
    pub fn read<T>(&self, read: impl FnOnce(&Usages) -> T) -> Option<T> {
        let last = self.0.lock();
        last.as_ref().filter(|(at, _)| at.elapsed() <= LIFETIME).map(|(_, usages)| read(usages))
    }
}
