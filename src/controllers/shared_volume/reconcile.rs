//! The reconciler of shared volumes.

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::labels;
use crate::api::shared_volume::SharedVolumeKind;
use crate::config::SharedVolumeConfig;
use crate::controllers::setup::{Definition, Setup};
use crate::controllers::shared::responsibility::Responsibility;
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles shared volumes.
pub struct SharedVolumeReconciler {
    stores: Stores,
}

/// The settings that plans depend on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The configuration of the loop.
    pub config: SharedVolumeConfig,
    /// Which volumes this daemon is responsible for.
    pub responsibility: Responsibility,
}

impl Definition for SharedVolumeReconciler {
    const EVENT_SOURCE: &'static str = "SharedVolume";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let responsibility = Responsibility::of(setup.config);
        let stores = Stores::declare(set, &responsibility);
        let config = setup.config.controllers.shared_volume.clone();
        Ok((Self { stores }, Settings { config, responsibility }))
    }
}

impl Reconciler for SharedVolumeReconciler {
    const NAME: &'static str = "sharedVolume";
    const FINALIZER: Option<&'static str> = Some(labels::SHARED_VOLUME_FINALIZER);
    type Kind = SharedVolumeKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = ();
    const PLAN: PlanFn<Self> = |observed, settings, _| plan(observed, settings);
    const REPORT: ReportFn<Self> = |observed, _, plan, outcome, now| report(observed, plan, outcome, now);

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }
}
