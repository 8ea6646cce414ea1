//! The stores that the instance loop reads, and which of their changes concern which Instances.

mod wakes;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use self::wakes::{children, data_volumes, enqueue_instances, shared_volumes, spec_changed, tenants};
use super::access::ProxySecrets;
use super::gauges::Counts;
use super::observe::{Children, Observed, Platform};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::{Template, TemplateKind};
use crate::api::tenant::TenantKind;
use crate::api::text::Text;
use crate::api::{Kind, Object, labels};
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::entrance;
use crate::controllers::shared::references::{
    ByCanonicalName, ByExport, ByInstance, BySharedVolume, ByTemplate, ByTenant, MY_DRIVE_SECRET,
    canonical_key, mounted_exports, template_key,
};
use crate::controllers::shared::tenancy::foreign_tenant;
use crate::kinds::{
    DataVolumeKind, DeploymentKind, HttpRouteKind, IngressKind, NamespaceKind, PersistentVolumeClaimKind,
    PodKind, SecretKind, ServiceKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::store::{ByController, ByNamespace, Change, Index, Store, StoreState};
use crate::runtime::store_set::StoreSet;
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
    /// `HTTPRoute`s; where they are not configured, those that are left.
    routes: Arc<Store<HttpRouteKind>>,
    claims: Arc<Store<PersistentVolumeClaimKind>>,
    deployments: Arc<Store<DeploymentKind>>,
    machines: Arc<Store<VirtualMachineKind>>,
    machine_instances: Arc<Store<VirtualMachineInstanceKind>>,
    data_volumes: Arc<Store<DataVolumeKind>>,
    pods: Arc<Store<PodKind>>,
    /// The content of the web terminal's public key file.
    master_key: FileText,
    /// The secret of the client with which the OAuth2 proxies of Instances log in users.
    client_secret: FileText,
    /// Whether Instances have such proxies.
    has_proxies: bool,
}

/// The text of a file; `None` while there is none that can be used.
pub type FileText = Arc<RwLock<Option<Arc<str>>>>;

