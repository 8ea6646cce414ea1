//! Limits how much of its node's disk a pod may use.

use serde_json::Value;

/// The resource for the disk of a node: the files and logs of containers, and volumes of type `emptyDir`.
const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// Limits how much of the node's disk each container and each `emptyDir` volume of a pod may use. The request is 0: a
/// request would affect the scheduler, and Kubernetes uses the limit if the request is missing. Amounts that a
/// container already has are kept.
pub fn limit_storage(pod: &mut Value, limit: &str) {
    for containers in ["initContainers", "containers"] {
        for container in pod.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            for (amounts, amount) in [("limits", limit), ("requests", "0")] {
                let amount_of = &mut container["resources"][amounts][EPHEMERAL_STORAGE];
                if amount_of.is_null() {
                    *amount_of = amount.into();
                }
            }
        }
    }
    for volume in pod.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(volume) = volume.get_mut("emptyDir") {
            volume["sizeLimit"] = limit.into();
        }
    }
}
