//! The children of a Tenant: its rights, its personal namespace and sandbox with their contents, and its personal
//! volume.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::Settings;
use super::claims::ByTenant;
use super::observe::Observed;
use super::quota::{QUOTA, Quota, spelled};
use crate::api::meta::Metadata;
use crate::api::tenant::TenantKind;
use crate::api::{GROUP, Kind, Object, labels};
use crate::config::{CountQuotas, OnTenantDeletion};
use crate::controllers::shared::children::{Child, Parent, binding, exactly};
use crate::controllers::shared::nfs_volume::{self, ByVolume, claim_spec};
use crate::controllers::shared::references::MY_DRIVE_SECRET;
use crate::kinds::{
    ClusterRoleBindingKind, ClusterRoleKind, Job, JobKind, LimitRangeKind, Namespace, NamespaceKind,
    NetworkPolicyKind, NfsClaim, NfsClaimKind, ResourceQuota, ResourceQuotaKind, RoleBindingKind, SecretKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::component::Component;
use crate::runtime::plan::Ownership;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::selection::Selection;
use crate::runtime::store::{Change, Store};
use crate::runtime::store_set::StoreSet;

/// The component of the `ClusterRole` and its binding.
pub const CLUSTER: Component = Component::Part("cluster-resources");
/// The component of the personal namespace and its contents.
pub const PERSONAL: Component = Component::Part("personal-namespace");
/// The component of the personal workspace: a part of the component of the namespace.
pub const PERSONAL_WORKSPACE: Component = Component::Within("personal-namespace", "personal-workspace");
/// The component of the sandbox.
pub const SANDBOX: Component = Component::Part("sandbox-resources");
/// The component of the personal volume.
pub const MY_DRIVE: Component = Component::Part("mydrive");
/// The component of the Secret: a part of the component of the namespace.
pub const SECRET: Component = Component::Within("personal-namespace", "mydrive");

/// The role binding to manage Instances in the personal namespace.
const MANAGE_INSTANCES: &str = "crownlabs-manage-instances";
/// The role binding and the `ClusterRole` to manage Templates in the personal namespace.
const MANAGE_TEMPLATES: &str = "crownlabs-manage-templates";
const RESOURCE_QUOTA: &str = "crownlabs-resource-quota";
const SANDBOX_EDITOR: &str = "sandbox-editor";
const SANDBOX_QUOTA: &str = "sandbox-resource-quota";
const SANDBOX_LIMITS: &str = "sandbox-limit-range";

/// Annotation of a claim: the name of its Tenant.
pub const OWNER: &str = "crownlabs.polito.it/mydrive-owner";
/// Annotation of a claim: the e-mail address of its Tenant.
pub const EMAIL: &str = "crownlabs.polito.it/mydrive-email";
/// Annotation of a claim: the uid of its current Tenant.
pub const TENANT_UID: &str = "crownlabs.polito.it/mydrive-tenant-uid";

/// Declares the stores, and returns all of them, the store of claims and the store of namespaces. `freed` adds the
/// Tenants that a change of a namespace affects, whatever its owner. The Jobs of other loops have no distinguishing
/// label.
pub fn declare(
    set: &mut StoreSet<'_>,
    freed: impl Fn(&Change<NamespaceKind>, &Queue) + Send + Sync + 'static,
) -> (ChildStores, Arc<Store<NfsClaimKind>>, Arc<Store<NamespaceKind>>) {
    let (every, ours) = (Selection::ALL, Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_TENANT));
    let mut all = ChildStores::new(|change, queue| {
        for metadata in [change.old, change.new].into_iter().flatten().filter(|_| !change.is_own) {
            enqueue_owners(metadata, queue);
        }
    });
    let claims = all.add(set.store::<NfsClaimKind>(&ours).index::<ByVolume>().index::<ByTenant>());
    let namespaces = all.add(set.store::<NamespaceKind>(&every).on_foreign_change(freed));
    all.add(set.store::<ClusterRoleKind>(&ours));
    all.add(set.store::<ClusterRoleBindingKind>(&ours));
    all.add(set.store::<RoleBindingKind>(&ours));
    all.add(set.store::<ResourceQuotaKind>(&ours));
    all.add(set.store::<LimitRangeKind>(&ours));
    all.add(set.store::<NetworkPolicyKind>(&ours));
    all.add(set.store::<JobKind>(&every));
    all.add(set.store::<SecretKind>(&Selection::named(MY_DRIVE_SECRET)));
    (all, claims, namespaces)
}

