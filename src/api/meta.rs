//! Object metadata without `managedFields`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;

/// The metadata that the daemon reads. `managedFields`, often the larger part of an object, is skipped while
/// decoding.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimMeta {
    name: Option<String>,
    generate_name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
}

/// Frees the spare capacity of a list: most have one element, and decoding allocates space for four.
fn tight<T>(mut list: Vec<T>) -> Vec<T> {
    list.shrink_to_fit();
    list
}

impl From<SlimMeta> for ObjectMeta {
    fn from(meta: SlimMeta) -> Self {
        Self {
            name: meta.name,
            generate_name: meta.generate_name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            generation: meta.generation,
            creation_timestamp: meta.creation_timestamp,
            deletion_timestamp: meta.deletion_timestamp,
            labels: meta.labels,
            annotations: meta.annotations,
            owner_references: meta.owner_references.map(tight),
            finalizers: meta.finalizers.map(tight),
            ..Self::default()
        }
    }
}
