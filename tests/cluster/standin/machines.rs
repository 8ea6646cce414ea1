//! `KubeVirt` and CDI as pure functions from the known objects to the next write, if there is one.
//!
//! They do what virt-controller and CDI do: a `VirtualMachine` gets its `DataVolumes` at once and its
//! `VirtualMachineInstance` while it should run; the latter gets a launcher pod, which the scheduler places and kwok
//! starts. Migration, pausing and the finalizer of the `VirtualMachine` are not simulated.

use std::time::Duration;

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::cache::{Cache, Key, Kind};
use super::{Step, objects};

/// The finalizer of a `VirtualMachineInstance`, which stays terminating while it shuts down.
pub const FINALIZER: &str = "foregroundDeleteVirtualMachine";

/// The next step of a `VirtualMachine`: its disks, its status, then its instance.
pub fn machine(cache: &Cache, key: &Key) -> Option<Step> {
    let vm = cache.get(key)?;
    if vm.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let disks = vm.data.pointer("/spec/dataVolumeTemplates").and_then(Value::as_array);
    let mut imported = true;
    for disk in disks.into_iter().flatten() {
        let name = disk.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let Some(volume) = cache.get(&key.sibling(Kind::DataVolume, name)) else {
            return Some(Step::create(Kind::DataVolume, objects::data_volume(vm, disk, name)));
        };
        imported &= phase(volume) == "Succeeded";
    }
    let instance = cache.get(&key.sibling(Kind::Instance, &key.name));
    let status = machine_status(vm, instance, imported);
    if vm.data.get("status") != Some(&status) {
        return Some(Step::patch_status(json!({"metadata": {"uid": vm.uid()}, "status": status})));
    }
    match instance {
        None if should_run(vm) && imported => Some(Step::create(Kind::Instance, objects::instance(vm))),
        Some(instance) if instance.metadata.deletion_timestamp.is_none() && !may_stay(vm, instance) => {
            Some(Step::delete(key.sibling(Kind::Instance, &key.name), instance))
        }
        _ => None,
    }
}

/// Whether `spec.running` or `spec.runStrategy` requests an instance.
fn should_run(vm: &DynamicObject) -> bool {
    let spec = &vm.data["spec"];
    spec["running"] == json!(true)
        || matches!(spec["runStrategy"].as_str(), Some("Always" | "RerunOnFailure" | "Once"))
}

/// Whether the instance is wanted and has not ended.
fn may_stay(vm: &DynamicObject, instance: &DynamicObject) -> bool {
    should_run(vm) && !matches!(phase(instance), "Succeeded" | "Failed")
}

fn machine_status(vm: &DynamicObject, instance: Option<&DynamicObject>, imported: bool) -> Value {
    let ready = instance.is_some_and(is_ready);
    let printable = match instance {
        Some(instance) if instance.metadata.deletion_timestamp.is_some() || !may_stay(vm, instance) => {
            "Stopping"
        }
        Some(instance) if phase(instance) == "Running" => "Running",
        Some(_) => "Starting",
        None if !imported => "Provisioning",
        None if should_run(vm) => "Starting",
        None => "Stopped",
    };
    let mut status = json!({"printableStatus": printable, "created": instance.is_some(), "ready": ready});
    let reason = if ready { "VMIReady" } else { "VMINotReady" };
    // The time stays the same while the condition does: the caller compares the whole status.
    let since = condition_since(vm, ready).unwrap_or_else(objects::now);
    let word = if ready { "True" } else { "False" };
    status["conditions"] = json!([{"type": "Ready", "status": word, "reason": reason, "message": "", "lastTransitionTime": since}]);
    status
}

/// Since when the condition Ready has this value; `None` when it has another one.
fn condition_since(object: &DynamicObject, ready: bool) -> Option<String> {
    let condition = &object.data["status"]["conditions"][0];
    let same = condition["status"] == if ready { "True" } else { "False" };
    same.then(|| condition["lastTransitionTime"].as_str().map(str::to_owned)).flatten()
}

