//! The stores of one loop. Each is declared once, with everything that follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ObjectKey;
use super::plan::KindInfo;
use super::queue::{Backoff, Priority, Queue};
use super::readiness::Need;
use super::store::{ByNamespace, Change, Index, Store, StoreFactory, WrittenStores};
use super::watch::Selection;
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};
use crate::kinds::{Namespace, NamespaceKind};

/// Lists the objects of a loop.
pub type Keys = Box<dyn Fn() -> Vec<ObjectKey> + Send + Sync>;

/// Collects the stores of one loop while they are declared.
///
/// A declaration ([`StoreSet::store`]) returns the store, and registers it for readiness, for the apply
/// engine if the loop writes its kind, with its indexes, and with the handlers that add objects of the loop
/// to its queue. The rights of the loop follow from what it declares.
pub struct StoreSet<'f> {
    factory: &'f mut StoreFactory,
    name: &'static str,
    queue: Arc<Queue>,
    needs: Vec<Need>,
    written: WrittenStores,
    has_children: bool,
    keys: Keys,
}

/// The stores of a loop, once all are declared.
pub struct DeclaredStores {
    /// The work queue of the loop.
    pub queue: Arc<Queue>,
    /// The stores that the loop waits for.
    pub needs: Vec<Need>,
    /// The stores of the kinds that the loop writes.
    pub written: WrittenStores,
    /// Lists the objects of the loop.
    pub keys: Keys,
}

impl<'f> StoreSet<'f> {
    /// The stores of the loop called `name`, created by the factory of the process.
    pub fn new(name: &'static str, factory: &'f mut StoreFactory) -> Self {
        let queue = Arc::new(Queue::new(name, Backoff::default()));
        let (needs, written) = (Vec::new(), WrittenStores::default());
        Self { factory, name, queue, needs, written, has_children: false, keys: Box::new(Vec::new) }
    }

    /// Declares a store. The workers of the loop do not start before it is synced, unless its kind is not
    /// served and the store is [`Declaration::optional`].
    pub fn store<T: Kind>(&mut self, selection: &Selection) -> Declaration<'_, 'f, T> {
        self.declare(selection, true)
    }

    /// Declares a store of a kind that the loop has no use for, to remove what it made of it when it had. The loop does
    /// not wait for the store, and where the kind is not served, nobody is told and the watch is not tried again.
    pub fn leftovers<T: Kind>(&mut self, selection: &Selection) -> Declaration<'_, 'f, T> {
        self.declare(selection, false)
    }

    fn declare<T: Kind>(&mut self, selection: &Selection, is_needed: bool) -> Declaration<'_, 'f, T> {
        let (store, selection) = (self.factory.watched(selection, is_needed), selection.clone());
        Declaration { set: self, store, selection, is_needed, is_required: is_needed, is_written: false }
            .allow("list watch")
    }

    /// The loop reconciles objects of this kind: it writes their status, and if it has children, it may make these block
    /// the deletion of their owner.
    pub fn reconciles<T: Kind>(&mut self) {
        let kind = KindInfo::of::<T>();
        self.factory.allow(self.name, (kind, "status"), "patch");
        if self.has_children {
            self.factory.allow(self.name, (kind, "finalizers"), "update");
        }
    }

    /// The work queue of the loop, for objects that something else than a store adds.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Ends the declarations.
    pub fn finish(self) -> DeclaredStores {
        let Self { queue, needs, written, keys, .. } = self;
        DeclaredStores { queue, needs, written, keys }
    }
}

/// A store while it is declared; [`Declaration::get`] ends the declaration.
#[must_use = "a store is declared by `get`"]
pub struct Declaration<'s, 'f, T: Kind> {
    set: &'s mut StoreSet<'f>,
    store: Arc<Store<T>>,
    is_needed: bool,
    selection: Selection,
    is_required: bool,
    is_written: bool,
}

