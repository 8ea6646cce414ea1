//! The reconciler of expiration.

use jiff::Timestamp;

use super::Settings;
use super::observe::{Observed, ending};
use super::plan::plan;
use super::report::report;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::template::Template;
use crate::config::read;
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::cleanup::ending::{Effect, remarks};
use crate::controllers::cleanup::notifier::Notifier;
use crate::controllers::cleanup::stores::{Dependencies, EndingStores};
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{EffectOutcome, Outcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Deletes Instances that are older than their Template allows.
pub struct ExpirationReconciler {
    stores: EndingStores,
    notifier: Notifier,
}

impl Definition for ExpirationReconciler {
    const EVENT_SOURCE: &'static str = "InstanceExpiration";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let stores = EndingStores::declare::<Self>(set, read!(setup.config, selector));
        let config = read!(setup.config, controllers.expiration).clone();
        let settings = Settings::new(setup, config);
        let notifier = Notifier::new(Self::NAME, setup, settings.config.notifications);
        Ok((Self { stores, notifier }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        remarks(ending(observed, settings, now), now)
    }
}

impl Dependencies for ExpirationReconciler {
    const EXEMPT: &'static str = labels::EXPIRATION_IGNORE;

    /// Only its existence matters, because its age follows from its creation time.
    fn of_instance(_: &Instance) -> impl PartialEq {}

    fn of_template(template: &Template) -> impl PartialEq {
        template.spec.max_age()
    }
}

impl Reconciler for ExpirationReconciler {
    const NAME: &'static str = "expiration";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = Effect;

    fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan<Effect> {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, Settings, Effect>) -> Report<InstanceKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.find(key, |instance| self.notifier.mailed(instance))
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
