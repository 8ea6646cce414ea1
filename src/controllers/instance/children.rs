//! The children of an Instance, except its OAuth2 proxy ([`super::access`]): the objects of each environment.
//!
//! A kind of child is a line in [`declare`] and a function that returns the [`Child`] of an environment. The plan
//! decides whether the child is wanted.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::environment::EnvironmentContext;
use super::exposure_status::ByPublishedClass;
use super::mounts::Mount;
use super::stores::wakes;
use super::workload::{Material, Workload};
use super::{container, exam_network, exposure, machine};
use crate::api::environment::EnvironmentType;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::parts::OAUTH2_PROXY;
use crate::api::template::Template;
use crate::api::{Kind, Object, labels};
use crate::config::{InstanceConfig, PolicyNames};
use crate::controllers::shared::children::Child;
use crate::kinds::{
    DataVolumeKind, DeploymentKind, HttpRouteKind, IngressKind, NetworkPolicyKind, PersistentVolumeClaimKind,
    RoutePolicyKind, Secret, SecretKind, ServiceKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::{ChildStores, Children};
use crate::runtime::cluster::MachineStores;
use crate::runtime::plan::KindInfo;
use crate::runtime::selection::Selection;
use crate::runtime::store::{ByController, Store};
use crate::runtime::store_set::StoreSet;

/// The order of writes for the objects of an environment.
///
/// The Service is written first: if its name is taken, the other objects are not written, and its address takes the API
/// server longest. The other dependencies of the workload follow, and the workload is last.
pub mod wave {
    /// The Service.
    pub const SERVICE: u8 = 0;
    /// Ingress, `HTTPRoute` or its policy, `NetworkPolicy`, `PersistentVolumeClaim` and Secret.
    pub const DEPENDENCIES: u8 = 1;
    /// Deployment, `VirtualMachine` or `VirtualMachineInstance`; an `HTTPRoute` with a policy.
    pub const WORKLOAD: u8 = 2;
}

/// The stores of the children, including the stores that show which optional APIs the cluster serves.
pub struct Declared {
    /// All stores.
    pub all: ChildStores,
    /// The stores of virtual machines and of their disks.
    pub of_machines: MachineStores,
    /// The store of `HTTPRoute`s. If routes are not configured, it holds the leftover ones.
    pub routes: Arc<Store<HttpRouteKind>>,
    /// The store of the policies that guard routes, if they are configured.
    pub policies: Option<Arc<Store<RoutePolicyKind>>>,
    /// The store of Ingresses.
    pub ingresses: Arc<Store<IngressKind>>,
    /// The store of Secrets, which also holds the one with the key of host names.
    pub secrets: Arc<Store<SecretKind>>,
}

/// Declares the stores. If no `HTTPRoute`s are configured, existing ones are removed once their Ingresses have an
/// address. `host_key` is the Secret with the key of host names, if environments have host names of their own.
pub fn declare(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    config: &InstanceConfig,
    host_key: Option<&ObjectKey>,
) -> Declared {
    let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
    let of_instances = Selection::labelled(labels::INSTANCE);
    let mut all = ChildStores::new(wakes::of_child(instances));
    let secrets = set.store::<SecretKind>(&ours).index::<ByController>();
    let secrets = all.add(wakes::on_host_key(secrets, instances, host_key));
    all.add(set.store::<ServiceKind>(&ours).index::<ByController>());
    let ingresses = set.store::<IngressKind>(&ours).index::<ByController>().index::<ByPublishedClass>();
    let ingresses = all.add(ingresses);
    let is_on = config.gateway_api.enabled;
    let routes = if is_on { set.store::<HttpRouteKind>(&ours).optional() } else { set.leftovers(&ours) };
    let routes = all.add(routes.index::<ByController>());
    let policy = config.gateway_api.policy.names().filter(|_| is_on);
    let policies = policy.map(|PolicyNames { group, version, kind, plural }| {
        let kind = KindInfo::leaked([group, version, kind, plural]);
        all.add(set.store_as::<RoutePolicyKind>(kind, &ours).optional().index::<ByController>())
    });
    let is_on = config.exam_egress.enabled;
    let network_policies = if is_on { set.store::<NetworkPolicyKind>(&ours) } else { set.leftovers(&ours) };
    all.add(network_policies.index::<ByController>());
    all.add(set.store::<PersistentVolumeClaimKind>(&ours).index::<ByController>());
    all.add(set.store::<DeploymentKind>(&ours).index::<ByController>());
    let machines = all.add(set.store::<VirtualMachineKind>(&ours).optional().index::<ByController>());
    let running = set.store::<VirtualMachineInstanceKind>(&of_instances).optional();
    let machine_instances = all.add(running.index::<ByController>());
    // The disks of virtual machines, which KubeVirt creates.
    let disks = wakes::data_volumes(set, &machines);
    all.read(&disks);
    let of_machines = MachineStores { machines, machine_instances, disks };
    Declared { all, of_machines, routes, policies, ingresses, secrets }
}

/// The possible names of the Services and workloads of an Instance, with its OAuth2 proxy if it may have one.
pub fn names(instance: &Instance, template: Option<&Template>, has_proxy: bool) -> Vec<CanonicalName> {
    let canonical = CanonicalName::of(instance.name());
    let environments = template.map_or(&[][..], |template| &template.spec.environment_list);
    let suffixed = environments.iter().map(|environment| canonical.environment(&environment.name));
    let proxy = has_proxy.then(|| CanonicalName::of(&canonical.part(&OAUTH2_PROXY)));
    std::iter::once(canonical.clone()).chain(suffixed).chain(proxy).collect()
}

/// The possible keys of the objects of an Instance with these names.
pub fn keys(instance: &Instance, names: &[CanonicalName]) -> Vec<ObjectKey> {
    let all = names.iter().flat_map(|name| [name.to_string(), name.gui(), name.app()]);
    all.map(|name| ObjectKey::new(instance.metadata.namespace.clone(), name)).collect()
}

/// A kind of object that has the name of an environment.
struct ChildKind {
    /// Its name.
    #[cfg(test)]
    kind: &'static str,
    /// Describes the foreign object of this kind that has the name of an object of the environment; see
    /// [`Parent::conflict`].
    conflict: fn(&EnvironmentContext<'_>) -> Option<String>,
    /// Whether the Instance has an object of this kind with this name for an environment.
    has: fn(&Children, &Instance, &str) -> bool,
    /// Whether an object shows how the objects of its Instance are named.
    shows_naming: bool,
    /// The workloads of the environments that need the name.
    needed_by: &'static [Workload],
}

impl ChildKind {
    const fn of<T: Kind>(shows_naming: bool, needed_by: &'static [Workload]) -> Self {
        let conflict =
            |context: &EnvironmentContext<'_>| context.parent.conflict::<T>(&context.name_of::<T>());
        // An object with the component label has another purpose, such as a public exposure, even if its name looks
        // similar.
        let has = |children: &Children, instance: &Instance, name: &str| {
            let own = children.own::<T, _>(instance, name);
            own.is_some_and(|object| object.label(labels::COMPONENT).is_none())
        };
        Self {
            #[cfg(test)]
            kind: T::KIND,
            conflict,
            has,
            shows_naming,
            needed_by,
        }
    }
}

/// The kinds, in the order in which their conflicts are reported. A Secret does not show the naming, because the Go
/// operator with several environments creates one Secret for all of them. A stopped Instance has no Service, but its
/// workload needs the name of the Service, of the Ingress, and of both persistent workloads. An `HTTPRoute` has the name
/// of the Service, whose conflict is reported. The `NetworkPolicy` of an exam is written before the workload, which its
/// failure stops. KubeVirt creates the disk.
const KINDS: [ChildKind; 10] = [
    ChildKind::of::<ServiceKind>(true, &Workload::ALL),
    ChildKind::of::<IngressKind>(false, &Workload::ALL),
    ChildKind::of::<DeploymentKind>(true, &Workload::ALL),
    ChildKind::of::<VirtualMachineKind>(true, &Workload::ALL),
    ChildKind::of::<PersistentVolumeClaimKind>(true, &[Workload::Deployment]),
    ChildKind::of::<VirtualMachineInstanceKind>(true, &[Workload::VirtualMachineInstance]),
    ChildKind::of::<SecretKind>(false, &[Workload::VirtualMachine, Workload::VirtualMachineInstance]),
    ChildKind::of::<HttpRouteKind>(false, &[]),
    ChildKind::of::<NetworkPolicyKind>(false, &[]),
    ChildKind::of::<DataVolumeKind>(true, &[]),
];

/// Whether an Instance has an object with this name that shows its naming scheme. The Service is created first.
pub fn shows_naming(children: &Children, instance: &Instance, name: &str) -> bool {
    KINDS.iter().any(|kind| kind.shows_naming && (kind.has)(children, instance, name))
}

impl<'a> EnvironmentContext<'a> {
    /// The name of its object of a kind.
    fn name_of<T: Kind>(&self) -> Cow<'_, str> {
        if T::KIND == IngressKind::KIND { self.ingress_name().into() } else { Cow::Borrowed(&*self.name) }
    }

    /// Its object of a kind, if the Instance is the controller.
    pub fn own<T: Kind>(&self) -> Option<&'a Object<T>> {
        self.observed.children.own(&self.observed.instance, &self.name_of::<T>())
    }

    /// The object of a kind with the name of its objects, regardless of the owner.
    pub fn named<T: Kind>(&self) -> Option<&'a Object<T>> {
        self.observed.named(&self.name_of::<T>())
    }

    /// Describes the foreign object that has the name of one of the environment's objects, if any.
    pub fn conflict(&self) -> Option<String> {
        let workload = Workload::of(self.environment);
        let mut needed = KINDS.iter().filter(|kind| kind.needed_by.contains(&workload));
        needed.find_map(|kind| (kind.conflict)(self))
    }

    fn child<T: Kind>(&self, wave: u8, body: impl FnOnce() -> Value + 'a) -> Child<'a> {
        self.parent.child::<T>(&self.name_of::<T>(), &self.component(), wave, body)
    }

    /// The Service.
    pub fn service(&'a self) -> Child<'a> {
        let mut child = self.child::<ServiceKind>(wave::SERVICE, || exposure::service(self));
        if self.environment.environment_type == EnvironmentType::Container {
            child.desired.labels.insert(labels::METRICS_ENABLED.to_owned(), "true".to_owned());
        }
        child
    }

    /// The Ingress.
    pub fn ingress(&'a self) -> Child<'a> {
        let child = self.child::<IngressKind>(wave::DEPENDENCIES, || exposure::ingress_of(self));
        child.annotated(exposure::annotations(self)).fields(exposure::enforced(self))
    }

    /// The `HTTPRoute` of the Gateway API.
    pub fn route(&'a self) -> Child<'a> {
        let child = self.child::<HttpRouteKind>(wave::DEPENDENCIES, || exposure::route(self));
        child.annotated(exposure::route_annotations(self)).fields(exposure::enforced_route(self))
    }

    /// The `NetworkPolicy` of an exam.
    pub fn policy(&'a self) -> Child<'a> {
        self.child::<NetworkPolicyKind>(wave::DEPENDENCIES, || exam_network::policy(self)).enforced()
    }

    /// The `PersistentVolumeClaim` of a persistent container, with a disk of this size.
    pub fn claim(&'a self, disk: &'a str) -> Child<'a> {
        let body = move || json!({"spec": claim(disk, &self.environment.storage_class_name)});
        self.child::<PersistentVolumeClaimKind>(wave::DEPENDENCIES, body)
    }

    /// The Secret with the cloud-init document of a virtual machine. All of `data` is enforced: additional keys are
    /// removed.
    pub fn secret(&'a self, keys: &super::cloud_init::Keys, mounts: &[Mount]) -> Child<'a> {
        let data = machine::cloud_init(self, keys, mounts);
        let enforced = whole_data(data.clone(), self.own());
        let note = machine::mounted_volumes(self);
        let body = move || json!({"type": "Opaque", "data": data});
        let child = self.child::<SecretKind>(wave::DEPENDENCIES, body);
        child.annotated([(labels::SHARED_VOLUMES.to_owned(), note)]).fields(json!({"data": enforced}))
    }

    /// The Deployment of a container.
    fn deployment(&'a self, new: Option<&'a Material>) -> Child<'a> {
        let replicas = container::replicas(self);
        let note =
            container::mounted_volumes(self).map(|note| (labels::SHARED_VOLUMES.to_owned(), Some(note)));
        let child = self.child::<DeploymentKind>(wave::WORKLOAD, move || {
            json!({"spec": {
                "replicas": replicas,
                "selector": {"matchLabels": self.selector()},
                "strategy": {"type": "Recreate"},
                "template": {
                    "metadata": {"labels": exam_network::pod_labels(self)},
                    "spec": new.map(|new| container::pod(self, &new.resources, &new.mounts)),
                },
            }})
        });
        child.annotated(note).fields(json!({"spec": {"replicas": replicas}}))
    }

    /// The `VirtualMachine` of a persistent environment.
    fn virtual_machine(&'a self, new: Option<&'a Material>) -> Child<'a> {
        let power = machine::power(self);
        let enforced = machine::enforced(self, &power);
        let note = power.remembered.map(|strategy| (labels::RUN_STRATEGY.to_owned(), Some(strategy)));
        let (member, value) = power.field;
        let child = self.child::<VirtualMachineKind>(wave::WORKLOAD, move || {
            json!({"spec": new.map(|new| json!({
                member: value,
                "template": {
                    "metadata": {"labels": exam_network::pod_labels(self)},
                    "spec": machine::spec(self, new),
                },
                "dataVolumeTemplates": [{
                    "metadata": {"name": self.name},
                    "spec": {
                        "source": machine::source(self),
                        "pvc": claim(&new.disk, &self.environment.storage_class_name),
                    },
                }],
            }))})
        });
        child.annotated(note).fields(enforced)
    }

    /// The workload. `new` is the input for a workload that does not exist yet.
    pub fn workload(&'a self, new: Option<&'a Material>) -> Child<'a> {
        match Workload::of(self.environment) {
            Workload::Deployment => self.deployment(new),
            Workload::VirtualMachine => self.virtual_machine(new),
            Workload::VirtualMachineInstance => self.virtual_machine_instance(new),
        }
    }

    /// The `VirtualMachineInstance` of an environment without a disk, which cannot be restarted.
    fn virtual_machine_instance(&'a self, new: Option<&'a Material>) -> Child<'a> {
        let body = move || json!({"spec": new.map(|new| machine::spec(self, new))});
        let child = self.child::<VirtualMachineInstanceKind>(wave::WORKLOAD, body);
        // KubeVirt copies the labels to its pod.
        child.initially(json!({"metadata": {"labels": exam_network::pod_labels(self)}}))
    }
}

