//! Compares an existing object with the desired one: who owns it, and which enforced fields differ. Pure
//! functions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value};

use crate::api::meta::{Metadata, TextMap};
use crate::runtime::merge;
use crate::runtime::plan::{Desired, Ownership, to_value};
use crate::runtime::store::AnyObject;

/// The owner of an existing object.
pub enum Owner {
    /// The desired owner; or none, and the object has our labels: then it is adopted.
    Us,
    /// A deleted object of the same name as the owner; the garbage collector has not removed the object yet.
    Predecessor,
    /// Another owner, as the end of a message: `belongs to Instance a`.
    Foreign(String),
}

/// Who owns the existing object that has the name of `desired`.
pub fn owner_of(metadata: &Metadata, desired: &Desired) -> Owner {
    let owner = &desired.owner;
    match metadata.controller() {
        Some(controller) if controller.uid == owner.uid => Owner::Us,
        Some(controller) if controller.kind == owner.kind && controller.name == owner.name => {
            Owner::Predecessor
        }
        Some(controller) => Owner::Foreign(format!("belongs to {} {}", controller.kind, controller.name)),
        None if carries(metadata, desired) => Owner::Us,
        None => Owner::Foreign("was not made by this daemon".to_owned()),
    }
}

/// Whether the object has the labels that make it ours ([`Desired::known_by`]).
fn carries(metadata: &Metadata, desired: &Desired) -> bool {
    let known_by = desired.known_by.as_ref().unwrap_or(&desired.labels);
    !known_by.is_empty() && known_by.iter().all(|(key, value)| metadata.labels.get(key) == Some(value))
}

/// The merge patch that restores the enforced fields, and whether it is valid only for the resource version
/// in the store (because it replaces a list). `None` if nothing differs.
pub fn repair(desired: &Desired, seen: &dyn AnyObject) -> Option<(Value, bool)> {
    let current = seen.metadata();
    let mut metadata = Map::new();
    let wanted = desired.labels.iter().map(|(key, value)| (key, Some(value)));
    let labels = entries(&current.labels, wanted);
    let wanted = desired.annotations.iter().map(|(key, value)| (key, value.as_ref()));
    let annotations = entries(&current.annotations, wanted);
    for (name, entries) in [("labels", labels), ("annotations", annotations)] {
        if !entries.is_empty() {
            metadata.insert(name.to_owned(), Value::Object(entries));
        }
    }
    let owners = owners(current, &desired.owner, desired.ownership);
    if let Some(owners) = &owners {
        metadata.insert("ownerReferences".into(), to_value(owners));
    }
    let fields = match &desired.fields {
        // The object is turned into JSON only where there is something to compare.
        fields @ Value::Object(_) => merge::required(&seen.json(), fields),
        _ => None,
    };
    let exact = owners.is_some() || fields.as_ref().is_some_and(contains_array);
    let mut patch = match fields {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    if !metadata.is_empty() {
        patch.insert("metadata".into(), Value::Object(metadata));
    }
    (!patch.is_empty()).then_some((Value::Object(patch), exact))
}

/// The patch of labels or annotations that differ from `wanted`; a wanted `None` means that the key must be
/// absent.
fn entries<'a>(
    current: &TextMap,
    wanted: impl Iterator<Item = (&'a String, Option<&'a String>)>,
) -> Map<String, Value> {
    wanted
        .filter(|(key, value)| current.get(key) != value.map(String::as_str))
        .map(|(key, value)| (key.clone(), value.map_or(Value::Null, |value| value.as_str().into())))
        .collect()
}

/// The owner references that an object should have; `None` if it has them.
fn owners(metadata: &Metadata, ours: &OwnerReference, ownership: Ownership) -> Option<Vec<OwnerReference>> {
    let current = || metadata.owner_references.iter().map(OwnerReference::from);
    let as_wanted = match ownership {
        Ownership::Controlled => current().any(|owner| owner == *ours),
        Ownership::Kept => current().all(|owner| owner.uid != ours.uid),
    };
    if as_wanted {
        return None;
    }
    let others = current().filter(|owner| owner.uid != ours.uid);
    Some(others.chain((ownership == Ownership::Controlled).then(|| ours.clone())).collect())
}

fn contains_array(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(members) => members.values().any(contains_array),
        _ => false,
    }
}
