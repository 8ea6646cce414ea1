//! The stores that the instance loop reads, and which of their changes concern which Instances.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::mounts::{self, MY_DRIVE_SECRET};
use super::observe::{Children, Observed, Platform, template_key};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::canonical;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::{Template, TemplateKind};
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::{Kind, Object, labels};
use crate::controllers::children::name_owner;
use crate::controllers::instance::Room;
use crate::controllers::wake;
use crate::kinds::{
    DataVolumeKind, DeploymentKind, HttpRouteKind, IngressKind, NamespaceKind, PersistentVolumeClaimKind,
    PodKind, SecretKind, ServiceKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::controller::{Reconciler, Source};
use crate::runtime::factory::StoreFactory;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{Change, IndexFn, Store, StoreState};
use crate::runtime::watch::Selection;

/// The stores.
#[derive(Debug)]
pub struct World {
    /// The labels of the namespaces that are ours.
    selector: BTreeMap<String, String>,
    /// Instances, by the Template, the Tenant and the canonical name that they have.
    pub instances: Arc<Store<InstanceKind>>,
    /// Templates, by the shared volumes that they mount.
    pub templates: Arc<Store<TemplateKind>>,
    /// Tenants, by the workspaces that they manage.
    pub tenants: Arc<Store<TenantKind>>,
    /// Shared volumes.
    pub shared_volumes: Arc<Store<SharedVolumeKind>>,
    /// Namespaces.
    pub namespaces: Arc<Store<NamespaceKind>>,
    /// The Secrets that say where `MyDrive` is.
    pub my_drives: Arc<Store<SecretKind>>,
    /// cloud-init Secrets.
    pub secrets: Arc<Store<SecretKind>>,
    /// Services of Instances.
    pub services: Arc<Store<ServiceKind>>,
    /// Ingresses of Instances.
    pub ingresses: Arc<Store<IngressKind>>,
    /// Routes of Instances.
    pub routes: Arc<Store<HttpRouteKind>>,
    /// Claims of Instances.
    pub claims: Arc<Store<PersistentVolumeClaimKind>>,
    /// Deployments of Instances.
    pub deployments: Arc<Store<DeploymentKind>>,
    /// Virtual machines of Instances.
    pub machines: Arc<Store<VirtualMachineKind>>,
    /// Running virtual machines of Instances.
    pub machine_instances: Arc<Store<VirtualMachineInstanceKind>>,
    /// Disks being filled, by the virtual machine that owns them.
    pub data_volumes: Arc<Store<DataVolumeKind>>,
    /// Pods of Instances, by Instance.
    pub pods: Arc<Store<PodKind>>,
    /// The content of the web terminal's public key file.
    master_key: RwLock<Option<Arc<str>>>,
    /// Whether routes are asked for.
    pub gateway: bool,
}

/// The uid of the controlling owner.
pub fn by_owner<T: Kind>(object: &Object<T>) -> Vec<String> {
    object.controller_uid().map(str::to_owned).into_iter().collect()
}

/// Namespace and value of the label that names the Instance.
pub fn by_instance<T: Kind>(object: &Object<T>) -> Vec<String> {
    let label = object.label(labels::INSTANCE);
    label.map(|name| format!("{}/{name}", object.namespace())).into_iter().collect()
}

/// The Template, the Tenant, the namespace and the canonical name of an Instance.
fn by_reference(instance: &Instance) -> Vec<String> {
    vec![
        format!("template:{}", template_key(instance)),
        format!("tenant:{}", instance.spec.tenant_ref.name),
        format!("namespace:{}", instance.namespace()),
        format!("canonical:{}/{}", instance.namespace(), canonical(instance.name())),
    ]
}

/// The name in the index of the Templates that mount a shared volume.
pub fn of_shared_volume(volume: &ObjectKey) -> String {
    format!("volume:{volume}")
}

/// The index of Templates by the shared volumes that they mount.
pub fn by_shared_volume(template: &Template) -> Vec<String> {
    let environments = template.spec.environment_list.iter();
    environments.flat_map(mounts::shared).map(|volume| of_shared_volume(&volume)).collect()
}

/// The workspaces that a Tenant manages, by its labels.
fn by_managed_workspace(tenant: &Tenant) -> Vec<String> {
    let all = tenant.metadata.labels.iter().flatten();
    all.filter(|(_, role)| role.as_str() == "manager")
        .filter_map(|(key, _)| Some(format!("manager:{}", key.strip_prefix(labels::WORKSPACE_PREFIX)?)))
        .collect()
}

impl World {
    /// The stores of `factory` that the loop reads; namespaces with the labels of `selector` are ours.
    pub fn new(factory: &mut StoreFactory, selector: &BTreeMap<String, String>, gateway: bool) -> Self {
        /// What we made carries our label.
        fn ours<T: Kind>(factory: &mut StoreFactory) -> Arc<Store<T>> {
            let selection =
                Selection::labels(format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE));
            let store = factory.store(selection);
            store.index(by_owner);
            store
        }
        /// What others made of it carries that of the Instance.
        fn of_instances<T: Kind>(factory: &mut StoreFactory, index: IndexFn<T>) -> Arc<Store<T>> {
            let store = factory.store(Selection::labels(labels::INSTANCE));
            store.index(index);
            store
        }
        fn all<T: Kind>(factory: &mut StoreFactory, index: IndexFn<T>) -> Arc<Store<T>> {
            let store = factory.store(Selection::default());
            store.index(index);
            store
        }
        Self {
            selector: selector.clone(),
            instances: all(factory, by_reference),
            templates: all(factory, by_shared_volume),
            tenants: all(factory, by_managed_workspace),
            shared_volumes: factory.store(Selection::default()),
            namespaces: factory.store(Selection::default()),
            my_drives: factory.store(Selection::fields(format!("metadata.name={MY_DRIVE_SECRET}"))),
            secrets: ours(factory),
            services: ours(factory),
            ingresses: ours(factory),
            routes: if gateway { ours(factory) } else { Arc::default() },
            claims: ours(factory),
            deployments: ours(factory),
            machines: ours(factory),
            machine_instances: of_instances(factory, by_owner),
            data_volumes: factory.store(Selection::default()),
            pods: of_instances(factory, by_instance),
            master_key: RwLock::default(),
            gateway,
        }
    }

    /// What a pass over an Instance knows; `None` when it is gone, or in a namespace that is not
    /// ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        let reference = template_key(&instance);
        let template = self.templates.get(&reference.namespace, &reference.name);
        let workspace = template.as_ref().map_or("", |template| template.spec.workspace_ref.name.as_str());
        let managers = self.tenants.indexed(&format!("manager:{workspace}"));
        let mounts =
            template.iter().flat_map(|t| &t.spec.environment_list).flat_map(|e| &e.shared_volume_mounts);
        let volumes = mounts.map(|mount| &mount.shared_volume);
        let shared_volumes =
            volumes.filter_map(|volume| self.shared_volumes.get(&volume.namespace, &volume.name)).collect();
        let children = self.children(&instance, template.as_deref());
        let master_key = self.master_key.read().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Observed {
            name_owner: self.name_owner(&instance, &children),
            tenant: self.tenants.get("", &instance.spec.tenant_ref.name),
            managers,
            my_drive: self.my_drives.get(&key.namespace, MY_DRIVE_SECRET),
            shared_volumes,
            master_key,
            pods: self.pods.indexed(&key.to_string()),
            platform: Platform {
                kubevirt: self.machines.state() == StoreState::Synced
                    && self.machine_instances.state() == StoreState::Synced,
                gateway: self.gateway && self.routes.state() == StoreState::Synced,
            },
            children,
            template,
            instance,
        })
    }

    fn children(&self, instance: &Instance, template: Option<&Template>) -> Children {
        let (namespace, uid) = (instance.namespace(), instance.uid());
        let canonical = canonical(instance.name());
        let environments = template.map_or(&[][..], |template| &template.spec.environment_list);
        let suffixed = environments.iter().map(|environment| format!("{canonical}-{}", environment.name));
        let names: Vec<String> = std::iter::once(canonical.clone()).chain(suffixed).collect();
        Children {
            services: find(&self.services, namespace, uid, &names, &[""]),
            ingresses: find(&self.ingresses, namespace, uid, &names, &["-gui", "-app"]),
            routes: find(&self.routes, namespace, uid, &names, &[""]),
            secrets: find(&self.secrets, namespace, uid, &names, &[""]),
            claims: find(&self.claims, namespace, uid, &names, &[""]),
            deployments: find(&self.deployments, namespace, uid, &names, &[""]),
            machines: find(&self.machines, namespace, uid, &names, &[""]),
            machine_instances: find(&self.machine_instances, namespace, uid, &names, &[""]),
            data_volumes: find(&self.data_volumes, namespace, uid, &names, &[""]),
        }
    }

    /// Another Instance that the names of the objects belong to (00 decision 18).
    fn name_owner(&self, instance: &Instance, children: &Children) -> Option<String> {
        let name = format!("canonical:{}/{}", instance.namespace(), canonical(instance.name()));
        let controllers = children
            .services
            .iter()
            .map(|object| object.controller_uid())
            .chain(children.deployments.iter().map(|object| object.controller_uid()))
            .chain(children.machines.iter().map(|object| object.controller_uid()))
            .chain(children.machine_instances.iter().map(|object| object.controller_uid()));
        name_owner(instance, &self.instances.indexed(&name), &controllers.flatten().collect())
    }

    /// Takes the content of the web terminal's public key file.
    pub fn set_master_key(&self, content: Option<&str>) {
        // A poisoned lock still holds a whole value.
        *self.master_key.write().unwrap_or_else(PoisonError::into_inner) = content.map(Arc::from);
    }
}

