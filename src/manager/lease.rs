//! Leader election on a Lease: one replica acts, the others wait warm.
//!
//! - The lease is taken and renewed by PUT with the resource version that was seen: two replicas
//!   cannot both succeed.
//! - Whether another's lease has expired is judged by our own monotonic clock, from the moment we
//!   saw its record change; the times written in it are for people.
//! - A standby watches the lease and sleeps until the moment at which it would expire, so it acts
//!   at once when the holder releases it or falls silent, and asks the API server nothing meanwhile.
//! - The holder's [`Gate`] stands open until `renewDeadline` after it *sent* its last successful
//!   renewal, which is before any other could have seen the lease expire.
//! - A watchdog thread, outside of the async runtime, ends the process when that moment passes.

use std::pin::pin;
use std::sync::Arc;
use std::thread;
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
use tracing::{debug, error, info, warn};

use crate::config::LeaderElection;
use crate::runtime::clock;
use crate::runtime::error::with_sources;
use crate::runtime::gate::Gate;

/// Takes part in the election for one lease.
pub struct Election {
    leases: Api<Lease>,
    config: LeaderElection,
    identity: String,
    gate: Gate,
}

/// What a standby has seen of the lease.
struct Observed {
    lease: Option<Lease>,
    /// When its record last changed, by our clock.
    since: Instant,
}

impl Election {
    /// A candidate named `identity`, whose writes pass `gate` while it leads. `client` must not be
    /// gated itself.
    pub fn new(client: Client, config: LeaderElection, identity: String, gate: Gate) -> Self {
        let leases = Api::namespaced(client, &config.namespace);
        gauge!("leader_election_master_status", "name" => config.name.clone()).set(0.0);
        Self { leases, config, identity, gate }
    }

