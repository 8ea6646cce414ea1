//! The stores of the tenant loop, and which of their changes add which Tenants to the queue.

use std::sync::Arc;

use super::Settings;
use super::gauges::QuotaUse;
use super::my_drive::OWNER;
use super::names::Names;
use super::objects::{
    ALLOW_TRUSTED_INGRESS, DENY_INGRESS, MANAGE_INSTANCES, MANAGE_TEMPLATES, RESOURCE_QUOTA, SANDBOX_EDITOR,
    SANDBOX_LIMITS, SANDBOX_QUOTA,
};
use super::observe::{Children, Observed};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object, labels};
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::nfs_volume::ByVolume;
use crate::controllers::shared::references::{ByWorkspace, MY_DRIVE_SECRET, template_key};
use crate::controllers::shared::responsibility::Standing;
use crate::kinds::{
    ClusterRoleBindingKind, ClusterRoleKind, JobKind, LimitRangeKind, NamespaceKind, NetworkPolicyKind,
    NfsClaimKind, PersistentVolumeKind, ResourceQuotaKind, RoleBindingKind, SecretKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{ByNamespace, Index, Store};
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
    cluster_roles: Arc<Store<ClusterRoleKind>>,
    cluster_role_bindings: Arc<Store<ClusterRoleBindingKind>>,
    role_bindings: Arc<Store<RoleBindingKind>>,
    quotas: Arc<Store<ResourceQuotaKind>>,
    limit_ranges: Arc<Store<LimitRangeKind>>,
    network_policies: Arc<Store<NetworkPolicyKind>>,
    claims: Arc<Store<NfsClaimKind>>,
    persistent_volumes: Arc<Store<PersistentVolumeKind>>,
    /// All Jobs: those of other loops have no label by which they could be selected.
    jobs: Arc<Store<JobKind>>,
    /// The Secrets with the location of a user's `MyDrive`.
    secrets: Arc<Store<SecretKind>>,
}

/// Tenants by their canonical name, which the names of their objects contain.
struct ByCanonicalName;

impl Index<TenantKind> for ByCanonicalName {
    type Key = CanonicalName;

    fn keys(tenant: &Tenant) -> Vec<CanonicalName> {
        vec![CanonicalName::of(tenant.name())]
    }
}

impl Stores {
    /// Declares the stores.
    pub fn declare(set: &mut StoreSet<'_>, settings: &Settings) -> Self {
        let all = Selection::ALL;
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_TENANT);
        let tenants = set.store::<TenantKind>(&all).written().objects(|_| true).index::<ByWorkspace>();
        let tenants = tenants.wakes_siblings::<ByCanonicalName>().get();
        let claims = children(set.store::<NfsClaimKind>(&ours).index::<ByVolume>());
        let (claimed, named) = (Arc::clone(&claims), Arc::clone(&tenants));
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
            namespaces: namespaces(set, &tenants, settings),
            cluster_roles: children(set.store(&ours)),
            cluster_role_bindings: children(set.store(&ours)),
            role_bindings: children(set.store(&ours)),
            quotas: children(set.store(&ours)),
            limit_ranges: children(set.store(&ours)),
            network_policies: children(set.store(&ours)),
            persistent_volumes: set
                .store::<PersistentVolumeKind>(&all)
                .on_change(move |change, queue| {
                    let Some(volume) = change.object() else { return };
                    for claim in claimed.by::<ByVolume>(volume.name()) {
                        enqueue_owners(&*claim, queue);
                    }
                })
                .get(),
            jobs: children(set.store(&all)),
            secrets: children(set.store(&Selection::named(MY_DRIVE_SECRET))),
            settings: settings.clone(),
            tenants,
            claims,
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
        let children = self.children(&names);
        let volumes = &self.settings.config.my_drive.namespace;
        Some(Observed {
            is_deselected: standing == Standing::Deselected,
            name_owner: self.name_owner(&tenant, &children),
            workspaces,
            instances: self.instances.keys_by::<ByNamespace>(names.namespace.as_str()).len(),
            templates: self.templates.keys_by::<ByNamespace>(names.namespace.as_str()).len(),
            has_my_drive_namespace: self.namespaces.get("", volumes).is_some(),
            children,
            tenant,
        })
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

