//! The reconciler of inactivity.

use std::sync::Arc;

use jiff::Timestamp;

use super::Settings;
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::rounds::Rounds;
use super::stores::{Witnesses, longest_idle, observed};
use crate::api::instance::InstanceKind;
use crate::config::read;
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::cleanup::ending::{Effect, remarks};
use crate::controllers::cleanup::notifier::Notifier;
use crate::controllers::cleanup::stores::EndingStores;
use crate::controllers::setup::{Definition, Setup};
use crate::controllers::shared::addresses::InstanceAddresses;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{EffectOutcome, Outcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;
use crate::runtime::{ObjectKey, clock};

/// Stops unused Instances, and deletes unused Instances that cannot be stopped or that stay stopped.
pub struct InactivityReconciler {
    stores: EndingStores,
    /// `None` only in `crownlabs plan`.
    rounds: Option<Rounds>,
    witnesses: Witnesses,
    notifier: Notifier,
}

impl Definition for InactivityReconciler {
    const EVENT_SOURCE: &'static str = "InstanceInactivity";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let stores = EndingStores::declare::<Self>(set, read!(setup.config, selector));
        let config = read!(setup.config, controllers.inactivity).clone();
        let settings = Settings::new(setup, config);
        let interval = settings.config.check_interval.get();
        let rounds = setup.prometheus().map(|prometheus| Rounds::new(prometheus, interval));
        let notifier = Notifier::new(Self::NAME, setup, settings.config.notifications);
        let witnesses = Witnesses {
            addresses: InstanceAddresses::declare(set, &stores.instances),
            ssh: Arc::clone(&setup.ssh_connections),
            web_ssh: Arc::clone(&setup.web_ssh_connections),
            open: Arc::clone(&setup.open_connections),
        };
        Ok((Self { stores, rounds, witnesses, notifier }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        remarks(observed.ending(settings, now), now)
    }

    fn remarks_from_files(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        let mut remarks = Self::remarks(observed, settings, now);
        if observed.instance.spec.running {
            for remark in &mut remarks {
                remark.push_str("; Prometheus was not queried and may have data about a later use");
            }
        }
        remarks
    }
}

impl Reconciler for InactivityReconciler {
    const NAME: &'static str = "inactivity";
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
        let round = self.rounds.as_ref().and_then(Rounds::latest);
        let candidate = self.stores.find(key, |instance| self.notifier.mailed(instance))?;
        Some(observed(candidate, round.as_deref(), &self.witnesses))
    }

    async fn perform(&self, _observed: &Observed, effect: &Effect) -> EffectOutcome<Sent> {
        match (effect, &self.rounds) {
            (Effect::Mail(notice), _) => self.notifier.send(notice).await,
            (Effect::Check, Some(rounds)) => {
                rounds.refresh(longest_idle(&self.stores.templates)).await;
                EffectOutcome::done(Sent::default())
            }
            (Effect::Check, None) => EffectOutcome { result: None, error: None },
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.notifier.forget(key);
    }

    fn settle(&self, observed: &Observed, _outcome: &Outcome<Sent>) {
        let status = &observed.instance.status;
        let promise = status.inactivity.as_deref().or(status.destruction.as_deref());
        self.notifier.record(&observed.instance, promise, observed.witness(clock::now()));
    }
}