/// Adds the Tenants that an object names as its owner in its owner references or, on a claim that is kept, in an
/// annotation.
pub fn enqueue_owners(object: &Metadata, queue: &Queue) {
    let owners = object.owner_references.iter().filter(|owner| owner.kind == TenantKind::KIND);
    for name in owners.map(|owner| &*owner.name).chain(object.annotations.get(OWNER)) {
        queue.add(ObjectKey::new("", name), Priority::Change);
    }
}

impl Observed {
    fn named<T: Kind>(&self, name: &str) -> Option<&Object<T>> {
        self.children.of().find(|object| object.name() == name)
    }

    /// The personal namespace, whatever its owner.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.named::<NamespaceKind>(&self.names().namespace)
    }

    /// The sandbox, whatever its owner.
    pub fn sandbox(&self) -> Option<&Namespace> {
        self.named::<NamespaceKind>(&self.names().sandbox)
    }

    /// The `ResourceQuota` of the personal namespace, whatever its owner.
    pub fn quota(&self) -> Option<&ResourceQuota> {
        self.named::<ResourceQuotaKind>(RESOURCE_QUOTA)
    }

    /// The claim of the personal volume, whatever its owner.
    pub fn claim(&self) -> Option<&NfsClaim> {
        self.named::<NfsClaimKind>(&self.names().claim)
    }

    /// The Job that prepares the volume, whatever its owner.
    pub fn job(&self) -> Option<&Job> {
        self.named::<JobKind>(&self.names().provision)
    }
}

/// The children of an observed Tenant.
#[derive(Clone, Copy)]
pub struct Children<'a> {
    /// The Tenant.
    pub observed: &'a Observed,
    /// The settings.
    pub settings: &'a Settings,
}

