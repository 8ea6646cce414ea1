//! Objects of one run in a form that can be compared with the objects of another run.

use std::collections::BTreeMap;

use serde_json::Value;

/// The objects by `Kind/namespace/name`, without the fields that differ from run to run.
pub type Objects = BTreeMap<String, Value>;

/// Members whose values differ from run to run: the API server or the time determines them.
const VOLATILE: [&str; 24] = [
    "cookie-secret",
    "crownlabs.polito.it/pod-template",
    "crownlabs.polito.it/policy-digest",
    "crownlabs.polito.it/route-state",
    "ipAddress",
    "ipAddresses",
    "mac",
    "macAddress",
    "nodePort",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "observedGeneration",
    "clusterIP",
    "clusterIPs",
    "ip",
    "crownlabs.polito.it/last-powered-off-timestamp",
    "initialReadyTime",
    "prettyName",
    "crownlabs.polito.it/mydrive-tenant-uid",
    "deletionTimestamp",
];

/// Replaces the values of [`VOLATILE`] members; only their presence is compared.
fn mask_volatile(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for key in VOLATILE {
                if let Some(member) = members.get_mut(key) {
                    *member = "set".into();
                }
            }
            members.values_mut().for_each(mask_volatile);
        }
        Value::Array(items) => items.iter_mut().for_each(mask_volatile),
        _ => {}
    }
}

/// Sorts the conditions of the status by type, because their order depends on which appeared first.
fn sort_conditions(object: &mut Value) {
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.sort_by(|one, other| one["type"].as_str().cmp(&other["type"].as_str()));
    }
}

/// Some objects in a form that can be compared with the objects of another run.
pub fn comparable(listed: Vec<Value>) -> Objects {
    let mut uids: Vec<(String, String)> = Vec::new();
    for object in &listed {
        if let (Some(uid), Some(name)) =
            (object["metadata"]["uid"].as_str(), object["metadata"]["name"].as_str())
        {
            uids.push((uid.to_owned(), format!("uid-of-{name}")));
        }
    }
    let mut objects = Objects::new();
    for mut object in listed {
        if object["kind"] == "Deployment" {
            // The Deployment controller writes the status at any time.
            object.as_object_mut().expect("an object").remove("status");
        }
        if object["kind"] == "PersistentVolumeClaim"
            && let Some(annotations) = object["metadata"]["annotations"].as_object_mut()
        {
            // The controller manager writes them only if it sees the claim before its volume.
            annotations.retain(|key, _| !key.ends_with("kubernetes.io/storage-provisioner"));
        }
        mask_volatile(&mut object);
        sort_conditions(&mut object);
        let mut text = object.to_string();
        for (uid, name) in &uids {
            text = text.replace(uid, name);
        }
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let metadata = &object["metadata"];
        let name = format!("{}/{}/{}", object["kind"], metadata["namespace"], metadata["name"]);
        objects.insert(name, object);
    }
    objects
}