impl<T: Kind> Declaration<'_, '_, T> {
    /// The loop also works where the kind of this store is not served.
    pub fn optional(mut self) -> Self {
        self.is_required = false;
        self
    }

    /// The loop sends requests with these verbs about objects of this kind: it writes them, or reads some before it
    /// deletes or refuses. The responses go into this store.
    pub fn requests(mut self, verbs: &'static str) -> Self {
        self.is_written = true;
        self.allow(verbs)
    }

    /// The loop makes objects of this kind for those that it reconciles. One that this store does not hold, and whose name
    /// a child has, is read.
    pub fn child(self) -> Self {
        self.set.has_children = true;
        let is_whole = self.selection == Selection::ALL;
        self.requests(if is_whole { "create patch delete" } else { "get create patch delete" })
    }

    /// In a namespace alone, the loop has the rights of a Role.
    fn allow(self, verbs: &'static str) -> Self {
        if self.selection.namespace.is_none() {
            self.set.factory.allow(self.set.name, (KindInfo::of::<T>(), ""), verbs);
        }
        self
    }

    /// The name of the loop.
    pub fn loop_name(&self) -> &'static str {
        self.set.name
    }

    /// Registers an index of the store.
    pub fn index<I: Index<T>>(self) -> Self {
        self.store.index::<I>();
        self
    }

    /// Calls `handler` with every change; it adds the objects that the change concerns to the queue.
    pub fn on_change(self, handler: impl Fn(&Change<T>, &Queue) + Send + Sync + 'static) -> Self {
        let queue = Arc::clone(&self.set.queue);
        self.store.subscribe(move |change| handler(change, &queue));
        self
    }

    /// The same, without changes by writes of this loop: the reconcile that wrote them knows of them.
    pub fn on_foreign_change(self, handler: impl Fn(&Change<T>, &Queue) + Send + Sync + 'static) -> Self {
        let name = self.set.name;
        self.on_change(move |change, queue| {
            if change.origin != Some(name) {
                handler(change, queue);
            }
        })
    }

    /// These are the objects that the loop reconciles: a change adds the object to the queue, and the answers to writes of
    /// their status go into this store. Those that satisfy `is_relevant` are all added when a kind that was missing is
    /// served.
    pub fn objects(mut self, is_relevant: fn(&Object<T>) -> bool) -> Self {
        self.is_written = true;
        self.listed(is_relevant).on_foreign_change(|change, queue| {
            if let Some(object) = change.object() {
                queue.add(ObjectKey::of(&**object), Priority::Change);
            }
        })
    }

    /// The same, but a change adds nothing to the queue.
    pub fn listed(self, is_relevant: fn(&Object<T>) -> bool) -> Self {
        let store = Arc::clone(&self.store);
        self.set.keys = Box::new(move || {
            let is_relevant = |key: &ObjectKey| {
                store.get(&key.namespace, &key.name).is_some_and(|object| is_relevant(&object))
            };
            store.keys().into_iter().filter(is_relevant).collect()
        });
        self
    }

    /// The loop reconciles the objects of these keys, whether they exist or not, because the configuration names them. They
    /// are in the queue from the start; a change adds the object, and that of any other object adds nothing.
    pub fn named(self, keys: Vec<ObjectKey>) -> Self {
        for key in &keys {
            self.set.queue.add(key.clone(), Priority::Background);
        }
        let named: BTreeSet<ObjectKey> = keys.iter().cloned().collect();
        self.set.keys = Box::new(move || keys.clone());
        self.on_foreign_change(move |change, queue| {
            let key = change.object().map(|object| ObjectKey::of(&**object));
            if let Some(key) = key.filter(|key| named.contains(key)) {
                queue.add(key, Priority::Change);
            }
        })
    }

    /// A change adds the objects of `store` that its index `I` lists under the keys that `keys` returns.
    pub fn wakes_by<I: Index<O>, O: Kind, C: IntoIterator<Item: Into<I::Key>>>(
        self,
        store: &Arc<Store<O>>,
        keys: impl Fn(&Change<T>) -> C + Send + Sync + 'static,
    ) -> Self {
        let store = Arc::clone(store);
        self.on_change(move |change, queue| {
            for key in keys(change).into_iter().flat_map(|key| store.keys_by::<I>(&key.into())) {
                queue.add(key, Priority::Change);
            }
        })
    }

    /// When an object is deleted, those are added that the index `I` lists under the same keys.
    pub fn wakes_siblings<I: Index<T>>(self) -> Self {
        let siblings = Arc::clone(&self.store);
        self.index::<I>().wakes_by::<I, T, _>(&siblings, |change| match (&change.old, &change.new) {
            (Some(gone), None) => I::keys(gone),
            _ => Vec::new(),
        })
    }

    /// A change adds the object of kind `O` that controls the changed object, before or now.
    pub fn wakes_controller<O: Kind>(self) -> Self {
        self.on_foreign_change(|change, queue| {
            for object in [&change.old, &change.new].into_iter().flatten() {
                enqueue_controller::<O>(&object.metadata, queue);
            }
        })
    }

    /// Ends the declaration.
    pub fn get(self) -> Arc<Store<T>> {
        let Self { set, store, selection, is_needed, is_required, is_written } = self;
        if is_needed {
            set.needs.push(Need::of(&store, is_required));
        }
        if is_written {
            set.written.add(&store, &selection);
        }
        store
    }
}

