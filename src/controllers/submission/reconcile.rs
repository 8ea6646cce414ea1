//! The reconciler of uploads.

use jiff::Timestamp;

use super::decide::{Decision, decide};
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::instance::InstanceKind;
use crate::config::{SubmissionConfig, read};
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::object_events::ObjectEvents;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Uploads the content of Instances whose exam has ended.
pub struct SubmissionReconciler {
    stores: Stores,
    events: ObjectEvents,
}

impl Definition for SubmissionReconciler {
    const EVENT_SOURCE: &'static str = "InstanceSubmission";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = read!(setup.config, controllers.submission).clone();
        let stores = Stores::declare(set, read!(setup.config, selector));
        let events = ObjectEvents::declare(&setup.events, set);
        Ok((Self { stores, events }, config))
    }

    fn remarks(observed: &Observed, config: &SubmissionConfig, now: Timestamp) -> Vec<String> {
        match decide(observed, config, now) {
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
    type Settings = SubmissionConfig;
    type Effect = ();

    fn plan(observed: &Observed, settings: &SubmissionConfig, now: Timestamp) -> Plan {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, SubmissionConfig>) -> Report<InstanceKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed { events: self.events.of(key), ..self.stores.observe(key)? })
    }

    fn object_events(&self) -> Option<&ObjectEvents> {
        Some(&self.events)
    }
}
