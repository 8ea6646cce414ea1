//! Finalizers of objects.

use serde_json::json;

use super::plan::ObjectPatch;
use crate::api::text::Text;
use crate::api::{Kind, Object};

/// Whether an object has this finalizer.
pub fn holds<T: Kind>(object: &Object<T>, finalizer: &str) -> bool {
    object.metadata.finalizers.iter().any(|held| held == finalizer)
}

/// Returns the finalizers of an object and one more, for a patch of `metadata.finalizers`; `None` if the object already
/// has it.
pub fn added<T: Kind>(object: &Object<T>, finalizer: &str) -> Option<Vec<String>> {
    let held = object.metadata.finalizers.iter().map(ToString::to_string);
    (!holds(object, finalizer)).then(|| held.chain([finalizer.to_owned()]).collect())
}

/// Returns the patch that removes a finalizer, so that the API server can delete the object; `None` if the object does
/// not have it.
pub fn removal<T: Kind>(object: &Object<T>, finalizer: &str) -> Option<ObjectPatch> {
    let held = object.metadata.finalizers.iter();
    let others: Vec<&Text> = held.filter(|other| **other != *finalizer).collect();
    ObjectPatch::of(object, &json!({"metadata": {"finalizers": others}}))
}
