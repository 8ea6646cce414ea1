//! The stores of the cluster resources that environments need ([`requirements`](crate::api::requirements)). Except
//! for nodes and storage classes, only metadata is watched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::queue::Queue;
use super::selection::Selection;
use super::store::{Change, Store, StoreState};
use super::store_set::StoreSet;
use crate::api::requirements::{
    ClassProperties, Cluster, IMPORT_SECRET, IngressClasses, NodeRoom, Settings, StorageClasses,
};
use crate::api::{GenericRef, Kind, Object, labels};
use crate::kinds::{
    DataVolumeKind, GatewayKind, IngressClass, IngressClassKind, Node, NodeKind, SecretNameKind,
    StorageClass, StorageClassKind, Taint, VirtualMachineInstanceKind, VirtualMachineKind,
};

/// The annotations that mark the default storage class; the second one is deprecated but still honoured.
pub const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// The annotation that marks the default Ingress class.
pub const DEFAULT_INGRESS_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

/// The stores of KubeVirt and CDI. They show whether KubeVirt and CDI are installed.
pub struct MachineStores {
    /// Virtual machines of Instances.
    pub machines: Arc<Store<VirtualMachineKind>>,
    /// Running virtual machines of Instances.
    pub machine_instances: Arc<Store<VirtualMachineInstanceKind>>,
    /// The disks of virtual machines.
    pub disks: Arc<Store<DataVolumeKind>>,
}

impl MachineStores {
    /// Declares the stores with the selections of the instance loop, which shares them.
    pub fn declare(set: &mut StoreSet<'_>) -> Self {
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        Self {
            machines: set.store(&ours).optional().get(),
            machine_instances: set.store(&Selection::labelled(labels::INSTANCE)).optional().get(),
            disks: set.store(&Selection::ALL).optional().get(),
        }
    }

    fn has_kubevirt(&self) -> bool {
        is_synced(&self.machines) && is_synced(&self.machine_instances)
    }
}

/// The stores of the cluster resources that environments need.
pub struct ClusterStores {
    settings: Settings,
    of_machines: MachineStores,
    nodes: Arc<Store<NodeKind>>,
    storage_classes: Arc<Store<StorageClassKind>>,
    ingress_classes: Arc<Store<IngressClassKind>>,
    /// The Gateways; `None` if no web interface is attached to a Gateway.
    gateways: Option<Arc<Store<GatewayKind>>>,
    import_secrets: Arc<Store<SecretNameKind>>,
    /// The cached state of the cluster; a change of these stores clears it.
    known: Arc<Mutex<Option<Arc<Cluster>>>>,
}

impl ClusterStores {
    /// Declares the stores. `wake` adds the objects to the queue that a change of the cluster may affect.
    pub fn declare(
        set: &mut StoreSet<'_>,
        settings: Settings,
        of_machines: MachineStores,
        wake: impl Fn(&Queue) + Send + Sync + 'static,
    ) -> Self {
        let (known, wake) = (Arc::<Mutex<Option<Arc<Cluster>>>>::default(), Arc::new(wake));
        let changed = || {
            let (known, wake) = (Arc::clone(&known), Arc::clone(&wake));
            move |queue: &Queue| {
                *known.lock() = None;
                wake(queue);
            }
        };
        let has_gateways = !settings.gateways.is_empty();
        let (by_nodes, by_secrets) = (changed(), changed());
        let count = AtomicU64::new(0);
        Self {
            nodes: set
                .store::<NodeKind>(&Selection::ALL)
                .optional()
                .on_change(move |change, queue| {
                    let room = |node: &Option<Arc<Node>>| {
                        node.as_ref().map(|node| (node.spec.clone(), node.status.allocatable.clone()))
                    };
                    if room(&change.old) != room(&change.new) {
                        by_nodes(queue);
                    }
                })
                .get(),
            storage_classes: storage_classes(set, changed()),
            ingress_classes: classes(set, is_default_ingress, changed()),
            gateways: has_gateways.then(|| existing(set, &Selection::ALL, changed())),
            import_secrets: set
                .store::<SecretNameKind>(&Selection::named(IMPORT_SECRET))
                .optional()
                .on_change(move |change, queue| {
                    // Templates depend only on whether any exists; there may be one for each Tenant.
                    let is_other = match (&change.old, &change.new) {
                        (None, Some(_)) => count.fetch_add(1, Ordering::SeqCst) == 0,
                        (Some(_), None) => count.fetch_sub(1, Ordering::SeqCst) == 1,
                        _ => false,
                    };
                    if is_other {
                        by_secrets(queue);
                    }
                })
                .get(),
            known,
            settings,
            of_machines,
        }
    }

    /// Returns the current state of the cluster.
    pub fn get(&self) -> Arc<Cluster> {
        // The stores are read under the lock: a concurrent change clears the result afterwards.
        let mut known = self.known.lock();
        if let Some(cluster) = known.as_ref().filter(|cluster| self.is_same(cluster)) {
            return Arc::clone(cluster);
        }
        Arc::clone(known.insert(Arc::new(self.read())))
    }

