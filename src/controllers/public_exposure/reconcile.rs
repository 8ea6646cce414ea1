//! The reconciler of public exposures.

use std::sync::Arc;

use anyhow::Context as _;
use metrics::gauge;
use tracing::warn;

use jiff::Timestamp;

use super::Settings;
use super::addresses::Addresses;
use super::children::services;
use super::observe::{Observed, has_other_address};
use super::plan::plan;
use super::report::report;
use super::stores::Stores;
use super::validate::Validated;
use crate::api::Kind;
use crate::api::instance::InstanceKind;
use crate::config::pool::Pool;
use crate::config::{ConfigDuration, PublicExposureConfig, read};
use crate::controllers::setup::{Definition, Notice, Setup};
use crate::kinds::LoadBalancerServiceKind;
use crate::runtime::apply::Failure;
use crate::runtime::metrics::precise;
use crate::runtime::object_events::ObjectEvents;
use crate::runtime::plan::{KindInfo, Plan};
use crate::runtime::reconciler::{Outcome, Reconciled, Reconciler, Report};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;
use crate::runtime::{ObjectKey, clock};

/// Reconciles the public exposure of Instances.
pub struct PublicExposureReconciler {
    stores: Arc<Stores>,
    /// The allocator. `observe` calls it: an allocation is kept in memory until the store shows it.
    addresses: Arc<Addresses>,
    settings: Arc<Settings>,
    events: ObjectEvents,
}

impl Definition for PublicExposureReconciler {
    const EVENT_SOURCE: &'static str = "PublicExposure";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let stalled_after = *read!(setup.config, controllers.instance.stalled_after);
        let settings = settings(read!(setup.config, controllers.public_exposure), stalled_after)?;
        let (settings, addresses) = (Arc::new(settings), Arc::new(Addresses::default()));
        let layout = *read!(setup.config, controllers.instance.layout);
        let selector = read!(setup.config, selector);
        let stores = Arc::new(Stores::declare(set, selector, &settings, &addresses, layout));
        let (outside, of) = (Arc::clone(&stores), Arc::clone(&settings));
        setup.notices.push(Notice { name: "ipPool", sentence: Box::new(move || outside.outside(&of)) });
        gauge!("public_exposure_pool_addresses").set(precise(settings.pool.addresses().count()));
        let measured = Arc::clone(&addresses);
        setup.gauges.push(Box::new(move || measured.measure()));
        let events = ObjectEvents::declare(&setup.events, set);
        Ok((Self { stores, addresses, settings: Arc::clone(&settings), events }, settings))
    }
}

impl Reconciler for PublicExposureReconciler {
    const NAME: &'static str = "publicExposure";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = Arc<Settings>;
    type Effect = ();

    fn plan(observed: &Observed, settings: &Arc<Settings>, now: Timestamp) -> Plan {
        plan(observed, settings, now)
    }

    fn report(done: &Reconciled<'_, Observed, Arc<Settings>>) -> Report<InstanceKind> {
        report(done.observed, done.settings, done.outcome, done.now)
    }

    /// The Services are read first: a watch may be stale, and an address that another replica has assigned must not be
    /// allocated again.
    fn read_first(&self) -> Vec<(KindInfo, Selection)> {
        vec![(KindInfo::of::<LoadBalancerServiceKind>(), services())]
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let mut observed = self.stores.observe(key, &self.settings)?;
        observed.is_unanswered = self.addresses.is_unanswered(key);
        observed.events = self.events.of(key);
        match &observed.request {
            Validated::Ports(wanted) if !observed.instance.is_terminating() => {
                let existing = observed.own_service();
                let allocation =
                    self.addresses.allocate(&observed.instance, existing, wanted, &self.settings);
                let requested = allocation.as_ref().map(|allocation| allocation.address);
                observed.other_since = requested.and_then(|requested| {
                    let has_other = existing.is_some_and(|service| has_other_address(service, requested));
                    self.addresses.other_since(key, has_other.then_some(requested), clock::now())
                });
                observed.allocation = allocation;
            }
            _ => self.addresses.forget_waiting(key),
        }
        Some(observed)
    }

    fn object_events(&self) -> Option<&ObjectEvents> {
        Some(&self.events)
    }

    fn forget(&self, key: &ObjectKey) {
        self.addresses.forget_waiting(key);
        self.addresses.settle(key);
    }

    fn settle(&self, observed: &Observed, outcome: &Outcome<()>) {
        let instance = ObjectKey::of(&*observed.instance);
        let is_about_service = |failure: &&Failure| failure.kind == LoadBalancerServiceKind::KIND;
        match outcome.failures.iter().find(is_about_service) {
            None if outcome.failures.is_empty() => self.addresses.settle(&instance),
            None => {}
            // The write may still take effect.
            Some(failure) if failure.error.is_transient() => self.addresses.await_outcome(&instance),
            // The write was rejected, so the ports are free again.
            Some(_) => self.addresses.refuse(&instance),
        }
    }
}

/// The settings of the loop, from the configuration. Logs warnings about the pool.
pub(super) fn settings(
    config: &PublicExposureConfig,
    stalled_after: ConfigDuration,
) -> anyhow::Result<Settings> {
    let (pool, warnings) = Pool::parse(&config.ip_pool).context("controllers.publicExposure.ipPool")?;
    for warning in warnings {
        warn!(%pool, "controllers.publicExposure.ipPool: {warning}");
    }
    Ok(Settings { config: config.clone(), pool, stalled_after })
}
