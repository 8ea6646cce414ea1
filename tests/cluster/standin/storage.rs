//! A storage provisioner and a load balancer as pure functions from the known objects to the next write, if there is
//! one.

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::cache::{Cache, Key, Kind};
use super::{Step, objects};

/// The name of the provisioner, which is written into the annotations of volumes.
pub const PROVISIONER: &str = "stand-in.csi.crownlabs.polito.it";

/// The storage class of mirrors.
const MIRRORS: &str = "pvc-mirror";

/// Annotations of a Service that request addresses.
const ADDRESS_ANNOTATIONS: [&str; 2] = ["metallb.universe.tf/loadBalancerIPs", "metallb.io/loadBalancerIPs"];

/// The address of a Service that requests no particular one; it is reserved for documentation (RFC 5737).
const ANY_ADDRESS: &str = "192.0.2.1";

/// The next step of a claim: a volume for it, whatever its storage class. A claim that names its volume, or whose
/// storage class is empty, gets none: the test binds it. A claim of the class of mirrors gets its volume from the daemon.
pub fn claim(cache: &Cache, key: &Key) -> Option<Step> {
    let claim = cache.get(key)?;
    let spec = &claim.data["spec"];
    let by_others = !spec["volumeName"].is_null()
        || spec["storageClassName"] == ""
        || spec["storageClassName"] == MIRRORS;
    if claim.metadata.deletion_timestamp.is_some() || by_others {
        return None;
    }
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let volume = Key { kind: Kind::Volume, namespace: String::new(), name };
    cache.get(&volume).is_none().then(|| Step::create(Kind::Volume, objects::volume(claim, &volume.name)))
}

/// The next step of a volume of this provisioner: its deletion when the claim has been deleted.
pub fn volume(cache: &Cache, key: &Key) -> Option<Step> {
    let volume = cache.get(key)?;
    let is_ours = volume.annotations().values().any(|value| value == PROVISIONER);
    let to_delete = volume.data.pointer("/status/phase") == Some(&json!("Released"))
        && volume.data.pointer("/spec/persistentVolumeReclaimPolicy") == Some(&json!("Delete"))
        && volume.metadata.deletion_timestamp.is_none();
    (is_ours && to_delete).then(|| Step::delete(key.clone(), volume))
}

/// The next step of a Service: the requested addresses, if it is a load balancer.
pub fn service(cache: &Cache, key: &Key) -> Option<Step> {
    let service = cache.get(key)?;
    let wanted = if service.data["spec"]["type"] == "LoadBalancer" { addresses(service) } else { Vec::new() };
    let current = service.data.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    let current: Vec<&str> = current.into_iter().flatten().filter_map(|entry| entry["ip"].as_str()).collect();
    if current == wanted || service.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let ingress: Vec<Value> = wanted.iter().map(|ip| json!({"ip": ip, "ipMode": "VIP"})).collect();
    let status = json!({"loadBalancer": {"ingress": ingress}});
    Some(Step::patch_status(json!({"metadata": {"uid": service.uid()}, "status": status})))
}

fn addresses(service: &DynamicObject) -> Vec<&str> {
    let asked = ADDRESS_ANNOTATIONS.iter().find_map(|name| service.annotations().get(*name));
    let asked = asked.map_or(ANY_ADDRESS, String::as_str);
    asked.split(',').map(str::trim).filter(|address| !address.is_empty()).collect()
}
