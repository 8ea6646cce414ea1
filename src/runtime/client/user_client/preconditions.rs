//! The preconditions of a patch: the object and its version.

use serde_json::{Value, json};

use crate::api::{Kind, Object};

/// The uid and the version that an object must have for a change to succeed. The API server responds with 409
/// ([`crate::runtime::error::ApiError::Conflict`]) if the version differs, as it does for a new object with the same
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preconditions {
    /// The uid.
    pub uid: String,
    /// The version.
    pub resource_version: String,
}

impl Preconditions {
    /// Returns the preconditions of an object as it was read.
    pub fn of<T: Kind>(object: &Object<T>) -> Self {
        let resource_version = object.resource_version().unwrap_or_default();
        Self { uid: object.uid().to_owned(), resource_version }
    }

    /// Returns the preconditions of an object that was read as JSON.
    pub fn of_json(object: &Value) -> Self {
        let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
        Self { uid: text("uid"), resource_version: text("resourceVersion") }
    }

    /// Adds the preconditions to a merge patch.
    #[must_use]
    pub fn merge(&self, mut patch: Value) -> Value {
        patch["metadata"]["uid"] = self.uid.as_str().into();
        patch["metadata"]["resourceVersion"] = self.resource_version.as_str().into();
        patch
    }

    /// Builds a JSON patch with the preconditions, followed by these operations. The preconditions are replace
    /// operations: after a failed test operation, the API server responds with 422 and does not say which one failed.
    #[must_use]
    pub fn json(&self, operations: impl IntoIterator<Item = Value>) -> Value {
        let is = |member: &str, value: &str| json!({"op": "replace", "path": format!("/metadata/{member}"), "value": value});
        let mut all = vec![is("resourceVersion", &self.resource_version), is("uid", &self.uid)];
        all.extend(operations);
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_contains_the_version_that_it_applies_to() {
        let version = Preconditions { uid: "u1".to_owned(), resource_version: "7".to_owned() };
        let metadata = json!({"uid": "u1", "resourceVersion": "7"});
        let read = json!({"metadata": {"name": "vm", "uid": "u1", "resourceVersion": "7"}});
        assert_eq!(Preconditions::of_json(&read), version);
        let patch = version.merge(json!({"spec": {"running": true}}));
        assert_eq!(patch, json!({"spec": {"running": true}, "metadata": metadata}));
        let patch = version.merge(json!({"metadata": {"annotations": {"a": "b"}, "uid": "other"}}));
        let expected = json!({"uid": "u1", "resourceVersion": "7", "annotations": {"a": "b"}});
        assert_eq!(patch, json!({"metadata": expected}));
        let change = json!({"op": "remove", "path": "/spec/publicKeys/0"});
        assert_eq!(
            version.json([change.clone()]),
            json!([
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
                {"op": "replace", "path": "/metadata/uid", "value": "u1"},
                change,
            ])
        );
    }
}
