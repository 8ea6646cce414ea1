//! The reconciler of shared volumes.

use std::time::Duration;

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::labels;
use crate::api::shared_volume::SharedVolumeKind;
use crate::config::{SharedVolumeConfig, StorageMode, read};
use crate::controllers::setup::{Definition, Setup};
use crate::controllers::shared::nfs_volume::location;
use crate::controllers::shared::responsibility::Responsibility;
use crate::kinds::PersistentVolume;
use crate::runtime::ObjectKey;
use crate::runtime::object_events::ObjectEvents;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Reconciles shared volumes.
pub struct SharedVolumeReconciler {
    stores: Stores,
    events: ObjectEvents,
}

/// The settings that plans depend on.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The configuration of the loop.
    pub config: SharedVolumeConfig,
    /// The volumes that this daemon is responsible for.
    pub responsibility: Responsibility,
    /// How long a problem outside the volume must last to make it `Stalled`.
    pub stalled_after: Duration,
    /// How environments mount the volumes.
    pub storage: StorageMode,
}

impl Settings {
    /// Whether environments mount mirrors of the volumes.
    pub fn has_mirrors(&self) -> bool {
        self.storage == StorageMode::Mirror
    }

    /// Whether environments can mount this volume, or a mirror of it.
    pub fn is_usable(&self, volume: &PersistentVolume) -> bool {
        if self.has_mirrors() { volume.spec.csi.is_some() } else { location(volume).is_some() }
    }
}

impl Definition for SharedVolumeReconciler {
    const EVENT_SOURCE: &'static str = "SharedVolume";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let responsibility = Responsibility::of(setup);
        let stores = Stores::declare(set, &responsibility);
        setup.censuses.push(stores.census());
        let config = read!(setup.config, controllers.shared_volume).clone();
        let stalled_after = read!(setup.config, controllers.instance.stalled_after).get();
        let events = ObjectEvents::declare(&setup.events, set);
        let storage = read!(setup.config, storage).mode;
        Ok((Self { stores, events }, Settings { config, responsibility, stalled_after, storage }))
    }
}

impl Reconciler for SharedVolumeReconciler {
    const NAME: &'static str = "sharedVolume";
    const FINALIZER: Option<&'static str> = Some(labels::SHARED_VOLUME_FINALIZER);
    type Kind = SharedVolumeKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = ();

    fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, Settings>) -> Report<SharedVolumeKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed { events: self.events.of(key), ..self.stores.observe(key)? })
    }

    fn object_events(&self) -> Option<&ObjectEvents> {
        Some(&self.events)
    }
}