impl Source for World {
    fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>) {
        let add = Adder { queue: Arc::clone(queue), world: Arc::clone(self) };
        let a = add.clone();
        self.instances.subscribe(move |change| a.own(change));
        children(&self.services, &add);
        children(&self.ingresses, &add);
        children(&self.routes, &add);
        children(&self.secrets, &add);
        children(&self.claims, &add);
        children(&self.deployments, &add);
        children(&self.machines, &add);
        children(&self.machine_instances, &add);
        children(&self.pods, &add);
        let a = add.clone();
        self.templates.subscribe(move |change| {
            if let Some(template) = change.object().filter(|_| spec_changed(change)) {
                a.referring(&format!("template:{}", ObjectKey::of(template)));
            }
        });
        let a = add.clone();
        self.tenants.subscribe(move |change| a.tenant(change));
        let a = add.clone();
        self.shared_volumes.subscribe(move |change| {
            if let Some(volume) = change.object() {
                for template in a.world.templates.indexed(&of_shared_volume(&ObjectKey::of(&**volume))) {
                    a.referring(&format!("template:{}", ObjectKey::of(&template)));
                }
            }
        });
        let a = add.clone();
        self.namespaces.subscribe(move |change| {
            if let Some(name) = wake::turned(change, &a.world.selector) {
                a.referring(&format!("namespace:{name}"));
            }
        });
        let a = add.clone();
        self.my_drives.subscribe(move |change| {
            if let Some(secret) = change.object() {
                a.referring(&format!("namespace:{}", secret.namespace()));
            }
        });
        self.data_volumes.subscribe(move |change| add.disk(change));
    }

    fn enqueue_all(&self, queue: &Queue) {
        for key in self.instances.keys() {
            queue.add(key, Priority::Background);
        }
    }
}

