//! The reconciler of image lists.

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::{Effect, plan, registry};
use super::registries::Registries;
use super::report::report;
use super::stores::Stores;
use crate::api::image_list::ImageListKind;
use crate::config::ImageListConfig;
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{EffectOutcome, Outcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;

/// Reconciles image lists.
pub struct ImageListReconciler {
    stores: Stores,
    registries: Registries,
}

impl Definition for ImageListReconciler {
    const EVENT_SOURCE: &'static str = "ImageList";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = setup.config.controllers.image_list.clone();
        let registries = Registries::new(&config.registries, set.queue().clone(), &setup.outages);
        Ok((Self { stores: Stores::declare(set, &config.registries), registries }, config))
    }

    fn remarks(observed: &Observed, config: &ImageListConfig, _: Timestamp) -> Vec<String> {
        let remark = registry(&observed.list, config).map(|registry| {
            let (url, interval) = (&registry.url, config.update_interval);
            format!(
                "its images come from the registry at {url}, which is read every {interval}, but not by this command"
            )
        });
        remark.into_iter().collect()
    }
}

impl Reconciler for ImageListReconciler {
    const NAME: &'static str = "imageList";
    type Kind = ImageListKind;
    type Observed = Observed;
    type Settings = ImageListConfig;
    type Effect = Effect;

    fn plan(observed: &Observed, settings: &ImageListConfig, now: Timestamp) -> Plan<Effect> {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, ImageListConfig, Effect>) -> Report<ImageListKind> {
        report(done)
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed { list: self.stores.show(key), query: self.registries.queries.last(key) })
    }

    async fn perform(&self, observed: &Observed, Effect::Query: &Effect) -> EffectOutcome<()> {
        self.registries.begin(&observed.list);
        EffectOutcome::done(())
    }

    fn forget(&self, key: &ObjectKey) {
        self.registries.queries.forget(key);
    }

    fn settle(&self, observed: &Observed, outcome: &Outcome<()>) {
        // A query that this reconcile has started may already have a result. The next reconcile processes it.
        if let Some(query) = observed.query.as_ref().filter(|_| outcome.effects.is_empty()) {
            self.registries.queries.change(&ObjectKey::of(&*observed.list), |known| {
                known.is_settled |= known.result.is_some() && known == query;
            });
        }
    }
}
