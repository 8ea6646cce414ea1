//! Other installations that manage the same objects: a daemon does not lead while another one does.
//!
//! - The marks of Tenants and Workspaces name the Lease of the installation that manages them. If there is no mark of
//!   another installation, no requests are sent.
//! - Before the election, the Lease of another installation is read until it is free: missing, released or expired,
//!   measured with the local clock.
//! - Two installations that start in a cluster without any mark discover each other's marks later. Then the one with
//!   the younger Lease ends.
//! - `leaderElection.ignoredLeases` names Leases that do not prevent this installation from leading.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tracing::{info, warn};

use crate::config::LeaderElection;
use crate::controllers::shared::responsibility::lease_name;
use crate::controllers::shared::rivals::{Rival, Rivals};
use crate::runtime::client::REQUEST_TIMEOUT;
use crate::runtime::error::with_sources;
use crate::runtime::readiness::Readiness;
use crate::runtime::sighting::Sighting;

/// The name in the readiness.
const NAME: &str = "leader election";

/// Monitors the Leases of other installations.
pub struct Guard {
    client: Client,
    config: LeaderElection,
    rivals: Rivals,
    readiness: Readiness,
}

/// The state of another installation.
enum Verdict {
    /// It is not running.
    Gone,
    /// It may be running.
    Undecided,
    /// It is running.
    Works,
    /// Its Lease cannot be read, for this reason.
    Unreadable(String),
}

/// The error for another installation with an older Lease.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Conflict(String);

type Sightings = BTreeMap<Rival, Sighting>;

impl Guard {
    /// `rivals` are the installations that marks name. `client` must not be gated.
    pub fn new(client: Client, config: LeaderElection, rivals: Rivals, readiness: Readiness) -> Self {
        Self { client, config, rivals, readiness }
    }

    /// Waits until no other installation is running, and reports a running one in the readiness. From then on, the
    /// marks of other installations are replaced.
    pub async fn clear(&self) {
        let (mut sightings, mut said) = (Sightings::new(), None);
        loop {
            let rivals = self.rivals();
            let mut obstacles = Vec::new();
            let mut is_clear = true;
            for rival in &rivals {
                match self.look(&mut sightings, rival).await {
                    Verdict::Gone => continue,
                    Verdict::Undecided => {}
                    Verdict::Works => obstacles.push(works(rival)),
                    Verdict::Unreadable(why) => obstacles.push(unreadable(rival, &why)),
                }
                is_clear = false;
            }
            if is_clear {
                self.readiness.set_notice(NAME, None);
                if said.is_some() {
                    info!("no other installation manages these objects any more");
                }
                for rival in &rivals {
                    self.rivals.set_gone(rival);
                }
                return;
            }
            if let Some(obstacle) = obstacles.first() {
                self.say(&mut said, format!("this installation does not lead: {obstacle}"));
            }
            tokio::time::sleep(self.period()).await;
        }
    }

    /// Watches for other installations while this one leads with this Lease. Returns when one with an older Lease is
    /// running.
    pub async fn conflict(&self, own: &Lease) -> Conflict {
        let (mut found, mut sightings, mut said) = (self.rivals.found(), Sightings::new(), None);
        let own = Sighting::new(Some(own.clone())).created();
        loop {
            let mut is_decided = true;
            for rival in self.rivals().into_iter().filter(|rival| !self.rivals.has_gone(rival)) {
                match self.look(&mut sightings, &rival).await {
                    Verdict::Gone => self.rivals.set_gone(&rival),
                    Verdict::Undecided => is_decided = false,
                    Verdict::Works => {
                        let theirs = sightings.get(&rival).map_or(i64::MAX, Sighting::created);
                        if (theirs, Some(&rival.lease)) < (own, lease_name(&self.config).as_ref()) {
                            return Conflict(works(&rival));
                        }
                        warn!("{}; its Lease is younger, so it must end", works(&rival));
                        // Its marks are replaced, so that it notices this installation.
                        self.rivals.set_gone(&rival);
                    }
                    Verdict::Unreadable(why) => self.say(&mut said, unreadable(&rival, &why)),
                }
            }
            if is_decided {
                // The sender lives as long as `self`.
                drop(found.changed().await);
            } else {
                tokio::time::sleep(self.period()).await;
            }
        }
    }

    /// Reports a sentence in the log and the readiness, unless it is the last one that was reported.
    fn say(&self, said: &mut Option<String>, sentence: String) {
        if said.as_ref() != Some(&sentence) {
            warn!("{sentence}");
            self.readiness.set_notice(NAME, Some(sentence.clone()));
            *said = Some(sentence);
        }
    }

    /// The installations that prevent this one from leading.
    fn rivals(&self) -> Vec<Rival> {
        let found = self.rivals.found().borrow().clone();
        found.into_iter().filter(|rival| !self.config.ignored_leases.contains(&rival.lease)).collect()
    }

    /// Reads the Lease of an installation.
    async fn look(&self, sightings: &mut Sightings, rival: &Rival) -> Verdict {
        let lease = match self.read(&rival.lease).await {
            Ok(lease) => lease,
            Err(verdict) => return verdict,
        };
        let sighting = match sightings.get_mut(rival) {
            None => sightings.entry(rival.clone()).or_insert(Sighting::new(lease)),
            Some(sighting) => {
                sighting.see(lease, &rival.selector);
                sighting
            }
        };
        if sighting.is_free(&rival.selector, 2 * self.period()) {
            Verdict::Gone
        } else if sighting.is_renewed(&rival.selector) {
            Verdict::Works
        } else {
            Verdict::Undecided
        }
    }

    async fn read(&self, lease: &str) -> Result<Option<Lease>, Verdict> {
        // A daemon never writes any other form.
        let Some((namespace, name)) = lease.split_once('/') else { return Ok(None) };
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        match tokio::time::timeout(REQUEST_TIMEOUT, leases.get_opt(name)).await {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                Err(Verdict::Unreadable(status.message))
            }
            Ok(Err(error)) => {
                info!(
                    lease,
                    error = with_sources(&error),
                    "the lease of another installation could not be read"
                );
                Err(Verdict::Undecided)
            }
            Err(_) => Err(Verdict::Undecided),
        }
    }

    fn period(&self) -> Duration {
        self.config.retry_period.into()
    }
}

fn works(rival: &Rival) -> String {
    let Rival { lease, selector } = rival;
    format!(
        "another installation holds Lease {lease} and manages the objects with the labels {selector}; uninstall one of the two, \
         or give it another selector, or name that Lease in leaderElection.ignoredLeases"
    )
}

fn unreadable(rival: &Rival, why: &str) -> String {
    let Rival { lease, selector } = rival;
    format!(
        "objects with the labels {selector} belong to the installation with Lease {lease}, which cannot be read ({why}); \
         grant this account \"get\" on it, or name it in leaderElection.ignoredLeases"
    )
}
