//! The stores that the instance loop reads, and which of their changes concern which Instances.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::observe::{Children, Observed, Platform};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::{Template, TemplateKind};
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::text::Text;
use crate::api::{Kind, Object, labels};
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::references::{
    ByInstance, BySharedVolume, ByTemplate, MY_DRIVE_SECRET, instance_of, template_key,
};
use crate::kinds::{
    DataVolumeKind, DeploymentKind, HttpRouteKind, IngressKind, NamespaceKind, PersistentVolumeClaimKind,
    PodKind, SecretKind, ServiceKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::queue::Priority;
use crate::runtime::store::{ByController, ByNamespace, Change, Index, Store, StoreState};
use crate::runtime::store_set::{Declaration, StoreSet, enqueue_by};
use crate::runtime::watch::Selection;

/// The stores of the instance loop.
pub struct Stores {
    /// The labels of the namespaces whose Instances are reconciled.
    selector: BTreeMap<String, String>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    tenants: Arc<Store<TenantKind>>,
    shared_volumes: Arc<Store<SharedVolumeKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    /// The Secrets with the location of a user's `MyDrive`.
    my_drives: Arc<Store<SecretKind>>,
    /// cloud-init Secrets.
    secrets: Arc<Store<SecretKind>>,
    services: Arc<Store<ServiceKind>>,
    ingresses: Arc<Store<IngressKind>>,
    /// `HTTPRoute`s; always empty where they are not configured.
    routes: Arc<Store<HttpRouteKind>>,
    claims: Arc<Store<PersistentVolumeClaimKind>>,
    deployments: Arc<Store<DeploymentKind>>,
    machines: Arc<Store<VirtualMachineKind>>,
    machine_instances: Arc<Store<VirtualMachineInstanceKind>>,
    data_volumes: Arc<Store<DataVolumeKind>>,
    pods: Arc<Store<PodKind>>,
    /// The content of the web terminal's public key file.
    master_key: Arc<RwLock<Option<Arc<str>>>>,
}

/// Instances by their Tenant.
struct ByTenant;

impl Index<InstanceKind> for ByTenant {
    type Key = Text;

    fn keys(instance: &Instance) -> Vec<Text> {
        vec![Text::interned(&instance.spec.tenant_ref.name)]
    }
}

/// Instances by their namespace and canonical name, the prefix of the names of their objects.
struct ByCanonicalName;

impl Index<InstanceKind> for ByCanonicalName {
    type Key = ObjectKey;

    fn keys(instance: &Instance) -> Vec<ObjectKey> {
        vec![canonical_key(instance)]
    }
}

fn canonical_key(instance: &Instance) -> ObjectKey {
    ObjectKey::new(&instance.metadata.namespace, CanonicalName::of(instance.name()).to_string())
}

/// Tenants by the Workspaces that they manage, from their labels `crownlabs.polito.it/workspace-…: manager`.
struct ByManagedWorkspace;

impl Index<TenantKind> for ByManagedWorkspace {
    type Key = Text;

    fn keys(tenant: &Tenant) -> Vec<Text> {
        let labels = tenant.metadata.labels.iter();
        labels
            .filter(|(_, role)| *role == "manager")
            .filter_map(|(key, _)| Some(Text::interned(key.strip_prefix(labels::WORKSPACE_PREFIX)?)))
            .collect()
    }
}

/// Templates by their Workspace.
struct OfWorkspace;

impl Index<TemplateKind> for OfWorkspace {
    type Key = Text;

    fn keys(template: &Template) -> Vec<Text> {
        vec![Text::interned(&template.spec.workspace_ref.name)]
    }
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces with the labels of `selector` are reconciled;
    /// `has_routes` says whether `HTTPRoute`s are configured.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>, has_routes: bool) -> Self {
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let of_instances = Selection::labelled(labels::INSTANCE);
        let watches = Watches::declare(set);
        let templates = watches.templates(set);
        let machines = watches.children(set.store(&ours).optional().written());
        Self {
            selector: selector.clone(),
            tenants: watches.tenants(set, &templates),
            shared_volumes: watches.shared_volumes(set, &templates),
            namespaces: watches.namespaces(set, selector),
            my_drives: watches.my_drives(set),
            secrets: watches.children(set.store(&ours).written()),
            services: watches.children(set.store(&ours).written()),
            ingresses: watches.children(set.store(&ours).written()),
            routes: if has_routes {
                watches.children(set.store(&ours).optional().written())
            } else {
                Arc::default()
            },
            claims: watches.children(set.store(&ours).written()),
            deployments: watches.children(set.store(&ours).written()),
            machine_instances: watches.children(set.store(&of_instances).optional().written()),
            data_volumes: Watches::data_volumes(set, &machines),
            pods: watches.enqueue_instances(set.store(&of_instances).index::<ByInstance>()).get(),
            instances: watches.instances,
            templates,
            machines,
            master_key: Arc::default(),
        }
    }

    /// What the stores have about an Instance; `None` when it does not exist, or is in a namespace that is
    /// not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        self.namespaces.get("", &key.namespace).filter(|namespace| namespace.has_labels(&self.selector))?;
        let reference = template_key(&instance);
        let template = self.templates.get(&reference.namespace, &reference.name);
        let managers = template.as_ref().map_or_else(Vec::new, |template| {
            self.tenants.by::<ByManagedWorkspace>(&template.spec.workspace_ref.name)
        });
        let mounts =
            template.iter().flat_map(|t| &t.spec.environment_list).flat_map(|e| &e.shared_volume_mounts);
        let volumes = mounts.map(|mount| &mount.shared_volume);
        let shared_volumes =
            volumes.filter_map(|volume| self.shared_volumes.get(&volume.namespace, &volume.name)).collect();
        let children = self.children(&instance, template.as_deref());
        Some(Observed {
            name_owner: self.name_owner(&instance, &children),
            tenant: self.tenants.get("", &instance.spec.tenant_ref.name),
            managers,
            my_drive: self.my_drives.get(&key.namespace, MY_DRIVE_SECRET),
            shared_volumes,
            // The value of a poisoned lock is consistent.
            master_key: self.master_key.read().unwrap_or_else(PoisonError::into_inner).clone(),
            pods: self.pods.by::<ByInstance>(key),
            platform: Platform {
                kubevirt: self.machines.state() == StoreState::Synced
                    && self.machine_instances.state() == StoreState::Synced,
                gateway: self.routes.state() == StoreState::Synced,
            },
            children,
            template,
            instance,
        })
    }

    fn children(&self, instance: &Instance, template: Option<&Template>) -> Children {
        let (namespace, uid) = (instance.namespace(), instance.uid());
        let canonical = CanonicalName::of(instance.name());
        let environments = template.map_or(&[][..], |template| &template.spec.environment_list);
        let suffixed = environments.iter().map(|environment| canonical.environment(&environment.name));
        let names: Vec<CanonicalName> = std::iter::once(canonical.clone()).chain(suffixed).collect();
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

    /// The Instance that owns the canonical name, if it is another one. Names that differ in dots and dashes
    /// only have the same canonical form.
    fn name_owner(&self, instance: &Instance, children: &Children) -> Option<String> {
        let siblings = self.instances.by::<ByCanonicalName>(&canonical_key(instance));
        name_owner(instance, &siblings, &children.controllers())
    }

    /// The content of the web terminal's public key file, to be updated when the file changes.
    pub fn master_key(&self) -> Arc<RwLock<Option<Arc<str>>>> {
        Arc::clone(&self.master_key)
    }
}

