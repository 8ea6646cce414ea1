//! The stores that the tenant loop reads, and which of their changes concern which Tenants.

use std::sync::Arc;

use super::Settings;
use super::drive::OWNER;
use super::names::Names;
use super::objects::{
    ALLOW_TRUSTED_INGRESS, DENY_INGRESS, MANAGE_INSTANCES, MANAGE_TEMPLATES, RESOURCE_QUOTA, SANDBOX_EDITOR,
    SANDBOX_LIMITS, SANDBOX_QUOTA,
};
use super::observe::{Account, Children, Observed};
use super::room::Room;
use crate::api::instance::InstanceKind;
use crate::api::names::canonical;
use crate::api::template::TemplateKind;
use crate::api::tenant::{Tenant, TenantKind};
use crate::api::workspace::WorkspaceKind;
use crate::api::{Kind, Object, labels};
use crate::controllers::children::{is_of, name_owner};
use crate::controllers::instance::mounts::MY_DRIVE_SECRET;
use crate::controllers::nfs_volume::{by_volume, with_volume};
use crate::kinds::{
    ClusterRoleBindingKind, ClusterRoleKind, JobKind, LimitRangeKind, Namespace, NamespaceKind,
    NetworkPolicyKind, NfsClaimKind, PersistentVolumeKind, ResourceQuotaKind, RoleBindingKind, SecretKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::controller::{Reconciler, Source};
use crate::runtime::factory::StoreFactory;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::registry::Registry;
use crate::runtime::store::{Change, Store};
use crate::runtime::watch::Selection;

/// The stores.
#[derive(Debug)]
pub struct World {
    /// What is ours.
    settings: Settings,
    /// Tenants, by the Workspaces that they name and by the names of their objects.
    pub tenants: Arc<Store<TenantKind>>,
    /// Workspaces.
    pub workspaces: Arc<Store<WorkspaceKind>>,
    /// Instances, by namespace.
    pub instances: Arc<Store<InstanceKind>>,
    /// Templates, by namespace.
    pub templates: Arc<Store<TemplateKind>>,
    /// Namespaces.
    pub namespaces: Arc<Store<NamespaceKind>>,
    /// The rights of Tenants to themselves.
    pub cluster_roles: Arc<Store<ClusterRoleKind>>,
    /// What gives them those.
    pub cluster_bindings: Arc<Store<ClusterRoleBindingKind>>,
    /// Rights in namespaces of Tenants.
    pub bindings: Arc<Store<RoleBindingKind>>,
    /// Shares.
    pub quotas: Arc<Store<ResourceQuotaKind>>,
    /// Defaults in sandboxes.
    pub limits: Arc<Store<LimitRangeKind>>,
    /// Walls.
    pub policies: Arc<Store<NetworkPolicyKind>>,
    /// Claims of personal volumes, by the volume that they got.
    pub drives: Arc<Store<NfsClaimKind>>,
    /// Volumes.
    pub volumes: Arc<Store<PersistentVolumeKind>>,
    /// The Jobs that prepare personal volumes.
    pub jobs: Arc<Store<JobKind>>,
    /// The Secrets that say where they are.
    pub secrets: Arc<Store<SecretKind>>,
}

/// The name in the index of those who name a Workspace.
pub fn enrolled(workspace: &str) -> String {
    format!("enrolled:{workspace}")
}

/// The index of Tenants by the Workspaces that their spec names.
pub fn by_enrolment(tenant: &Tenant) -> Vec<String> {
    tenant.spec.workspaces.iter().map(|entry| enrolled(&entry.name)).collect()
}

fn by_canonical_name(tenant: &Tenant) -> Vec<String> {
    vec![format!("canonical:{}", canonical(tenant.name()))]
}

fn by_namespace<T: Kind>(object: &Object<T>) -> Vec<String> {
    vec![inside(object.namespace())]
}

/// The name in the index of what is in a namespace.
fn inside(namespace: &str) -> String {
    format!("in:{namespace}")
}

impl World {
    /// The stores of `factory` that the loop reads.
    pub fn new(factory: &mut StoreFactory, settings: Settings) -> Self {
        let ours = || Selection::labels(format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_TENANT));
        let world = Self {
            tenants: factory.store(Selection::default()),
            workspaces: factory.store(Selection::default()),
            instances: factory.store(Selection::default()),
            templates: factory.store(Selection::default()),
            namespaces: factory.store(Selection::default()),
            cluster_roles: factory.store(ours()),
            cluster_bindings: factory.store(ours()),
            bindings: factory.store(ours()),
            quotas: factory.store(ours()),
            limits: factory.store(ours()),
            policies: factory.store(ours()),
            drives: factory.store(ours()),
            volumes: factory.store(Selection::default()),
            // Shared with other loops, whose Jobs are in any namespace and carry no label of ours.
            jobs: factory.store(Selection::default()),
            secrets: factory.store(Selection::fields(format!("metadata.name={MY_DRIVE_SECRET}"))),
            settings,
        };
        world.tenants.index(by_enrolment);
        world.tenants.index(by_canonical_name);
        world.instances.index(by_namespace);
        world.templates.index(by_namespace);
        world.drives.index(by_volume);
        world
    }

    /// The stores of what the loop writes.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.add(&self.tenants);
        registry.add(&self.namespaces);
        registry.add(&self.cluster_roles);
        registry.add(&self.cluster_bindings);
        registry.add(&self.bindings);
        registry.add(&self.quotas);
        registry.add(&self.limits);
        registry.add(&self.policies);
        registry.add(&self.drives);
        registry.add(&self.jobs);
        registry.add(&self.secrets);
        registry
    }

    /// What a pass over a Tenant knows but for its account; `None` when it is gone or not ours. One
    /// that waits for us before it can go is ours whatever its labels say.
    pub fn observe(&self, key: &ObjectKey, account: Account) -> Option<Observed> {
        let tenant = self.tenants.get("", &key.name)?;
        let names = Names::of(tenant.name());
        let entries = tenant.spec.workspaces.iter();
        let workspaces = entries
            .filter_map(|entry| Some((entry.name.clone(), self.workspaces.get("", &entry.name)?)))
            .collect();
        let children = self.children(&names);
        let observed = Observed {
            name_owner: self.name_owner(&tenant, &children),
            workspaces,
            account,
            instances: self.instances.indexed(&inside(&names.namespace)).len(),
            templates: self.templates.indexed(&inside(&names.namespace)).len(),
            drive_namespace: self.namespaces.get("", &self.settings.config.my_drive.namespace).is_some(),
            children,
            tenant,
        };
        is_of(&observed.tenant, &self.settings.selector).then_some(observed)
    }

    fn children(&self, names: &Names) -> Children {
        let (personal, sandbox) = (&names.namespace, &names.sandbox);
        let claims = &self.settings.config.my_drive.namespace;
        let drive = self.drives.get(claims, &names.drive);
        let volume = drive.as_ref().and_then(|drive| drive.spec.volume_name.clone());
        Children {
            cluster_role: self.cluster_roles.get("", &names.cluster_role),
            cluster_binding: self.cluster_bindings.get("", &names.cluster_role),
            namespace: self.namespaces.get("", personal),
            quota: self.quotas.get(personal, RESOURCE_QUOTA),
            instances: self.bindings.get(personal, MANAGE_INSTANCES),
            templates: self.bindings.get(personal, MANAGE_TEMPLATES),
            deny: self.policies.get(personal, DENY_INGRESS),
            allow: self.policies.get(personal, ALLOW_TRUSTED_INGRESS),
            sandbox: self.namespaces.get("", sandbox),
            sandbox_binding: self.bindings.get(sandbox, SANDBOX_EDITOR),
            sandbox_quota: self.quotas.get(sandbox, SANDBOX_QUOTA),
            sandbox_limits: self.limits.get(sandbox, SANDBOX_LIMITS),
            volume: volume.and_then(|volume| self.volumes.get("", &volume)),
            job: self.jobs.get(claims, &names.provision),
            secret: self.secrets.get(personal, MY_DRIVE_SECRET),
            drive,
        }
    }

    /// Another Tenant that the names of the objects belong to (00 decision 18).
    fn name_owner(&self, tenant: &Tenant, children: &Children) -> Option<String> {
        let siblings = self.tenants.indexed(&format!("canonical:{}", canonical(tenant.name())));
        let role = children.cluster_role.as_ref().and_then(|role| role.controller_uid());
        let namespace = children.namespace.as_ref().and_then(|namespace| namespace.controller_uid());
        name_owner(tenant, &siblings, &role.into_iter().chain(namespace).collect())
    }
}

