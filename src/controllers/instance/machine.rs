//! Virtual machine environments: the content of a `VirtualMachine` with a disk or of a `VirtualMachineInstance` without
//! one, and the cloud-init document.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::cloud_init::{self, Keys};
use super::environment::EnvironmentContext;
use super::exposure::GUI_PORT;
use super::mounts::{Mount, Source, decoded};
use super::observe::Observed;
use super::workload::Material;
use crate::api::environment::EnvironmentType;
use crate::api::labels;
use crate::config::VmPower;
use crate::controllers::shared::references;
use crate::kinds::{SecretKind, VirtualMachine, VirtualMachineInstanceKind, VirtualMachineKind};
use crate::runtime::plan::to_value;

/// The Secret that nodes use to pull the images of container disks.
const PULL_SECRET: &str = "registry-credentials";
/// The Secret that the importer of `DataVolume`s uses to pull images.
const IMPORT_SECRET: &str = "registry-credentials-cdi";

/// The data of the Secret with the cloud-init document.
pub fn cloud_init(context: &EnvironmentContext<'_>, keys: &Keys, mounts: &[Mount]) -> Value {
    let user_data = cloud_init::user_data(&context.config.vm_login, &keys.accepted, mounts);
    let encoded = |text: &str| to_value(&ByteString(text.as_bytes().to_vec()));
    let user_data = kept_user_data(context, &user_data).map_or_else(|| encoded(&user_data), Value::from);
    json!({"userdata": user_data, "x-shellscript": encoded(cloud_init::SCRIPT)})
}

/// The document of an existing machine as a Go operator or an earlier version wrote it, if it is equivalent to ours, or
/// was written when volumes were mounted in another way. It is kept because the machine has read it at its first boot,
/// and replaced before the machine is recreated.
fn kept_user_data<'o>(context: &EnvironmentContext<'o>, ours: &str) -> Option<&'o str> {
    let exists = context.named::<VirtualMachineKind>().is_some()
        || context.named::<VirtualMachineInstanceKind>().is_some();
    let existing = context.own::<SecretKind>().filter(|_| exists)?.spec.get("userdata")?;
    let text = decoded(existing)?;
    let is_kept = || cloud_init::says_the_same(&text, ours) || cloud_init::mounts_otherwise(&text, ours);
    (text != ours && is_kept()).then_some(existing)
}

/// The value of the annotation that lists the shared volumes that the machine mounts: the volumes of the Template and,
/// while the machine runs, the volumes from its start.
pub fn mounted_volumes(context: &EnvironmentContext<'_>) -> Option<String> {
    let mut volumes = references::shared_volumes(context.environment);
    if context.named::<VirtualMachineInstanceKind>().is_some()
        && let Some(secret) = context.own::<SecretKind>()
    {
        volumes.extend(references::mounted_volumes(secret));
    }
    references::mounted_volumes_annotation(&volumes)
}

/// The SSH keys that may log in: keys of the user, of the managers of the Workspace, and of the web terminal.
pub fn keys(observed: &Observed) -> Keys {
    let mut keys = Keys::default();
    let owner = &observed.instance.spec.tenant_ref.name;
    let managers = observed.managers.iter().filter(|manager| *owner != manager.name());
    for tenant in observed.tenant.iter().chain(managers) {
        keys.add(tenant.name(), &tenant.spec.public_keys);
    }
    if let Some(content) = &observed.master_key {
        keys.add_master(content);
    }
    keys
}

/// The spec of a `VirtualMachineInstance`, or of the template of a `VirtualMachine`.
pub fn spec(context: &EnvironmentContext<'_>, Material { resources, mounts, .. }: &Material) -> Value {
    let disk = |name: &str| json!({"name": name, "disk": {"bus": "virtio"}});
    let environment = context.environment;
    let root = if environment.persistent {
        json!({"name": "root", "dataVolume": {"name": context.name}})
    } else {
        json!({"name": "root", "containerDisk": {
            "image": environment.image,
            "imagePullSecret": PULL_SECRET,
            "imagePullPolicy": "IfNotPresent",
        }})
    };
    let mut disks = vec![disk("root")];
    let mut volumes = vec![root];
    if context.is_standard() {
        disks.push(disk("cloud-init"));
        let secret = json!({"secretRef": {"name": context.name}});
        volumes.push(json!({"name": "cloud-init", "cloudInitNoCloud": secret}));
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
    if let Some(selector) = context.node_selector() {
        spec["nodeSelector"] = to_value(&selector);
    }
    add_mirrors(&mut spec, mounts);
    spec
}

/// Adds the volumes that the cloud-init document mounts over virtiofs.
fn add_mirrors(spec: &mut Value, mounts: &[Mount]) {
    let mirrors: BTreeSet<&str> =
        mounts.iter().filter(|mount| mount.source == Source::Mirror).map(|mount| &*mount.volume).collect();
    if mirrors.is_empty() {
        return;
    }
    let filesystems: Value = mirrors.iter().map(|name| json!({"name": name, "virtiofs": {}})).collect();
    spec["domain"]["devices"]["filesystems"] = filesystems;
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.extend(mirrors.iter().map(|name| mirror_volume(name)));
    }
}

/// The volume of a pod or a machine with the claim of the same name.
pub fn mirror_volume(name: &str) -> Value {
    json!({"name": name, "persistentVolumeClaim": {"claimName": name}})
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

/// The strategy of a stopped machine.
const HALTED: &str = "Halted";
/// The strategy of a running machine.
const ALWAYS: &str = "Always";

/// Whether a machine runs, and the strategy for starting it again after a stop.
#[derive(Debug, PartialEq, Eq)]
pub struct Power {
    /// The member of the spec that contains the power state.
    pub field: (&'static str, Value),
    /// The strategy to store in the annotation, if it would otherwise be lost.
    pub remembered: Option<String>,
}

/// The power of the machine of an environment. An existing machine keeps the member that it was created with, because
/// KubeVirt rejects both members together. A strategy that lets the machine run is kept.
pub fn power(context: &EnvironmentContext<'_>) -> Power {
    let is_running = context.observed.instance.spec.running;
    let existing = context.own::<VirtualMachineKind>();
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
    // The strategy before the stop. The usual strategy is stored only to replace another one.
    let stopped_from = running().filter(|_| !is_running);
    let remembered = stopped_from.filter(|strategy| *strategy != ALWAYS || former.is_some()).or(former);
    Power { field: ("runStrategy", wanted.into()), remembered: remembered.map(str::to_owned) }
}

/// The enforced fields of a `VirtualMachine`.
pub fn enforced(context: &EnvironmentContext<'_>, power: &Power) -> Value {
    let (member, value) = &power.field;
    let mut fields = json!({"spec": {*member: value}});
    let existing = context.own::<VirtualMachineKind>();
    if let Some(interfaces) = existing.and_then(|existing| pinned(context.observed, existing)) {
        fields["spec"]["template"] = json!({"spec": {"domain": {"devices": {"interfaces": interfaces}}}});
    }
    fields
}

/// The network interfaces of a machine, with the MAC address of the first one copied from the running machine, so that
/// the machine keeps its DHCP lease after a stop. `None` if the address is already set or not known yet.
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
