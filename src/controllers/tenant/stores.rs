//! The stores of the tenant loop, and the Tenants that their changes add to the queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Settings;
use super::children::{self, enqueue_owners};
use super::claims::Claims;
use super::gauges::QuotaUse;
use super::managers::ClusterBindings;
use super::names::Names;
use super::observe::Observed;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, labels};
use crate::config::Managers;
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::course_managers::ROLE;
use crate::controllers::shared::former::Census;
use crate::controllers::shared::nfs_volume::{ByVolume, location};
use crate::controllers::shared::references::{ByWorkspace, template_of};
use crate::controllers::shared::rivals::follow;
use crate::controllers::shared::waits::nfs_class_fault;
use crate::kinds::{ClusterRoleKind, NamespaceKind, PersistentVolumeKind, StorageClassKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::{ChildStores, Children};
use crate::runtime::cluster::{known_classes, storage_classes};
use crate::runtime::object_events::Events;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{ByNamespace, Change, Store, StoreState, index};
use crate::runtime::store_set::{Declaration, StoreSet, enqueue_all};
use crate::runtime::watch::Selection;

/// The stores of the tenant loop.
pub struct Stores {
    settings: Settings,
    tenants: Arc<Store<TenantKind>>,
    workspaces: Arc<Store<WorkspaceKind>>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    persistent_volumes: Arc<Store<PersistentVolumeKind>>,
    storage_classes: Arc<Store<StorageClassKind>>,
    /// The shared volumes, if outgoing traffic is restricted.
    shared_volumes: Option<Arc<Store<SharedVolumeKind>>>,
    /// The bindings of managers in the whole cluster, if managers have their rights there.
    cluster_bindings: Option<ClusterBindings>,
    /// The configured `ClusterRole` of personal namespaces, unless it is the role of managers in the whole cluster, which is
    /// bound without a check.
    instances_roles: Option<Arc<Store<ClusterRoleKind>>>,
    /// The configured `ClusterRole` of sandboxes.
    sandbox_roles: Arc<Store<ClusterRoleKind>>,
    claims: Claims,
    children: ChildStores,
}

index! {
    /// Tenants by their canonical name, which the names of their objects contain.
    struct ByCanonicalName of TenantKind by CanonicalName;
    |tenant| vec![CanonicalName::of(tenant.name())]
}

impl Stores {
    /// Declares the stores.
    pub fn declare(set: &mut StoreSet<'_>, settings: &Settings) -> Self {
        let all = Selection::ALL;
        // Each Tenant may get and update its own object, and the daemon can only grant rights that it has.
        let tenants = set.store::<TenantKind>(&all).requests("get update patch").objects(|_| true);
        let tenants = tenants.index::<ByWorkspace>().wakes_siblings::<ByCanonicalName>().get();
        follow(set, &tenants, &settings.responsibility);
        let (children, claims, namespaces) = children::declare(set, freed(&tenants, settings));
        let named = Arc::clone(&tenants);
        let drives = Claims::new(&claims, &namespaces, &settings.config.my_drive.namespace);
        Self {
            claims: drives,
            workspaces: set
                .store::<WorkspaceKind>(&all)
                .on_change(move |change, queue| {
                    let changed = change.object_if(|workspace| (&workspace.spec, &workspace.malformed));
                    let Some(workspace) = changed else { return };
                    // A Workspace has many Tenants. They get a low priority, so that they do not delay changes of
                    // single Tenants.
                    for tenant in named.keys_by::<ByWorkspace>(workspace.name()) {
                        queue.add(tenant, Priority::Background);
                    }
                })
                .get(),
            instances: in_namespaces(set.store(&all), &tenants),
            templates: in_namespaces(set.store(&all), &tenants),
            namespaces,
            children,
            persistent_volumes: set
                .store::<PersistentVolumeKind>(&all)
                .on_change(move |change, queue| {
                    let Some(volume) = change.object() else { return };
                    for claim in claims.by::<ByVolume>(volume.name()) {
                        enqueue_owners(&claim.metadata, queue);
                    }
                })
                .get(),
            storage_classes: storage_classes(set, enqueue_all(&tenants)),
            shared_volumes: settings.config.egress.enabled.then(|| shared_volumes(set, &tenants)),
            cluster_bindings: (settings.config.managers == Managers::Cluster)
                .then(|| ClusterBindings::declare(set, &tenants)),
            instances_roles: (settings.config.instances_cluster_role != ROLE)
                .then(|| roles(set, &tenants, &settings.config.instances_cluster_role)),
            sandbox_roles: roles(set, &tenants, &settings.config.sandbox_cluster_role),
            settings: settings.clone(),
            tenants,
        }
    }

    /// The observation of a Tenant; `None` if it does not exist or this daemon is not responsible for it. A Tenant with
    /// the finalizer is included, whatever its labels are.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let tenant = self.tenants.get("", &key.name)?;
        let responsibility = &self.settings.responsibility;
        let is_selected = tenant.has_labels(&responsibility.selector);
        let standing = responsibility.standing(&tenant, labels::TENANT_FINALIZER, is_selected)?;
        let names = Names::of(tenant.name());
        let entries = tenant.spec.workspaces.iter();
        let workspaces = entries
            .filter_map(|entry| Some((entry.name.clone(), self.workspaces.get("", &entry.name)?)))
            .collect();
        let volume_namespace = self.claims.namespace(&tenant);
        let config = &self.settings.config;
        let has_instances_role =
            |roles: &Arc<Store<ClusterRoleKind>>| roles.get("", &config.instances_cluster_role).is_some();
        let mut observed = Observed {
            standing,
            name_owner: None,
            workspaces,
            instances: self.instances.keys_by::<ByNamespace>(names.namespace.as_str()).len(),
            templates: self.templates.keys_by::<ByNamespace>(names.namespace.as_str()).len(),
            has_my_drive_namespace: self.namespaces.get("", &volume_namespace).is_some(),
            volume_namespace,
            has_instances_role: self.instances_roles.as_ref().is_none_or(has_instances_role),
            has_sandbox_role: self.sandbox_roles.get("", &config.sandbox_cluster_role).is_some(),
            cluster_bindings: BTreeSet::new(),
            children: Children::default(),
            class_fault: None,
            // The reconciler adds them.
            events: Events::Unknown,
            nfs_servers: BTreeSet::new(),
            volume: None,
            tenant,
        };
        let keys = children::Children { observed: &observed, settings: &self.settings }.keys();
        observed.children = self.children.children("", &keys);
        let cluster_bindings = self.cluster_bindings.as_ref();
        observed.cluster_bindings = cluster_bindings.map(|all| all.of(&observed)).unwrap_or_default();
        // Names that differ only in dots and dashes have the same canonical form.
        let siblings = self.tenants.by::<ByCanonicalName>(&CanonicalName::of(observed.tenant.name()));
        observed.name_owner =
            name_owner(&observed.tenant, &siblings, &observed.children.controllers().collect());
        let class = observed.claim().map(|claim| claim.spec.storage_class_name.clone().unwrap_or_default());
        observed.class_fault =
            class.and_then(|class| nfs_class_fault(known_classes(&self.storage_classes).as_ref(), &class));
        let bound = observed.claim().and_then(|claim| claim.spec.volume_name.clone());
        observed.volume = bound.and_then(|name| self.persistent_volumes.get("", &name));
        if let Some(shared_volumes) = &self.shared_volumes {
            let own = observed.volume.as_deref().and_then(location).map(|own| own.server);
            let shared = shared_volumes.objects().map(|volume| volume.status.server_address.clone());
            observed.nfs_servers = own.into_iter().chain(shared).filter(|name| !name.is_empty()).collect();
        }
        Some(observed)
    }

    /// Counts the Tenants that were taken under another selector.
    pub fn census(&self) -> Census {
        let responsibility = &self.settings.responsibility;
        let selector = responsibility.selector.clone();
        let is_selected = move |tenant: &Tenant| tenant.has_labels(&selector);
        Census::new("Tenants", &self.tenants, labels::TENANT_FINALIZER, responsibility, is_selected)
    }

    /// A message about personal volumes in other namespaces than the configured one.
    pub fn outside(&self) -> Option<String> {
        let selector = &self.settings.responsibility.selector;
        self.claims.outside(|name| self.tenants.get("", name).filter(|tenant| tenant.has_labels(selector)))
    }

    /// A message about personal namespaces if their `ClusterRole` does not exist.
    pub fn without_instances_role(&self) -> Option<String> {
        let role = (&*self.settings.config.instances_cluster_role, "instancesClusterRole");
        let has_namespace = |tenant: &Tenant| !tenant.status.personal_namespace.name.is_empty();
        self.without_role(self.instances_roles.as_ref()?, role, "personal namespace", has_namespace)
    }

    /// A message about sandboxes if their `ClusterRole` does not exist.
    pub fn without_sandbox_role(&self) -> Option<String> {
        let role = (&*self.settings.config.sandbox_cluster_role, "sandboxClusterRole");
        self.without_role(&self.sandbox_roles, role, "sandbox", |tenant| tenant.spec.create_sandbox)
    }

    /// A message about the Tenants with such a namespace if its `ClusterRole` does not exist. `role` is its name and its
    /// key.
    fn without_role(
        &self,
        roles: &Store<ClusterRoleKind>,
        (role, key): (&str, &str),
        place: &str,
        is_affected: impl Fn(&Tenant) -> bool,
    ) -> Option<String> {
        if roles.state() == StoreState::Syncing || roles.get("", role).is_some() {
            return None;
        }
        let selector = &self.settings.responsibility.selector;
        let selected = self.tenants.objects().filter(|tenant| tenant.has_labels(selector));
        let count = selected.filter(|tenant| is_affected(tenant)).count();
        let message = format!(
            "ClusterRole {role} (controllers.tenant.{key}) does not exist, so {count} Tenants keep their former role in \
             their {place}, or have none. Correct the key, or create the ClusterRole"
        );
        (count > 0).then_some(message)
    }

    /// The use of the quotas of the selected Workspaces and Tenants.
    pub fn quota_use(&self) -> QuotaUse {
        let selector = &self.settings.responsibility.selector;
        let mut quotas = QuotaUse::new(self.settings.config.personal_workspace.enabled);
        let workspaces = self.workspaces.objects().filter(|workspace| workspace.has_labels(selector));
        workspaces.for_each(|workspace| quotas.add_workspace(&workspace));
        for tenant in self.tenants.objects().filter(|tenant| tenant.has_labels(selector)) {
            let instances = self.instances.by::<ByNamespace>(tenant.status.personal_namespace.name.as_str());
            let with_template = |instance: Arc<Instance>| {
                let template = template_of(&instance, &self.templates);
                (instance, template)
            };
            let instances: Vec<_> = instances.into_iter().map(with_template).collect();
            quotas.add_tenant(&tenant, &instances);
        }
        quotas
    }

    /// Whether a Tenant with this name exists.
    pub fn exists(&self) -> impl Fn(&str) -> bool + Send + Sync + 'static {
        let tenants = Arc::clone(&self.tenants);
        move |name| tenants.get("", name).is_some()
    }
}

