//! The stores of the public exposure loop, and which of their changes add which Instances to the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Settings;
use super::addresses::Addresses;
use super::observe::{claim, policy_name, remembered, service_key};
use crate::api::Kind;
use crate::api::condition::Condition;
use crate::api::condition::PUBLIC_EXPOSURE_READY;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::meta::Owner;
use crate::api::template::{Template, TemplateKind};
use crate::api::text::Text;
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::references::{ByCanonicalName, canonical_key, template_key};
use crate::controllers::shared::tenancy::foreign_tenant;
use crate::kinds::{
    LoadBalancerService, LoadBalancerServiceKind, NamespaceKind, NetworkPolicy, NetworkPolicyKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::{Change, Index, Store};
use crate::runtime::store_set::{StoreSet, changed_sides, enqueue_controller};
use crate::runtime::watch::Selection;

/// The stores of the public exposure loop.
pub struct Stores {
    /// The labels of the namespaces whose Instances are reconciled.
    selector: BTreeMap<String, String>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    /// The Services of exposed Instances in all namespaces: they use the same addresses.
    services: Arc<Store<LoadBalancerServiceKind>>,
    network_policies: Arc<Store<NetworkPolicyKind>>,
}

/// What the stores have about the exposure of an Instance.
pub struct Shown {
    /// The Instance.
    pub instance: Arc<Instance>,
    /// Its Template, unless it does not exist.
    pub template: Option<Arc<Template>>,
    /// The object with the name of its Service, whoever owns it.
    pub service: Option<Arc<LoadBalancerService>>,
    /// The object with the name of its `NetworkPolicy`, whoever owns it.
    pub policy: Option<Arc<NetworkPolicy>>,
    /// Whether it names another Tenant than its namespace belongs to.
    pub is_foreign: bool,
    /// Who has the name of its Service, if it is somebody else: `Instance a.b`.
    pub name_owner: Option<String>,
}

/// Exposed Instances by their Template.
struct ExposedByTemplate;

impl Index<InstanceKind> for ExposedByTemplate {
    type Key = ObjectKey;

    fn keys(instance: &Instance) -> Vec<ObjectKey> {
        is_exposed(instance).then(|| template_key(instance)).into_iter().collect()
    }
}

/// Exposed Instances by the key of their Service. Two may have the same.
struct ByServiceName;

impl Index<InstanceKind> for ByServiceName {
    type Key = ObjectKey;

    fn keys(instance: &Instance) -> Vec<ObjectKey> {
        is_exposed(instance).then(|| service_key(&ObjectKey::of(instance))).into_iter().collect()
    }
}

/// Exposed Instances by their namespace.
struct ExposedByNamespace;

impl Index<InstanceKind> for ExposedByNamespace {
    type Key = Text;

    fn keys(instance: &Instance) -> Vec<Text> {
        is_exposed(instance).then(|| instance.metadata.namespace.clone()).into_iter().collect()
    }
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces with the labels of `selector` are reconciled;
    /// `addresses` is updated with the claims of the Services.
    pub fn declare(
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
        settings: &Arc<Settings>,
        addresses: &Arc<Addresses>,
    ) -> Self {
        let all = Selection::ALL;
        let instances = set.store(&all).requests("list").index::<ExposedByTemplate>();
        let instances = instances.index::<ExposedByNamespace>().index::<ByServiceName>();
        let instances = instances.wakes_siblings::<ByCanonicalName>().listed(is_exposed).on_foreign_change(
            |change, queue| {
                if let Some(instance) = change.object().filter(|_| concerns(change)) {
                    queue.add(ObjectKey::of(&**instance), Priority::Change);
                }
            },
        );
        let instances: Arc<Store<InstanceKind>> = instances.get();
        remember(set, &instances, settings, addresses);
        let labels = selector.clone();
        Self {
            selector: selector.clone(),
            templates: set
                .store(&all)
                .requests("list")
                .wakes_by::<ExposedByTemplate, _, _>(&instances, |change| {
                    let template = change.object().filter(|_| rules_changed(change));
                    template.map(|template| ObjectKey::of(&**template))
                })
                .get(),
            namespaces: set
                .store::<NamespaceKind>(&all)
                .wakes_by::<ExposedByNamespace, _, _>(&instances, move |change| {
                    changed_sides(change, &labels).map(str::to_owned)
                })
                .get(),
            services: declare_services(set, &instances, settings, addresses),
            network_policies: set
                .store(&Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE))
                .child()
                .wakes_controller::<InstanceKind>()
                .get(),
            instances,
        }
    }

    /// What the stores have about an Instance; `None` when it does not exist, or is in a namespace that is
    /// not ours.
    pub fn show(&self, key: &ObjectKey) -> Option<Shown> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace);
        let namespace = namespace.filter(|namespace| namespace.has_labels(&self.selector))?;
        let reference = template_key(&instance);
        let named = service_key(key);
        let service = self.services.get(&named.namespace, &named.name);
        Some(Shown {
            template: self.templates.get(&reference.namespace, &reference.name),
            name_owner: self.name_owner(&instance, service.as_deref()),
            service,
            policy: self.network_policies.get(&key.namespace, &policy_name(&key.name)),
            is_foreign: foreign_tenant(&instance, &namespace).is_some(),
            instance,
        })
    }
}

