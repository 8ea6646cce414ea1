//! The requirements of environments, and the requirements that a cluster does not meet now. The condition `Ready` of
//! a Template, the conditions of its Instances and the warnings of the webhooks all use [`obstacles`].
//!
//! Volume snapshots are not required: CDI copies a volume if the storage cannot clone it, and the snapshots of
//! Instances are images.

mod nodes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use self::nodes::{NodeRoom, Pool};
use super::environment::{Environment, EnvironmentMode, EnvironmentType};
use super::reason::{self, Reason};
use super::reference::GenericRef;
use super::resources::Resources;
use super::template::{Selector, TemplateSpec};

/// The Secret that the import pod of CDI needs for the disk of a persistent `VirtualMachine` environment.
pub const IMPORT_SECRET: &str = "registry-credentials-cdi";

/// The reasons of obstacles that affect the whole cluster, so that a change of the cluster may remove them.
pub const OF_CLUSTERS: [Reason; 8] = [
    reason::KUBEVIRT_MISSING,
    reason::CDI_MISSING,
    reason::STORAGE_CLASS_NOT_FOUND,
    reason::NO_NODE,
    reason::NODE_ON_DEMAND,
    reason::INGRESS_CLASS_MISSING,
    reason::GATEWAY_MISSING,
    reason::IMPORT_SECRET_MISSING,
];

/// The part of the configuration that determines the requirements of environments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The node pools of an autoscaler.
    pub pools: Vec<Pool>,
    /// The storage class of MyDrive; `None` if the daemon creates no personal volumes.
    pub my_drive_class: Option<String>,
    /// The Gateways of web interfaces; empty if Ingresses are used.
    pub gateways: Vec<GenericRef>,
}

/// The state of the cluster that environments depend on. A field is `None` while it is not known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cluster {
    /// The settings of the daemon.
    pub settings: Settings,
    /// Whether the CRDs of KubeVirt are installed.
    pub has_kubevirt: bool,
    /// Whether the CRDs of CDI are installed.
    pub has_cdi: bool,
    /// The nodes.
    pub nodes: Vec<NodeRoom>,
    /// The storage classes.
    pub storage_classes: Option<StorageClasses>,
    /// The Ingress classes.
    pub ingress_classes: Option<IngressClasses>,
    /// The Gateways; empty if their CRD is not installed.
    pub gateways: Option<BTreeSet<GenericRef>>,
}

/// The storage classes by name.
pub type StorageClasses = BTreeMap<String, ClassProperties>;

/// The properties of a storage class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassProperties {
    /// Whether it is the default class.
    pub is_default: bool,
    /// Whether a claim is bound only after a pod uses it (`volumeBindingMode: WaitForFirstConsumer`).
    pub waits_for_consumer: bool,
}

/// Returns the storage class of a claim, with its name; `None` if it does not exist. An empty name stands for the
/// default class.
pub fn class_of<'a>(classes: &'a StorageClasses, class: &str) -> Option<(&'a String, &'a ClassProperties)> {
    if class.is_empty() {
        classes.iter().find(|(_, properties)| properties.is_default)
    } else {
        classes.get_key_value(class)
    }
}

/// Whether the storage class of a claim exists. An empty name stands for the default class.
pub fn has_class(classes: &StorageClasses, class: &str) -> bool {
    class_of(classes, class).is_some()
}

/// The Ingress classes of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngressClasses {
    /// There are none.
    Missing,
    /// None of them is the default class.
    WithoutDefault,
    /// One of them is the default class. The Ingresses of Instances name no class, so they get it.
    WithDefault,
}

/// The state of a shared volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeState {
    /// It does not exist.
    Missing,
    /// It has no export yet. The text is the cause from its condition `Reconciled`; empty if the condition has no
    /// cause.
    Waiting(String),
    /// It can be mounted, or its state is not known.
    Exported,
}

