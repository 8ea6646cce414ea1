//! The reconciler of Templates.

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use crate::api::template::TemplateKind;
use crate::config::{InstanceConfig, SwitchedOff, read};
use crate::controllers::setup::{Definition, Setup};
use crate::controllers::shared::switched_off;
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// The settings that plans and reports depend on.
pub struct Settings {
    /// The configuration of the instance loop.
    config: InstanceConfig,
    /// The fields that the configuration switches off.
    off: SwitchedOff,
}

/// Reconciles Templates.
pub struct TemplateReconciler {
    stores: Stores,
}

impl Definition for TemplateReconciler {
    const EVENT_SOURCE: &'static str = "Template";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let (selector, requirements) = (read!(setup.config, selector), setup.config.requirements());
        let storage = read!(setup.config, storage).mode;
        let stores = Stores::declare(set, selector, requirements, storage);
        let config = read!(setup.config, controllers.instance).clone();
        let settings = Settings { config, off: setup.config.switched_off() };
        Ok((Self { stores }, settings))
    }

    fn remarks(observed: &Observed, settings: &Settings, _: Timestamp) -> Vec<String> {
        let spec = &observed.template.spec;
        [spec.cleanup_remarks(), settings.off.in_template(spec)].concat()
    }
}

impl Reconciler for TemplateReconciler {
    const NAME: &'static str = "template";
    type Kind = TemplateKind;
    type Observed = Observed;
    type Settings = Settings;
    type Effect = ();

    fn plan(observed: &Observed, settings: &Settings, _: Timestamp) -> Plan {
        plan(observed, &settings.config.local_vm)
    }

    fn report(done: &Reconciled<'_, Observed, Settings>) -> Report<TemplateKind> {
        let Reconciled { observed, settings, plan, now, .. } = *done;
        let mut report = report(observed, settings.config.stalled_after.get(), plan, now);
        let off = settings.off.in_template(&observed.template.spec);
        switched_off::add(&observed.template, &mut report.status.conditions, &off, now);
        report
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.stores.observe(key)
    }
}
