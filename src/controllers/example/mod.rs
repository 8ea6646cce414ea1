//! A complete loop, as an example and as a test on a real control plane: a namespace with the label `example/pods` gets
//! a `ResourceQuota` with this number of pods.

mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::setup::{Definition, Setup};
use super::shared::children::Parent;
use crate::kinds::{Namespace, NamespaceKind, ResourceQuota, ResourceQuotaKind};
use crate::runtime::component::Component;
use crate::runtime::store::Store;
use crate::runtime::store_set::StoreSet;
use crate::runtime::{ObjectKey, plan::Plan, reconciler::Reconciler, watch::Selection};

#[derive(derive_more::AsRef, derive_more::AsMut)]
struct Observed(
    #[as_ref(Namespace)]
    #[as_mut]
    Arc<Namespace>,
    Option<Arc<ResourceQuota>>,
);

struct PodQuotaReconciler {
    namespaces: Arc<Store<NamespaceKind>>,
    quotas: Arc<Store<ResourceQuotaKind>>,
}

impl Definition for PodQuotaReconciler {
    const EVENT_SOURCE: &'static str = "PodQuota";

    fn build(_: &mut Setup<'_>, set: &mut StoreSet<'_>) -> anyhow::Result<(Self, Self::Settings)> {
        let reconciler = Self {
            namespaces: set.store(&Selection::labelled("example/pods")).objects(|_| true).get(),
            quotas: set.store(&Selection::ALL).child().wakes_controller::<NamespaceKind>().get(),
        };
        Ok((reconciler, ()))
    }
}

impl Reconciler for PodQuotaReconciler {
    const NAME: &'static str = "podQuota";
    type Kind = NamespaceKind;
    type Observed = Observed;
    type Settings = ();
    type Effect = ();

    fn plan(Observed(namespace, quota): &Observed, (): &(), _: Timestamp) -> Plan {
        let body = || json!({"spec": {"hard": {"pods": namespace.label("example/pods")}}});
        let parent = Parent::new(namespace, [].into()).within(namespace.name());
        let child = parent.child::<ResourceQuotaKind>("pods", &Component::Whole, 0, body);
        let quota = child.existing(quota.as_deref()).enforced().made();
        Plan { ensure: vec![quota], ..Plan::default() }
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        Some(Observed(self.namespaces.get("", &key.name)?, self.quotas.get(&key.name, "pods")))
    }
}