/// The objects that the Instance owns, and whatever stands under one of the names (each with each
/// of the suffixes).
fn find<T: Kind>(
    store: &Store<T>,
    namespace: &str,
    uid: &str,
    names: &[String],
    suffixes: &[&str],
) -> Vec<Arc<Object<T>>> {
    let mut found = store.indexed(uid);
    for (name, suffix) in names.iter().flat_map(|name| suffixes.iter().map(move |suffix| (name, suffix))) {
        if let Some(object) = store.get(namespace, &format!("{name}{suffix}"))
            && !found.iter().any(|known| known.uid() == object.uid())
        {
            found.push(object);
        }
    }
    found
}

/// Whether the spec, or a label, differs.
fn spec_changed<T: Kind>(change: &Change<T>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            old.spec != new.spec
                || old.malformed != new.malformed
                || old.metadata.labels != new.metadata.labels
        }
        _ => true,
    }
}

fn children<T: Kind>(store: &Store<T>, add: &Adder) {
    let add = add.clone();
    store.subscribe(move |change| add.child(change));
}

#[derive(Clone)]
struct Adder {
    queue: Arc<Queue>,
    world: Arc<World>,
}

impl Adder {
    fn own(&self, change: &Change<InstanceKind>) {
        // The pass that wrote it knows.
        if change.origin == Some(Room::NAME) {
            return;
        }
        if let Some(instance) = change.object() {
            self.queue.add(ObjectKey::of(instance), Priority::Change);
        }
        // Whoever waited for the name can have it.
        if let (Some(gone), None) = (&change.old, &change.new) {
            self.referring(&format!("canonical:{}/{}", gone.namespace(), canonical(gone.name())));
        }
    }