/// What a file contains now.
fn text(file: &FileText) -> Option<Arc<str>> {
    // The value of a poisoned lock is consistent.
    file.read().unwrap_or_else(PoisonError::into_inner).clone()
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
    /// Declares the stores. Only Instances in namespaces with the labels of `selector` are reconciled. If no
    /// `HTTPRoute`s are configured, those that exist are removed.
    pub fn declare(
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
        config: &InstanceConfig,
    ) -> Self {
        let all = Selection::ALL;
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let of_instances = Selection::labelled(labels::INSTANCE);
        let instances = set.store::<InstanceKind>(&all).written().objects(|_| true);
        let instances = instances.index::<ByTemplate>().index::<ByTenant>().index::<ByNamespace>();
        let instances = &instances.wakes_siblings::<ByCanonicalName>().get();
        let templates = set.store(&all).index::<BySharedVolume>().index::<OfWorkspace>();
        let templates = templates.wakes_by::<ByTemplate, _, _>(instances, |change: &Change<TemplateKind>| {
            change.object().filter(|_| spec_changed(change)).map(|template| ObjectKey::of(&**template))
        });
        let templates = templates.get();
        let machines = children(set.store(&ours).optional().written(), instances);
        Self {
            selector: selector.clone(),
            tenants: tenants(set, instances, &templates),
            shared_volumes: shared_volumes(set, instances, &templates),
            namespaces: set.store(&all).wakes_objects_within(instances, selector).get(),
            my_drives: set
                .store::<SecretKind>(&Selection::named(MY_DRIVE_SECRET))
                .wakes_by::<ByNamespace, _, _>(instances, |change| {
                    change.object().map(|secret| secret.metadata.namespace.clone())
                })
                .get(),
            secrets: children(set.store(&ours).written(), instances),
            services: children(set.store(&ours).written(), instances),
            ingresses: children(set.store(&ours).written(), instances),
            routes: {
                let is_on = config.gateway_api.enabled;
                let routes = if is_on { set.store(&ours).optional() } else { set.leftovers(&ours) };
                children(routes.written(), instances)
            },
            claims: children(set.store(&ours).written(), instances),
            deployments: children(set.store(&ours).written(), instances),
            machine_instances: children(set.store(&of_instances).optional().written(), instances),
            data_volumes: data_volumes(set, &machines),
            pods: enqueue_instances(set.store(&of_instances).index::<ByInstance>(), instances).get(),
            instances: Arc::clone(instances),
            templates,
            machines,
            master_key: Arc::default(),
            client_secret: Arc::default(),
            has_proxies: config.access.mode == AccessMode::PerInstance,
        }
    }

    /// What the stores have about an Instance; `None` when it does not exist, or is in a namespace that is
    /// not ours.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace);
        let namespace = namespace.filter(|namespace| namespace.has_labels(&self.selector))?;
        let reference = template_key(&instance);
        let template = self.templates.get(&reference.namespace, &reference.name);
        let managers =
            template.as_ref().map_or_else(Vec::new, |template| entrance::managers(&self.tenants, template));
        let mounts =
            template.iter().flat_map(|t| &t.spec.environment_list).flat_map(|e| &e.shared_volume_mounts);
        let volumes = mounts.map(|mount| &mount.shared_volume);
        let volumes = volumes.filter_map(|volume| self.shared_volumes.get(&volume.namespace, &volume.name));
        let children = self.children(&instance, template.as_deref());
        let exports = children.deployments.iter().flat_map(|deployment| mounted_exports(deployment));
        let mounted = exports.flat_map(|export| self.shared_volumes.by::<ByExport>(&export));
        let shared_volumes = volumes.chain(mounted).collect();
        Some(Observed {
            name_owner: self.name_owner(&instance, &children),
            foreign_tenant: foreign_tenant(&instance, &namespace),
            tenant: self.tenants.get("", &instance.spec.tenant_ref.name),
            managers,
            my_drive: self.my_drives.get(&key.namespace, MY_DRIVE_SECRET),
            shared_volumes,
            master_key: text(&self.master_key),
            proxy: if self.has_proxies {
                ProxySecrets::new(text(&self.client_secret))
            } else {
                ProxySecrets::default()
            },
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
            ingresses: find(&self.ingresses, namespace, uid, &names, &["", "-gui", "-app"]),
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

    /// The number of Instances in each phase, by the type of the first environment of their Template. Instances that have
    /// none count as `Unknown`, as those without a phase do.
    pub fn count(&self) -> Counts {
        let mut counts = Counts::new();
        for key in self.instances.keys() {
            let Some(instance) = self.instances.get(&key.namespace, &key.name) else { continue };
            let namespace = self.namespaces.get("", &key.namespace);
            if !namespace.is_some_and(|namespace| namespace.has_labels(&self.selector)) {
                continue;
            }
            let reference = template_key(&instance);
            let template = self.templates.get(&reference.namespace, &reference.name);
            let first = template.as_ref().and_then(|template| template.spec.environment_list.first());
            let known = |text: String| if text.is_empty() { "Unknown".to_owned() } else { text };
            let type_ = known(first.map(|first| first.environment_type.to_string()).unwrap_or_default());
            *counts.entry((known(instance.status.phase.to_string()), type_)).or_default() += 1;
        }
        counts
    }

    /// The content of the web terminal's public key file, to be updated when the file changes.
    pub fn master_key(&self) -> FileText {
        Arc::clone(&self.master_key)
    }

    /// The secret of the client of the OAuth2 proxies, to be updated when its file changes.
    pub fn client_secret(&self) -> FileText {
        Arc::clone(&self.client_secret)
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
    let mut full = String::new();
    for (name, suffix) in names.iter().flat_map(|name| suffixes.iter().map(move |suffix| (name, suffix))) {
        full.clear();
        full.extend([name, *suffix]);
        if let Some(object) = store.get(namespace, &full)
            && !found.iter().any(|known| known.uid() == object.uid())
        {
            found.push(object);
        }
    }
    found
}

#[cfg(test)]
mod tests;