impl<'a> Children<'a> {
    /// The parent of all children except those in the sandbox.
    pub fn parent(&self) -> Parent<'a> {
        Parent::new(&self.observed.tenant, self.settings.responsibility.selector.clone())
            .with(&[(labels::MANAGED_BY, labels::MANAGED_BY_TENANT)])
            .within(&self.observed.names().namespace)
            .seeing(&self.observed.children)
    }

    /// The parent of the sandbox and its contents, with these labels.
    pub fn in_sandbox(&self, labels: BTreeMap<String, String>) -> Parent<'a> {
        let tenant = &self.observed.tenant;
        Parent::new(tenant, labels)
            .with(&[
                (labels::MANAGED_BY, labels::MANAGED_BY_TENANT),
                (labels::TYPE, labels::TYPE_SANDBOX),
                (labels::TENANT, tenant.name()),
            ])
            .within(&self.observed.names().sandbox)
            .seeing(&self.observed.children)
    }

    /// The keys of all children.
    pub fn keys(self) -> Vec<ObjectKey> {
        let quota = Quota::default();
        let cluster = [self.cluster_role(), self.cluster_binding()];
        let personal =
            [self.namespace(), self.quota(&quota), self.instances_binding(), self.templates_binding()];
        let sandbox = [self.sandbox(), self.sandbox_quota(), self.sandbox_limits(), self.sandbox_binding()];
        let my_drive = [self.claim(None), self.job(), self.secret("", "")];
        let mirrors = self.observed.mirror_keys();
        let policies = self.policies().into_iter().chain(self.sandbox_policies()).map(|(policy, _)| policy);
        let managers = self.managers_binding(&BTreeSet::new());
        let all = cluster.into_iter().chain(personal).chain([managers]).chain(policies);
        let all = all.chain(sandbox).chain(my_drive);
        all.map(|child| child.desired.key).chain(mirrors).collect()
    }

    fn bound(self, role: &str) -> Value {
        binding(role, "User", self.observed.tenant.name())
    }

    /// The `ClusterRole` that lets the Tenant read and edit its own object. The webhook decides which fields it may
    /// change.
    pub fn cluster_role(self) -> Child<'a> {
        let rules = move || {
            json!({"rules": [{
                "apiGroups": [GROUP],
                "resources": ["tenants"],
                "resourceNames": [self.observed.tenant.name()],
                "verbs": ["get", "list", "watch", "patch", "update"],
            }]})
        };
        self.parent()
            .child::<ClusterRoleKind>(&self.observed.names().cluster_role, &CLUSTER, 0, rules)
            .enforced()
    }

    /// The binding of this `ClusterRole`.
    pub fn cluster_binding(self) -> Child<'a> {
        let name = self.observed.names().cluster_role;
        let body = self.bound(&name);
        self.parent().child::<ClusterRoleBindingKind>(&name, &CLUSTER, 1, || body)
    }

    /// The personal namespace.
    pub fn namespace(self) -> Child<'a> {
        let mut parent = self.parent();
        // The labels of the loop override configured ones.
        let more = self.settings.config.namespace_labels.clone();
        parent.labels = more.into_iter().chain(parent.labels).collect();
        let parent =
            parent.with(&[(labels::TYPE, labels::TYPE_TENANT), (labels::NAME, self.observed.tenant.name())]);
        let mut child =
            parent.child::<NamespaceKind>(&parent.namespace, &PERSONAL, 0, || json!({})).enforced();
        // A namespace that another daemon manages is not adopted.
        child.desired.identity.extend(exactly(&self.settings.responsibility.selector));
        child
    }

    /// The `ResourceQuota` of the personal namespace. Equal amounts keep the spelling of the existing object.
    pub fn quota(self, quota: &'a Quota) -> Child<'a> {
        let body = move || {
            let existing = self.observed.quota();
            hard(quota, &self.settings.config.count_quotas, existing.map(|existing| &existing.spec.hard))
        };
        self.parent().child::<ResourceQuotaKind>(RESOURCE_QUOTA, &QUOTA, 1, body).enforced()
    }

    /// The binding that lets the Tenant manage its Instances. It is written last, because no Instance may start without
    /// the quota and the network policies.
    pub fn instances_binding(self) -> Child<'a> {
        let body = move || self.bound(self.instances_role(MANAGE_INSTANCES));
        self.parent().child::<RoleBindingKind>(MANAGE_INSTANCES, &PERSONAL, 2, body)
    }

    /// The `ClusterRole` of this binding of the personal namespace.
    pub fn instances_role(self, name: &str) -> &'a str {
        let configured = &self.settings.config.instances_cluster_role;
        self.role(name, configured, self.observed.has_instances_role)
    }

    /// The `ClusterRole` of this binding. The role of a binding is immutable, so a binding with another role is deleted.
    /// It keeps its role until the configured one exists.
    fn role(self, name: &str, configured: &'a str, exists: bool) -> &'a str {
        let existing = self.observed.named::<RoleBindingKind>(name);
        let own = existing.filter(|binding| binding.is_controlled_by(&self.observed.tenant));
        let bound = own.map(|binding| &binding.spec.role_ref).filter(|role| role["kind"] == "ClusterRole");
        let former = bound.and_then(|role| role["name"].as_str());
        former.filter(|_| !exists).unwrap_or(configured)
    }

    /// The binding that lets the Tenant manage its own Templates.
    pub fn templates_binding(self) -> Child<'a> {
        let body = move || self.bound(MANAGE_TEMPLATES);
        self.parent().child::<RoleBindingKind>(MANAGE_TEMPLATES, &PERSONAL_WORKSPACE, 2, body)
    }

    /// The sandbox, a namespace to try Kubernetes in.
    pub fn sandbox(self) -> Child<'a> {
        let parent = self.in_sandbox(self.settings.config.sandbox_labels.clone());
        parent.child::<NamespaceKind>(&parent.namespace, &SANDBOX, 0, || json!({})).enforced()
    }

    /// The limits of the sandbox.
    pub fn sandbox_quota(self) -> Child<'a> {
        let body = move || sandbox_hard(&self.settings.config.count_quotas);
        self.in_sandbox([].into()).child::<ResourceQuotaKind>(SANDBOX_QUOTA, &SANDBOX, 1, body).enforced()
    }

    /// The default requests and limits of containers in the sandbox.
    pub fn sandbox_limits(self) -> Child<'a> {
        let body = || {
            json!({"spec": {"limits": [{
                "type": "Container",
                "defaultRequest": {"cpu": "10m", "memory": "50M"},
                "default": {"cpu": "100m", "memory": "250M"},
            }]}})
        };
        self.in_sandbox([].into()).child::<LimitRangeKind>(SANDBOX_LIMITS, &SANDBOX, 1, body).enforced()
    }

    /// The binding that lets the Tenant edit its sandbox.
    pub fn sandbox_binding(self) -> Child<'a> {
        let configured = &self.settings.config.sandbox_cluster_role;
        let role = self.role(SANDBOX_EDITOR, configured, self.observed.has_sandbox_role);
        let body = move || self.bound(role);
        self.in_sandbox([].into()).child::<RoleBindingKind>(SANDBOX_EDITOR, &SANDBOX, 2, body)
    }

    /// The claim of the personal volume. `provisioned` is the value of its label.
    pub fn claim(self, provisioned: Option<&str>) -> Child<'a> {
        let (tenant, config) = (&self.observed.tenant, &self.settings.config.my_drive);
        let parent = self.parent().within(&self.observed.volume_namespace);
        let made_here = parent.labels.clone();
        let body = move || claim_spec(&config.storage_class_name, &config.size);
        let state = provisioned.map(|state| (labels::VOLUME_PROVISIONING, state));
        let parent = parent.with(&[(labels::TENANT, tenant.name())]).with(state.as_slice());
        let annotations =
            [(OWNER, tenant.name()), (EMAIL, tenant.spec.email.as_str()), (TENANT_UID, tenant.uid())];
        let mut child = parent
            .child::<NfsClaimKind>(&self.observed.names().claim, &MY_DRIVE, 0, body)
            .annotated(annotations.map(|(key, value)| (key.to_owned(), Some(value.to_owned()))))
            .annotated(self.permitted());
        // The volume of this Tenant is recognised by the name in its annotations, whatever selector created it.
        let existing = self.observed.claim();
        let is_named = existing.is_some_and(|claim| claim.annotation(OWNER) == Some(tenant.name()));
        let made_by_us = (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_TENANT.to_owned());
        child.desired.known_by = Some(if is_named { [made_by_us].into() } else { made_here });
        if config.on_tenant_deletion == OnTenantDeletion::Retain {
            child.desired.ownership = Ownership::Kept;
        }
        child
    }

    /// The Job that prepares the volume.
    pub fn job(self) -> Child<'a> {
        let (names, config) = (self.observed.names(), &self.settings.config.my_drive);
        let parent = self.parent().within(&self.observed.volume_namespace);
        nfs_volume::job(&parent, &names.provision, &MY_DRIVE, names.claim, &config.provisioning_image)
    }

    /// The Secret with the location of the volume.
    pub fn secret(self, server: &str, path: &str) -> Child<'a> {
        let encoded = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
        let data = json!({"server-name": encoded(server), "path": encoded(path)});
        let secret =
            self.parent().child::<SecretKind>(MY_DRIVE_SECRET, &SECRET, 1, move || json!({"data": data}));
        secret.enforced().initially(json!({"type": "Opaque"}))
    }
}

