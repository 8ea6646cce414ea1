//! The stores that the instance loop reads, and the Instances that each change adds to the queue.

pub mod wakes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::wakes::{Hindered, enqueue_instances, shared_volumes, tenants};
use super::access::ProxySecrets;
use super::children::{self, Declared};
use super::exposure_status::{ByPublishedClass, class};
use super::gauges::Counts;
use super::host_key::Hosts;
use super::mirrors::Mirrors;
use super::observe::Observed;
use super::route_policy::Policies;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::labels;
use crate::api::names::CanonicalName;
use crate::api::requirements::Settings;
use crate::api::shared_volume::SharedVolumeKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::text::Text;
use crate::config::{AccessMode, InstanceConfig, Layout, Storage, Urls};
use crate::controllers::shared::children::name_owner;
use crate::controllers::shared::mirrors::drive_names;
use crate::controllers::shared::references::{
    ByCanonicalName, ByExport, ByInstance, BySharedVolume, ByTemplate, ByTenant, MY_DRIVE_SECRET,
    OfWorkspace, canonical_key, mounted_exports, template_of,
};
use crate::controllers::shared::service_names::ServiceNames;
use crate::controllers::shared::tenancy::foreign_tenant;
use crate::controllers::shared::{entrance, machine_host};
use crate::kinds::{
    DeploymentKind, HttpRouteKind, IngressKind, NamespaceKind, PersistentVolumeClaimKind, PodKind,
    RoutePolicyKind, SecretKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::{ChildStores, Children};
use crate::runtime::cluster::ClusterStores;
use crate::runtime::files::FileCell;
use crate::runtime::object_events::Events;
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
    /// The class of mirrors, and all of them; `None` if volumes are not mirrored.
    mirrors: Option<(String, Arc<Store<PersistentVolumeClaimKind>>)>,
    children: ChildStores,
    routes: Arc<Store<HttpRouteKind>>,
    /// The policies that guard routes, if they are configured.
    policies: Option<Arc<Store<RoutePolicyKind>>>,
    ingresses: Arc<Store<IngressKind>>,
    secrets: Arc<Store<SecretKind>>,
    /// The Secret with the key of host names, if environments have host names of their own.
    host_key: Option<ObjectKey>,
    cluster: ClusterStores,
    pods: Arc<Store<PodKind>>,
    /// The content of the web terminal's public key file.
    pub master_key: FileCell<Arc<str>>,
    /// The client secret that the OAuth2 proxies of Instances use to log in users; `None` if Instances have no proxies.
    pub client_secret: Option<FileCell<Arc<str>>>,
    /// The naming scheme for the objects of new Instances.
    layout: Layout,
    /// Whether Instances may have public exposures.
    has_exposures: bool,
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces that match `selector` are reconciled. If no `HTTPRoute`s are
    /// configured, existing ones are removed. `namespace` is the namespace of the daemon.
    pub fn declare(
        set: &mut StoreSet<'_>,
        selector: &BTreeMap<String, String>,
        config: &InstanceConfig,
        settings: Settings,
        has_exposures: bool,
        storage: &Storage,
        namespace: &str,
    ) -> Self {
        let all = Selection::ALL;
        let of_instances = Selection::labelled(labels::INSTANCE);
        let instances = set.store::<InstanceKind>(&all).requests("patch").objects(|_| true);
        let instances = instances.index::<ByTemplate>().index::<ByTenant>().index::<ByNamespace>();
        let instances = instances.index::<Hindered>();
        let instances = &instances.wakes_siblings::<ByCanonicalName>().get();
        let templates = set.store(&all).index::<BySharedVolume>().index::<OfWorkspace>();
        let templates = templates.wakes_by::<ByTemplate, _, _>(instances, |change: &Change<TemplateKind>| {
            let changed = change.object_if(|t| (&t.spec, &t.malformed, &t.metadata.labels));
            changed.map(|template| ObjectKey::of(&**template))
        });
        let templates = templates.get();
        let host_key = (config.urls == Urls::Host).then(|| ObjectKey::new(namespace, machine_host::SECRET));
        let Declared { all: children, of_machines, routes, policies, ingresses, secrets } =
            children::declare(set, instances, config, host_key.as_ref());
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
            mirrors: wakes::mirrors(set, instances, storage),
            cluster: ClusterStores::declare(set, settings, of_machines, wakes::hindered(instances)),
            children,
            routes,
            policies,
            ingresses,
            secrets,
            host_key,
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
            client_secret: (config.access.mode == AccessMode::PerInstance).then(FileCell::default),
            layout: config.layout,
            has_exposures,
        }
    }

    /// The state of an Instance in the stores; `None` if it does not exist, or if its namespace does not match the
    /// selector.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace);
        let namespace = namespace.filter(|namespace| namespace.has_labels(&self.selector))?;
        let template = template_of(&instance, &self.templates);
        let mounts =
            template.iter().flat_map(|t| &t.spec.environment_list).flat_map(|e| &e.shared_volume_mounts);
        let volumes = mounts.map(|mount| &mount.shared_volume);
        let volumes = volumes.filter_map(|volume| self.shared_volumes.get(&volume.namespace, &volume.name));
        let names = children::names(&instance, template.as_deref(), self.client_secret.is_some());
        let children = self.children.children(instance.uid(), &children::keys(&instance, &names));
        let exports = children.of::<DeploymentKind>().flat_map(mounted_exports);
        let mounted = exports.flat_map(|export| self.shared_volumes.by::<ByExport>(&export));
        let shared_volumes = volumes.chain(mounted).collect();
        // Names that differ only in dots and dashes have the same canonical form.
        let siblings = self.instances.by::<ByCanonicalName>(&canonical_key(&instance));
        Some(Observed {
            name_owner: name_owner(&instance, &siblings, &children.controllers().collect()),
            taken: self.taken(&instance, &names, &children),
            published_classes: self.published_classes(&children),
            foreign_tenant: foreign_tenant(&instance, &namespace),
            tenant: self.tenants.get("", &instance.spec.tenant_ref.name),
            managers: template.iter().flat_map(|t| entrance::managers(&self.tenants, t)).collect(),
            my_drive: self.my_drives.get(&key.namespace, MY_DRIVE_SECRET),
            mirrors: self.mirrors(&instance),
            shared_volumes,
            master_key: self.master_key.get(),
            proxy: self.client_secret.as_ref().map(|file| ProxySecrets::new(file.get())).unwrap_or_default(),
            hosts: self.hosts(),
            pods: self.pods.by::<ByInstance>(key),
            // The reconciler adds these.
            events: Events::Unknown,
            validated: Arc::default(),
            has_routes: self.routes.state() == StoreState::Synced,
            policies: self.policies.as_ref().map(|policies| Policies {
                kind: policies.kind(),
                is_served: policies.state() == StoreState::Synced,
            }),
            cluster: self.cluster.get(),
            has_import_secret: self.cluster.has_import_secret(Some(&key.namespace)),
            children,
            template,
            instance,
        })
    }

    /// The key of the host names.
    fn hosts(&self) -> Hosts {
        let secret = |key: &ObjectKey| self.secrets.get(&key.namespace, &key.name);
        self.host_key.as_ref().map_or(Hosts::Common, |key| Hosts::of(key, secret(key).as_deref()))
    }

    /// How the volumes of an Instance are mirrored.
    fn mirrors(&self, instance: &Instance) -> Option<Mirrors> {
        let (class, claims) = self.mirrors.as_ref()?;
        let drive = CanonicalName::of(&instance.spec.tenant_ref.name).drive();
        let exists = |name: &String| claims.get(instance.namespace(), name).is_some();
        Some(Mirrors { class: class.clone(), my_drive: drive_names(&drive).into_iter().find(exists) })
    }

    /// The classes of these Ingresses without an address, if other Ingresses of the class have one.
    fn published_classes(&self, children: &Children) -> BTreeSet<Text> {
        let unpublished = children.of::<IngressKind>().filter(|ingress| !ingress.status.is_published);
        let ingresses = &self.ingresses;
        let is_published =
            |class: &Text| ingresses.find_by::<ByPublishedClass, ()>(class, |_| Some(())).is_some();
        unpublished.map(class).filter(is_published).collect()
    }

    /// The names of Services that another Instance owns, with that Instance: the one that has an object with the name,
    /// or else the oldest one.
    fn taken(
        &self,
        instance: &Arc<Instance>,
        names: &[CanonicalName],
        children: &Children,
    ) -> BTreeMap<String, String> {
        let rivals = ServiceNames {
            instances: &self.instances,
            templates: &self.templates,
            layout: self.layout,
            with_exposures: self.has_exposures,
            with_proxies: self.client_secret.is_some(),
        };
        let has_object = |other: &Instance, name: &str| {
            let key = ObjectKey::new(other.metadata.namespace.clone(), name);
            children::shows_naming(&self.children.children(other.uid(), &[key]), other, name)
        };
        let owner = |name: &str| {
            let mut siblings = rivals.of(instance, name, has_object);
            siblings.push(Arc::clone(instance));
            name_owner(instance, &siblings, &children.controllers_of(name).collect())
        };
        names.iter().filter_map(|name| Some((name.to_string(), owner(name)?))).collect()
    }

    /// The number of Instances in each phase, by the type of the first environment of their Template. Instances without
    /// a type or phase count as `Unknown`.
    pub fn count(&self) -> Counts {
        let mut counts = Counts::new();
        for instance in self.instances.objects() {
            let namespace = self.namespaces.get("", instance.namespace());
            if !namespace.is_some_and(|namespace| namespace.has_labels(&self.selector)) {
                continue;
            }
            let template = template_of(&instance, &self.templates);
            let first = template.as_ref().and_then(|template| template.spec.environment_list.first());
            let known = |text: String| if text.is_empty() { "Unknown".to_owned() } else { text };
            let type_ = known(first.map(|first| first.environment_type.to_string()).unwrap_or_default());
            *counts.entry((known(instance.status.phase.to_string()), type_)).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests;
