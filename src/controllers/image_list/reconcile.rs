//! The reconciler of image lists.

use std::sync::Arc;

use jiff::Timestamp;

use super::observe::Observed;
use super::plan::{Effect, plan, registry};
use super::registries::{Registries, key};
use super::report::report;
use crate::api::image_list::{ImageList, ImageListKind, ImageListSpec};
use crate::config::{ImageListConfig, read};
use crate::controllers::setup::{Definition, Setup};
use crate::runtime::ObjectKey;
use crate::runtime::plan::Plan;
use crate::runtime::reconciler::{EffectOutcome, Outcome, Reconciled, Reconciler, Report};
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// Reconciles image lists.
pub struct ImageListReconciler {
    lists: Arc<Store<ImageListKind>>,
    registries: Registries,
}

impl Definition for ImageListReconciler {
    const EVENT_SOURCE: &'static str = "ImageList";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let config = read!(setup.config, controllers.image_list).clone();
        let registries = Registries::new(&config.registries, set.queue().clone(), &setup.outages);
        // The lists of the registries are reconciled, whether they exist or not.
        let keys = config.registries.iter().map(key).collect();
        let lists = set.store(&Selection::ALL).requests("create patch").named(keys).get();
        Ok((Self { lists, registries }, config))
    }

    fn remarks_from_files(observed: &Observed, config: &ImageListConfig, _: Timestamp) -> Vec<String> {
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
        let absent = || Arc::new(ImageList::new(None, &key.name, ImageListSpec::default()));
        let list = self.lists.get(&key.namespace, &key.name).unwrap_or_else(absent);
        Some(Observed { list, query: self.registries.queries.last(key) })
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
