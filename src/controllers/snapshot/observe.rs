//! What a reconcile of a snapshot knows.

use std::sync::Arc;

use crate::api::instance::Instance;
use crate::api::instance_snapshot::InstanceSnapshot;
use crate::api::names::canonical;
use crate::api::template::Template;
use crate::api::{Kind, Object};
use crate::kinds::{DataVolume, Job, Pod, VirtualMachine, VirtualMachineInstance};
use crate::runtime::ObjectKey;

/// Everything that plan and report depend on, but for the configuration and the time.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The snapshot.
    pub snapshot: Arc<InstanceSnapshot>,
    /// The Instance that it names, if it exists.
    pub instance: Option<Arc<Instance>>,
    /// The Template of the Instance, if it exists.
    pub template: Option<Arc<Template>>,
    /// Whatever stands where its Job should.
    pub job: Option<Arc<Job>>,
    /// The virtual machines of the Instance.
    pub machines: Vec<Arc<VirtualMachine>>,
    /// Those of the Instance's machines that run.
    pub running: Vec<Arc<VirtualMachineInstance>>,
    /// The disks of the namespace that are still being filled, as far as they are the Instance's.
    pub disks: Vec<Arc<DataVolume>>,
    /// The pods of the Instance.
    pub pods: Vec<Arc<Pod>>,
    /// Other snapshots of the Instance that have not ended.
    pub others: Vec<Arc<InstanceSnapshot>>,
    /// The Tenant whose own the namespace is, if it is one's.
    pub resident: Option<String>,
    /// The Tenant that the repository belongs to, if it is not the Instance's.
    pub repository_owner: Option<String>,
}

impl Observed {
    /// Whether the snapshot controls the object.
    pub fn owns<T: Kind>(&self, object: &Object<T>) -> bool {
        object.controller_uid() == Some(self.snapshot.uid())
    }

    /// The name of the disk of an environment: that of its machine. The only environment of a Template
    /// needs no name of its own in it.
    pub fn disk(&self, instance: &Instance, environment: &str, alone: bool) -> String {
        let short = canonical(instance.name());
        let long = format!("{short}-{environment}");
        let is_there = |name: &str| self.machines.iter().any(|machine| machine.name() == name);
        if is_there(&long) || !alone && !is_there(&short) { long } else { short }
    }
}

/// The key of the Instance of a snapshot; it is looked for in the snapshot's own namespace unless the
/// snapshot says otherwise.
#[must_use]
pub fn instance_key(snapshot: &InstanceSnapshot) -> ObjectKey {
    let reference = &snapshot.spec.instance_ref;
    let namespace = if reference.namespace.is_empty() { snapshot.namespace() } else { &reference.namespace };
    ObjectKey::new(namespace, &reference.name)
}
