//! The reconciler of uploads.

use jiff::Timestamp;

use super::decide::{Decision, decide};
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::instance::InstanceKind;
use crate::config::SubmissionConfig;
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Uploads the content of Instances whose exam has ended.
pub struct SubmissionReconciler {
    stores: Stores,
}

impl Definition for SubmissionReconciler {
    const EVENT_SOURCE: &'static str = "InstanceSubmission";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = setup.config.controllers.submission.clone();
        Ok((Self { stores: Stores::declare(set, &setup.config.selector) }, config))
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
    const PLAN: PlanFn<Self> = plan;
    const REPORT: ReportFn<Self> = report;

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }
}
