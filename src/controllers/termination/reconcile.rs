//! The reconciler of exams with a status URL.

use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;

use super::checks::Checks;
use super::observe::{Observed, is_watched};
use super::plan::{Effect, plan};
use super::report::report;
use super::stores::Stores;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::clients::addresses::AddressRules;
use crate::clients::http::SetupError;
use crate::clients::status_check::{StatusClient, host};
use crate::config::{TerminationConfig, read};
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{EffectOutcome, Outcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Stops Instances that are no longer needed according to their status URL.
pub struct TerminationReconciler {
    stores: Stores,
    checks: Checks,
}

/// The client of status URLs with these settings.
///
/// # Errors
/// If the certificates of the authorities cannot be read.
pub fn status_client(config: &TerminationConfig) -> Result<StatusClient, SetupError> {
    let rules = AddressRules::new(&config.forbidden_cidrs, &config.allow_cidrs);
    StatusClient::new(&config.ca_file, config.status_check_timeout.get(), rules)
}

impl Definition for TerminationReconciler {
    const EVENT_SOURCE: &'static str = "InstanceTermination";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = read!(setup.config, controllers.termination).clone();
        let client =
            status_client(&config).context("controllers.termination.caFile")?.reporting_to(&setup.outages);
        let checks = Checks::new(client, Arc::clone(set.queue()));
        Ok((Self { stores: Stores::declare(set, read!(setup.config, selector)), checks }, config))
    }

    fn remarks(observed: &Observed, config: &TerminationConfig, _: Timestamp) -> Vec<String> {
        let url = observed.instance.spec.effective_status_check_url();
        let interval = config.status_check_interval;
        let remark = host(url).map(|host| format!("the status URL at {host} is queried every {interval}"));
        let has_ended = observed.instance.label(labels::WATCH_FOR_TERMINATION) == Some("false");
        remark.filter(|_| !has_ended).into_iter().collect()
    }
}

impl Reconciler for TerminationReconciler {
    const NAME: &'static str = "termination";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = TerminationConfig;
    type Effect = Effect;

    fn plan(observed: &Observed, settings: &TerminationConfig, now: Timestamp) -> Plan<Effect> {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, TerminationConfig, Effect>) -> Report<InstanceKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let (instance, template) = self.stores.show(key)?;
        let (check, begun) = (self.checks.queries.last(key), self.checks.begun(key));
        Some(Observed { instance, template, check, begun })
    }

    async fn perform(&self, observed: &Observed, Effect::Check { url }: &Effect) -> EffectOutcome<()> {
        self.checks.begin(&observed.instance, url);
        EffectOutcome::done(())
    }

    fn forget(&self, key: &ObjectKey) {
        self.checks.queries.forget(key);
    }

    fn settle(&self, observed: &Observed, _: &Outcome<()>) {
        // The result counts only once: when the label is set again, the URL is queried again.
        if !is_watched(&observed.instance) {
            self.checks.queries.forget(&ObjectKey::of(&*observed.instance));
        }
    }
}