    fn children(&self, names: &Names) -> Children {
        let (personal, sandbox) = (&names.namespace, &names.sandbox);
        let volumes = &self.settings.config.my_drive.namespace;
        let claim = self.claims.get(volumes, &names.claim);
        let volume = claim.as_ref().and_then(|claim| claim.spec.volume_name.clone());
        Children {
            cluster_role: self.cluster_roles.get("", &names.cluster_role),
            cluster_binding: self.cluster_role_bindings.get("", &names.cluster_role),
            namespace: self.namespaces.get("", personal),
            quota: self.quotas.get(personal, RESOURCE_QUOTA),
            instances: self.role_bindings.get(personal, MANAGE_INSTANCES),
            templates: self.role_bindings.get(personal, MANAGE_TEMPLATES),
            deny: self.network_policies.get(personal, DENY_INGRESS),
            allow: self.network_policies.get(personal, ALLOW_TRUSTED_INGRESS),
            sandbox: self.namespaces.get("", sandbox),
            sandbox_binding: self.role_bindings.get(sandbox, SANDBOX_EDITOR),
            sandbox_quota: self.quotas.get(sandbox, SANDBOX_QUOTA),
            sandbox_limits: self.limit_ranges.get(sandbox, SANDBOX_LIMITS),
            volume: volume.and_then(|volume| self.persistent_volumes.get("", &volume)),
            job: self.jobs.get(volumes, &names.provision),
            secret: self.secrets.get(personal, MY_DRIVE_SECRET),
            claim,
        }
    }

    /// The Tenant that owns the canonical name, if it is another one. Names that differ in dots and dashes
    /// only have the same canonical form.
    fn name_owner(&self, tenant: &Tenant, children: &Children) -> Option<String> {
        let siblings = self.tenants.by::<ByCanonicalName>(&CanonicalName::of(tenant.name()));
        let role = children.cluster_role.as_ref().and_then(|role| role.controller_uid());
        let namespace = children.namespace.as_ref().and_then(|namespace| namespace.controller_uid());
        name_owner(tenant, &siblings, &role.into_iter().chain(namespace).collect())
    }
}

/// Declares the store of namespaces. When the namespace of personal volumes is created, all Tenants are
/// added to the queue; when one is gone that has the name of a Tenant's, that Tenant, whoever owned it.
fn namespaces(
    set: &mut StoreSet<'_>,
    tenants: &Arc<Store<TenantKind>>,
    settings: &Settings,
) -> Arc<Store<NamespaceKind>> {
    let (tenants, volumes) = (Arc::clone(tenants), settings.config.my_drive.namespace.clone());
    let namespaces =
        set.store::<NamespaceKind>(&Selection::ALL).on_foreign_change(move |change, queue| {
            match (&change.old, &change.new) {
                (None, Some(new)) if new.name() == volumes => {
                    for key in tenants.keys() {
                        queue.add(key, Priority::Background);
                    }
                }
                (Some(gone), None) => {
                    let whose =
                        ["tenant-", "sandbox-"].iter().find_map(|prefix| gone.name().strip_prefix(prefix));
                    let canonical = whose.map(CanonicalName::of);
                    for key in canonical.iter().flat_map(|name| tenants.keys_by::<ByCanonicalName>(name)) {
                        queue.add(key, Priority::Change);
                    }
                }
                _ => {}
            }
        });
    children(namespaces)
}

/// Declares the store of a kind of objects in personal namespaces. If `waited_for`, the deletion of such an
/// object adds the Tenant of the namespace: the namespace may be kept only because of it. They are listed before
/// that is deleted.
fn in_namespaces<T: Kind>(
    store: Declaration<'_, '_, T>,
    tenants: &Arc<Store<TenantKind>>,
    waited_for: bool,
) -> Arc<Store<T>> {
    let store = store.written().index::<ByNamespace>();
    let store = store.wakes_by::<ByCanonicalName, _, _>(tenants, move |change| {
        let gone = change.old.as_ref().filter(|_| waited_for && change.new.is_none())?;
        Some(CanonicalName::of(gone.namespace().strip_prefix("tenant-")?))
    });
    store.get()
}

/// Declares the store of a kind of objects that Tenants own.
fn children<T: Kind>(store: Declaration<'_, '_, T>) -> Arc<Store<T>> {
    let store = store.written().on_foreign_change(|change, queue| {
        for object in [&change.old, &change.new].into_iter().flatten() {
            enqueue_owners(&**object, queue);
        }
    });
    store.get()
}

/// Adds the Tenants that an object names as its owner: in its owner references or, on a claim that is kept,
/// in an annotation.
fn enqueue_owners<T: Kind>(object: &Object<T>, queue: &Queue) {
    let owners = object.metadata.owner_references.iter();
    let owners = owners.filter(|owner| owner.kind == TenantKind::KIND).map(|owner| owner.name.as_str());
    for name in owners.chain(object.annotation(OWNER)) {
        queue.add(ObjectKey::new("", name), Priority::Change);
    }
}
