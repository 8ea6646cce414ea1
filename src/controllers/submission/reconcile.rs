//! The reconciler of uploads.

use jiff::Timestamp;

use super::Settings;
use super::decide::{Decision, decide};
use super::observe::Observed;
use super::plan::plan;
use super::receipt_mail::Mailings;
use super::report::report;
use super::stores::Stores;
use crate::api::instance::InstanceKind;
use crate::clients::mail::Mailer;
use crate::config::read;
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::cleanup::ending::Effect;
use crate::controllers::cleanup::site;
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::object_events::ObjectEvents;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{EffectOutcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Uploads the content of Instances whose exam has ended.
pub struct SubmissionReconciler {
    stores: Stores,
    events: ObjectEvents,
    /// `None` if no receipts are sent.
    mailer: Option<Mailer>,
    mailings: Mailings,
}

impl Definition for SubmissionReconciler {
    const EVENT_SOURCE: &'static str = "InstanceSubmission";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = read!(setup.config, controllers.submission).clone();
        let stores = Stores::declare(set, read!(setup.config, selector));
        let events = ObjectEvents::declare(&setup.events, set);
        let site = site(setup);
        let mailer = setup.mailer().filter(|_| config.notifications);
        let settings = Settings { config, site, sends: mailer.is_some() };
        Ok((Self { stores, events, mailer, mailings: Mailings::default() }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, now: Timestamp) -> Vec<String> {
        match decide(observed, &settings.config, now) {
            Decision::NotEligible => vec!["there is nothing to upload".to_owned()],
            Decision::Work(work) => {
                let remark =
                    |(activity, _)| format!("the upload waits until the Instance is off: {activity}");
                work.waiting.map(remark).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Reconciler for SubmissionReconciler {
    const NAME: &'static str = "submission";
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
        let observed = self.stores.observe(key)?;
        let mailing = self.mailings.of(&observed.instance);
        Some(Observed { events: self.events.of(key), mailing, ..observed })
    }

    async fn perform(&self, _observed: &Observed, effect: &Effect) -> EffectOutcome<Sent> {
        match (effect, &self.mailer) {
            (Effect::Mail(notice), Some(mailer)) => self.mailings.send(mailer, notice).await,
            (Effect::Mail(_), None) | (Effect::Check, _) => EffectOutcome { result: None, error: None },
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.mailings.forget(key);
    }

    fn object_events(&self) -> Option<&ObjectEvents> {
        Some(&self.events)
    }
}
