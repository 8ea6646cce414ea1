//! The Leases of other installations. They show whether an installation runs.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tracing::info;

use crate::config::LeaderElection;
use crate::controllers::shared::rivals::Rival;
use crate::runtime::client::REQUEST_TIMEOUT;
use crate::runtime::error::with_sources;
use crate::runtime::sighting::Sighting;

/// The state of another installation.
pub enum Verdict {
    /// It is not running.
    Gone,
    /// It may be running.
    Undecided,
    /// It is running.
    Works,
    /// Its Lease cannot be read, for this reason.
    Unreadable(String),
}

/// Reads the Leases of other installations, and keeps their last states.
pub struct Leases {
    client: Client,
    /// The time between two renewals.
    period: Duration,
    sightings: BTreeMap<Rival, Sighting>,
    /// The decisions of [`Leases::is_gone`].
    decided: BTreeMap<Rival, bool>,
}

impl Leases {
    /// `client` must not be gated.
    pub fn new(client: Client, config: &LeaderElection) -> Self {
        let (sightings, decided) = (BTreeMap::new(), BTreeMap::new());
        Self { client, period: config.retry_period.into(), sightings, decided }
    }

    /// Reads the Lease of an installation.
    pub async fn look(&mut self, rival: &Rival) -> Verdict {
        let lease = match self.read(&rival.lease).await {
            Ok(lease) => lease,
            Err(verdict) => return verdict,
        };
        let sighting = match self.sightings.get_mut(rival) {
            None => self.sightings.entry(rival.clone()).or_insert(Sighting::new(lease)),
            Some(sighting) => {
                sighting.see(lease, &rival.selector);
                sighting
            }
        };
        if sighting.is_free(&rival.selector, 2 * self.period) {
            Verdict::Gone
        } else if sighting.is_renewed(&rival.selector) {
            Verdict::Works
        } else {
            Verdict::Undecided
        }
    }

    /// The creation time of the Lease of an installation, in seconds since 1970. A Lease that was not read counts as
    /// new.
    pub fn created(&self, rival: &Rival) -> i64 {
        self.sightings.get(rival).map_or(i64::MAX, Sighting::created)
    }

    /// Whether an installation is known not to run. A decision is final. An installation whose Lease cannot be read
    /// counts as running.
    pub async fn is_gone(&mut self, rival: &Rival) -> bool {
        if let Some(is_gone) = self.decided.get(rival) {
            return *is_gone;
        }
        let is_gone = match self.look(rival).await {
            Verdict::Undecided => return false,
            Verdict::Gone => true,
            Verdict::Works | Verdict::Unreadable(_) => false,
        };
        self.decided.insert(rival.clone(), is_gone);
        is_gone
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
}
