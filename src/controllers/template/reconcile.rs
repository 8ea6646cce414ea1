//! The reconciler of Templates.

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::template::TemplateKind;
use crate::config::LocalVm;
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles Templates.
pub struct TemplateReconciler {
    stores: Stores,
}

impl Definition for TemplateReconciler {
    const EVENT_SOURCE: &'static str = "Template";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let stores = Stores::declare(set, &setup.config.selector);
        Ok((Self { stores }, setup.config.controllers.instance.local_vm.clone()))
    }

    fn remarks(observed: &Observed, _: &LocalVm, _: Timestamp) -> Vec<String> {
        observed.template.spec.cleanup_remarks()
    }
}

impl Reconciler for TemplateReconciler {
    const NAME: &'static str = "template";
    const FINALIZER: Option<&'static str> = None;
    type Kind = TemplateKind;
    type Observed = Observed;
    type Settings = LocalVm;
    type Effect = ();
    const PLAN: PlanFn<Self> = |observed, settings, _| plan(observed, settings);
    const REPORT: ReportFn<Self> = |observed, _, plan, _, now| report(observed, plan, now);

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }
}