/// The context of an environment: the cluster, and the existing objects of an Instance.
pub struct Surroundings<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The node selector of the Instance, where the Template leaves it to the Instance.
    pub selector: Option<&'a Selector>,
    /// The state of a shared volume.
    pub volume: &'a dyn Fn(&GenericRef) -> VolumeState,
    /// Whether [`IMPORT_SECRET`] exists: in the namespace of the Instance or, for a Template, in any namespace.
    pub has_import_secret: bool,
    /// Whether the disk of the Instance exists, so that nothing is needed to create it.
    pub has_disk: bool,
    /// Whether the MyDrive volume of the Tenant of the Instance exists.
    pub has_my_drive: bool,
}

impl<'a> Surroundings<'a> {
    /// The context for a Template: no objects of an Instance exist yet.
    pub fn of_template(
        cluster: &'a Cluster,
        volume: &'a dyn Fn(&GenericRef) -> VolumeState,
        has_import_secret: bool,
    ) -> Self {
        Self { cluster, selector: None, volume, has_import_secret, has_disk: false, has_my_drive: false }
    }
}

/// A requirement of an environment that the cluster does not meet now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The environment.
    pub environment: String,
    /// The reason for conditions and events.
    pub reason: Reason,
    /// A sentence that names the missing part, and how to add it.
    pub message: String,
    /// Whether the obstacle is expected to disappear without a change of the Template.
    pub is_waiting: bool,
}

impl Obstacle {
    /// Whether the environment cannot start with this obstacle. Other obstacles are certain only once its objects
    /// show a problem: for example, an Ingress controller may work without a class.
    pub fn stops_start(&self) -> bool {
        ![reason::INGRESS_CLASS_MISSING, reason::GATEWAY_MISSING, reason::IMPORT_SECRET_MISSING]
            .contains(&self.reason)
    }
}

/// Returns the obstacles to starting and using an environment of a Template. The first obstacle should be solved
/// first.
pub fn obstacles(spec: &TemplateSpec, environment: &Environment, around: &Surroundings<'_>) -> Vec<Obstacle> {
    let mut found: Vec<Obstacle> = kubevirt(around.cluster, environment).into_iter().collect();
    found.extend(storage(environment, around));
    found.extend(volumes(environment, around));
    let requests = Resources::of(environment).map(|resources| resources.requests());
    let selector = around.selector.or_else(|| spec.node_selector_of(environment));
    let is_machine = environment.environment_type.is_vm() && around.cluster.has_kubevirt;
    found.extend(requests.ok().and_then(|requests| {
        let need = nodes::Need { selector, requests: &requests, is_machine };
        nodes::missing(&around.cluster.nodes, &around.cluster.settings.pools, &need)
            .map(|(reason, message)| obstacle(environment, reason, &message))
    }));
    found.extend(web(environment, around.cluster));
    found
}

/// The obstacle that the CRDs of KubeVirt or CDI are not installed. Without them, the objects of a virtual machine
/// cannot be created.
pub fn kubevirt(cluster: &Cluster, environment: &Environment) -> Option<Obstacle> {
    if !environment.environment_type.is_vm() {
        return None;
    }
    if !cluster.has_kubevirt {
        let message = "the cluster has no virtual machines (KubeVirt's CRDs are not installed); it starts when they are";
        return Some(obstacle(environment, reason::KUBEVIRT_MISSING, message));
    }
    let message = "its disk cannot be filled (CDI's CRDs are not installed); it starts when they are";
    (environment.persistent && !cluster.has_cdi).then(|| obstacle(environment, reason::CDI_MISSING, message))
}