/// The limits of the personal namespace. Equal amounts keep the spelling in `before`.
pub fn hard(quota: &Quota, counts: &CountQuotas, before: Option<&BTreeMap<String, String>>) -> Value {
    let mut hard = counts.hard(&counts.personal);
    hard.extend(quota.hard());
    json!({"spec": {"hard": spelled(&hard, before)}})
}

/// The limits of the sandbox.
pub fn sandbox_hard(counts: &CountQuotas) -> Value {
    let mut quota = json!({"spec": {"hard": {
        "limits.cpu": "4", "limits.memory": "8G", "requests.cpu": "2", "requests.memory": "8G",
    }}});
    for (name, limit) in counts.hard(&counts.sandbox) {
        quota["spec"]["hard"][name] = limit.to_string().into();
    }
    quota
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::tenant::fixtures::{observed, owners, settings};
    use crate::controllers::tenant::plan::plan;
    use crate::fixtures::{at, object};

    #[test]
    fn a_sandbox_keeps_its_role_until_the_configured_one_exists() {
        let mut settings = settings();
        settings.config.sandbox_cluster_role = "other".to_owned();
        let mut observed = observed(&json!({"createSandbox": true}), &[]);
        // The number of deleted bindings, the role of a created one, and the repaired fields of an existing one.
        let planned = |observed: &Observed| {
            let plan = plan(observed, &settings, at(0));
            let removed = plan.remove.iter().filter(|removal| removal.key.name == SANDBOX_EDITOR).count();
            let made = plan.ensure.into_iter().find(|desired| desired.key.name == SANDBOX_EDITOR);
            let created = made.as_ref().and_then(|made| made.manifest.as_ref());
            let role = created.map(|created| created.json()["roleRef"]["name"].clone());
            (removed, role, made.map(|made| made.fields))
        };
        observed.has_sandbox_role = false;
        assert_eq!(planned(&observed), (0, Some(json!("other")), Some(Value::Null)), "a new sandbox");
        let existing = |subject: &str| {
            let mut existing = binding("crownlabs-sandbox", "User", subject);
            existing["metadata"] = json!({
                "name": SANDBOX_EDITOR, "namespace": "sandbox-ada-rossi", "uid": "b1", "ownerReferences": owners("u1"),
            });
            object::<RoleBindingKind>(existing)
        };
        observed.children.set::<RoleBindingKind>([existing("ada.rossi")]);
        assert_eq!(planned(&observed), (0, None, Some(Value::Null)), "it stays");
        observed.children.set::<RoleBindingKind>([existing("mallory")]);
        let (removed, _, fields) = planned(&observed);
        assert_eq!((removed, &fields.expect("kept")["subjects"][0]["name"]), (0, &json!("ada.rossi")));
        observed.has_sandbox_role = true;
        assert_eq!(planned(&observed), (1, None, None), "it is replaced");
    }
}