impl Source for World {
    fn subscribe(self: &Arc<Self>, queue: &Arc<Queue>) {
        let add = Adder { queue: Arc::clone(queue), tenants: Arc::clone(&self.tenants) };
        let a = add.clone();
        self.tenants.subscribe(move |change| a.own(change));
        let a = add.clone();
        self.workspaces.subscribe(move |change| a.workspace(change));
        left(&self.instances, &add);
        if self.settings.config.personal_workspace.enabled {
            left(&self.templates, &add);
        }
        children(&self.namespaces, &add);
        let (all, drives) = (Arc::clone(self), Arc::clone(queue));
        self.namespaces.subscribe(move |change| {
            let drives_came = |namespace: &Arc<Namespace>| {
                change.old.is_none() && namespace.name() == all.settings.config.my_drive.namespace
            };
            if change.new.as_ref().is_some_and(drives_came) {
                all.enqueue_all(&drives);
            }
        });
        children(&self.cluster_roles, &add);
        children(&self.cluster_bindings, &add);
        children(&self.bindings, &add);
        children(&self.quotas, &add);
        children(&self.limits, &add);
        children(&self.policies, &add);
        children(&self.jobs, &add);
        children(&self.secrets, &add);
        children(&self.drives, &add);
        let (a, drives) = (add.clone(), Arc::clone(&self.drives));
        self.volumes.subscribe(move |change: &Change<PersistentVolumeKind>| {
            let Some(volume) = change.object() else { return };
            for drive in drives.indexed(&with_volume(volume.name())) {
                a.owners(&*drive);
            }
        });
    }