/// The obstacles about the storage class of the disk, the Secret of the import, and the class of MyDrive.
fn storage(environment: &Environment, around: &Surroundings<'_>) -> Vec<Obstacle> {
    let mut found = Vec::new();
    let classes = around.cluster.storage_classes.as_ref();
    let missing = |message: String| obstacle(environment, reason::STORAGE_CLASS_NOT_FOUND, &message);
    if environment.persistent && !around.has_disk {
        let class = &environment.storage_class_name;
        if classes.is_some_and(|classes| !has_class(classes, class)) {
            found.push(missing(if class.is_empty() {
                "its disk has no storage class: the Template names none, and no class of the cluster is the default \
                 (annotation storageclass.kubernetes.io/is-default-class)"
                    .to_owned()
            } else {
                format!("the storage class {class} of its disk does not exist")
            }));
        }
        if environment.environment_type == EnvironmentType::VirtualMachine && !around.has_import_secret {
            let message = format!(
                "its disk cannot be imported without the Secret {IMPORT_SECRET} in the namespace of its user"
            );
            found.push(obstacle(environment, reason::IMPORT_SECRET_MISSING, &message));
        }
    }
    if let Some(class) = &around.cluster.settings.my_drive_class
        && mounts_my_drive(environment)
        && !around.has_my_drive
        && classes.is_some_and(|classes| !has_class(classes, class))
    {
        found.push(missing(format!(
            "the storage class {class} of MyDrive, which it mounts, does not exist \
             (controllers.tenant.myDrive.storageClassName)"
        )));
    }
    found
}

/// Whether the environment mounts MyDrive. An exam or exercise in a virtual machine does not, because it has no
/// cloud-init document.
fn mounts_my_drive(environment: &Environment) -> bool {
    let is_standard = environment.mode == EnvironmentMode::Standard;
    environment.mount_my_drive_volume && (is_standard || !environment.environment_type.is_vm())
}

/// The obstacles about the shared volumes that the environment mounts.
fn volumes(environment: &Environment, around: &Surroundings<'_>) -> Vec<Obstacle> {
    let references: BTreeSet<&GenericRef> =
        environment.shared_volume_mounts.iter().map(|mount| &mount.shared_volume).collect();
    references
        .into_iter()
        .filter_map(|volume| of_volume(environment, volume, &(around.volume)(volume)))
        .collect()
}

/// The obstacle that a shared volume in this state causes.
pub fn of_volume(environment: &Environment, volume: &GenericRef, state: &VolumeState) -> Option<Obstacle> {
    let GenericRef { namespace, name } = volume;
    let subject = format!("the SharedVolume {namespace}/{name} that it mounts");
    let (reason, message) = match state {
        VolumeState::Exported => return None,
        VolumeState::Missing => {
            (reason::SHARED_VOLUME_NOT_FOUND, format!("{subject} does not exist; it starts when it does"))
        }
        VolumeState::Waiting(cause) => {
            let cause = if cause.is_empty() { String::new() } else { format!(": {cause}") };
            let message = format!("{subject} is not exported yet{cause}; the environment waits for it");
            (reason::SHARED_VOLUME_NOT_READY, message)
        }
    };
    Some(obstacle(environment, reason, &message))
}

/// The obstacle about the Ingress class, or the Gateways, of the web interface.
fn web(environment: &Environment, cluster: &Cluster) -> Option<Obstacle> {
    if !environment.gui_enabled {
        return None;
    }
    let wanted = &cluster.settings.gateways;
    if wanted.is_empty() {
        // Without a default class, a controller may accept Ingresses without a class, as ingress-nginx for kind does.
        let message = "its web interface cannot be reached: the cluster has no Ingress class; install an Ingress controller";
        return (cluster.ingress_classes == Some(IngressClasses::Missing))
            .then(|| obstacle(environment, reason::INGRESS_CLASS_MISSING, message));
    }
    let known = cluster.gateways.as_ref()?;
    let missing = wanted.iter().find(|gateway| !known.contains(gateway))?;
    let message = format!(
        "its web interface cannot be reached: the Gateway {}/{} does not exist \
         (controllers.instance.gatewayApi.parentRefs)",
        missing.namespace, missing.name
    );
    Some(obstacle(environment, reason::GATEWAY_MISSING, &message))
}

fn obstacle(environment: &Environment, reason: Reason, message: &str) -> Obstacle {
    let name = &environment.name;
    let is_waiting = [
        reason::KUBEVIRT_MISSING,
        reason::CDI_MISSING,
        reason::NODE_ON_DEMAND,
        reason::SHARED_VOLUME_NOT_READY,
    ]
    .contains(&reason);
    let message = format!("environment {name}: {message}");
    Obstacle { environment: name.clone(), reason, message, is_waiting }
}
