//! The reconciler of inactivity.

use jiff::Timestamp;

use super::Settings;
use super::observe::{INACTIVE, Observed};
use super::plan::plan;
use super::report::report;
use super::rounds::Rounds;
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

/// Stops Instances that nobody uses, and deletes those that cannot be stopped or stay stopped.
pub struct InactivityReconciler {
    stores: Stores,
    settings: Settings,
    /// `None` only in `crownlabs plan`.
    rounds: Option<Rounds>,
    /// `None` where nobody is warned.
    mailer: Option<Mailer>,
    deadlines: Deadlines,
}

impl Definition for InactivityReconciler {
    const EVENT_SOURCE: &'static str = "InstanceInactivity";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<Self> {
        let config = setup.config.controllers.inactivity.clone();
        let website = setup.config.controllers.instance.website_base_url.clone();
        let stores = Stores::declare(set, &setup.config.selector);
        let rounds = setup.prometheus.clone().map(Rounds::new);
        let mailer = setup.mailer.clone().filter(|_| config.notifications);
        Ok(Self {
            stores,
            settings: Settings { config, website },
            rounds,
            mailer,
            deadlines: Deadlines::new(Self::NAME),
        })
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        let ending = observed.ending(settings, now).ok().flatten();
        ending.map(|ending| foretell(&ending, now)).into_iter().collect()
    }
}

impl Reconciler for InactivityReconciler {
    const NAME: &'static str = "inactivity";
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
        let round = self.rounds.as_ref().and_then(Rounds::latest);
        self.stores.observe(key, round.as_deref())
    }

    fn object(observed: &Observed) -> &Object<InstanceKind> {
        &observed.instance
    }

    async fn perform(&self, _observed: &Observed, effect: &Effect) -> EffectOutcome<Timestamp> {
        match (effect, &self.rounds, &self.mailer) {
            (Effect::Check, Some(rounds), _) => {
                EffectOutcome::done(rounds.refresh(self.stores.longest_idle()).await)
            }
            (Effect::Mail(mail), _, Some(mailer)) => send(mailer, INACTIVE, mail).await,
            _ => EffectOutcome { result: None, error: None },
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.deadlines.record(key, None);
    }

    fn settle(&self, observed: &Observed, _outcome: &Outcome<Timestamp>) {
        let status = &observed.instance.status;
        let promise = status.inactivity.as_ref().or(status.destruction.as_ref());
        self.deadlines.record(&ObjectKey::of(&*observed.instance), promise.map(AsRef::as_ref));
    }
}
