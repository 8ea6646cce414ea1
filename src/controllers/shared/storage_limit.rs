//! How much of the disk of its node a pod may use.

use serde_json::Value;

/// The resource that stands for the disk of a node: what containers write, their logs, and volumes of type `emptyDir`.
const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// Limits how much of the disk of its node each container of a pod may use, and each volume between them. Nothing is requested:
/// a request counts for the scheduler, and Kubernetes takes one that is absent to be the limit. What a container says counts
/// before.
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