    fn enqueue_all(&self, queue: &Queue) {
        for key in self.tenants.keys() {
            queue.add(key, Priority::Background);
        }
    }
}

/// Something has left a namespace: its Tenant may be waiting for that.
fn left<T: Kind>(store: &Store<T>, add: &Adder) {
    let add = add.clone();
    store.subscribe(move |change: &Change<T>| {
        if let (Some(gone), None) = (&change.old, &change.new)
            && let Some(name) = gone.namespace().strip_prefix("tenant-")
        {
            add.indexed(&format!("canonical:{name}"), Priority::Change);
        }
    });
}

/// What was made for a Tenant.
fn children<T: Kind>(store: &Store<T>, add: &Adder) {
    let add = add.clone();
    store.subscribe(move |change: &Change<T>| {
        if change.origin != Some(Room::NAME) {
            [&change.old, &change.new].into_iter().flatten().for_each(|object| add.owners(&**object));
        }
    });
}

#[derive(Clone)]
struct Adder {
    queue: Arc<Queue>,
    tenants: Arc<Store<TenantKind>>,
}

impl Adder {
    fn own(&self, change: &Change<TenantKind>) {
        // The pass that wrote it knows.
        if change.origin == Some(Room::NAME) {
            return;
        }
        if let Some(tenant) = change.object() {
            self.queue.add(ObjectKey::of(tenant), Priority::Change);
        }
        // Whoever waited for the names can have them.
        if let (Some(gone), None) = (&change.old, &change.new) {
            self.indexed(&format!("canonical:{}", canonical(gone.name())), Priority::Change);
        }
    }

    /// A Workspace concerns those who name it, when it comes, goes, or asks for something else; a
    /// course has many users, so they are worked on behind what single users wait for.
    fn workspace(&self, change: &Change<WorkspaceKind>) {
        let same = match (&change.old, &change.new) {
            (Some(old), Some(new)) => old.spec == new.spec && old.malformed == new.malformed,
            _ => false,
        };
        if let Some(workspace) = change.object().filter(|_| !same) {
            self.indexed(&enrolled(workspace.name()), Priority::Background);
        }
    }

    /// The Tenants that an object names as its owner.
    fn owners<T: Kind>(&self, object: &Object<T>) {
        let owners = object.metadata.owner_references.iter().flatten();
        let owners = owners.filter(|owner| owner.kind == TenantKind::KIND).map(|owner| owner.name.as_str());
        for name in owners.chain(object.annotation(OWNER)) {
            self.queue.add(ObjectKey::new("", name), Priority::Change);
        }
    }

    fn indexed(&self, name: &str, priority: Priority) {
        for tenant in self.tenants.indexed(name) {
            self.queue.add(ObjectKey::of(&tenant), priority);
        }
    }
}
