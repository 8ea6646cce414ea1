//! The input of the plan and the report of a shared volume.

use std::collections::BTreeSet;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::labels;
use crate::api::shared_volume::SharedVolume;
use crate::kinds::PersistentVolume;
use crate::runtime::ObjectKey;
use crate::runtime::children::Children;
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
    /// The objects with the names of its own, whoever owns them.
    pub children: Children,
    /// The `PersistentVolume` that the claim is bound to.
    pub persistent_volume: Option<Arc<PersistentVolume>>,
    /// The Templates that mount it.
    pub templates: BTreeSet<ObjectKey>,
    /// The Instances whose workloads mount it.
    pub instances: BTreeSet<ObjectKey>,
}

impl Observed {
    /// Whether a Template or an Instance uses it.
    pub fn is_used(&self) -> bool {
        !self.templates.is_empty() || !self.instances.is_empty()
    }
}

/// Whether the shared volume has our finalizer.
pub fn is_protected(volume: &SharedVolume) -> bool {
    finalizer::holds(volume, labels::SHARED_VOLUME_FINALIZER)
}
