//! The stores of the public exposure loop, and the Instances that each change adds to the queue.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::addresses::Addresses;
use super::names::refused;
use super::observe::{Observed, address, claim, remembered, service_key, stored_condition};
use super::validate::{Validated, validate};
use super::{Settings, children};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::template::{Template, TemplateKind};
use crate::api::text::Text;
use crate::config::Layout;
use crate::controllers::shared::references::{ByCanonicalName, template_key, template_of};
use crate::controllers::shared::service_names::ServiceNames;
use crate::controllers::shared::tenancy::foreign_tenant;
use crate::kinds::{LoadBalancerServiceKind, NamespaceKind, ServiceKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::object_events::Events;
use crate::runtime::queue::Priority;
use crate::runtime::store::{Change, Store, index};
use crate::runtime::store_set::{StoreSet, changed_sides, enqueue_controller};
use crate::runtime::watch::Selection;

/// The stores of the public exposure loop.
pub struct Stores {
    /// The labels of the namespaces whose Instances are reconciled.
    selector: BTreeMap<String, String>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    services: Arc<Store<LoadBalancerServiceKind>>,
    children: ChildStores,
    /// The Services of environments.
    of_environments: Arc<Store<ServiceKind>>,
    /// The naming scheme for the objects of new Instances.
    layout: Layout,
}

index! {
    /// Exposed Instances by their Template.
    struct ExposedByTemplate of InstanceKind by ObjectKey;
    |instance| is_exposed(instance).then(|| template_key(instance)).into_iter().collect()
}

index! {
    /// Exposed Instances by the key of their Service. Two Instances may have the same key.
    pub struct ByServiceName of InstanceKind by ObjectKey;
    |instance| is_exposed(instance).then(|| service_key(&ObjectKey::of(instance))).into_iter().collect()
}

index! {
    /// Exposed Instances by their namespace.
    struct ExposedByNamespace of InstanceKind by Text;
    |instance| is_exposed(instance).then(|| instance.metadata.namespace.clone()).into_iter().collect()
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces that match `selector` are reconciled. `addresses` is updated
    /// with the claims of the Services.
    pub fn declare(
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
        settings: &Arc<Settings>,
        addresses: &Arc<Addresses>,
        layout: Layout,
    ) -> Self {
        let all = Selection::ALL;
        let instances = set.store::<InstanceKind>(&all).requests("list").index::<ExposedByTemplate>();
        let instances = instances.index::<ExposedByNamespace>().index::<ByServiceName>();
        let instances = instances.wakes_siblings::<ByCanonicalName>().listed(is_exposed);
        let instances = instances.on_foreign_change(|change, queue| {
            if let Some(instance) = change.object().filter(|_| concerns(change)) {
                queue.add(ObjectKey::of(&**instance), Priority::Change);
            }
        });
        let instances = instances.get();
        remember(set, &instances, settings, addresses);
        let (children, services, of_environments) = children::declare(set, &instances);
        claims(set, &services, settings, addresses);
        let labels = selector.clone();
        Self {
            selector: selector.clone(),
            templates: set
                .store::<TemplateKind>(&all)
                .requests("list")
                .wakes_by::<ExposedByTemplate, _, _>(&instances, |change| {
                    change.object_if(rules).map(|template| ObjectKey::of(&**template))
                })
                .get(),
            namespaces: set
                .store::<NamespaceKind>(&all)
                .wakes_by::<ExposedByNamespace, _, _>(&instances, move |change| {
                    changed_sides(change, &labels).map(str::to_owned)
                })
                .get(),
            children,
            services,
            of_environments,
            layout,
            instances,
        }
    }

    /// A message about Services with addresses outside of the pool.
    pub fn outside(&self, settings: &Settings) -> Option<String> {
        let is_ours = |namespace: &str| {
            self.namespaces.get("", namespace).is_some_and(|namespace| namespace.has_labels(&self.selector))
        };
        let services = self.services.objects().filter(|service| is_ours(service.namespace()));
        let addresses = services.filter_map(|service| address(&service, settings));
        let outside: Vec<IpAddr> = addresses.filter(|address| !settings.pool.contains(*address)).collect();
        let first = outside.first()?;
        Some(format!(
            "{} Services have addresses outside of controllers.publicExposure.ipPool, such as {first}, and keep them. \
             Correct the pool, or delete the Services: they are recreated with addresses of the pool",
            outside.len()
        ))
    }

    /// The state of an Instance in the stores, and its validated request; `None` if the Instance does not exist, or if
    /// its namespace does not match the selector.
    pub fn observe(&self, key: &ObjectKey, settings: &Settings) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace);
        let namespace = namespace.filter(|namespace| namespace.has_labels(&self.selector))?;
        let mut observed = Observed {
            children: self.children.children(instance.uid(), &children::keys(key)),
            request: Validated::Unknown,
            allocation: None,
            is_unanswered: false,
            other_since: None,
            // The reconciler adds them.
            events: Events::Unknown,
            instance,
        };
        if foreign_tenant(&observed.instance, &namespace).is_none() {
            let template = template_of(&observed.instance, &self.templates);
            observed.request = validate(&observed.instance, template.as_deref(), settings);
        }
        if matches!(observed.request, Validated::Ports(_)) {
            let Self { instances, templates, layout, .. } = self;
            let (with_exposures, with_proxies) = (false, false);
            let rivals = ServiceNames { instances, templates, layout: *layout, with_exposures, with_proxies };
            if let Some(refused) = refused(&observed, &rivals, &self.of_environments) {
                observed.request = refused;
            }
        }
        Some(observed)
    }
}

