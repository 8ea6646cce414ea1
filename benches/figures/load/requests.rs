//! The daemon's requests to the API server, counted while the audit log is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::{Timestamp, Unit};

use crate::harness::{AGENT, Bench};
use cluster::Audit;
use cluster::audit::{AuditEntry, Mark};

/// The cluster is at rest when there was no write, except to leases, for this long.
const QUIET: Duration = Duration::from_secs(3);
/// The longest wait for the next status while Instances are without one, and for the cluster to come to rest.
const PATIENCE: Duration = Duration::from_mins(5);
const LONG_PATIENCE: Duration = Duration::from_hours(1);
/// The pause between two reads of the log.
const PAUSE: Duration = Duration::from_millis(100);
/// The number of requests of an idle time that are named.
const NAMED: usize = 100;

/// The requests since a point in time.
pub struct Requests {
    audit: Audit,
    position: Mark,
    /// The daemon's successful requests, without watches and the lease, by verb and resource.
    pub sent: BTreeMap<String, u64>,
    /// The daemon's rejected requests, by status, verb and resource.
    pub refused: BTreeMap<String, u64>,
    /// The number of writes among `sent`.
    pub writes: u64,
    /// The number of watches of the daemon that have ended.
    pub watches: u64,
    /// The number of its requests about the lease.
    pub renewals: u64,
    /// The first of `sent` and `refused`, in words.
    pub named: Vec<String>,
    /// For each Instance with an Ingress, the milliseconds from the response to its creation to the response to
    /// the creation of the Ingress.
    pub latencies: Vec<f64>,
    accepted: BTreeMap<String, Timestamp>,
    statuses: BTreeSet<String>,
    last_write: Option<Timestamp>,
    /// The time of the last write of any user to anything but a lease.
    busy: Instant,
}

impl Requests {
    /// The requests from now on.
    pub fn from_now(bench: &Bench) -> Result<Self> {
        let audit = bench.cluster.audit();
        let position = audit.mark()?;
        Ok(Self {
            audit,
            position,
            sent: BTreeMap::new(),
            refused: BTreeMap::new(),
            writes: 0,
            watches: 0,
            renewals: 0,
            named: Vec::new(),
            latencies: Vec::new(),
            accepted: BTreeMap::new(),
            statuses: BTreeSet::new(),
            last_write: None,
            busy: Instant::now(),
        })
    }

    /// Counts the new entries of the log.
    pub fn follow(&mut self) -> Result<()> {
        let (entries, next) = self.audit.read(self.position)?;
        self.position = next;
        for entry in &entries {
            self.count(entry);
        }
        Ok(())
    }

    /// The number of successful requests, without watches and the lease.
    pub fn total(&self) -> u64 {
        self.sent.values().sum()
    }

    /// The number of requests, including the rejected ones, without watches and the lease.
    pub fn total_with_refused(&self) -> u64 {
        self.total() + self.refused.values().sum::<u64>()
    }

    /// Waits until this many Instances have a status. Fails when there is no new status for five minutes.
    pub fn await_statuses(&mut self, count: usize) -> Result<()> {
        let (mut known, mut news) = (0, Instant::now());
        loop {
            self.follow()?;
            if self.statuses.len() >= count {
                return Ok(());
            }
            if self.statuses.len() > known {
                (known, news) = (self.statuses.len(), Instant::now());
            }
            anyhow::ensure!(
                news.elapsed() < PATIENCE,
                "{known} of {count} statuses, and none for {PATIENCE:?}"
            );
            sleep(PAUSE);
        }
    }

    /// Waits until the cluster is at rest. Fails after an hour.
    pub fn settle(&mut self) -> Result<()> {
        let begin = Instant::now();
        self.busy = begin;
        while self.busy.elapsed() < QUIET {
            anyhow::ensure!(
                begin.elapsed() < LONG_PATIENCE,
                "the cluster is not at rest after {LONG_PATIENCE:?}"
            );
            sleep(PAUSE);
            self.follow()?;
        }
        Ok(())
    }

    /// The seconds from the first accepted Instance to the last one, and to the last write of the daemon.
    pub fn seconds(&self) -> (f64, f64) {
        let first = self.accepted.values().min().copied();
        let since_first = |time: Option<Timestamp>| {
            first.zip(time).and_then(|(first, time)| (time - first).total(Unit::Second).ok()).unwrap_or(0.0)
        };
        (since_first(self.accepted.values().max().copied()), since_first(self.last_write))
    }

    fn count(&mut self, entry: &AuditEntry) {
        let is_lease = entry.resource == "leases";
        if entry.is_write() && !is_lease {
            self.busy = Instant::now();
        }
        if entry.verb == "create" && entry.code == 201 {
            self.measure(entry);
        }
        if !entry.user_agent.starts_with(AGENT) {
            return;
        }
        if is_lease {
            self.renewals += 1;
            return;
        }
        if entry.verb == "watch" {
            self.watches += 1;
            return;
        }
        let parts = [entry.resource.as_str(), entry.subresource.as_str()];
        let resource = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("/");
        let resource = if resource.is_empty() { &entry.request_uri } else { &resource };
        let what = format!("{} {resource}", entry.verb);
        if self.named.len() < NAMED {
            let AuditEntry { code, verb, request_uri, stage_timestamp, .. } = entry;
            self.named.push(format!("{stage_timestamp} {code} {verb} {request_uri}"));
        }
        if entry.code >= 400 {
            *self.refused.entry(format!("{} {what}", entry.code)).or_default() += 1;
            return;
        }
        *self.sent.entry(what).or_default() += 1;
        if entry.is_write() {
            self.writes += 1;
            self.last_write = self.last_write.max(Some(entry.stage_timestamp));
        }
        if entry.resource == "instances" && entry.subresource == "status" {
            self.statuses.insert(entry.name.clone());
        }
    }

    /// Measures the time from the creation of an Instance to the creation of its Ingress.
    fn measure(&mut self, entry: &AuditEntry) {
        if entry.resource == "instances" {
            self.accepted.insert(entry.name.clone(), entry.stage_timestamp);
        } else if entry.resource == "ingresses"
            && let Some(begin) = entry.name.strip_suffix("-main").and_then(|name| self.accepted.get(name))
        {
            self.latencies.extend((entry.stage_timestamp - *begin).total(Unit::Millisecond).ok());
        }
    }
}
