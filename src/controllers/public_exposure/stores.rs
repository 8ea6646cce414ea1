//! The stores that the loop reads, and which of their changes concern which Instances.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Settings;
use super::addresses::Addresses;
use super::observe::{claim, policy_name, service_name};
use super::report::EXPOSED;
use crate::api::condition::Condition;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::template::{Template, TemplateKind};
use crate::api::text::Text;
use crate::controllers::shared::references::template_key;
use crate::kinds::{
    LoadBalancerService, LoadBalancerServiceKind, NamespaceKind, NetworkPolicy, NetworkPolicyKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::{Change, Index, Store};
use crate::runtime::store_set::{StoreSet, changed_sides, enqueue_by, enqueue_controller};
use crate::runtime::watch::Selection;

/// The stores.
pub struct Stores {
    /// The labels of the namespaces that are ours.
    selector: BTreeMap<String, String>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    /// The Services of exposed Instances, of all namespaces: they share the addresses.
    services: Arc<Store<LoadBalancerServiceKind>>,
    network_policies: Arc<Store<NetworkPolicyKind>>,
}

/// What the stores show of the exposure of an Instance.
pub struct Shown {
    /// The Instance.
    pub instance: Arc<Instance>,
    /// Its Template, unless it does not exist.
    pub template: Option<Arc<Template>>,
    /// Whatever stands where its Service should.
    pub service: Option<Arc<LoadBalancerService>>,
    /// Whatever stands where its `NetworkPolicy` should.
    pub policy: Option<Arc<NetworkPolicy>>,
}

/// Instances that are exposed, by their Template.
struct ExposedByTemplate;

impl Index<InstanceKind> for ExposedByTemplate {
    type Key = ObjectKey;

    fn keys(instance: &Instance) -> Vec<ObjectKey> {
        is_exposed(instance).then(|| template_key(instance)).into_iter().collect()
    }
}

/// Instances that are exposed, by their namespace.
struct ExposedByNamespace;

impl Index<InstanceKind> for ExposedByNamespace {
    type Key = Text;

    fn keys(instance: &Instance) -> Vec<Text> {
        is_exposed(instance).then(|| instance.metadata.namespace.clone()).into_iter().collect()
    }
}

impl Stores {
    /// Declares the stores. Namespaces with the labels of `selector` are ours; `addresses` learns what the
    /// Services claim.
    pub fn declare(
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
        settings: &Arc<Settings>,
        addresses: &Arc<Addresses>,
    ) -> Self {
        let all = Selection::All;
        let instances = set.store(&all).written().index::<ExposedByTemplate>().index::<ExposedByNamespace>();
        let instances = instances.listed(is_exposed).on_foreign_change(|change, queue| {
            if let Some(instance) = change.object().filter(|_| concerns(change)) {
                queue.add(ObjectKey::of(&**instance), Priority::Change);
            }
        });
        let instances: Arc<Store<InstanceKind>> = instances.get();
        let (of_template, residents) = (Arc::clone(&instances), Arc::clone(&instances));
        let labels = selector.clone();
        Self {
            selector: selector.clone(),
            templates: set
                .store(&all)
                .on_change(move |change, queue| {
                    if let Some(template) = change.object().filter(|_| rules_changed(change)) {
                        let key = ObjectKey::of(&**template);
                        enqueue_by::<ExposedByTemplate, _>(&of_template, queue, &key);
                    }
                })
                .get(),
            namespaces: set
                .store::<NamespaceKind>(&all)
                .on_change(move |change, queue| {
                    if let Some(name) = changed_sides(change, &labels) {
                        enqueue_by::<ExposedByNamespace, _>(&residents, queue, name);
                    }
                })
                .get(),
            services: services(set, settings, addresses),
            network_policies: set
                .store(&Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE))
                .written()
                .wakes_controller::<InstanceKind>()
                .get(),
            instances,
        }
    }

    /// What the stores show; `None` when the Instance is gone, or in a namespace that is not ours.
    pub fn show(&self, key: &ObjectKey) -> Option<Shown> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        let reference = template_key(&instance);
        Some(Shown {
            template: self.templates.get(&reference.namespace, &reference.name),
            service: self.services.get(&key.namespace, &service_name(&key.name)),
            policy: self.network_policies.get(&key.namespace, &policy_name(&key.name)),
            instance,
        })
    }
}

/// The Services of exposed Instances. A change concerns the Instance, those that claim the same, and those that
/// wait for room.
fn services(
    set: &mut StoreSet<'_>,
    settings: &Arc<Settings>,
    addresses: &Arc<Addresses>,
) -> Arc<Store<LoadBalancerServiceKind>> {
    let selection = Selection::label(labels::COMPONENT, labels::COMPONENT_PUBLIC_EXPOSURE);
    let services = set.store(&selection).written().wakes_controller::<InstanceKind>().get();
    let (shown, queue) = (Arc::clone(&services), Arc::clone(set.queue()));
    let (settings, addresses) = (Arc::clone(settings), Arc::clone(addresses));
    services.subscribe(move |change| {
        let Some(key) = change.object().map(|service| ObjectKey::of(&**service)) else { return };
        // Read while the allocator is held: of two changes at once the later one counts.
        let claimed = || claim(&*shown.get(&key.namespace, &key.name)?, &settings);
        for rival in addresses.observe(&key, claimed) {
            if let Some(service) = shown.get(&rival.namespace, &rival.name) {
                enqueue_controller::<InstanceKind, _>(&service, &queue);
            }
        }
        if has_fewer(change) {
            addresses.take_waiting().into_iter().for_each(|key| queue.add(key, Priority::Change));
        }
    });
    services
}

/// Whether a Service may have given up an address or ports.
fn has_fewer(change: &Change<LoadBalancerServiceKind>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            old.spec.ports != new.spec.ports || old.metadata.annotations != new.metadata.annotations
        }
        (Some(_), None) => true,
        _ => false,
    }
}

/// Whether what a Template says of public exposure differs.
fn rules_changed(change: &Change<TemplateKind>) -> bool {
    let rules = |template: &Option<Arc<Template>>| {
        template.as_ref().map(|template| {
            let spec = &template.spec;
            (spec.allow_public_exposure, spec.environment_list.len(), template.malformed.is_some())
        })
    };
    rules(&change.old) != rules(&change.new)
}

/// The condition that tells of the exposure of an Instance.
fn condition(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == EXPOSED)
}

/// Whether an Instance asks for ports, or has to be told that it has none any more. Most never do, and
/// cost nothing: what stands under their names all the same asks for its owner.
fn is_exposed(instance: &Instance) -> bool {
    instance.spec.public_exposure.is_some()
        || instance.status.public_exposure.is_some()
        || condition(instance).is_some()
}

/// Whether a change of an Instance is about its exposure: not of its phase, its address, and the like.
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
        || condition(old) != condition(new)
}
