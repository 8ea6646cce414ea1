//! The status of a custom resource by kstatus, the library that Flux, Argo CD and `kubectl apply --prune` use to wait:
//! its rules for unknown kinds.

use serde_json::Value;

/// The status of an object: `Terminating`, `InProgress`, `Failed` or `Current`.
pub fn of(object: &Value) -> &'static str {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is = |condition: &Value, type_: &str| condition["type"] == type_ && condition["status"] == "True";
    if !metadata["deletionTimestamp"].is_null() {
        return "Terminating";
    }
    let observed = &status["observedGeneration"];
    if !observed.is_null() && *observed != metadata["generation"] {
        return "InProgress";
    }
    // The first of the two conditions decides.
    let decisive =
        conditions.iter().find(|condition| is(condition, "Reconciling") || is(condition, "Stalled"));
    match decisive {
        Some(condition) if condition["type"] == "Reconciling" => return "InProgress",
        Some(_) => return "Failed",
        None => {}
    }
    match conditions.iter().find(|condition| condition["type"] == "Ready") {
        Some(ready) if ready["status"] != "True" => "InProgress",
        _ => "Current",
    }
}