impl Stores {
    /// Who has the name of the Service of an Instance, if it is somebody else: the controller of the existing
    /// Service, or another Instance whose name has the same canonical form.
    fn name_owner(&self, instance: &Instance, service: Option<&LoadBalancerService>) -> Option<String> {
        let controller = service.and_then(|service| service.metadata.controller());
        let is_ours = |owner: &Owner| {
            // One of the same name is a deleted predecessor, whose Service is still being removed.
            owner.uid == *instance.uid() || owner.kind == InstanceKind::KIND && owner.name == *instance.name()
        };
        if let Some(owner) = controller {
            return (!is_ours(owner)).then(|| format!("{} {}", owner.kind, owner.name));
        }
        let siblings = self.instances.by::<ByCanonicalName>(&canonical_key(instance));
        name_owner(instance, &siblings, &BTreeSet::new()).map(|name| format!("Instance {name}"))
    }
}

/// Keeps for Instances what their status says that they have.
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
        // Read while the allocator is locked, see below.
        let now = || remembered(&*shown.get(&key.namespace, &key.name)?, &settings);
        if addresses.remember(&key, now) {
            addresses.take_waiting().into_iter().for_each(|key| queue.add(key, Priority::Change));
        }
    });
}

/// The Services of exposed Instances.
pub fn services() -> Selection {
    Selection::label(labels::COMPONENT, labels::COMPONENT_PUBLIC_EXPOSURE)
}

/// Declares the store of Services. A change adds the Instance of the Service, those whose Services claim the
/// same ports, and those that wait for a free port; the end of a Service adds the Instances whose Service may
/// have that name.
fn declare_services(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    settings: &Arc<Settings>,
    addresses: &Arc<Addresses>,
) -> Arc<Store<LoadBalancerServiceKind>> {
    let services = set.store(&services()).child().wakes_controller::<InstanceKind>();
    let services = services.wakes_by::<ByServiceName, _, _>(instances, |change| {
        change.old.as_ref().filter(|_| change.new.is_none()).map(|service| ObjectKey::of(&**service))
    });
    let services = services.get();
    let (shown, queue) = (Arc::clone(&services), Arc::clone(set.queue()));
    let (settings, addresses) = (Arc::clone(settings), Arc::clone(addresses));
    services.subscribe(move |change| {
        let Some(key) = change.object().map(|service| ObjectKey::of(&**service)) else { return };
        // Read while the allocator is locked, so that of two concurrent changes the later one counts.
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
    services
}

/// Whether a change of a Service may have freed an address or ports.
fn has_fewer(change: &Change<LoadBalancerServiceKind>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            old.spec.ports != new.spec.ports || old.metadata.annotations != new.metadata.annotations
        }
        (Some(_), None) => true,
        _ => false,
    }
}

/// Whether a change of a Template concerns public exposure.
fn rules_changed(change: &Change<TemplateKind>) -> bool {
    let rules = |template: &Option<Arc<Template>>| {
        template.as_ref().map(|template| {
            let spec = &template.spec;
            (spec.allow_public_exposure, spec.environment_list.len(), template.malformed.is_some())
        })
    };
    rules(&change.old) != rules(&change.new)
}

/// The condition about the exposure of an Instance.
fn condition(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == PUBLIC_EXPOSURE_READY)
}

/// Whether an Instance requests ports, or its status still mentions ports. Others are not reconciled by this
/// loop, unless an object that they control changes.
fn is_exposed(instance: &Instance) -> bool {
    instance.spec.public_exposure.is_some()
        || instance.status.public_exposure.is_some()
        || condition(instance).is_some()
}

/// Whether a change of an Instance concerns its exposure, and not only its phase or address.
fn concerns(change: &Change<InstanceKind>) -> bool {
    if ![&change.old, &change.new].into_iter().flatten().any(|instance| is_exposed(instance)) {
        return false;
    }
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    old.spec != new.spec
        || old.malformed != new.malformed
        || old.uid() != new.uid()
        || old.is_terminating() != new.is_terminating()
        || old.status.public_exposure != new.status.public_exposure
        || old.status.environments.len() != new.status.environments.len()
        || condition(old) != condition(new)
}

#[cfg(test)]
mod tests;
