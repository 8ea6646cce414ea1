//! The input of the plan and the report of a snapshot.

use std::sync::Arc;

use derive_more::{AsMut, AsRef};

use crate::api::instance::Instance;
use crate::api::instance_snapshot::InstanceSnapshot;
use crate::api::names::CanonicalName;
use crate::api::template::Template;
use crate::config::Layout;
use crate::kinds::{DataVolume, Pod, PodOfJob, VirtualMachine, VirtualMachineInstance};
use crate::runtime::ObjectKey;
use crate::runtime::children::Children;
use crate::runtime::object_events::Events;

/// The complete input of plan and report, except the configuration and the time.
#[derive(Debug, Clone, AsRef, AsMut)]
pub struct Observed {
    /// The snapshot.
    #[as_ref(InstanceSnapshot)]
    #[as_mut]
    pub snapshot: Arc<InstanceSnapshot>,
    /// The Instance that it names, if it exists.
    pub instance: Option<Arc<Instance>>,
    /// The Template of the Instance, if it exists.
    pub template: Option<Arc<Template>>,
    /// Its Job, or another object with the same name, whatever its owner.
    pub children: Children,
    /// The pods of that Job.
    pub job_pods: Vec<Arc<PodOfJob>>,
    /// The events about the Job and its pods, if they wait for long.
    pub events: Events,
    /// Whether the Secret with the login to the registry exists in the namespace.
    pub has_secret: bool,
    /// The virtual machines of the Instance.
    pub machines: Vec<Arc<VirtualMachine>>,
    /// The `VirtualMachineInstance`s with the names of these machines. They exist while the machines run.
    pub running: Vec<Arc<VirtualMachineInstance>>,
    /// The `DataVolume`s with the names of these machines. They show the progress of disk imports.
    pub disks: Vec<Arc<DataVolume>>,
    /// The pods of the Instance.
    pub pods: Vec<Arc<Pod>>,
    /// Other snapshots of the Instance that have not ended.
    pub others: Vec<Arc<InstanceSnapshot>>,
    /// The Tenant that the namespace belongs to; `None` if it is not the personal namespace of a Tenant.
    pub namespace_tenant: Option<String>,
    /// The Tenant that owns the path of the repositories, if it is not the Tenant of the Instance.
    pub repository_owner: Option<String>,
    /// The naming of machines for an Instance that has none.
    pub layout: Layout,
}

impl Observed {
    /// The name of the disk of an environment. It is the name of the existing or future virtual machine. It contains
    /// the name of the environment, unless the Template has only one environment (`alone`) and the layout is classic.
    pub fn disk(&self, instance: &Instance, environment: &str, alone: bool) -> String {
        let short = CanonicalName::of(instance.name());
        let long = short.environment(environment);
        let is_there = |name: &str| self.machines.iter().any(|machine| machine.name() == name);
        let is_short = is_there(&short) || alone && self.layout == Layout::Classic;
        if is_there(&long) || !is_short { long.to_string() } else { short.to_string() }
    }
}

/// The key of the Instance of a snapshot. The Instance is in the namespace of the snapshot unless the snapshot names
/// another one.
pub fn instance_key(snapshot: &InstanceSnapshot) -> ObjectKey {
    let reference = &snapshot.spec.instance_ref;
    let namespace = if reference.namespace.is_empty() { snapshot.namespace() } else { &reference.namespace };
    ObjectKey::new(namespace, &reference.name)
}
