//! The stores of the tenant loop, and which of their changes add which Tenants to the queue.

use std::sync::Arc;

use super::Settings;
use super::children::{self, Declared, enqueue_owners};
use super::gauges::QuotaUse;
use super::names::Names;
use super::observe::Observed;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, labels};
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::nfs_volume::ByVolume;
use crate::controllers::shared::references::{ByWorkspace, template_key};
use crate::controllers::shared::responsibility::Standing;
use crate::kinds::{NamespaceKind, PersistentVolumeKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::{ChildStores, Children};
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{ByNamespace, Change, Store, index};
use crate::runtime::store_set::{Declaration, StoreSet};
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
        // Each Tenant may get and update its own object, and only rights that one has can be granted.
        let tenants = set.store::<TenantKind>(&all).requests("get update patch").objects(|_| true);
        let tenants = tenants.index::<ByWorkspace>().wakes_siblings::<ByCanonicalName>().get();
        let Declared { all: children, claims, namespaces } =
            children::declare(set, freed(&tenants, settings));
        let named = Arc::clone(&tenants);
        let has_templates = settings.config.personal_workspace.enabled;
        Self {
            workspaces: set
                .store::<WorkspaceKind>(&all)
                .on_change(move |change, queue| {
                    let is_same = match (&change.old, &change.new) {
                        (Some(old), Some(new)) => old.spec == new.spec && old.malformed == new.malformed,
                        _ => false,
                    };
                    let Some(workspace) = change.object().filter(|_| !is_same) else { return };
                    // A Workspace has many Tenants: with low priority, they do not delay changes of single
                    // Tenants.
                    for tenant in named.keys_by::<ByWorkspace>(workspace.name()) {
                        queue.add(tenant, Priority::Background);
                    }
                })
                .get(),
            instances: in_namespaces(set.store(&all), &tenants, true),
            templates: in_namespaces(set.store(&all), &tenants, has_templates),
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
            settings: settings.clone(),
            tenants,
        }
    }

    /// What the stores have about a Tenant; `None` when it does not exist or is not ours. One that has our
    /// finalizer is ours whatever its labels are.
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
        let volumes = &self.settings.config.my_drive.namespace;
        let children = self.children.children("", &children::keys(&names, volumes));
        let mut observed = Observed {
            is_deselected: standing == Standing::Deselected,
            name_owner: self.name_owner(&tenant, &children),
            workspaces,
            instances: self.instances.keys_by::<ByNamespace>(names.namespace.as_str()).len(),
            templates: self.templates.keys_by::<ByNamespace>(names.namespace.as_str()).len(),
            has_my_drive_namespace: self.namespaces.get("", volumes).is_some(),
            children,
            volume: None,
            tenant,
        };
        let bound = observed.claim().and_then(|claim| claim.spec.volume_name.clone());
        observed.volume = bound.and_then(|name| self.persistent_volumes.get("", &name));
        Some(observed)
    }

    /// What is used of the quotas of our Workspaces and Tenants.
    pub fn quota_use(&self) -> QuotaUse {
        let selector = &self.settings.responsibility.selector;
        let mut quotas = QuotaUse::new(self.settings.config.personal_workspace.enabled);
        let workspaces =
            self.workspaces.keys().into_iter().filter_map(|key| self.workspaces.get("", &key.name));
        workspaces.filter(|found| found.has_labels(selector)).for_each(|found| quotas.add_workspace(&found));
        let tenants = self.tenants.keys().into_iter().filter_map(|key| self.tenants.get("", &key.name));
        for tenant in tenants.filter(|tenant| tenant.has_labels(selector)) {
            let instances = self.instances.by::<ByNamespace>(tenant.status.personal_namespace.name.as_str());
            let with_template = |instance: Arc<Instance>| {
                let key = template_key(&instance);
                (instance, self.templates.get(&key.namespace, &key.name))
            };
            let instances: Vec<_> = instances.into_iter().map(with_template).collect();
            quotas.add_tenant(&tenant, &instances);
        }
        quotas
    }

    /// Whether there is a Tenant of that name.
    pub fn exists(&self) -> impl Fn(&str) -> bool + Send + Sync + 'static {
        let tenants = Arc::clone(&self.tenants);
        move |name| tenants.get("", name).is_some()
    }

    /// The Tenant that owns the canonical name, if it is another one. Names that differ in dots and dashes
    /// only have the same canonical form.
    fn name_owner(&self, tenant: &Tenant, children: &Children) -> Option<String> {
        let siblings = self.tenants.by::<ByCanonicalName>(&CanonicalName::of(tenant.name()));
        name_owner(tenant, &siblings, &children.controllers().collect())
    }
}

/// When the namespace of personal volumes is created, all Tenants are added to the queue; when one is gone that has the name
/// of a Tenant's, that Tenant, whoever owned it.
fn freed(
    tenants: &Arc<Store<TenantKind>>,
    settings: &Settings,
) -> impl Fn(&Change<NamespaceKind>, &Queue) + Send + Sync + 'static {
    let (tenants, volumes) = (Arc::clone(tenants), settings.config.my_drive.namespace.clone());
    move |change, queue| match (&change.old, &change.new) {
        (None, Some(new)) if new.name() == volumes => {
            for key in tenants.keys() {
                queue.add(key, Priority::Background);
            }
        }
        (Some(gone), None) => {
            let whose = ["tenant-", "sandbox-"].iter().find_map(|prefix| gone.name().strip_prefix(prefix));
            let canonical = whose.map(CanonicalName::of);
            for key in canonical.iter().flat_map(|name| tenants.keys_by::<ByCanonicalName>(name)) {
                queue.add(key, Priority::Change);
            }
        }
        _ => {}
    }
}

/// Declares the store of a kind of objects in personal namespaces. If `waited_for`, the deletion of such an
/// object adds the Tenant of the namespace: the namespace may be kept only because of it. They are listed before
/// that is deleted.
fn in_namespaces<T: Kind>(
    store: Declaration<'_, '_, T>,
    tenants: &Arc<Store<TenantKind>>,
    waited_for: bool,
) -> Arc<Store<T>> {
    let store = store.requests("list").index::<ByNamespace>();
    let store = store.wakes_by::<ByCanonicalName, _, _>(tenants, move |change| {
        let gone = change.old.as_ref().filter(|_| waited_for && change.new.is_none())?;
        Some(CanonicalName::of(gone.namespace().strip_prefix("tenant-")?))
    });
    store.get()
}
