//! Virtual machine environments: what a `VirtualMachine` with a disk of its own, or a `VirtualMachineInstance` without one,
//! is made of, and its cloud-init document.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::cloud_init::{self, Keys};
use super::environment::EnvironmentContext;
use super::exposure::GUI_PORT;
use super::mounts::Mount;
use super::observe::Observed;
use crate::api::environment::EnvironmentType;
use crate::api::labels;
use crate::api::resources::Resources;
use crate::config::VmPower;
use crate::controllers::shared::references;
use crate::kinds::{SecretKind, VirtualMachine, VirtualMachineInstanceKind, VirtualMachineKind};
use crate::runtime::plan::to_value;

/// The Secret with which nodes pull the images of container disks.
const PULL_SECRET: &str = "registry-credentials";
/// The Secret with which the importer of `DataVolume`s pulls images.
const IMPORT_SECRET: &str = "registry-credentials-cdi";

/// The data of the Secret with the cloud-init document.
pub fn cloud_init(context: &EnvironmentContext<'_>, keys: &Keys, mounts: &[Mount]) -> Value {
    let user_data = cloud_init::user_data(&context.config.vm_login, &keys.accepted, mounts);
    let encoded = |text: &str| to_value(&ByteString(text.as_bytes().to_vec()));
    let user_data = kept_user_data(context, &user_data).map_or_else(|| encoded(&user_data), Value::from);
    json!({"userdata": user_data, "x-shellscript": encoded(cloud_init::SCRIPT)})
}

/// The document of an existing machine as a Go operator or an earlier version wrote it, if it says the same as ours: the machine
/// has read it at its first boot. It gives way to ours before a machine is made anew.
fn kept_user_data<'o>(context: &EnvironmentContext<'o>, ours: &str) -> Option<&'o str> {
    let (observed, name) = (context.observed, &context.name);
    let exists = observed.named::<VirtualMachineKind>(name).is_some()
        || observed.named::<VirtualMachineInstanceKind>(name).is_some();
    let existing = observed.own::<SecretKind>(name).filter(|_| exists)?.spec.get("userdata")?;
    let bytes: ByteString = serde_json::from_value(existing.into()).ok()?;
    let text = std::str::from_utf8(&bytes.0).ok()?;
    (text != ours && cloud_init::says_the_same(text, ours)).then_some(existing)
}

/// The value of the annotation that lists the shared volumes that the machine mounts: those of the Template,
/// and while it runs also those that it was started with.
pub fn mounted_volumes(context: &EnvironmentContext<'_>) -> Option<String> {
    let mut volumes = references::shared_volumes(context.environment);
    if context.observed.named::<VirtualMachineInstanceKind>(&context.name).is_some()
        && let Some(secret) = context.observed.own::<SecretKind>(&context.name)
    {
        volumes.extend(references::mounted_volumes(secret));
    }
    references::mounted_volumes_annotation(&volumes)
}

/// The SSH keys that may log in: those of the user, the managers of the Workspace, and the web terminal.
pub fn keys(observed: &Observed) -> Keys {
    let mut keys = Keys::default();
    if let Some(tenant) = &observed.tenant {
        keys.add(tenant.name(), &tenant.spec.public_keys);
    }
    let owner = &observed.instance.spec.tenant_ref.name;
    for manager in observed.managers.iter().filter(|manager| manager.name() != owner) {
        keys.add(manager.name(), &manager.spec.public_keys);
    }
    if let Some(content) = &observed.master_key {
        keys.add_master(content);
    }
    keys
}

/// A volume of a machine with this source.
fn volume(name: &str, source: Value) -> Value {
    let mut volume = json!({"name": name});
    if let (Some(volume), Value::Object(source)) = (volume.as_object_mut(), source) {
        volume.extend(source);
    }
    volume
}