/// Reserves the addresses and ports in the status of Instances.
fn remember(
    set: &StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    settings: &Arc<Settings>,
    addresses: &Arc<Addresses>,
) {
    let (shown, queue) = (Arc::clone(instances), Arc::clone(set.queue()));
    let (settings, addresses) = (Arc::clone(settings), Arc::clone(addresses));
    instances.subscribe(move |change| {
        let said = |instance: &Option<Arc<Instance>>| remembered(instance.as_deref()?, &settings);
        let is_news = said(&change.old) != said(&change.new);
        let Some(key) = change.object().filter(|_| is_news).map(|instance| ObjectKey::of(&**instance)) else {
            return;
        };
        // Read while the allocator is locked; see `claims`.
        let now = || remembered(&*shown.get(&key.namespace, &key.name)?, &settings);
        if addresses.remember(&key, now) {
            addresses.take_waiting().into_iter().for_each(|key| queue.add(key, Priority::Change));
        }
    });
}

/// Tracks the claims of Services. A change of a Service queues the Instances whose Services claim the same ports, and
/// the Instances that wait for a free port.
fn claims(
    set: &StoreSet<'_>,
    services: &Arc<Store<LoadBalancerServiceKind>>,
    settings: &Arc<Settings>,
    addresses: &Arc<Addresses>,
) {
    let (shown, queue) = (Arc::clone(services), Arc::clone(set.queue()));
    let (settings, addresses) = (Arc::clone(settings), Arc::clone(addresses));
    services.subscribe(move |change| {
        let Some(key) = change.object().map(|service| ObjectKey::of(&**service)) else { return };
        // Read while the allocator is locked, so that the later of two concurrent changes wins.
        let claimed = || claim(&*shown.get(&key.namespace, &key.name)?, &settings);
        for rival in addresses.observe(&key, claimed) {
            if let Some(service) = shown.get(&rival.namespace, &rival.name) {
                enqueue_controller::<InstanceKind>(&service.metadata, &queue);
            }
        }
        if has_fewer(change) {
            addresses.take_waiting().into_iter().for_each(|key| queue.add(key, Priority::Change));
        }
    });
}

/// Whether a change of a Service may have freed an address or ports.
fn has_fewer(change: &Change<LoadBalancerServiceKind>) -> bool {
    let changed = change.object_if(|service| (&service.spec.ports, &service.metadata.annotations));
    change.old.is_some() && changed.is_some()
}

/// The part of a Template that affects public exposure.
fn rules(template: &Template) -> (bool, usize, bool) {
    let spec = &template.spec;
    (spec.allow_public_exposure, spec.environment_list.len(), template.malformed.is_some())
}

/// Whether an Instance requests ports, or its status still mentions ports. Other Instances are reconciled by this loop
/// only if an object that they control changes.
fn is_exposed(instance: &Instance) -> bool {
    instance.spec.public_exposure.is_some()
        || instance.status.public_exposure.is_some()
        || stored_condition(instance).is_some()
}

/// Whether a change of an Instance affects its exposure, not only its phase or address.
fn concerns(change: &Change<InstanceKind>) -> bool {
    if ![&change.old, &change.new].into_iter().flatten().any(|instance| is_exposed(instance)) {
        return false;
    }
    let changed = change.object_if(|instance| {
        let Instance { spec, status, malformed, .. } = instance;
        let reported = (&status.public_exposure, status.environments.len(), stored_condition(instance));
        (spec, malformed, instance.uid(), instance.is_terminating(), reported)
    });
    changed.is_some()
}

#[cfg(test)]
mod tests;