    /// Waits until this replica leads, and opens the gate. Returns the lease as we wrote it.
    pub async fn lead(&self) -> Lease {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.config.name));
        let mut events = pin!(watcher(self.leases.clone(), config).default_backoff());
        let mut observed = Observed { lease: None, since: Instant::now() };
        let mut listed = false;
        loop {
            if !listed {
                let event = events.next().await;
                self.observe(&mut observed, &mut listed, event);
                continue;
            }
            let mut wait = self.until_free(&observed);
            if wait.is_zero() {
                if let Some(lease) = self.acquire(observed.lease.as_ref()).await {
                    return lease;
                }
                // Somebody was faster, or the API server is away; the watch will say.
                wait = jittered(self.config.retry_period.into());
            }
            if let Ok(event) = tokio::time::timeout(wait, events.next()).await {
                self.observe(&mut observed, &mut listed, event);
            }
        }
    }

    fn observe(
        &self,
        observed: &mut Observed,
        listed: &mut bool,
        event: Option<Result<Event<Lease>, watcher::Error>>,
    ) {
        let lease = match event {
            Some(Ok(Event::Apply(lease) | Event::InitApply(lease))) => Some(lease),
            Some(Ok(Event::Delete(_))) => None,
            Some(Ok(Event::InitDone)) => {
                *listed = true;
                return;
            }
            Some(Ok(Event::Init)) | None => return,
            Some(Err(error)) => {
                debug!(error = with_sources(&error), "the watch of the lease broke off");
                return;
            }
        };
        let spec = |lease: &Option<Lease>| lease.as_ref().and_then(|lease| lease.spec.clone());
        if spec(&lease) != spec(&observed.lease) {
            observed.since = Instant::now();
            if let Some(holder) = lease.as_ref().and_then(holder).filter(|holder| *holder != self.identity) {
                info!(holder, "standing by");
            }
        }
        observed.lease = lease;
    }

    /// How long the lease is still another's.
    fn until_free(&self, observed: &Observed) -> Duration {
        let Some(lease) = &observed.lease else { return Duration::ZERO };
        if holder(lease).is_none_or(|holder| holder == self.identity) {
            return Duration::ZERO;
        }
        // The length that the holder promised to renew within.
        let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let length = seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or_else(|| self.config.lease_duration.into(), Duration::from_secs);
        (observed.since + length).saturating_duration_since(Instant::now())
    }

    /// Tries once to take the lease.
    async fn acquire(&self, seen: Option<&Lease>) -> Option<Lease> {
        let begin = Instant::now();
        let now = MicroTime(clock::now());
        let transitions = seen.and_then(|lease| lease.spec.as_ref()?.lease_transitions);
        let spec = LeaseSpec {
            acquire_time: Some(now.clone()),
            lease_transitions: Some(transitions.map_or(0, |count| count.saturating_add(1))),
            ..self.spec(now)
        };
        let result = match seen {
            None => {
                let metadata = ObjectMeta {
                    name: Some(self.config.name.clone()),
                    namespace: Some(self.config.namespace.clone()),
                    ..ObjectMeta::default()
                };
                let lease = Lease { metadata, spec: Some(spec) };
                self.leases.create(&PostParams::default(), &lease).await
            }
            Some(lease) => self.put(lease, spec).await,
        };
        match result {
            Ok(lease) => {
                self.gate.open_until(begin + Duration::from(self.config.renew_deadline));
                gauge!("leader_election_master_status", "name" => self.config.name.clone()).set(1.0);
                info!(identity = self.identity, "leading");
                Some(lease)
            }
            Err(error) => {
                info!(error = with_sources(&error), "the lease could not be taken; standing by");
                None
            }
        }
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

    async fn put(&self, seen: &Lease, spec: LeaseSpec) -> kube::Result<Lease> {
        let lease = Lease { metadata: seen.metadata.clone(), spec: Some(spec) };
        self.leases.replace(&self.config.name, &PostParams::default(), &lease).await
    }

    /// Renews the lease until that is no longer possible; then the process must end.
    pub async fn hold(&self, mut lease: Lease) -> LostLease {
        let period = Duration::from(self.config.retry_period);
        let deadline = Duration::from(self.config.renew_deadline);
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(period).await;
            let begin = Instant::now();
            let before = lease.spec.clone().unwrap_or_default();
            let spec = LeaseSpec {
                acquire_time: before.acquire_time,
                lease_transitions: before.lease_transitions,
                ..self.spec(MicroTime(clock::now()))
            };
            let left = (last + deadline).saturating_duration_since(begin);
            match tokio::time::timeout(left, self.put(&lease, spec)).await {
                Ok(Ok(renewed)) => {
                    lease = renewed;
                    last = begin;
                    self.gate.open_until(begin + deadline);
                }
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
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

    /// Reads the lease after a conflict; whether it is still ours.
    async fn reread(&self, lease: &mut Lease) -> kube::Result<bool> {
        match self.leases.get_opt(&self.config.name).await? {
            Some(current) if holder(&current) == Some(&self.identity) => {
                *lease = current;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn lost(&self, reason: &'static str) -> LostLease {
        self.gate.close();
        gauge!("leader_election_master_status", "name" => self.config.name.clone()).set(0.0);
        LostLease(reason)
    }

    /// Gives the lease back, so that a standby acts at once. The gate must have done its work.
    pub async fn release(&self) {
        self.gate.close();
        let release = async {
            let Some(lease) = self.leases.get_opt(&self.config.name).await? else { return Ok(()) };
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
            Err::<(), kube::Error>(error) => {
                warn!(error = with_sources(&error), "the lease could not be released; it will expire");
            }
        }
    }
}

/// Why this replica no longer leads.
#[derive(Debug, thiserror::Error)]
#[error("{0}; the process ends, so that it starts again as a standby")]
pub struct LostLease(&'static str);

fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then_some(holder)
}

/// Between half and all of it, different for each attempt and replica.
fn jittered(period: Duration) -> Duration {
    let nanos = u32::try_from(Timestamp::subsec_nanosecond(clock::now())).unwrap_or(0);
    period.mul_f64(0.5 + 0.5 * f64::from(nanos % 1000) / 1000.0)
}

/// Ends the process when the gate closes by time, even if the async runtime hangs or the process
/// was stopped and continues. Started once this replica leads; dropped (and so ended) before a
/// clean stop.
pub struct Watchdog {
    /// The thread ends when this is dropped.
    _armed: Arc<()>,
}

impl Watchdog {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(gate: Gate) -> std::io::Result<Self> {
        let armed = Arc::new(());
        let alive = Arc::downgrade(&armed);
        thread::Builder::new().name("lease-watchdog".to_owned()).spawn(move || {
            while let Some(left) = gate.remaining() {
                if alive.upgrade().is_none() {
                    return;
                }
                thread::sleep(left.min(Duration::from_secs(1)));
            }
            if alive.upgrade().is_some() {
                error!("the lease was not renewed in time; the process ends");
                std::process::exit(super::EXIT_LEASE_LOST.into());
            }
        })?;
        Ok(Self { _armed: armed })
    }
}
