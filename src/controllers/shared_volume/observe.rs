//! What a pass over a shared volume knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::labels;
use crate::api::names::canonical;
use crate::api::shared_volume::SharedVolume;
use crate::api::{Kind, Object};
use crate::controllers::shared::nfs_volume::job_name;
use crate::kinds::{Job, NfsClaim, PersistentVolume};
use crate::runtime::ObjectKey;
use crate::runtime::finalizer;

/// Everything that plan and report depend on, but for the configuration and the time.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The shared volume.
    pub volume: Arc<SharedVolume>,
    /// Whatever stands where its claim should.
    pub claim: Option<Arc<NfsClaim>>,
    /// The PersistentVolume that the claim has got.
    pub persistent_volume: Option<Arc<PersistentVolume>>,
    /// Whatever stands where its Job should.
    pub job: Option<Arc<Job>>,
    /// The name of that Job.
    pub job_name: String,
    /// The Templates that mount it.
    pub templates: BTreeSet<ObjectKey>,
    /// The Instances that have been made to mount it.
    pub instances: BTreeSet<ObjectKey>,
}

impl Observed {
    /// Whether the shared volume controls the object.
    pub fn owns<T: Kind>(&self, object: &Object<T>) -> bool {
        object.controller_uid() == Some(self.volume.uid())
    }

    /// Its claim, if there is one.
    pub fn own_claim(&self) -> Option<&NfsClaim> {
        self.claim.as_deref().filter(|claim| self.owns(claim))
    }

    /// Whether a Template or an Instance uses it.
    pub fn is_used(&self) -> bool {
        !self.templates.is_empty() || !self.instances.is_empty()
    }

    /// Its Job, if there is one.
    pub fn own_job(&self) -> Option<&Job> {
        self.job.as_deref().filter(|job| self.owns(job))
    }
}

/// The name of the claim of a shared volume: dots stay.
#[must_use]
pub fn claim_name(volume: &str) -> String {
    format!("shvol-{volume}")
}

/// The names that the Job of a shared volume may have: ours, and that of an operator before us, which kept
/// the dots.
#[must_use]
pub fn job_names(volume: &str) -> [String; 2] {
    let claim = claim_name(volume);
    [job_name(&canonical(&claim)), format!("{claim}-provision")]
}

/// Whether the shared volume waits for us before it can go.
#[must_use]
pub fn is_protected(volume: &SharedVolume) -> bool {
    finalizer::holds(volume, labels::SHARED_VOLUME_FINALIZER)
}
