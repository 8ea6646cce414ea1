//! The reconciler of public exposures.

use std::sync::Arc;

use anyhow::Context as _;
use tracing::warn;

use super::Settings;
use super::addresses::Addresses;
use super::observe::{Observed, service_name};
use super::plan::plan;
use super::report::report;
use super::stores::{Shown, Stores};
use super::validate::{Validated, validate};
use crate::api::Kind;
use crate::api::instance::InstanceKind;
use crate::config::PublicExposureConfig;
use crate::config::pool::Pool;
use crate::controllers::{Definition, Setup};
use crate::kinds::LoadBalancerServiceKind;
use crate::runtime::ObjectKey;
use crate::runtime::reconciler::{Outcome, PlanFn, Reconciler, ReportFn};
use crate::runtime::store_set::StoreSet;

/// Reconciles the public exposure of Instances.
pub struct PublicExposureReconciler {
    stores: Stores,
    /// The allocator. It is called by `observe`: an allocation is kept in memory until the store shows it.
    addresses: Arc<Addresses>,
    settings: Arc<Settings>,
}

impl Definition for PublicExposureReconciler {
    const EVENT_SOURCE: &'static str = "PublicExposure";

    fn build(setup: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let settings = Arc::new(settings(&setup.config.controllers.public_exposure)?);
        let addresses = Arc::new(Addresses::default());
        let stores = Stores::declare(set, &setup.config.selector, &settings, &addresses);
        let own = Self { stores, addresses, settings: Arc::clone(&settings) };
        Ok((own, settings))
    }
}

impl Reconciler for PublicExposureReconciler {
    const NAME: &'static str = "publicExposure";
    type Kind = InstanceKind;
    type Observed = Observed;
    type Settings = Arc<Settings>;
    type Effect = ();
    const PLAN: PlanFn<Self> = |observed, settings, _| plan(observed, settings);
    const REPORT: ReportFn<Self> =
        |observed, settings, _, outcome, now| report(observed, settings, outcome, now);

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let Shown { instance, template, service, policy, is_foreign } = self.stores.show(key)?;
        let request = if is_foreign {
            Validated::Unknown
        } else {
            validate(&instance, template.as_deref(), &self.settings)
        };
        let mut observed = Observed { instance, service, policy, request, allocation: None };
        match &observed.request {
            Validated::Ports(wanted) if !observed.instance.is_terminating() => {
                let existing = observed.own_service();
                observed.allocation =
                    self.addresses.allocate(key, &service_key(key), existing, wanted, &self.settings);
            }
            _ => self.addresses.forget_waiting(key),
        }
        Some(observed)
    }

    fn forget(&self, key: &ObjectKey) {
        self.addresses.forget_waiting(key);
        self.addresses.settle(&service_key(key));
    }

    fn settle(&self, observed: &Observed, outcome: &Outcome<()>) {
        let is_withdrawn = matches!(observed.request, Validated::Nothing | Validated::Denied(_))
            && outcome.failures.is_empty();
        // The write was refused, so the ports are free again. After a lost response they are not.
        let is_refused = outcome
            .failures
            .iter()
            .any(|failure| failure.kind == LoadBalancerServiceKind::KIND && !failure.error.is_transient());
        if is_withdrawn || is_refused {
            self.addresses.settle(&service_key(&ObjectKey::of(&*observed.instance)));
        }
    }
}

/// The key of the Service of an Instance.
fn service_key(instance: &ObjectKey) -> ObjectKey {
    ObjectKey::new(&*instance.namespace, service_name(&instance.name))
}

/// The settings of the loop, from the configuration. Logs warnings about the pool.
pub(super) fn settings(config: &PublicExposureConfig) -> anyhow::Result<Settings> {
    let (pool, warnings) = Pool::parse(&config.ip_pool).context("controllers.publicExposure.ipPool")?;
    for warning in warnings {
        warn!(%pool, "controllers.publicExposure.ipPool: {warning}");
    }
    Ok(Settings {
        pool,
        automatic: config.automatic_port_range.ports(),
        annotations: config.common_annotations.clone(),
        labels: config.common_labels.clone(),
        address_key: config.load_balancer_ips_key.clone(),
        wait_for_address: config.wait_for_address,
    })
}