/// The objects that the Instance with this uid controls, and those that have one of the names with one of
/// the suffixes.
fn find<T: Kind>(
    store: &Store<T>,
    namespace: &str,
    uid: &str,
    names: &[CanonicalName],
    suffixes: &[&str],
) -> Vec<Arc<Object<T>>> {
    let mut found = store.by::<ByController>(uid);
    for (name, suffix) in names.iter().flat_map(|name| suffixes.iter().map(move |suffix| (name, suffix))) {
        if let Some(object) = store.get(namespace, &format!("{name}{suffix}"))
            && !found.iter().any(|known| known.uid() == object.uid())
        {
            found.push(object);
        }
    }
    found
}

/// Whether the spec or the labels have changed.
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

/// Declares stores, and adds Instances to the queue when an object changes that they depend on.
struct Watches {
    instances: Arc<Store<InstanceKind>>,
}

impl Watches {
    /// Declares the store of Instances. When one is deleted, those with the same canonical name are added to
    /// the queue: one of them can have the name now.
    fn declare(set: &mut StoreSet<'_>) -> Self {
        let instances = set.store::<InstanceKind>(&Selection::All).written().objects(|_| true);
        let instances = instances.index::<ByTemplate>().index::<ByTenant>().index::<ByNamespace>();
        let instances = instances.index::<ByCanonicalName>().get();
        let (queue, siblings) = (Arc::clone(set.queue()), Arc::clone(&instances));
        instances.subscribe(move |change| {
            if let (Some(gone), None) = (&change.old, &change.new) {
                enqueue_by::<ByCanonicalName, _>(&siblings, &queue, &canonical_key(gone));
            }
        });
        Self { instances }
    }

