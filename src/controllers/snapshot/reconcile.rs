//! The reconciler of snapshots.

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::instance_snapshot::InstanceSnapshotKind;
use crate::config::{SnapshotConfig, read};
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::object_events::ObjectEvents;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Reconciles snapshots: images of stopped virtual machines.
pub struct SnapshotReconciler {
    stores: Stores,
    events: ObjectEvents,
}

impl Definition for SnapshotReconciler {
    const EVENT_SOURCE: &'static str = "InstanceSnapshot";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = read!(setup.config, controllers.snapshot).clone();
        let layout = *read!(setup.config, controllers.instance.layout);
        let selector = read!(setup.config, selector);
        let stores = Stores::declare(set, selector, &config.vm_registry_secret, layout);
        let events = ObjectEvents::declare(&setup.events, set);
        Ok((Self { stores, events }, config))
    }
}

impl Reconciler for SnapshotReconciler {
    const NAME: &'static str = "snapshot";
    type Kind = InstanceSnapshotKind;
    type Observed = Observed;
    type Settings = SnapshotConfig;
    type Effect = ();

    fn plan(observed: &Observed, settings: &SnapshotConfig, now: Timestamp) -> Plan {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, SnapshotConfig>) -> Report<InstanceSnapshotKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed { events: self.events.of(key), ..self.stores.observe(key)? })
    }

    fn object_events(&self) -> Option<&ObjectEvents> {
        Some(&self.events)
    }
}
