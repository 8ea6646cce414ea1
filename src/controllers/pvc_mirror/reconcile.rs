//! The reconciler of mirrors.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::decide::{Decision, decide};
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::config::read;
use crate::controllers::setup::{Definition, Notice, Setup};
use crate::kinds::MirrorClaimKind;
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Outcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Provisions mirrors.
pub struct PvcMirrorReconciler {
    stores: Arc<Stores>,
    settings: Settings,
    /// The last reason for giving a claim no volume, so that each is published once.
    told: Mutex<HashMap<ObjectKey, String>>,
}

/// The settings that plans depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the provisioner.
    pub provisioner: String,
    /// The storage class of mirrors.
    pub class: String,
}

impl Definition for PvcMirrorReconciler {
    const EVENT_SOURCE: &'static str = "PvcMirror";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let settings = Settings {
            provisioner: read!(setup.config, controllers.pvc_mirror).provisioner.clone(),
            class: read!(setup.config, storage.mirror_class).clone(),
        };
        let stores = Arc::new(Stores::declare(set, read!(setup.config, selector), &settings));
        let classes = Arc::clone(&stores);
        setup.notices.push(Notice { name: "mirrorClass", sentence: Box::new(move || classes.class_fault()) });
        Ok((Self { stores, settings: settings.clone(), told: Mutex::default() }, settings))
    }
}

impl Reconciler for PvcMirrorReconciler {
    const NAME: &'static str = "pvcMirror";
    const WRITES_STATUS: bool = false;
    type Kind = MirrorClaimKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = ();

    fn plan(observed: &Observed, settings: &Settings, _: Timestamp) -> Plan {
        plan(observed, settings)
    }

    fn report(done: &Reconciled<'_, Observed, Settings>) -> Report<MirrorClaimKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed { told: self.told.lock().get(key).cloned(), ..self.stores.observe(key)? })
    }

    fn forget(&self, key: &ObjectKey) {
        self.told.lock().remove(key);
    }

    /// Remembers the reason that the report publishes. The report still has the former one, in its observation.
    fn settle(&self, observed: &Observed, _: &Outcome<()>) {
        let key = ObjectKey::of(&*observed.claim);
        match decide(observed, &self.settings) {
            Decision::Refuse(refusal) => drop(self.told.lock().insert(key, refusal.message)),
            Decision::Mirror(..) | Decision::None => drop(self.told.lock().remove(&key)),
        }
    }
}
