//! The stores of the submission loop, and the Instances that their changes add to the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::children;
use super::observe::{Observed, is_requested, open_request};
use super::receipt_mail::{Mailing, owed};
use crate::api::instance::{Instance, InstanceKind};
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::{Kind, labels};
use crate::controllers::cleanup::mail_log::Mailed;
use crate::controllers::shared::job_pods::pods_of_jobs;
use crate::controllers::shared::references::{ByInstance, ByTemplate, instance_of, template_of};
use crate::controllers::shared::tenancy::foreign_tenant;
use crate::kinds::{
    DeploymentKind, JOB_NAME, NamespaceKind, PersistentVolumeClaimKind, PodKind, PodOfJobKind,
    VirtualMachineInstanceKind, VirtualMachineKind,
};
use crate::runtime::ObjectKey;
use crate::runtime::children::{ChildStores, Children};
use crate::runtime::object_events::Events;
use crate::runtime::queue::{Priority, Queue};
use crate::runtime::store::{ByController, Store};
use crate::runtime::store_set::{Declaration, StoreSet};
use crate::runtime::watch::Selection;

/// The stores of the submission loop.
pub struct Stores {
    /// The labels of the namespaces whose Instances are reconciled.
    selector: BTreeMap<String, String>,
    instances: Arc<Store<InstanceKind>>,
    templates: Arc<Store<TemplateKind>>,
    tenants: Arc<Store<TenantKind>>,
    namespaces: Arc<Store<NamespaceKind>>,
    children: ChildStores,
    /// The pods of Jobs.
    job_pods: Arc<Store<PodOfJobKind>>,
    pods: Arc<Store<PodKind>>,
    machine_instances: Arc<Store<VirtualMachineInstanceKind>>,
    machines: Arc<Store<VirtualMachineKind>>,
    deployments: Arc<Store<DeploymentKind>>,
    claims: Arc<Store<PersistentVolumeClaimKind>>,
}

/// Whether a request is open or has to be opened, or the mail with the receipts has to be sent.
fn is_concerned(instance: &Instance) -> bool {
    is_requested(instance) || open_request(instance).is_some() || owed(instance, &Mailed::default()).is_some()
}

/// Adds such an Instance to the queue.
fn enqueue(instances: &Store<InstanceKind>, queue: &Queue, key: ObjectKey) {
    if instances.get(&key.namespace, &key.name).is_some_and(|instance| is_concerned(&instance)) {
        queue.add(key, Priority::Change);
    }
}

impl Stores {
    /// Declares the stores. Only Instances in namespaces with the labels of `selector` are reconciled.
    pub fn declare(set: &mut StoreSet<'_>, selector: &BTreeMap<String, String>) -> Self {
        let all = Selection::ALL;
        let ours = Selection::label(labels::MANAGED_BY, labels::MANAGED_BY_INSTANCE);
        let of_instances = Selection::labelled(labels::INSTANCE);
        let instances = set.store::<InstanceKind>(&all).requests("get patch").index::<ByTemplate>();
        let instances = instances.listed(is_concerned).on_foreign_change(|change, queue| {
            let sides = [&change.old, &change.new];
            if let Some(instance) = change.object()
                && sides.into_iter().flatten().any(|instance| is_concerned(instance))
            {
                queue.add(ObjectKey::of(&**instance), Priority::Change);
            }
        });
        let instances = instances.get();
        let waiting = Arc::clone(&instances);
        let templates = set.store::<TemplateKind>(&all).on_change(move |change, queue| {
            let Some(template) = change.object() else { return };
            for key in waiting.keys_by::<ByTemplate>(&ObjectKey::of(&**template)) {
                enqueue(&waiting, queue, key);
            }
        });
        let templates = templates.get();
        let (children, jobs) = children::declare(set);
        Self {
            selector: selector.clone(),
            templates,
            tenants: set.store(&all).get(),
            namespaces: set.store(&all).wakes_objects_within(&instances, selector).get(),
            children,
            job_pods: pods_of_jobs::<InstanceKind>(set.store(&Selection::labelled(JOB_NAME)), &jobs),
            pods: of_instance(set.store(&of_instances), &instances),
            machine_instances: of_instance(set.store(&of_instances).optional(), &instances),
            machines: set.store(&ours).optional().index::<ByController>().get(),
            deployments: set.store(&ours).index::<ByController>().get(),
            claims: set.store(&ours).index::<ByController>().get(),
            instances,
        }
    }

    /// The observation of an Instance; `None` if it does not exist or its namespace is not selected.
    pub fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let instance = self.instances.get(&key.namespace, &key.name)?;
        let namespace = self.namespaces.get("", &key.namespace);
        let namespace = namespace.filter(|namespace| namespace.has_labels(&self.selector))?;
        let foreign_tenant = foreign_tenant(&instance, &namespace);
        let tenant = self.tenants.get("", &instance.spec.tenant_ref.name);
        let mut observed = Observed {
            template: template_of(&instance, &self.templates),
            tenant: tenant.filter(|_| foreign_tenant.is_none()),
            foreign_tenant,
            workloads: self.workloads(instance.uid()),
            children: Children::default(),
            // The reconciler adds them.
            events: Events::Unknown,
            mailing: Mailing::default(),
            job_pods: Vec::new(),
            pods: self.pods.by::<ByInstance>(key),
            machines: self.machine_instances.by::<ByInstance>(key),
            instance,
        };
        observed.children = self.children.children(observed.instance.uid(), &observed.keys());
        let pods = observed.own_jobs().flat_map(|job| self.job_pods.by::<ByController>(job.uid()));
        observed.job_pods = pods.collect();
        Some(observed)
    }

    /// The names of the workloads and claims that the Instance with this uid controls.
    fn workloads(&self, uid: &str) -> BTreeSet<String> {
        fn names<T: Kind>(store: &Store<T>, uid: &str) -> Vec<String> {
            store.by::<ByController>(uid).iter().map(|object| object.name().to_owned()).collect()
        }
        let all = [names(&self.machines, uid), names(&self.deployments, uid), names(&self.claims, uid)];
        all.into_iter().flatten().collect()
    }
}

/// Declares the store of a kind that shows whether an Instance is running. A change adds the Instance if it has a
/// request.
fn of_instance<T: Kind>(
    store: Declaration<'_, '_, T>,
    instances: &Arc<Store<InstanceKind>>,
) -> Arc<Store<T>> {
    let instances = Arc::clone(instances);
    let store = store.index::<ByInstance>().on_change(move |change, queue| {
        if let Some(key) = change.object().and_then(|object| instance_of(&**object)) {
            enqueue(&instances, queue, key);
        }
    });
    store.get()
}