impl Declaration<'_, '_, NamespaceKind> {
    /// When a namespace gets the labels of `selector` or loses them, the objects of `store` in it are added
    /// to the queue: they are ours from then on, or no longer.
    pub fn wakes_objects_within<O: Kind>(
        self,
        store: &Arc<Store<O>>,
        selector: &BTreeMap<String, String>,
    ) -> Self {
        store.index::<ByNamespace>();
        let selector = selector.clone();
        self.wakes_by::<ByNamespace, O, _>(store, move |change| {
            changed_sides(change, &selector).map(str::to_owned)
        })
    }
}

/// Adds the object of kind `O` that controls another.
pub fn enqueue_controller<O: Kind>(object: &Metadata, queue: &Queue) {
    for owner in &object.owner_references {
        if owner.kind == O::KIND && owner.controller {
            let namespace = if O::NAMESPACED { &*object.namespace } else { "" };
            queue.add(ObjectKey::new(namespace, &owner.name), Priority::Change);
        }
    }
}

/// The name of the namespace if the change has added the labels of `selector` to it or removed them.
pub fn changed_sides<'a>(
    change: &'a Change<NamespaceKind>,
    selector: &BTreeMap<String, String>,
) -> Option<&'a str> {
    let ours = |namespace: &Option<Arc<Namespace>>| {
        namespace.as_ref().is_some_and(|namespace| namespace.has_labels(selector))
    };
    let namespace = change.object().filter(|_| ours(&change.old) != ours(&change.new))?;
    Some(namespace.name())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::instance::InstanceKind;
    use crate::api::tenant::TenantKind;
    use crate::kinds::ServiceKind;

    fn service(version: u64, owner: &Value) -> Object<ServiceKind> {
        let metadata = json!({"name": "s", "namespace": "ns", "uid": "1", "resourceVersion": version.to_string(), "ownerReferences": [owner]});
        serde_json::from_value(json!({"metadata": metadata, "spec": {}})).expect("a Service")
    }

    fn owner(kind: &str, name: &str, is_controller: bool) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": is_controller})
    }

    /// The objects that wait for a worker.
    async fn queued(queue: &Queue) -> Vec<String> {
        let mut keys = Vec::new();
        while queue.waiting() > 0 {
            let job = queue.next().await.expect("it is open");
            keys.push(job.key.to_string());
            queue.done(job, super::super::queue::Action::AwaitChange);
        }
        keys.sort();
        keys
    }

    #[tokio::test]
    async fn a_child_wakes_its_controllers_before_and_now_unless_the_loop_has_written_it() {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("instance", &mut factory);
        let queue = Arc::clone(set.queue());
        let services = set.store::<ServiceKind>(&Selection::ALL).wakes_controller::<InstanceKind>().get();
        let instance = |name: &str| owner("Instance", name, true);
        services.apply_event(service(1, &instance("a")));
        assert_eq!(queued(&queue).await, ["ns/a"]);
        services.apply_event(service(2, &instance("b")));
        assert_eq!(queued(&queue).await, ["ns/a", "ns/b"]);
        services.record(service(3, &instance("c")), "instance");
        assert!(queued(&queue).await.is_empty(), "the loop knows what it has written");
        services.record(service(4, &instance("d")), "publicExposure");
        assert_eq!(queued(&queue).await, ["ns/c", "ns/d"], "another loop does not");
        services.apply_event(service(5, &owner("Instance", "e", false)));
        services.apply_event(service(6, &owner("Deployment", "f", true)));
        assert_eq!(queued(&queue).await, ["ns/d"], "neither owns it as an Instance does");
    }

    #[tokio::test]
    async fn a_controller_without_namespace_is_woken_by_its_name_alone() {
        let queue = Queue::new("tenant", Backoff::default());
        enqueue_controller::<TenantKind>(&service(1, &owner("Tenant", "ada", true)).metadata, &queue);
        assert_eq!(queue.next().await.expect("it is open").key, ObjectKey::new("", "ada"));
    }

    #[tokio::test]
    async fn objects_that_are_named_need_not_exist() {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("instance", &mut factory);
        let queue = Arc::clone(set.queue());
        let keys = vec![ObjectKey::new("ns", "s"), ObjectKey::new("ns", "absent")];
        let services = set.store::<ServiceKind>(&Selection::ALL).named(keys.clone()).get();
        assert_eq!(queued(&queue).await, ["ns/absent", "ns/s"]);
        let nobody = owner("Instance", "a", false);
        services.apply_event(service(1, &nobody));
        assert_eq!(queued(&queue).await, ["ns/s"]);
        let mut other = service(2, &nobody);
        other.metadata.name = "other".into();
        services.apply_event(other);
        services.record(service(3, &nobody), "instance");
        assert!(queued(&queue).await.is_empty(), "another one, and a write of this loop");
        services.delete_event(&service(4, &nobody));
        assert_eq!(queued(&queue).await, ["ns/s"]);
        assert_eq!((set.finish().keys)(), keys);
    }

    #[tokio::test]
    async fn who_is_in_a_namespace_is_woken_when_it_becomes_ours_or_is_no_longer() {
        let selector = BTreeMap::from([("ours".to_owned(), "yes".to_owned())]);
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("instance", &mut factory);
        let queue = Arc::clone(set.queue());
        let services = set.store::<ServiceKind>(&Selection::ALL).get();
        let all = Selection::ALL;
        let namespaces = set.store::<NamespaceKind>(&all).wakes_objects_within(&services, &selector).get();
        services.apply_event(service(1, &owner("Instance", "a", true)));
        let mut version = 10;
        for (labels, is_change) in [
            (json!({"ours": "no"}), false),
            (json!({"ours": "yes"}), true),
            (json!({"ours": "yes", "more": "yes"}), false),
            (json!({}), true),
        ] {
            version += 1;
            let metadata =
                json!({"name": "ns", "uid": "n", "resourceVersion": version.to_string(), "labels": labels});
            namespaces
                .apply_event(serde_json::from_value(json!({"metadata": metadata})).expect("a namespace"));
            assert_eq!(
                queued(&queue).await,
                Vec::from_iter(is_change.then(|| "ns/s".to_owned())),
                "{labels}"
            );
        }
        let metadata =
            json!({"name": "other", "uid": "o", "resourceVersion": "20", "labels": {"ours": "yes"}});
        namespaces.apply_event(serde_json::from_value(json!({"metadata": metadata})).expect("a namespace"));
        assert!(queued(&queue).await.is_empty(), "nobody is in it");
    }
}