    /// Whether the same kinds are served as in the cached state. A change of the served kinds does not change any
    /// object.
    fn is_same(&self, then: &Cluster) -> bool {
        then.has_kubevirt == self.of_machines.has_kubevirt()
            && then.has_cdi == is_synced(&self.of_machines.disks)
            && then.storage_classes.is_some() == is_synced(&self.storage_classes)
            && then.ingress_classes.is_some() == is_synced(&self.ingress_classes)
            && then.gateways.is_some() == self.gateways.as_deref().is_some_and(is_known)
    }

    fn read(&self) -> Cluster {
        let nodes = self.nodes.objects();
        let gateways = self.gateways.as_deref().filter(|gateways| is_known(gateways));
        Cluster {
            settings: self.settings.clone(),
            has_kubevirt: self.of_machines.has_kubevirt(),
            has_cdi: is_synced(&self.of_machines.disks),
            nodes: nodes.map(|node| room(&node)).collect(),
            storage_classes: known_classes(&self.storage_classes),
            ingress_classes: is_synced(&self.ingress_classes).then(|| ingresses(&self.ingress_classes)),
            gateways: gateways.map(|gateways| {
                gateways.keys().iter().map(|key| GenericRef::new(&key.namespace, &key.name)).collect()
            }),
        }
    }

    /// Whether CDI's import Secret exists in a namespace, or in any namespace if `namespace` is `None`. True while this
    /// is unknown.
    pub fn has_import_secret(&self, namespace: Option<&str>) -> bool {
        let secrets = &self.import_secrets;
        !is_synced(secrets)
            || match namespace {
                Some(namespace) => secrets.get(namespace, IMPORT_SECRET).is_some(),
                None => !secrets.is_empty(),
            }
    }
}

/// Declares a store that only reports whether objects exist.
fn existing<T: Kind>(
    set: &mut StoreSet<'_>,
    selection: &Selection,
    changed: impl Fn(&Queue) + Send + Sync + 'static,
) -> Arc<Store<T>> {
    let store = set.store::<T>(selection).optional();
    let store = store.on_change(move |change: &Change<T>, queue| {
        if change.old.is_none() || change.new.is_none() {
            changed(queue);
        }
    });
    store.get()
}

fn is_synced<T: Kind>(store: &Store<T>) -> bool {
    store.state() == StoreState::Synced
}

/// Whether the objects of a store are known. A kind that is not served has no objects.
fn is_known<T: Kind>(store: &Store<T>) -> bool {
    store.state() != StoreState::Syncing
}

/// Declares the store of storage classes. `wake` is called when a class is created or deleted, or its properties
/// change.
pub fn storage_classes(
    set: &mut StoreSet<'_>,
    wake: impl Fn(&Queue) + Send + Sync + 'static,
) -> Arc<Store<StorageClassKind>> {
    classes(set, properties, wake)
}

/// Declares a store of classes. `wake` is called when a class is created or deleted, or when these properties of a
/// class change.
fn classes<T: Kind, P: PartialEq + 'static>(
    set: &mut StoreSet<'_>,
    properties: fn(&Object<T>) -> P,
    wake: impl Fn(&Queue) + Send + Sync + 'static,
) -> Arc<Store<T>> {
    let classes = set.store::<T>(&Selection::ALL).optional();
    let classes = classes.on_change(move |change: &Change<T>, queue| {
        let state = |class: &Option<Arc<Object<T>>>| class.as_deref().map(properties);
        if state(&change.old) != state(&change.new) {
            wake(queue);
        }
    });
    classes.get()
}

/// Returns the storage classes; `None` while they are unknown.
pub fn known_classes(classes: &Store<StorageClassKind>) -> Option<StorageClasses> {
    let entry = |class: Arc<StorageClass>| (class.name().to_owned(), properties(&class));
    is_synced(classes).then(|| classes.objects().map(entry).collect())
}

fn properties(class: &StorageClass) -> ClassProperties {
    ClassProperties {
        is_default: DEFAULT_CLASS.into_iter().any(|key| class.annotation(key) == Some("true")),
        waits_for_consumer: class.spec.volume_binding_mode == "WaitForFirstConsumer",
    }
}

/// Returns the Ingress classes in a store.
fn ingresses(classes: &Store<IngressClassKind>) -> IngressClasses {
    if classes.objects().any(|class| is_default_ingress(&class)) {
        IngressClasses::WithDefault
    } else if classes.is_empty() {
        IngressClasses::Missing
    } else {
        IngressClasses::WithoutDefault
    }
}

fn is_default_ingress(class: &IngressClass) -> bool {
    class.annotation(DEFAULT_INGRESS_CLASS) == Some("true")
}

/// Returns the part of a node that decides which pods are scheduled to it.
fn room(node: &Node) -> NodeRoom {
    let keeps_away = |taint: &&Taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute");
    let amounts = node.status.allocatable.iter();
    NodeRoom {
        labels: node.spec.metadata.labels.clone(),
        allocatable: amounts
            .filter_map(|(name, amount)| Some((name.clone(), amount.parse().ok()?)))
            .collect(),
        is_cordoned: node.spec.spec.unschedulable,
        taints: node.spec.spec.taints.iter().filter(keeps_away).map(|taint| taint.key.clone()).collect(),
    }
}
