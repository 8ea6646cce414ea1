//! The cluster under test: its initial objects, the end of all writes, and the comparison.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::COURSE;
use super::disturbances::Replicas;
pub use crate::comparable::Objects;
use crate::comparable::comparable;
use crate::daemon::Daemon;
use crate::lab::{Lab, templates, wait_until};

/// How long everything may take after the last disturbance: a reconcile that keeps failing is retried after five
/// minutes at the latest.
const REST: Duration = Duration::from_mins(8);
/// How long there must be no write until the cluster counts as at rest.
const QUIET: Duration = Duration::from_secs(3);
/// The kinds of users' objects, which are copied to another control plane.
const USERS: &str = "workspaces,tenants,templates,sharedvolumes,instances.crownlabs.polito.it";
/// The kinds that are compared.
pub const KINDS: &str = "workspaces,tenants,templates,sharedvolumes,instances.crownlabs.polito.it,services,\
    ingresses.networking.k8s.io,secrets,persistentvolumeclaims,deployments,virtualmachines.kubevirt.io,namespaces,\
    networkpolicies,resourcequotas,limitranges,rolebindings,clusterroles,clusterrolebindings";

/// Creates the course with its Templates.
pub fn set_up(lab: &Lab) {
    lab.apply(&format!(
        "apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {{name: {COURSE}, labels: {{crownlabs.polito.it/operator-selector: {COURSE}}}}}
spec: {{prettyName: Course, quota: {{cpu: 100, memory: 100Gi, instances: 100}}}}
"
    ));
    lab.await_ready("workspaces", COURSE);
    lab.apply(&templates(COURSE));
    for template in crate::lab::TEMPLATES {
        let allowed = r#"{"spec": {"allowPublicExposure": true}}"#;
        lab.patch("templates", &format!("workspace-{COURSE}"), template, allowed);
    }
}

/// Enrols every Tenant, waits for rest, switches every Instance on, waits, and switches the Instances off again that
/// were off. Without a course there is no quota, and the objects of an Instance depend on whether it ever ran.
pub fn finish(lab: &Lab, replicas: &mut Replicas<'_>) {
    for tenant in lab.list("tenants", "") {
        if tenant["spec"]["workspaces"][0].is_null() {
            let name = tenant["metadata"]["name"].as_str().unwrap_or_default();
            let enrolled = json!({"spec": {"workspaces": [{"name": COURSE, "role": "user"}]}});
            // It may be gone by now.
            let _ = lab.cluster.patch("tenants", "", name, None, &enrolled.to_string());
        }
    }
    await_rest(lab, replicas);
    // Its garbage collector misses the end of an object that is created again while its watch is broken. It finds the
    // dependents when it starts.
    lab.cluster.stop_controller_manager();
    lab.cluster.start_controller_manager().expect("it starts");
    await_rest(lab, replicas);
    let instances = lab.list("instances.crownlabs.polito.it", "");
    let off: Vec<&Value> = instances.iter().filter(|instance| instance["spec"]["running"] == false).collect();
    for running in [true, false] {
        for instance in &off {
            let text = |key: &str| instance["metadata"][key].as_str().unwrap_or_default();
            let patch = json!({"spec": {"running": running}}).to_string();
            lab.patch("instances", text("namespace"), text("name"), &patch);
        }
        await_rest(lab, replicas);
    }
}

/// Waits until every object is in its final state and nothing is written any more. Replicas that exit in the meantime
/// are restarted, as always.
pub fn await_rest(lab: &Lab, replicas: &mut Replicas<'_>) {
    let audit = lab.cluster.audit();
    wait_until(REST, || {
        replicas.start_again();
        let mark = audit.mark().map_err(|error| error.to_string())?;
        unrest(lab).map_or(Ok(()), |what| Err(format!("{what}\n{}", replicas.logs())))?;
        thread::sleep(QUIET);
        let entries = audit.since(mark).map_err(|error| error.to_string())?;
        let mut ours = entries.iter().filter(|entry| entry.user_agent.starts_with("crownlabs/"));
        let written = ours.find(|entry| entry.is_write() && entry.resource != "leases");
        written.map_or(Ok(()), |entry| Err(format!("{entry:?}")))
    });
}

/// An object that is not in its final state yet, or `None`.
fn unrest(lab: &Lab) -> Option<String> {
    let objects = match lab.cluster.list(&format!("{USERS},namespaces,persistentvolumeclaims,services"), "") {
        Ok(objects) => objects,
        Err(error) => return Some(format!("{error:#}")),
    };
    objects.iter().find_map(|object| {
        let (kind, metadata, status) = (&object["kind"], &object["metadata"], &object["status"]);
        let name = format!("{kind} {}/{}", metadata["namespace"], metadata["name"]);
        let spec = &object["spec"];
        let is_exposed = spec["publicExposure"]["ports"].is_array() && spec["running"] != false;
        let is_leaving = !metadata["deletionTimestamp"].is_null();
        let problem = match kind.as_str().unwrap_or_default() {
            _ if is_leaving => "is being deleted",
            "Tenant" | "Workspace" if status["ready"] != true => "is not ready",
            "SharedVolume" if status["phase"] != "Ready" => "is not ready",
            "Instance" if status["phase"] != phase_of(object) => "has another phase",
            "Instance" if is_exposed && status["publicExposure"]["phase"] != "Ready" => "is not exposed",
            _ => return None,
        };
        Some(format!("{name} {problem}: {status}"))
    })
}

