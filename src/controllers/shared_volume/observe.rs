//! The input of the plan and the report of a shared volume.

use std::collections::BTreeSet;
use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::shared_volume::SharedVolume;
use crate::controllers::shared::responsibility::Standing;
use crate::controllers::shared::waits::ClassFault;
use crate::kinds::PersistentVolume;
use crate::runtime::ObjectKey;
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;

/// The complete input of plan and report, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The shared volume.
    #[as_ref(SharedVolume)]
    #[as_mut]
    pub volume: Arc<SharedVolume>,
    /// The reason why this daemon is responsible for the volume.
    pub standing: Standing,
    /// The objects with the names of its children, whatever their owner.
    pub children: Children,
    /// The `PersistentVolume` that the claim is bound to.
    pub persistent_volume: Option<Arc<PersistentVolume>>,
    /// The reason why the storage class cannot provision a volume for the claim, if it cannot.
    pub class_fault: Option<ClassFault>,
    /// The events about the claim or the Job, if the volume waits for long.
    pub events: Events,
    /// The Templates that mount it.
    pub templates: BTreeSet<ObjectKey>,
    /// The Instances whose workloads mount it.
    pub instances: BTreeSet<ObjectKey>,
    /// The `PersistentVolume`s of its mirrors.
    pub mirrors: BTreeSet<ObjectKey>,
}

impl Observed {
    /// Whether a Template, an Instance or a mirror uses it.
    pub fn is_used(&self) -> bool {
        [&self.templates, &self.instances, &self.mirrors].into_iter().any(|users| !users.is_empty())
    }
}