    fn templates(&self, set: &mut StoreSet<'_>) -> Arc<Store<TemplateKind>> {
        let instances = Arc::clone(&self.instances);
        let templates = set.store(&Selection::All).index::<BySharedVolume>().index::<OfWorkspace>();
        templates
            .on_change(move |change, queue| {
                if let Some(template) = change.object().filter(|_| spec_changed(change)) {
                    enqueue_by::<ByTemplate, _>(&instances, queue, &ObjectKey::of(&**template));
                }
            })
            .get()
    }

    /// When the SSH keys of a Tenant change, its own Instances and those of the Workspaces that it manages
    /// are added: their machines contain the keys.
    fn tenants(
        &self,
        set: &mut StoreSet<'_>,
        templates: &Arc<Store<TemplateKind>>,
    ) -> Arc<Store<TenantKind>> {
        let (instances, templates) = (Arc::clone(&self.instances), Arc::clone(templates));
        let tenants = set.store::<TenantKind>(&Selection::All).index::<ByManagedWorkspace>();
        tenants
            .on_change(move |change, queue| {
                let known = |tenant: &Option<Arc<Tenant>>| {
                    let tenant = tenant.as_deref()?;
                    Some((tenant.spec.public_keys.clone(), ByManagedWorkspace::keys(tenant)))
                };
                let (before, now) = (known(&change.old), known(&change.new));
                let Some(tenant) = change.object().filter(|_| before != now) else { return };
                enqueue_by::<ByTenant, _>(&instances, queue, tenant.name());
                let workspaces: BTreeSet<Text> =
                    [before, now].into_iter().flatten().flat_map(|(_, workspaces)| workspaces).collect();
                for workspace in &workspaces {
                    for template in templates.keys_by::<OfWorkspace>(workspace) {
                        enqueue_by::<ByTemplate, _>(&instances, queue, &template);
                    }
                }
            })
            .get()
    }

    fn shared_volumes(
        &self,
        set: &mut StoreSet<'_>,
        templates: &Arc<Store<TemplateKind>>,
    ) -> Arc<Store<SharedVolumeKind>> {
        let (instances, templates) = (Arc::clone(&self.instances), Arc::clone(templates));
        set.store::<SharedVolumeKind>(&Selection::All)
            .optional()
            .on_change(move |change, queue| {
                let Some(volume) = change.object() else { return };
                for template in templates.keys_by::<BySharedVolume>(&ObjectKey::of(&**volume)) {
                    enqueue_by::<ByTemplate, _>(&instances, queue, &template);
                }
            })
            .get()
    }

    fn namespaces(
        &self,
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
    ) -> Arc<Store<NamespaceKind>> {
        set.store(&Selection::All).wakes_residents(&self.instances, selector).get()
    }

    fn my_drives(&self, set: &mut StoreSet<'_>) -> Arc<Store<SecretKind>> {
        let instances = Arc::clone(&self.instances);
        set.store::<SecretKind>(&Selection::named(MY_DRIVE_SECRET))
            .on_change(move |change, queue| {
                if let Some(secret) = change.object() {
                    enqueue_by::<ByNamespace, _>(&instances, queue, secret.namespace());
                }
            })
            .get()
    }

    /// Adds the Instance of the virtual machine that has the same name as the `DataVolume`.
    fn data_volumes(
        set: &mut StoreSet<'_>,
        machines: &Arc<Store<VirtualMachineKind>>,
    ) -> Arc<Store<DataVolumeKind>> {
        let machines = Arc::clone(machines);
        set.store::<DataVolumeKind>(&Selection::All)
            .optional()
            .on_change(move |change, queue| {
                let Some(disk) = change.object() else { return };
                let machine = machines.get(disk.namespace(), disk.name());
                if let Some(key) = machine.as_deref().and_then(instance_of) {
                    queue.add(key, Priority::Change);
                }
            })
            .get()
    }

    /// The store of a kind of objects that Instances own, indexed by their controller.
    fn children<T: Kind>(&self, store: Declaration<'_, '_, T>) -> Arc<Store<T>> {
        self.enqueue_instances(store.index::<ByController>()).get()
    }

    /// A change adds the Instance that the object belongs to, by its labels or by its owner references,
    /// before or now.
    fn enqueue_instances<'s, 'f, T: Kind>(&self, store: Declaration<'s, 'f, T>) -> Declaration<'s, 'f, T> {
        let instances = Arc::clone(&self.instances);
        store.on_foreign_change(move |change, queue| {
            let mut keys = BTreeSet::new();
            for object in change.old.iter().chain(&change.new) {
                let owners = object.metadata.owner_references.iter();
                let owner = owners.filter(|owner| owner.kind == InstanceKind::KIND);
                keys.extend(owner.map(|owner| ObjectKey::new(object.namespace(), &owner.name)));
                keys.extend(instance_of(&**object));
            }
            for key in keys {
                if instances.get(&key.namespace, &key.name).is_some() {
                    queue.add(key, Priority::Change);
                }
            }
        })
    }
}