/// Enforces all of the data of a Secret: its other keys are removed.
pub fn whole_data(mut data: Value, existing: Option<&Secret>) -> Value {
    if let Some(data) = data.as_object_mut() {
        for (key, _) in existing.iter().flat_map(|secret| secret.spec.iter()) {
            data.entry(key).or_insert(Value::Null);
        }
    }
    data
}

/// The spec of a claim with this size and storage class; an empty class selects the default one.
fn claim(disk: &str, class: &str) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": disk}}});
    if !class.is_empty() {
        spec["storageClassName"] = class.into();
    }
    spec
}

#[cfg(test)]
mod unit_tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::runtime::store::StoreFactory;

    #[test]
    fn the_table_has_every_declared_kind_and_the_disk() {
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("instance", &mut factory);
        let instances = set.store::<InstanceKind>(&Selection::ALL).get();
        declare(&mut set, &instances, &InstanceConfig::classic(), None);
        drop(set);
        let created = factory.rights["instance"].iter().filter(|(_, verbs)| verbs.contains("create"));
        let created = created.map(|((kind, _), _)| kind.kind).chain([DataVolumeKind::KIND]);
        let known: BTreeSet<&str> = KINDS.iter().map(|kind| kind.kind).collect();
        assert_eq!(created.collect::<BTreeSet<&str>>(), known);
    }
}
