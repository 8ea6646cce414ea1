//! Finalizers: what an object waits for before it can go.

use serde_json::json;

use super::plan::ObjectPatch;
use crate::api::text::Text;
use crate::api::{Kind, Object};

/// Whether an object waits for whoever has put this finalizer on it.
pub fn holds<T: Kind>(object: &Object<T>, finalizer: &str) -> bool {
    object.metadata.finalizers.iter().any(|held| held == finalizer)
}

/// The finalizers of an object with one more, for a patch of `metadata.finalizers`; `None` when it holds it.
pub fn added<T: Kind>(object: &Object<T>, finalizer: &str) -> Option<Vec<String>> {
    if holds(object, finalizer) {
        return None;
    }
    let held = object.metadata.finalizers.iter().map(ToString::to_string);
    Some(held.chain([finalizer.to_owned()]).collect())
}

/// The last patch of an object that is being deleted: it can go. `None` when it does not hold the finalizer.
pub fn removal<T: Kind>(object: &Object<T>, finalizer: &str) -> Option<ObjectPatch> {
    let held = object.metadata.finalizers.iter();
    let others: Vec<&Text> = held.filter(|other| **other != *finalizer).collect();
    ObjectPatch::of(object, &json!({"metadata": {"finalizers": others}}))
}
