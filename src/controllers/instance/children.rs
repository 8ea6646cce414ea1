//! The children of an Instance, except those of its OAuth2 proxy ([`super::access`]): what each environment has.
//!
//! A kind of child is a line in [`declare`] and a function that returns the [`Child`] of an environment; the plan says
//! whether that is wanted.

use std::sync::Arc;

use serde_json::{Value, json};

use super::container;
use super::environment::EnvironmentContext;
use super::exposure;
use super::machine;
use super::mounts::Mount;
use super::observe::Observed;
use super::stores::wakes;
use super::workload::{Material, Workload};
use crate::api::environment::EnvironmentType;
use crate::api::instance::{Instance, InstanceKind};
use crate::api::names::CanonicalName;
use crate::api::template::Template;
use crate::api::{Kind, labels};
use crate::config::InstanceConfig;
use crate::controllers::shared::children::Child;
use crate::kinds::{
    DataVolumeKind, DeploymentKind, HttpRoute, HttpRouteKind, IngressKind, PersistentVolumeClaimKind,
    SecretKind, ServiceKind, VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::ChildStores;
use crate::runtime::selection::Selection;
use crate::runtime::store::{ByController, Store};
use crate::runtime::store_set::StoreSet;

/// The order in which the objects of an environment are written.
///
/// The Service is written first: whether its name is free decides whether the other objects are written, and
/// its address takes the API server longest. The other objects that the workload needs follow, and the
/// workload is last.
pub mod wave {
    /// The Service.
    pub const SERVICE: u8 = 0;
    /// Ingress, `HTTPRoute`, `PersistentVolumeClaim` and Secret.
    pub const DEPENDENCIES: u8 = 1;
    /// Deployment, `VirtualMachine` or `VirtualMachineInstance`.
    pub const WORKLOAD: u8 = 2;
}

/// The stores of the children, and those of them that tell which optional APIs the cluster serves.
pub struct Declared {
    /// All.
    pub all: ChildStores,
    /// That of virtual machines.
    pub machines: Arc<Store<VirtualMachineKind>>,
    /// That of the virtual machines that run, also those that belong to a `VirtualMachine`.
    pub machine_instances: Arc<Store<VirtualMachineInstanceKind>>,
    /// That of `HTTPRoute`s; where they are not configured, of those that are left.
    pub routes: Arc<Store<HttpRouteKind>>,
}

/// Declares the stores. If no `HTTPRoute`s are configured, those that exist are removed.
pub fn declare(
    set: &mut StoreSet<'_>,
    instances: &Arc<Store<InstanceKind>>,
    config: &InstanceConfig,
) -> Declared {
    let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
    let of_instances = Selection::labelled(labels::INSTANCE);
    let mut all = ChildStores::new(wakes::of_child(instances));
    all.add(set.store::<SecretKind>(&ours).index::<ByController>());
    all.add(set.store::<ServiceKind>(&ours).index::<ByController>());
    all.add(set.store::<IngressKind>(&ours).index::<ByController>());
    let is_on = config.gateway_api.enabled;
    let routes = if is_on { set.store::<HttpRouteKind>(&ours).optional() } else { set.leftovers(&ours) };
    let routes = all.add(routes.index::<ByController>());
    all.add(set.store::<PersistentVolumeClaimKind>(&ours).index::<ByController>());
    all.add(set.store::<DeploymentKind>(&ours).index::<ByController>());
    let machines = all.add(set.store::<VirtualMachineKind>(&ours).optional().index::<ByController>());
    let running = set.store::<VirtualMachineInstanceKind>(&of_instances).optional();
    let machine_instances = all.add(running.index::<ByController>());
    // The disks of virtual machines, which are made for them.
    all.read(&wakes::data_volumes(set, &machines));
    Declared { all, machines, machine_instances, routes }
}

/// The keys that the objects of an Instance may have.
pub fn keys(instance: &Instance, template: Option<&Template>) -> Vec<ObjectKey> {
    let canonical = CanonicalName::of(instance.name());
    let environments = template.map_or(&[][..], |template| &template.spec.environment_list);
    let suffixed = environments.iter().map(|environment| canonical.environment(&environment.name));
    let names = std::iter::once(canonical.clone()).chain(suffixed);
    let all = names.flat_map(|name| [name.to_string(), name.gui(), name.app()]);
    all.map(|name| ObjectKey::new(instance.metadata.namespace.clone(), name)).collect()
}

impl Observed {
    /// Whether the Instance has an object of that name that shows how its objects are named: a workload, a disk, or the
    /// Service, which is made first. A Secret shows nothing: the Go operator that knows several environments makes one for
    /// all of them.
    pub fn has_object(&self, name: &str) -> bool {
        // What has the label is for something else, such as a public exposure, whatever its name looks like.
        fn is_there<T: Kind>(observed: &Observed, name: &str) -> bool {
            observed.own::<T>(name).is_some_and(|object| object.label(labels::COMPONENT).is_none())
        }
        is_there::<VirtualMachineKind>(self, name)
            || is_there::<VirtualMachineInstanceKind>(self, name)
            || is_there::<DeploymentKind>(self, name)
            || is_there::<PersistentVolumeClaimKind>(self, name)
            || is_there::<DataVolumeKind>(self, name)
            || is_there::<ServiceKind>(self, name)
    }
}

impl<'a> EnvironmentContext<'a> {
    fn child<T: Kind>(&self, name: &str, wave: u8, body: impl FnOnce() -> Value + 'a) -> Child<'a> {
        self.parent.child::<T>(name, &self.component(), wave, body)
    }

    /// The Service.
    pub fn service(&'a self) -> Child<'a> {
        let mut child = self.child::<ServiceKind>(&self.name, wave::SERVICE, || exposure::service(self));
        if self.environment.environment_type == EnvironmentType::Container {
            child.desired.labels.insert(labels::METRICS_ENABLED.to_owned(), "true".to_owned());
        }
        child
    }

    /// The Ingress.
    pub fn ingress(&'a self) -> Child<'a> {
        let name = self.ingress_name();
        let body = || exposure::ingress(&self.host(), &self.ingress_path().0, &self.name, "gui");
        let enforced = self.observed.own::<IngressKind>(&name).map_or(Value::Null, exposure::path_types);
        let child = self.child::<IngressKind>(&name, wave::DEPENDENCIES, body);
        child.annotated(exposure::annotations(self)).fields(enforced)
    }

    /// The `HTTPRoute` of the Gateway API.
    pub fn route(&'a self) -> Child<'a> {
        self.child::<HttpRouteKind>(&self.name, wave::DEPENDENCIES, || exposure::route(self))
    }

    /// The `HTTPRoute` that exists.
    pub fn own_route(&self) -> Option<&'a HttpRoute> {
        self.observed.own::<HttpRouteKind>(&self.name)
    }

    /// The `PersistentVolumeClaim` of a persistent container, with a disk of this size.
    pub fn claim(&'a self, disk: &'a str) -> Child<'a> {
        self.child::<PersistentVolumeClaimKind>(
            &self.name,
            wave::DEPENDENCIES,
            move || json!({"spec": claim(disk, &self.environment.storage_class_name)}),
        )
    }

    /// The Secret with the cloud-init document of a virtual machine. All of `data` is ours: what others have added is
    /// removed.
    pub fn secret(&'a self, keys: &super::cloud_init::Keys, mounts: &[Mount]) -> Child<'a> {
        let data = machine::cloud_init(self, keys, mounts);
        let mut enforced = data.clone();
        let existing = self.observed.own::<SecretKind>(&self.name);
        if let Some(enforced) = enforced.as_object_mut() {
            for (key, _) in existing.iter().flat_map(|secret| secret.spec.iter()) {
                enforced.entry(key).or_insert(Value::Null);
            }
        }
        let note = machine::mounted_volumes(self);
        let child = self.child::<SecretKind>(
            &self.name,
            wave::DEPENDENCIES,
            move || json!({"type": "Opaque", "data": data}),
        );
        child.annotated([(labels::SHARED_VOLUMES.to_owned(), note)]).fields(json!({"data": enforced}))
    }

    /// The Deployment of a container.
    fn deployment(&'a self, new: Option<&'a Material>) -> Child<'a> {
        let replicas = container::replicas(self);
        let note =
            container::mounted_volumes(self).map(|note| (labels::SHARED_VOLUMES.to_owned(), Some(note)));
        let child = self.child::<DeploymentKind>(&self.name, wave::WORKLOAD, move || {
            json!({"spec": {
                "replicas": replicas,
                "selector": {"matchLabels": self.selector()},
                "strategy": {"type": "Recreate"},
                "template": {
                    "metadata": {"labels": self.selector()},
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
        let child = self.child::<VirtualMachineKind>(&self.name, wave::WORKLOAD, move || {
            json!({"spec": new.map(|new| json!({
                member: value,
                "template": {"metadata": {"labels": self.selector()}, "spec": machine::spec(self, &new.resources)},
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

    /// Whether the Ingress exists.
    pub fn has_ingress(&self) -> bool {
        self.observed.own::<IngressKind>(&self.ingress_name()).is_some()
    }

    /// Whether the claim exists.
    pub fn has_claim(&self) -> bool {
        self.observed.own::<PersistentVolumeClaimKind>(&self.name).is_some()
    }

    /// Whether the workload exists.
    pub fn has_workload(&self) -> bool {
        match Workload::of(self.environment) {
            Workload::Deployment => self.observed.own::<DeploymentKind>(&self.name).is_some(),
            Workload::VirtualMachine => self.observed.own::<VirtualMachineKind>(&self.name).is_some(),
            Workload::VirtualMachineInstance => {
                self.observed.own::<VirtualMachineInstanceKind>(&self.name).is_some()
            }
        }
    }

    /// The workload; `new` is what one that does not exist is made of.
    pub fn workload(&'a self, new: Option<&'a Material>) -> Child<'a> {
        match Workload::of(self.environment) {
            Workload::Deployment => self.deployment(new),
            Workload::VirtualMachine => self.virtual_machine(new),
            Workload::VirtualMachineInstance => self.virtual_machine_instance(new),
        }
    }

    /// The `VirtualMachineInstance` of an environment without a disk, which cannot be restarted.
    fn virtual_machine_instance(&'a self, new: Option<&'a Material>) -> Child<'a> {
        self.child::<VirtualMachineInstanceKind>(
            &self.name,
            wave::WORKLOAD,
            move || json!({"spec": new.map(|new| machine::spec(self, &new.resources))}),
        )
    }

    /// Who has the name of one of the objects, if it is somebody else.
    pub fn conflict(&self) -> Option<String> {
        let (parent, name) = (&self.parent, &*self.name);
        let exposed = || parent.conflict::<IngressKind>(&self.ingress_name());
        let workload = || match Workload::of(self.environment) {
            Workload::Deployment => {
                let claim = || parent.conflict::<PersistentVolumeClaimKind>(name);
                parent.conflict::<DeploymentKind>(name).or_else(claim)
            }
            Workload::VirtualMachine => parent.conflict::<VirtualMachineKind>(name),
            Workload::VirtualMachineInstance => parent.conflict::<VirtualMachineInstanceKind>(name),
        };
        let secret = || self.is_machine().then(|| parent.conflict::<SecretKind>(name)).flatten();
        parent.conflict::<ServiceKind>(name).or_else(exposed).or_else(workload).or_else(secret)
    }
}

/// The spec of a claim of this size, of a storage class; empty for the default one.
fn claim(disk: &str, class: &str) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": disk}}});
    if !class.is_empty() {
        spec["storageClassName"] = class.into();
    }
    spec
}
