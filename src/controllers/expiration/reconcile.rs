//! The reconciler of expiration.

use jiff::Timestamp;

use super::Settings;
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::{Dependence, observed};
use crate::api::instance::InstanceKind;
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::cleanup::ending::{Effect, remarks};
use crate::controllers::cleanup::notifier::Notifier;
use crate::controllers::cleanup::stores::EndingStores;
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{EffectOutcome, Outcome, PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Deletes Instances that are older than their Template allows.
pub struct ExpirationReconciler {
    stores: EndingStores,
    notifier: Notifier,
}

impl Definition for ExpirationReconciler {
    const EVENT_SOURCE: &'static str = "InstanceExpiration";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let stores = EndingStores::declare::<Dependence>(set, &setup.config.selector);
        let settings = Settings::new(setup, setup.config.controllers.expiration.clone());
        let notifier = Notifier::new(Self::NAME, setup, settings.config.notifications);
        Ok((Self { stores, notifier }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        remarks(observed.ending(settings, now), now)
    }
}

impl Reconciler for ExpirationReconciler {
    const NAME: &'static str = "expiration";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = Effect;
    const PLAN: PlanFn<Self> = plan;
    const REPORT: ReportFn<Self> = report;

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let found = self.stores.find(key)?;
        let mailed = self.notifier.mailed(&found.instance);
        Some(observed(found, mailed))
    }

    async fn perform(&self, _observed: &Observed, effect: &Effect) -> EffectOutcome<Sent> {
        match effect {
            Effect::Mail(notice) => self.notifier.send(notice).await,
            Effect::Check => EffectOutcome { result: None, error: None },
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.notifier.forget(key);
    }

    fn settle(&self, observed: &Observed, _outcome: &Outcome<Sent>) {
        let promise = observed.instance.status.expiration.as_deref();
        self.notifier.record(&observed.instance, promise, None);
    }
}
