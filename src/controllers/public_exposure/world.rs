//! The stores that the loop reads, the allocator that follows them, and which of their changes concern
//! which Instances.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Settings;
use super::allocator::Allocator;
use super::observe::{Observed, claim, policy_name, service_name};
use super::report::EXPOSED;
use super::room::Room;
use crate::api::condition::Condition;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::template::{Template, TemplateKind};
use crate::controllers::instance::observe::template_key;
use crate::controllers::wake;
use crate::kinds::{LoadBalancerServiceKind, NamespaceKind, NetworkPolicyKind};
use crate::runtime::ObjectKey;
use crate::runtime::controller::{Reconciler, Source};
use crate::runtime::factory::StoreFactory;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::registry::Registry;
use crate::runtime::store::{Change, Store};
use crate::runtime::watch::Selection;

/// The stores.
pub struct World {
    /// The labels of the namespaces that are ours.
    selector: BTreeMap<String, String>,
    settings: Arc<Settings>,
    /// Instances, by the Template that they have.
    pub instances: Arc<Store<InstanceKind>>,
    /// Templates.
    pub templates: Arc<Store<TemplateKind>>,
    /// Namespaces.
    pub namespaces: Arc<Store<NamespaceKind>>,
    /// The Services of exposed Instances, of all namespaces: they share the addresses.
    pub services: Arc<Store<LoadBalancerServiceKind>>,
    /// The `NetworkPolicies` of Instances.
    pub policies: Arc<Store<NetworkPolicyKind>>,
    allocator: Mutex<Allocator>,
    /// The Instances for which no address had room.
    waiting: Mutex<BTreeSet<ObjectKey>>,
}

impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("World").field("selector", &self.selector).finish_non_exhaustive()
    }
}

impl World {
    /// The stores of `factory` that the loop reads.
    pub fn new(
        factory: &mut StoreFactory,
        selector: &BTreeMap<String, String>,
        settings: Arc<Settings>,
    ) -> Self {
        let selection = |key: &str, value: &str| Selection::labels(format!("{key}={value}"));
        let world = Self {
            selector: selector.clone(),
            settings,
            instances: factory.store(Selection::default()),
            templates: factory.store(Selection::default()),
            namespaces: factory.store(Selection::default()),
            services: factory.store(selection(labels::COMPONENT, labels::COMPONENT_PUBLIC_EXPOSURE)),
            policies: factory.store(selection(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE)),
            allocator: Mutex::default(),
            waiting: Mutex::default(),
        };
        world.instances.index(by_reference);
        world
    }

    /// The stores of what the loop writes.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.add(&self.instances);
        registry.add(&self.services);
        registry.add(&self.policies);
        registry
    }

    /// The allocator: whoever holds it is alone with it.
    pub fn allocator(&self) -> MutexGuard<'_, Allocator> {
        // No code that can panic runs between two changes of it.
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Instances for which no address had room.
    pub fn waiting(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a pass over an Instance knows; `None` when it is gone, or in a namespace that is not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        let reference = template_key(&instance);
        Some(Observed {
            template: self.templates.get(&reference.namespace, &reference.name),
            service: self.services.get(&key.namespace, &service_name(&key.name)),
            policy: self.policies.get(&key.namespace, &policy_name(&key.name)),
            instance,
        })
    }

    /// A Service: its claim, its Instance, those that claim the same, and those that wait for room.
    fn balancer(&self, change: &Change<LoadBalancerServiceKind>, queue: &Queue) {
        wake::owners_of::<InstanceKind, _>(change, queue, Room::NAME);
        let Some(key) = change.object().map(|service| ObjectKey::of(&**service)) else { return };
        let rivals = {
            let mut allocator = self.allocator();
            let mut rivals = allocator.rivals(&key);
            // Read while the allocator is held: of two changes at once the later one counts.
            let service = self.services.get(&key.namespace, &key.name);
            allocator.observe(&key, service.and_then(|service| claim(&service, &self.settings)));
            rivals.extend(allocator.rivals(&key));
            if allocator.must_move(&key) {
                rivals.insert(key);
            }
            rivals
        };
        for rival in &rivals {
            if let Some(service) = self.services.get(&rival.namespace, &rival.name) {
                wake::owner::<InstanceKind, _>(&*service, queue);
            }
        }
        let has_fewer = match (&change.old, &change.new) {
            (Some(old), Some(new)) => {
                old.spec.ports != new.spec.ports || old.metadata.annotations != new.metadata.annotations
            }
            (Some(_), None) => true,
            _ => false,
        };
        if has_fewer {
            for key in std::mem::take(&mut *self.waiting()) {
                queue.add(key, Priority::Change);
            }
        }
    }

    /// All Instances that the index lists under `name`.
    fn referring(&self, queue: &Queue, name: &str) {
        for instance in self.instances.indexed(name) {
            queue.add(ObjectKey::of(&*instance), Priority::Change);
        }
    }
}