/// Adds all Tenants to the queue when the namespace of personal volumes is created. When a namespace with a Tenant's
/// name is gone, adds that Tenant, whatever the namespace's owner.
fn freed(
    tenants: &Arc<Store<TenantKind>>,
    settings: &Settings,
) -> impl Fn(&Change<NamespaceKind>, &Queue) + Send + Sync + 'static {
    let (tenants, volumes) = (Arc::clone(tenants), settings.config.my_drive.namespace.clone());
    move |change, queue| match (&change.old, &change.new) {
        (None, Some(new)) if new.name() == volumes => {
            tenants.keys().into_iter().for_each(|key| queue.add(key, Priority::Background));
        }
        (Some(gone), None) => {
            let whose = ["tenant-", "sandbox-"].iter().find_map(|prefix| gone.name().strip_prefix(prefix));
            let canonical = whose.map(CanonicalName::of);
            let freed = canonical.iter().flat_map(|name| tenants.keys_by::<ByCanonicalName>(name));
            freed.for_each(|key| queue.add(key, Priority::Change));
        }
        _ => {}
    }
}

/// Declares the store of a configured `ClusterRole`. Its creation or deletion adds all Tenants to the queue.
fn roles(
    set: &mut StoreSet<'_>,
    tenants: &Arc<Store<TenantKind>>,
    name: &str,
) -> Arc<Store<ClusterRoleKind>> {
    let wake = enqueue_all(tenants);
    let roles = set.store::<ClusterRoleKind>(&Selection::named(name)).on_change(move |change, queue| {
        if change.old.is_some() != change.new.is_some() {
            wake(queue);
        }
    });
    roles.get()
}

/// Declares the store of shared volumes. All Tenants are added to the queue when a volume gets another server, because
/// their network policies name it.
fn shared_volumes(set: &mut StoreSet<'_>, tenants: &Arc<Store<TenantKind>>) -> Arc<Store<SharedVolumeKind>> {
    let wake = enqueue_all(tenants);
    let volumes = set.store::<SharedVolumeKind>(&Selection::ALL).on_change(move |change, queue| {
        if change.object_if(|volume| &volume.status.server_address).is_some() {
            wake(queue);
        }
    });
    volumes.get()
}

/// Declares the store of a kind of objects in personal namespaces. The deletion of an object adds the Tenant of
/// the namespace, because this object may be the last reason to keep the namespace. The objects are listed before
/// a namespace is deleted.
fn in_namespaces<T: Kind>(store: Declaration<'_, '_, T>, tenants: &Arc<Store<TenantKind>>) -> Arc<Store<T>> {
    let store = store.requests("list").index::<ByNamespace>();
    let store = store.wakes_by::<ByCanonicalName, _, _>(tenants, |change| {
        let gone = change.old.as_ref().filter(|_| change.new.is_none())?;
        Some(CanonicalName::of(gone.namespace().strip_prefix("tenant-")?))
    });
    store.get()
}
