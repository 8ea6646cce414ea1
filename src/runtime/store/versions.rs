//! Compares two versions of an object: which one is later, and whether they differ.

use crate::api::{Kind, Object};

/// Returns the resource version of an object as a number, comparable between all objects of its kind. Resource versions
/// are increasing integers (Kubernetes API conventions since 1.35, and etcd revisions before).
pub fn version<T: Kind>(object: &Object<T>) -> Option<u64> {
    object.metadata.resource_version.as_ref()?.number()
}

/// Whether `new` is a later version of the same object than `old`. If versions are not numbers, any difference counts
/// as later.
pub fn is_newer<T: Kind>(new: &Object<T>, old: &Object<T>) -> bool {
    match (version(new), version(old)) {
        (Some(new), Some(old)) => new > old,
        _ => new.metadata.resource_version != old.metadata.resource_version,
    }
}

/// Whether the objects differ in more than their version; for kinds with `EACH_VERSION`, a new version is sufficient.
pub fn differs<T: Kind>(old: &Object<T>, new: &Object<T>) -> bool {
    let (a, b) = (&old.metadata, &new.metadata);
    T::EACH_VERSION && a.resource_version != b.resource_version
        || old.spec != new.spec
        || old.status != new.status
        || old.malformed != new.malformed
        || a.uid != b.uid
        || a.labels != b.labels
        || a.annotations != b.annotations
        || a.owner_references != b.owner_references
        || a.finalizers != b.finalizers
        || a.deletion_timestamp != b.deletion_timestamp
        || a.generation != b.generation
}
