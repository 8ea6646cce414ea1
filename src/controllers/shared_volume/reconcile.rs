//! The reconciler of shared volumes.

use std::time::Duration;

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::labels;
use crate::api::shared_volume::SharedVolumeKind;
use crate::config::{SharedVolumeConfig, read};
use crate::controllers::setup::{Definition, Setup};
use crate::controllers::shared::responsibility::Responsibility;
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
        Ok((Self { stores, events }, Settings { config, responsibility, stalled_after }))
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
