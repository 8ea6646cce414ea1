//! A storage provisioner and a load balancer as pure functions: from what is there to the next write, or none.

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::world::{Key, Kind, World};
use super::{Step, objects};

/// The provisioner that volumes are marked with.
pub const PROVISIONER: &str = "stand-in.csi.crownlabs.polito.it";

/// Annotations in which a Service asks for addresses.
const ADDRESS_ANNOTATIONS: [&str; 2] = ["metallb.universe.tf/loadBalancerIPs", "metallb.io/loadBalancerIPs"];

/// Given to a Service that asks for no address in particular (RFC 5737).
const ANY_ADDRESS: &str = "192.0.2.1";

/// The next step of a claim: a volume bound to it, whatever its class. A claim that names its volume, or whose
/// class is the empty one, is served by hand.
pub fn claim(world: &World, key: &Key) -> Option<Step> {
    let claim = world.get(key)?;
    let spec = &claim.data["spec"];
    let by_hand = !spec["volumeName"].is_null() || spec["storageClassName"] == "";
    if claim.metadata.deletion_timestamp.is_some() || by_hand {
        return None;
    }
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let volume = Key { kind: Kind::Volume, namespace: String::new(), name };
    world.get(&volume).is_none().then(|| Step::create(Kind::Volume, objects::volume(claim, &volume.name)))
}

/// The next step of a volume of ours: deleted when its claim is gone.
pub fn volume(world: &World, key: &Key) -> Option<Step> {
    let volume = world.get(key)?;
    let is_ours = volume.annotations().values().any(|value| value == PROVISIONER);
    let to_delete = volume.data.pointer("/status/phase") == Some(&json!("Released"))
        && volume.data.pointer("/spec/persistentVolumeReclaimPolicy") == Some(&json!("Delete"))
        && volume.metadata.deletion_timestamp.is_none();
    (is_ours && to_delete).then(|| Step::delete(key.clone(), volume))
}

/// The next step of a Service: the addresses that it asks for, if it is a load balancer.
pub fn service(world: &World, key: &Key) -> Option<Step> {
    let service = world.get(key)?;
    let wanted = if service.data["spec"]["type"] == "LoadBalancer" { addresses(service) } else { Vec::new() };
    let shown = service.data.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    let shown: Vec<&str> = shown.into_iter().flatten().filter_map(|entry| entry["ip"].as_str()).collect();
    if shown == wanted || service.metadata.deletion_timestamp.is_some() {
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