/// The next step of a `VirtualMachineInstance`: pending, launcher pod, scheduling, running; when it is deleted, the
/// removal of the finalizer.
pub fn instance(cache: &Cache, key: &Key, delay: Duration) -> Option<Step> {
    let vmi = cache.get(key)?;
    if vmi.metadata.deletion_timestamp.is_some() {
        let held = vmi.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        let kept: Vec<_> = vmi.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).collect();
        let patch = json!({"metadata": {"uid": vmi.uid(), "finalizers": kept}});
        return held.then(|| Step::patch(patch).after(delay));
    }
    let launcher_key = key.sibling(Kind::Launcher, &objects::launcher_name(&key.name));
    let launcher = cache.get(&launcher_key);
    let uid = vmi.uid().unwrap_or_default();
    if launcher.is_some_and(|pod| pod.owner_references().iter().all(|owner| owner.uid != uid)) {
        // The pod of a deleted instance of this name, until the garbage collector has removed it.
        return None;
    }
    match (phase(vmi), launcher) {
        ("", _) => {
            let mut finalizers = vmi.finalizers().to_vec();
            finalizers.push(FINALIZER.to_owned());
            let metadata = json!({"uid": vmi.uid(), "finalizers": finalizers});
            Some(Step::patch(json!({"metadata": metadata, "status": {"phase": "Pending"}})))
        }
        ("Pending", None) => Some(launch(cache, vmi, &launcher_key)),
        ("Pending", Some(_)) => {
            let not_ready = json!([objects::condition("Ready", false, "GuestNotRunning", "")]);
            Some(status_of_instance(vmi, &json!({"phase": "Scheduling", "conditions": not_ready})))
        }
        ("Scheduling", Some(pod)) if phase(pod) == "Running" => {
            Some(status_of_instance(vmi, &objects::running_instance(vmi, pod)).after(delay))
        }
        _ => None,
    }
}

/// Creates the launcher pod; first writes a condition if the last attempt was rejected.
fn launch(cache: &Cache, vmi: &DynamicObject, launcher: &Key) -> Step {
    let create = Step::create(Kind::Launcher, objects::launcher(vmi));
    let Some(refusal) = cache.refusals.get(launcher) else { return create };
    let message = format!("failed to create virtual machine pod: {refusal}");
    let reported = vmi.data["status"]["conditions"].as_array().into_iter().flatten();
    if reported.into_iter().any(|condition| condition["message"] == json!(message)) {
        return create;
    }
    let condition = objects::condition("Synchronized", false, "FailedCreate", &message);
    status_of_instance(vmi, &json!({"conditions": [condition]}))
}

/// Writes the status with the object itself, since a `VirtualMachineInstance` has no status subresource.
fn status_of_instance(vmi: &DynamicObject, status: &Value) -> Step {
    Step::patch(json!({"metadata": {"uid": vmi.uid()}, "status": status}))
}

/// The next step of a `DataVolume`: pending, its claim, the import or clone, then success.
pub fn data_volume(cache: &Cache, key: &Key, delay: Duration) -> Option<Step> {
    let volume = cache.get(key)?;
    if volume.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = |phase: &str, progress: &str| {
        let status = json!({"phase": phase, "progress": progress});
        Step::patch_status(json!({"metadata": {"uid": volume.uid()}, "status": status}))
    };
    let is_clone = volume.data.pointer("/spec/source/pvc").is_some();
    match phase(volume) {
        "" => Some(status("Pending", "N/A")),
        "Succeeded" => None,
        _ if cache.get(&key.sibling(Kind::Claim, &key.name)).is_none() => {
            Some(Step::create(Kind::Claim, objects::claim(volume)))
        }
        "Pending" if is_clone => Some(status("CloneInProgress", "0.0%")),
        "Pending" => Some(status("ImportInProgress", "0.0%")),
        _ => Some(status("Succeeded", "100.0%").after(delay)),
    }
}

fn phase(object: &DynamicObject) -> &str {
    object.data.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

fn is_ready(vmi: &DynamicObject) -> bool {
    let conditions = vmi.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    phase(vmi) == "Running"
        && conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