    /// An object that belongs to an Instance, by its labels or by its owner, before or now.
    fn child<T: Kind>(&self, change: &Change<T>) {
        if change.origin == Some(Room::NAME) {
            return;
        }
        let mut keys = BTreeSet::new();
        for object in change.old.iter().chain(&change.new) {
            let owners = object.metadata.owner_references.iter().flatten();
            let owner =
                owners.filter(|owner| owner.kind == InstanceKind::KIND).map(|owner| owner.name.as_str());
            for name in object.label(labels::INSTANCE).into_iter().chain(owner) {
                keys.insert(ObjectKey::new(object.namespace(), name));
            }
        }
        for key in keys {
            if self.world.instances.get(&key.namespace, &key.name).is_some() {
                self.queue.add(key, Priority::Change);
            }
        }
    }

    fn tenant(&self, change: &Change<TenantKind>) {
        let Some(tenant) = change.object() else { return };
        let keys =
            |tenant: &Option<Arc<Tenant>>| tenant.as_ref().map(|tenant| tenant.spec.public_keys.clone());
        let roles = |tenant: &Option<Arc<Tenant>>| {
            tenant.as_ref().map(|t| by_managed_workspace(t)).unwrap_or_default()
        };
        let (before, after) = (roles(&change.old), roles(&change.new));
        if keys(&change.old) == keys(&change.new) && before == after {
            return;
        }
        self.referring(&format!("tenant:{}", tenant.name()));
        // The keys of a manager enter the machines of the course.
        for template in self.templates_of(before.iter().chain(&after)) {
            self.referring(&format!("template:{template}"));
        }
    }

    fn templates_of<'a>(&self, workspaces: impl Iterator<Item = &'a String>) -> Vec<ObjectKey> {
        let workspaces: Vec<&String> = workspaces.collect();
        if workspaces.is_empty() {
            return Vec::new();
        }
        let concerns = |key: &ObjectKey| {
            let template = self.world.templates.get(&key.namespace, &key.name);
            template.is_some_and(|template| workspaces.contains(&&template.spec.workspace_ref.name))
        };
        self.world.templates.keys().into_iter().filter(concerns).collect()
    }

    /// A disk: it belongs to the virtual machine of the same name.
    fn disk(&self, change: &Change<DataVolumeKind>) {
        let Some(disk) = change.object() else { return };
        let machine = self.world.machines.get(disk.namespace(), disk.name());
        if let Some(name) = machine.as_ref().and_then(|machine| machine.label(labels::INSTANCE)) {
            self.queue.add(ObjectKey::new(disk.namespace(), name), Priority::Change);
        }
    }

    /// All Instances that the index lists under `name`.
    fn referring(&self, name: &str) {
        for instance in self.world.instances.indexed(name) {
            self.queue.add(ObjectKey::of(&instance), Priority::Change);
        }
    }
}
