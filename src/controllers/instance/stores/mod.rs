//! The stores that the instance loop reads, and which of their changes concern which Instances.

pub mod wakes;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::wakes::{enqueue_instances, shared_volumes, spec_changed, tenants};
use super::access::ProxySecrets;
use super::children::{self, Declared};
use super::gauges::Counts;
use super::observe::{Observed, Platform};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::config::{AccessMode, InstanceConfig};
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::entrance;
use crate::controllers::shared::references::{
    ByCanonicalName, ByExport, ByInstance, BySharedVolume, ByTemplate, ByTenant, MY_DRIVE_SECRET,
    OfWorkspace, canonical_key, mounted_exports, template_key,
};
use crate::controllers::shared::tenancy::foreign_tenant;
use crate::kinds::{DeploymentKind, NamespaceKind, PodKind, SecretKind};
use crate::runtime::ObjectKey;
use crate::runtime::children::Children;
use crate::runtime::files::FileCell;
use crate::runtime::store::{ByNamespace, Change, Store, StoreState};
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
    children: Declared,
    pods: Arc<Store<PodKind>>,
    /// The content of the web terminal's public key file.
    master_key: FileCell<Arc<str>>,
    /// The secret of the client with which the OAuth2 proxies of Instances log in users.
    client_secret: FileCell<Arc<str>>,
    /// Whether Instances have such proxies.
    has_proxies: bool,
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
        let of_instances = Selection::labelled(labels::INSTANCE);
        let instances = set.store::<InstanceKind>(&all).requests("patch").objects(|_| true);
        let instances = instances.index::<ByTemplate>().index::<ByTenant>().index::<ByNamespace>();
        let instances = &instances.wakes_siblings::<ByCanonicalName>().get();
        let templates = set.store(&all).index::<BySharedVolume>().index::<OfWorkspace>();
        let templates = templates.wakes_by::<ByTemplate, _, _>(instances, |change: &Change<TemplateKind>| {
            change.object().filter(|_| spec_changed(change)).map(|template| ObjectKey::of(&**template))
        });
        let templates = templates.get();
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
            children: children::declare(set, instances, config),
            pods: {
                let owners = Arc::clone(instances);
                let pods = set.store::<PodKind>(&of_instances).index::<ByInstance>();
                let pods = pods.on_foreign_change(move |change, queue| {
                    let sides = [&change.old, &change.new].map(|pod| pod.as_deref().map(|pod| &pod.metadata));
                    enqueue_instances(sides, &owners, queue);
                });
                pods.get()
            },
            instances: Arc::clone(instances),
            templates,
            master_key: FileCell::default(),
            client_secret: FileCell::default(),
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
        let keys = children::keys(&instance, template.as_deref());
        let children = self.children.all.children(instance.uid(), &keys);
        let exports = children.of::<DeploymentKind>().flat_map(mounted_exports);
        let mounted = exports.flat_map(|export| self.shared_volumes.by::<ByExport>(&export));
        let shared_volumes = volumes.chain(mounted).collect();
        Some(Observed {
            name_owner: self.name_owner(&instance, &children),
            foreign_tenant: foreign_tenant(&instance, &namespace),
            tenant: self.tenants.get("", &instance.spec.tenant_ref.name),
            managers,
            my_drive: self.my_drives.get(&key.namespace, MY_DRIVE_SECRET),
            shared_volumes,
            master_key: self.master_key.get(),
            proxy: if self.has_proxies {
                ProxySecrets::new(self.client_secret.get())
            } else {
                ProxySecrets::default()
            },
            pods: self.pods.by::<ByInstance>(key),
            platform: Platform {
                kubevirt: self.children.machines.state() == StoreState::Synced
                    && self.children.machine_instances.state() == StoreState::Synced,
                gateway: self.children.routes.state() == StoreState::Synced,
            },
            children,
            template,
            instance,
        })
    }

    /// The Instance that owns the canonical name, if it is another one. Names that differ in dots and dashes
    /// only have the same canonical form.
    fn name_owner(&self, instance: &Instance, children: &Children) -> Option<String> {
        let siblings = self.instances.by::<ByCanonicalName>(&canonical_key(instance));
        name_owner(instance, &siblings, &children.controllers().collect())
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
    pub fn master_key(&self) -> &FileCell<Arc<str>> {
        &self.master_key
    }

    /// The secret of the client of the OAuth2 proxies, to be updated when its file changes.
    pub fn client_secret(&self) -> &FileCell<Arc<str>> {
        &self.client_secret
    }
}

#[cfg(test)]
mod tests;