/// The final phase of an Instance.
fn phase_of(instance: &Value) -> &'static str {
    if instance["spec"]["running"] == false { "Off" } else { "Ready" }
}

/// Copies the users' objects to another control plane.
pub fn copy_users_objects(from: &Lab, to: &Lab, replicas: &mut Replicas<'_>) {
    for kind in USERS.split(',') {
        for object in from.list(kind, "") {
            let metadata = &object["metadata"];
            let mut copy = json!({
                "apiVersion": object["apiVersion"],
                "kind": object["kind"],
                "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
                "spec": object["spec"],
            });
            let selector = "crownlabs.polito.it/operator-selector";
            if metadata["labels"][selector] == COURSE {
                copy["metadata"]["labels"] = json!({selector: COURSE});
            }
            to.apply(&serde_saphyr::to_string(&copy).expect("YAML"));
        }
        await_rest(to, replicas);
    }
}

/// All objects, in a form that can be compared with another control plane.
pub fn objects(lab: &Lab) -> Objects {
    let mut listed = lab.list(KINDS, "");
    // Objects that the control plane creates for itself.
    listed.retain(|object| {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        let place = if text("namespace").is_empty() { text("name") } else { text("namespace") };
        ["tenant-", "workspace-", "mydrive-pvcs", "sandbox-", "crownlabs", COURSE]
            .iter()
            .any(|begin| place.starts_with(begin))
            || ["Tenant", "Workspace"].iter().any(|kind| object["kind"] == *kind)
    });
    listed.iter_mut().for_each(mask_allocated);
    comparable(listed)
}

/// Replaces values that are generated or allocated in the order of requests.
fn mask_allocated(object: &mut Value) {
    match object["kind"].as_str() {
        // The address and port of an exposure depend on the other exposures at its creation.
        Some("Service") => {
            if let Some(address) = object.pointer_mut("/metadata/annotations/metallb.io~1loadBalancerIPs") {
                *address = "allocated".into();
                mask_ports(object.pointer_mut("/spec/ports"));
            }
        }
        Some("Instance") => {
            mask_ports(object.pointer_mut("/status/publicExposure/ports"));
            if let Some(address) = object.pointer_mut("/status/publicExposure/externalIP") {
                *address = "allocated".into();
            }
            for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
                let message = condition["message"].as_str().unwrap_or_default();
                if message.starts_with("Public exposure assigned: ") {
                    condition["message"] = "allocated".into();
                }
            }
        }
        // The volume controller adds it to a claim that it sees before the volume.
        Some("PersistentVolumeClaim") => {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|key, _| !key.ends_with("/storage-provisioner"));
            }
        }
        Some("Secret") => {
            for value in object["data"].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
                *value = "generated".into();
            }
        }
        _ => {}
    }
}

fn mask_ports(ports: Option<&mut Value>) {
    for port in ports.and_then(Value::as_array_mut).into_iter().flatten() {
        port["port"] = "allocated".into();
    }
}

/// Keeps checking all Services: no two use the same port of an address. Returns the number of checks.
pub fn observe_ports(lab: &Lab, over: &AtomicBool) -> usize {
    let mut looked = 0;
    while !over.load(Ordering::SeqCst) {
        // The API server may be down.
        if let Ok(mut services) = lab.cluster.list("services", "") {
            services.retain(|service| {
                !service["metadata"]["annotations"]["metallb.io/loadBalancerIPs"].is_null()
            });
            crate::exposure::assert_no_port_is_shared(&services);
            looked += 1;
        }
        // There is no condition to wait for: the test checks that it never happens.
        thread::sleep(Duration::from_millis(200));
    }
    looked
}

/// Waits until one of the replicas has reconciled every object of the users.
pub fn await_reconciles(lab: &Lab, replicas: &mut Replicas<'_>) {
    let count = |kind: &str| lab.list(kind, "").len();
    let wanted = [
        ("instance", count("instances.crownlabs.polito.it")),
        ("tenant", count("tenants")),
        ("workspace", count("workspaces")),
        ("sharedVolume", count("sharedvolumes")),
    ];
    wait_until(REST, || {
        let all = |daemon: &&Daemon| {
            wanted.iter().all(|(controller, count)| daemon.reconciles(controller) >= *count)
        };
        replicas.start_again();
        replicas.daemons().iter().any(all).then_some(()).ok_or_else(|| format!("reconciles: {wanted:?}"))
    });
    await_rest(lab, replicas);
}