/// The spec of a `VirtualMachineInstance`, or of the template of a `VirtualMachine`.
pub fn spec(context: &EnvironmentContext<'_>, resources: &Resources) -> Value {
    let disk = |name: &str| json!({"name": name, "disk": {"bus": "virtio"}});
    let environment = context.environment;
    let root = if environment.persistent {
        json!({"dataVolume": {"name": context.name}})
    } else {
        json!({"containerDisk": {
            "image": environment.image,
            "imagePullSecret": PULL_SECRET,
            "imagePullPolicy": "IfNotPresent",
        }})
    };
    let mut disks = vec![disk("root")];
    let mut volumes = vec![volume("root", root)];
    if context.is_standard() {
        disks.push(disk("cloud-init"));
        volumes
            .push(volume("cloud-init", json!({"cloudInitNoCloud": {"secretRef": {"name": context.name}}})));
    }
    let mut spec = json!({
        "domain": {
            "cpu": {"cores": resources.cores},
            "memory": {"guest": resources.memory.to_string()},
            "resources": resources.to_json(),
            "devices": {"disks": disks, "interfaces": [{"name": "default", "bridge": {}}]},
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": volumes,
        "readinessProbe": {
            "initialDelaySeconds": 10,
            "periodSeconds": 2,
            "successThreshold": 2,
            "failureThreshold": 5,
            "tcpSocket": {"port": if environment.gui_enabled { GUI_PORT } else { 22 }},
        },
        "terminationGracePeriodSeconds": 60,
    });
    let selector = context.node_selector().filter(|selector| !selector.is_empty());
    if let (Some(selector), Some(spec)) = (selector, spec.as_object_mut()) {
        spec.insert("nodeSelector".to_owned(), to_value(&selector));
    }
    spec
}

/// The source of the `DataVolume` of a persistent machine.
pub fn source(context: &EnvironmentContext<'_>) -> Value {
    let image = &context.environment.image;
    match context.environment.environment_type {
        EnvironmentType::CloudVm => json!({"http": {"url": image}}),
        EnvironmentType::LocalVm => {
            let (namespace, name) = image.split_once('/').unwrap_or_default();
            json!({"pvc": {"namespace": namespace, "name": name}})
        }
        _ => json!({"registry": {"url": format!("docker://{image}"), "secretRef": IMPORT_SECRET}}),
    }
}

/// The strategy of a machine that does not run.
const HALTED: &str = "Halted";
/// The strategy of a machine that runs.
const ALWAYS: &str = "Always";

/// Whether a machine runs, and the strategy by which it is started again once it is stopped.
#[derive(Debug, PartialEq, Eq)]
pub struct Power {
    /// The member of the spec that says it.
    pub field: (&'static str, Value),
    /// The strategy to be remembered, if it is one that would be lost.
    pub remembered: Option<String>,
}

/// The power of the machine of an environment. An existing one has the member that it was made with, since KubeVirt refuses
/// both; and a strategy that lets it run is kept, whichever that is.
pub fn power(context: &EnvironmentContext<'_>) -> Power {
    let is_running = context.observed.instance.spec.running;
    let existing = context.observed.own::<VirtualMachineKind>(&context.name);
    let has_strategy = existing.map_or(context.config.vm_power == VmPower::RunStrategy, |machine| {
        machine.spec.run_strategy.is_some()
    });
    if !has_strategy {
        return Power { field: ("running", is_running.into()), remembered: None };
    }
    let strategy = existing.and_then(|machine| machine.spec.run_strategy.as_deref());
    let former = existing.and_then(|machine| machine.annotation(labels::RUN_STRATEGY));
    let running = || strategy.filter(|strategy| *strategy != HALTED);
    let wanted = if is_running { running().or(former).unwrap_or(ALWAYS) } else { HALTED };
    // The one that it is stopped from; the usual one only in the place of another.
    let stopped_from = running().filter(|_| !is_running);
    let remembered = stopped_from.filter(|strategy| *strategy != ALWAYS || former.is_some()).or(former);
    Power { field: ("runStrategy", wanted.into()), remembered: remembered.map(str::to_owned) }
}

/// What is enforced of a `VirtualMachine`.
pub fn enforced(context: &EnvironmentContext<'_>, power: &Power) -> Value {
    let (member, value) = &power.field;
    let mut fields = json!({"spec": {*member: value}});
    let existing = context.observed.own::<VirtualMachineKind>(&context.name);
    if let Some(interfaces) = existing.and_then(|existing| pinned(context.observed, existing)) {
        fields["spec"]["template"] = json!({"spec": {"domain": {"devices": {"interfaces": interfaces}}}});
    }
    fields
}

/// The network interfaces of a machine, with the MAC address of the first one set to that of the running
/// machine, so that it keeps its DHCP lease after a stop. `None` when the address is set already or not
/// known yet.
fn pinned(observed: &Observed, machine: &VirtualMachine) -> Option<Vec<Value>> {
    let mut interfaces = machine.spec.template.spec.domain.devices.interfaces.clone();
    let first = interfaces.first_mut()?.as_object_mut()?;
    let name = first.get("name")?.as_str()?.to_owned();
    if first.get("macAddress").and_then(Value::as_str).is_some_and(|address| !address.is_empty()) {
        return None;
    }
    let running = observed.named::<VirtualMachineInstanceKind>(machine.name())?;
    let given = running.status.interfaces.iter().find(|interface| interface.name == name)?;
    if given.mac.is_empty() {
        return None;
    }
    first.insert("macAddress".to_owned(), given.mac.clone().into());
    Some(interfaces)
}
