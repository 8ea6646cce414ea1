//! The reconciler of expiration.

use jiff::Timestamp;

use super::Settings;
use super::observe::{EXPIRING, Observed};
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::Object;
use crate::api::instance::InstanceKind;
use crate::clients::mail::Mailer;
use crate::controllers::shared::deadlines::Deadlines;
use crate::controllers::shared::ending::{Effect, foretell, send};
use crate::controllers::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{EffectOutcome, Outcome, PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Deletes Instances that are older than their Template allows.
pub struct ExpirationReconciler {
    stores: Stores,
    settings: Settings,
    /// `None` where nobody is warned.
    mailer: Option<Mailer>,
    deadlines: Deadlines,
}

impl Definition for ExpirationReconciler {
    const EVENT_SOURCE: &'static str = "InstanceExpiration";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = setup.config.controllers.expiration.clone();
        let mailer = setup.mailer.clone().filter(|_| config.notifications);
        let website = setup.config.controllers.instance.website_base_url.clone();
        let stores = Stores::declare(set, &setup.config.selector);
        Ok(Self {
            stores,
            settings: Settings { config, website },
            mailer,
            deadlines: Deadlines::new(Self::NAME),
        })
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        let ending = observed.ending(settings, now).ok().flatten();
        ending.map(|ending| foretell(&ending, now)).into_iter().collect()
    }
}

impl Reconciler for ExpirationReconciler {
    const NAME: &'static str = "expiration";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = Effect;
    type Effected = Timestamp;
    const PLAN: PlanFn<Self> = plan;
    const REPORT: ReportFn<Self> = report;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }

    fn object(observed: &Observed) -> &Object<InstanceKind> {
        &observed.instance
    }

    async fn perform(&self, _observed: &Observed, effect: &Effect) -> EffectOutcome<Timestamp> {
        match (&self.mailer, effect) {
            (Some(mailer), Effect::Mail(mail)) => send(mailer, EXPIRING, mail).await,
            _ => EffectOutcome { result: None, error: None },
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.deadlines.record(key, None);
    }

    fn settle(&self, observed: &Observed, _outcome: &Outcome<Timestamp>) {
        let status = &observed.instance.status;
        let promise = status.expiration.as_ref();
        self.deadlines.record(&ObjectKey::of(&*observed.instance), promise.map(AsRef::as_ref));
    }
}
