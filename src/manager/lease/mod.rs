//! Leader election on a Lease: one replica acts, the others stand by with filled stores.
//!
//! - The lease is taken and renewed by PUT with the last seen resource version: two replicas cannot both succeed.
//! - The expiry of another replica's lease is measured with the local monotonic clock, from the moment when its record
//!   was seen to change. The times in the record are for people.
//! - A standby watches the lease and sleeps until it would expire, so it acts at once when the holder releases it or
//!   stops renewing. Meanwhile it sends no requests, unless the watch shows no renewal in time: then it reads the lease
//!   twice per retry period until the watch has caught up, so that it always learns of the last renewal in time.
//! - A lease that is deleted while it is held is created again by its holder. Other replicas wait until the deadline of
//!   a holder has passed, even if there never was a lease.
//! - The holder's [`Gate`] stays open until `renewDeadline` after it *sent* its last successful renewal. This is before
//!   any other replica could consider the lease expired.
//! - A [`Watchdog`] thread outside the async runtime ends the process when that deadline passes.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use metrics::gauge;
use tracing::{debug, info, warn};

use crate::api::labels::{LEASE_SELECTOR, selector_string};
use crate::config::{Config, LeaderElection};
use crate::runtime::clock;
use crate::runtime::error::with_sources;
use crate::runtime::gate::Gate;
use crate::runtime::readiness::Readiness;

mod leases;
mod observed;
mod report;
mod rivals;
mod watchdog;

use observed::Observed;
use report::{READS, WRITES, is_refusal};

pub use leases::Leases;
pub use rivals::Guard;
pub use watchdog::Watchdog;

/// Takes part in the election for one lease.
pub struct Election {
    leases: Api<Lease>,
    config: LeaderElection,
    identity: String,
    /// Written to the Lease, for readers that check whether objects of a selector are managed.
    selector: String,
    gate: Gate,
    readiness: Readiness,
}

impl Election {
    /// Creates a candidate named `identity` that manages the objects of `selector`. Its writes pass through `gate`
    /// while it leads. `readiness` says what it waits for. `client` must not be gated.
    pub fn new(client: Client, config: &Config, identity: String, gate: Gate, readiness: Readiness) -> Self {
        let (config, selector) = (config.leader_election.clone(), selector_string(&config.selector));
        let leases = Api::namespaced(client, &config.namespace);
        gauge!("leader_election_master_status", "name" => config.name.clone()).set(0.0);
        Self { leases, config, identity, selector, gate, readiness }
    }

