//! The reconciler of `PodConfig`s.

use std::sync::Arc;

use anyhow::Context as _;

use jiff::Timestamp;

use super::cache::Cache;
use super::observe::{FINALIZER, Observed, Settings};
use super::plan::plan;
use super::report::report;
use super::stores::{Stores, records};
use crate::api::pod_config::PodConfigKind;
use crate::config::{Reader, read};
use crate::controllers::setup::{Definition, Notice, Setup};
use crate::kinds::NetworkRecordKind;
use crate::runtime::ObjectKey;
use crate::runtime::plan::{KindInfo, Plan};
use crate::runtime::reconciler::{Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// Reconciles `PodConfig`s.
pub struct PodConfigReconciler(Arc<Stores>);

impl Definition for PodConfigReconciler {
    const EVENT_SOURCE: &'static str = "PodConfig";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let settings = Arc::new(settings(&mut setup.config)?);
        let cache = Arc::new(Cache::default());
        let stores = Arc::new(Stores::declare(set, &settings, &cache));
        setup.expositions.push(Box::new(move |text| cache.render(text)));
        let outside = Arc::clone(&stores);
        setup.notices.push(Notice { name: "pod networks", sentence: Box::new(move || outside.outside()) });
        Ok((Self(stores), settings))
    }
}

/// The settings of the loop, from the configuration.
pub fn settings(config: &mut Reader<'_>) -> anyhow::Result<Settings> {
    let keys = read!(config, controllers.pod_config);
    let reserved = keys.reserved_cidrs.iter().map(|text| text.parse());
    Ok(Settings {
        namespace: read!(config, leader_election.namespace).clone(),
        namespaces: keys.namespaces.iter().cloned().collect(),
        reserved: reserved.collect::<Result<_, _>>().context("controllers.podConfig.reservedCidrs")?,
        grace: jiff::SignedDuration::try_from(keys.lost_node_grace.get())
            .unwrap_or(jiff::SignedDuration::MAX),
        image: keys.sample_image.clone(),
        stalled_after: read!(config, controllers.instance.stalled_after).get(),
    })
}

impl Reconciler for PodConfigReconciler {
    const NAME: &'static str = "podConfig";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    type Kind = PodConfigKind;
    type Observed = Observed;
    type Settings = Arc<Settings>;
    type Effect = ();

    fn plan(observed: &Observed, settings: &Arc<Settings>, now: Timestamp) -> Plan {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, Arc<Settings>>) -> Report<PodConfigKind> {
        report(done.observed, done.settings, done.plan, done.outcome, done.now)
    }

    /// The records are read first: a watch may be stale, and an address that another replica has allocated must not be
    /// allocated again.
    fn read_first(&self) -> Vec<(KindInfo, Selection)> {
        vec![(KindInfo::of::<NetworkRecordKind>(), records(&self.0.settings.namespace))]
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        self.0.observe(key)
    }
}
