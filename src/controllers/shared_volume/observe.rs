//! The input of the plan and the report of a shared volume.

use std::collections::BTreeSet;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::api::shared_volume::SharedVolume;

use crate::controllers::shared::nfs_volume::job_name;
use crate::kinds::{Job, NfsClaim, PersistentVolume};
use crate::runtime::ObjectKey;
use crate::runtime::finalizer;

/// Everything that plan and report depend on, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The shared volume.
    #[as_ref(SharedVolume)]
    #[as_mut]
    pub volume: Arc<SharedVolume>,
    /// Whether its namespace is not selected any more, and it still has our finalizer.
    pub is_deselected: bool,
    /// The object with the name of its `PersistentVolumeClaim`, whoever owns it.
    pub claim: Option<Arc<NfsClaim>>,
    /// The `PersistentVolume` that the claim is bound to.
    pub persistent_volume: Option<Arc<PersistentVolume>>,
    /// The object with the name of its Job, whoever owns it.
    pub job: Option<Arc<Job>>,
    /// The name of that Job.
    pub job_name: String,
    /// The Templates that mount it.
    pub templates: BTreeSet<ObjectKey>,
    /// The Instances whose workloads mount it.
    pub instances: BTreeSet<ObjectKey>,
}

impl Observed {
    /// Its claim, if the shared volume is its controller.
    pub fn own_claim(&self) -> Option<&NfsClaim> {
        self.claim.as_deref().filter(|claim| claim.is_controlled_by(&self.volume))
    }

    /// Whether a Template or an Instance uses it.
    pub fn is_used(&self) -> bool {
        !self.templates.is_empty() || !self.instances.is_empty()
    }

    /// Its Job, if the shared volume is its controller.
    pub fn own_job(&self) -> Option<&Job> {
        self.job.as_deref().filter(|job| job.is_controlled_by(&self.volume))
    }
}

/// The name of the claim of a shared volume. It contains the name of the volume unchanged, with its dots.
pub fn claim_name(volume: &str) -> String {
    format!("shvol-{volume}")
}

/// The names that the Job of a shared volume may have: ours, and the one that the Go operator uses, with the
/// dots of the volume's name.
pub fn job_names(volume: &str) -> [String; 2] {
    let claim = claim_name(volume);
    [job_name(&CanonicalName::of(&claim)), format!("{claim}-provision")]
}

/// Whether the shared volume has our finalizer.
pub fn is_protected(volume: &SharedVolume) -> bool {
    finalizer::holds(volume, labels::SHARED_VOLUME_FINALIZER)
}