    /// Waits until this replica leads, and opens the gate. Returns the lease as written.
    pub async fn lead(&self) -> Lease {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.config.name));
        let mut events = pin!(watcher(self.leases.clone(), config).default_backoff());
        let retry = Duration::from(self.config.retry_period);
        let mut observed = Observed::new();
        loop {
            if observed.is_listed.is_none() {
                let event = events.next().await;
                self.observe_event(&mut observed, event);
                continue;
            }
            let mut wait = observed.free_at.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                match self.acquire(observed.lease.as_ref()).await {
                    Some(lease) => return lease,
                    // Another replica was faster, or the API server is unavailable.
                    None => self.read(&mut observed).await,
                }
                wait = jittered(retry);
            } else if observed.heard.elapsed() >= observed.patience(retry) {
                // A leader renews once in that time: either it does not renew, or the watch is behind.
                self.read(&mut observed).await;
                wait = observed.free_at.saturating_duration_since(Instant::now());
            }
            let wait = wait.min(observed.patience(retry));
            if let Ok(event) = tokio::time::timeout(wait, events.next()).await {
                self.observe_event(&mut observed, event);
            }
        }
    }

    /// Reads the lease directly instead of through the watch.
    async fn read(&self, observed: &mut Observed) {
        match self.within_deadline(self.leases.get_opt(&self.config.name)).await {
            Ok(lease) => {
                let before = observed.free_at;
                self.observe(observed, lease);
                observed.is_watch_behind |= observed.free_at != before;
            }
            Err(LeaseError::Api(kube::Error::Api(status))) if is_refusal(&status) => {
                self.refused(READS, &status);
            }
            Err(error) => info!(error = with_sources(&error), "the lease could not be read"),
        }
    }

    fn observe_event(&self, observed: &mut Observed, event: Option<Result<Event<Lease>, watcher::Error>>) {
        observed.is_watch_behind &= !matches!(event, Some(Ok(_)));
        match event {
            Some(Ok(Event::Apply(lease))) => self.observe(observed, Some(lease)),
            Some(Ok(Event::InitApply(lease))) => {
                observed.is_listed = Some(true);
                self.observe(observed, Some(lease));
            }
            Some(Ok(Event::Delete(_))) => self.observe(observed, None),
            Some(Ok(Event::Init)) => observed.is_listed = observed.is_listed.map(|_| false),
            Some(Ok(Event::InitDone)) if observed.is_listed != Some(true) => {
                observed.is_listed = Some(true);
                self.observe(observed, None);
            }
            Some(Err(
                watcher::Error::InitialListFailed(kube::Error::Api(status))
                | watcher::Error::WatchStartFailed(kube::Error::Api(status)),
            )) if is_refusal(&status) => self.refused(READS, &status),
            Some(Err(error)) => debug!(error = with_sources(&error), "the watch of the lease broke off"),
            Some(Ok(Event::InitDone)) | None => {}
        }
    }

    /// Records the current state of the lease; `None` if it does not exist.
    fn observe(&self, observed: &mut Observed, lease: Option<Lease>) {
        let now = Instant::now();
        let is_first = !observed.is_known;
        (observed.heard, observed.is_known) = (now, true);
        self.readiness.set_notice(READS, None);
        self.readiness.set_standby(self.awaited(lease.as_ref()));
        let spec = |lease: &Option<Lease>| lease.as_ref().and_then(|lease| lease.spec.clone());
        if is_first || spec(&lease) != spec(&observed.lease) {
            observed.free_at = now + self.held_for(observed.lease.as_ref(), lease.as_ref());
            let holder = lease.as_ref().and_then(|lease| self.other_holder(lease));
            // Logged once for each holder, not at each renewal.
            let before = observed.lease.as_ref().and_then(|lease| self.other_holder(lease));
            if let Some(holder) = holder.filter(|_| holder != before) {
                info!(holder, "standing by");
            }
        }
        observed.lease = lease;
    }

    /// The longest time that another replica may hold the lease after a change.
    fn held_for(&self, before: Option<&Lease>, now: Option<&Lease>) -> Duration {
        match now {
            Some(lease) if self.other_holder(lease).is_none() => Duration::ZERO,
            // The duration that the holder has committed to.
            Some(lease) => self.length(lease),
            // The lease was deleted after its holder had released it.
            None if before.is_some_and(|before| self.other_holder(before).is_none()) => Duration::ZERO,
            // After a lease is deleted while it is held, its holder remains the leader until its deadline. A new
            // cluster that never had a lease looks the same.
            None => before.map_or_else(|| self.config.renew_deadline.into(), |before| self.length(before)),
        }
    }

    fn length(&self, lease: &Lease) -> Duration {
        let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or_else(|| self.config.lease_duration.into(), Duration::from_secs)
    }

    fn other_holder<'l>(&self, lease: &'l Lease) -> Option<&'l str> {
        holder(lease).filter(|holder| *holder != self.identity)
    }

    /// Sends a request about the lease with a time limit. A request that hangs costs one attempt: the limit is half of
    /// the time within which the lease must be renewed.
    async fn within_deadline<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T> {
        let limit = Duration::from(self.config.renew_deadline) / 2;
        match tokio::time::timeout(limit, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(LeaseError::Silent(limit)),
        }
    }

    /// Tries once to acquire the lease.
    async fn acquire(&self, seen: Option<&Lease>) -> Option<Lease> {
        let begin = Instant::now();
        let now = MicroTime(clock::now());
        let transitions = seen.and_then(|lease| lease.spec.as_ref()?.lease_transitions);
        let lease_transitions = Some(transitions.map_or(0, |count| count.saturating_add(1)));
        let spec = LeaseSpec { acquire_time: Some(now.clone()), lease_transitions, ..self.spec(now) };
        let result = match seen {
            None => self.create(spec).await,
            Some(lease) => {
                let mut lease = lease.clone();
                lease.metadata.annotations.get_or_insert_default().extend(self.annotations());
                self.put(&lease, spec).await
            }
        };
        match result {
            Ok(lease) => {
                self.gate.open_until(begin + Duration::from(self.config.renew_deadline));
                gauge!("leader_election_master_status", "name" => self.config.name.clone()).set(1.0);
                self.readiness.set_notice(WRITES, None);
                info!(identity = self.identity, "leading");
                Some(lease)
            }
            Err(LeaseError::Api(kube::Error::Api(status))) if is_refusal(&status) => {
                self.refused(WRITES, &status);
                None
            }
            Err(error) => {
                info!(error = with_sources(&error), "the lease could not be taken; standing by");
                None
            }
        }
    }

    fn annotations(&self) -> [(String, String); 1] {
        [(LEASE_SELECTOR.to_owned(), self.selector.clone())]
    }

    fn spec(&self, renewed: MicroTime) -> LeaseSpec {
        let length = Duration::from(self.config.lease_duration).as_secs();
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(length).unwrap_or(i32::MAX)),
            renew_time: Some(renewed),
            ..LeaseSpec::default()
        }
    }

    async fn create(&self, spec: LeaseSpec) -> Result<Lease> {
        let metadata = ObjectMeta {
            name: Some(self.config.name.clone()),
            namespace: Some(self.config.namespace.clone()),
            annotations: Some(self.annotations().into()),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata, spec: Some(spec) };
        self.within_deadline(self.leases.create(&PostParams::default(), &lease)).await
    }

    async fn put(&self, seen: &Lease, spec: LeaseSpec) -> Result<Lease> {
        let lease = Lease { metadata: seen.metadata.clone(), spec: Some(spec) };
        let params = PostParams::default();
        self.within_deadline(self.leases.replace(&self.config.name, &params, &lease)).await
    }

    /// Renews the lease until that is no longer possible. The process must then end.
    pub async fn hold(&self, mut lease: Lease) -> LostLease {
        let period = Duration::from(self.config.retry_period);
        let deadline = Duration::from(self.config.renew_deadline);
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(period).await;
            let begin = Instant::now();
            let LeaseSpec { acquire_time, lease_transitions, .. } = lease.spec.clone().unwrap_or_default();
            let spec = self.spec(MicroTime(clock::now()));
            let spec = LeaseSpec { acquire_time, lease_transitions, ..spec };
            let left = (last + deadline).saturating_duration_since(begin);
            match tokio::time::timeout(left, self.put(&lease, spec)).await {
                Ok(Ok(renewed)) => {
                    lease = renewed;
                    last = begin;
                    self.gate.open_until(begin + deadline);
                }
                Ok(Err(LeaseError::Api(kube::Error::Api(status)))) if matches!(status.code, 404 | 409) => {
                    match self.reread(&mut lease).await {
                        Ok(true) => {}
                        Ok(false) => return self.lost("another replica has taken the lease"),
                        Err(error) => warn!(error = with_sources(&error), "the lease could not be read"),
                    }
                }
                Ok(Err(error)) => warn!(error = with_sources(&error), "the lease could not be renewed"),
                Err(_) => {}
            }
            if last.elapsed() >= deadline {
                return self.lost("the lease could not be renewed in time");
            }
        }
    }

    /// Reads the lease after a conflict, and returns whether this replica still holds it. A deleted lease is created
    /// again: no other replica takes it before our deadline has passed.
    async fn reread(&self, lease: &mut Lease) -> Result<bool> {
        let name = &self.config.name;
        match self.within_deadline(self.leases.get_opt(name)).await? {
            Some(current) if holder(&current) == Some(&self.identity) => {
                *lease = current;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => {
                warn!(name, "the lease was deleted while it was held; it is created again");
                *lease = self.create(lease.spec.clone().unwrap_or_default()).await?;
                Ok(true)
            }
        }
    }

    fn lost(&self, reason: &'static str) -> LostLease {
        self.gate.close();
        gauge!("leader_election_master_status", "name" => self.config.name.clone()).set(0.0);
        LostLease(reason)
    }

    /// Releases the lease, so that a standby acts at once. Call it only after all writes of this replica have ended.
    pub async fn release(&self) {
        self.gate.close();
        let release = async {
            let current = self.within_deadline(self.leases.get_opt(&self.config.name)).await?;
            let Some(lease) = current else { return Ok(()) };
            if holder(&lease) != Some(self.identity.as_str()) {
                return Ok(());
            }
            let spec = LeaseSpec {
                holder_identity: Some(String::new()),
                lease_duration_seconds: Some(1),
                renew_time: Some(MicroTime(clock::now())),
                ..lease.spec.clone().unwrap_or_default()
            };
            self.put(&lease, spec).await.map(drop)
        };
        match release.await {
            Ok(()) => info!("the lease is released"),
            Err::<(), LeaseError>(error) => {
                warn!(error = with_sources(&error), "the lease could not be released; it will expire");
            }
        }
    }
}

type Result<T, E = LeaseError> = std::result::Result<T, E>;

/// The reason why a request about the lease failed.
#[derive(Debug, thiserror::Error)]
enum LeaseError {
    /// The API server rejected it, or could not be reached.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// There was no answer in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
}

/// The reason why this replica no longer leads.
#[derive(Debug, thiserror::Error)]
#[error("{0}; the process ends, so that it starts again as a standby")]
pub struct LostLease(&'static str);

fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then_some(holder)
}

/// Returns a random duration between half and all of `period`.
fn jittered(period: Duration) -> Duration {
    let nanos = u32::try_from(Timestamp::subsec_nanosecond(clock::now())).unwrap_or(0);
    period.mul_f64(0.5 + 0.5 * f64::from(nanos % 1000) / 1000.0)
}

#[cfg(test)]
mod tests;
