//! The reconciler of snapshots.

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::config::SnapshotConfig;
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles snapshots: images of stopped virtual machines.
pub struct SnapshotReconciler {
    stores: Stores,
}

impl Definition for SnapshotReconciler {
    const EVENT_SOURCE: &'static str = "InstanceSnapshot";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = setup.config.controllers.snapshot.clone();
        let layout = setup.config.controllers.instance.layout;
        let stores = Stores::declare(set, &setup.config.selector, &config.vm_registry_secret, layout);
        Ok((Self { stores }, config))
    }
}

impl Reconciler for SnapshotReconciler {
    const NAME: &'static str = "snapshot";
    type Kind = InstanceSnapshotKind;
    type Observed = Observed;
    type Settings = SnapshotConfig;
    type Effect = ();
    const PLAN: PlanFn<Self> = plan;
    const REPORT: ReportFn<Self> = report;

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }
}