impl Source for World {
    fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>) {
        let added = Arc::clone(queue);
        self.instances.subscribe(move |change| {
            if let Some(instance) = change.object().filter(|_| concerns(change)) {
                added.add(ObjectKey::of(instance), Priority::Change);
            }
        });
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.templates.subscribe(move |change| {
            let allows = |template: &Option<Arc<Template>>| {
                template.as_ref().map(|template| {
                    let spec = &template.spec;
                    (spec.allow_public_exposure, spec.environment_list.len(), template.malformed.is_some())
                })
            };
            if let Some(template) = change.object()
                && allows(&change.old) != allows(&change.new)
            {
                world.referring(&added, &format!("exposed:template:{}", ObjectKey::of(template)));
            }
        });
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.namespaces.subscribe(move |change| {
            if let Some(name) = wake::turned(change, &world.selector) {
                world.referring(&added, &format!("exposed:namespace:{name}"));
            }
        });
        let (added, world) = (Arc::clone(queue), Arc::clone(self));
        self.services.subscribe(move |change| world.balancer(change, &added));
        wake::owners::<InstanceKind, _>(&self.policies, queue, Room::NAME);
    }

    fn enqueue_all(&self, queue: &Queue) {
        for key in self.instances.keys() {
            if self.instances.get(&key.namespace, &key.name).is_some_and(|instance| is_exposed(&instance)) {
                queue.add(key, Priority::Background);
            }
        }
    }
}

/// What is told of the exposure of an Instance.
fn told(instance: &Instance) -> Option<&Condition> {
    instance.status.conditions.iter().find(|condition| condition.type_ == EXPOSED)
}

/// Whether an Instance asks for ports, or has to be told that it has none any more. Most never do, and
/// cost nothing: what stands under their names all the same asks for its owner.
fn is_exposed(instance: &Instance) -> bool {
    instance.spec.public_exposure.is_some()
        || instance.status.public_exposure.is_some()
        || told(instance).is_some()
}

/// The Template and the namespace of an exposed Instance.
fn by_reference(instance: &Instance) -> Vec<String> {
    if !is_exposed(instance) {
        return Vec::new();
    }
    let template = template_key(instance);
    vec![format!("exposed:template:{template}"), format!("exposed:namespace:{}", instance.namespace())]
}

/// Whether a change of an Instance is about its exposure: not of its phase, its address, and the like.
fn concerns(change: &Change<InstanceKind>) -> bool {
    let exposed = [&change.old, &change.new].into_iter().flatten().any(|instance| is_exposed(instance));
    if change.origin == Some(Room::NAME) || !exposed {
        return false;
    }
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    old.spec != new.spec
        || old.malformed != new.malformed
        || old.uid() != new.uid()
        || old.is_terminating() != new.is_terminating()
        || old.status.public_exposure != new.status.public_exposure
        || told(old) != told(new)
}
