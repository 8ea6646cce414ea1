//! Compares an existing object with the desired one: its owner, and the enforced fields that differ. Pure functions.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value};

use crate::api::meta::{Metadata, TextMap, kept_annotation, kept_data};
use crate::api::parts::other_part;
use crate::kinds::SecretKind;
use crate::runtime::component::Component;
use crate::runtime::error::{ApiError, Leaving};
use crate::runtime::merge;
use crate::runtime::plan::{Desired, KindInfo, ObjectPatch, Ownership, to_value};
use crate::runtime::store::AnyObject;

/// The owner of an existing object.
pub enum Owner {
    /// The desired owner. Or the object has no owner and no sign of another one; it is then adopted.
    Us,
    /// A deleted object of the same name as the owner; the garbage collector has not removed the object yet.
    Predecessor,
    /// Another owner, as the end of a message: `belongs to Instance a`.
    Foreign(String),
}

/// Returns the owner of the existing object that has the name of `desired`.
pub fn owner_of(metadata: &Metadata, desired: &Desired) -> Owner {
    let owner = &desired.owner;
    let foreign = match metadata.controller() {
        _ if desired.ownership == Ownership::Unowned => None,
        Some(controller) if controller.uid == owner.uid => of_other_part(metadata, desired),
        Some(controller) if controller.kind == owner.kind && controller.name == owner.name => {
            return Owner::Predecessor;
        }
        Some(controller) => Some(format!("belongs to {} {}", controller.kind, controller.name)),
        None => refusal_to_adopt(metadata, desired),
    };
    foreign.map_or(Owner::Us, Owner::Foreign)
}

/// Returns the other part of the desired owner that an object belongs to, as the end of a message.
fn of_other_part(metadata: &Metadata, desired: &Desired) -> Option<String> {
    let label = other_part(&metadata.labels, &desired.labels)?;
    Some(format!("belongs to another part of {} {} ({label})", desired.owner.kind, desired.owner.name))
}

/// Returns why an object without a controller is not adopted, as the end of a message; `None` if it is adopted.
fn refusal_to_adopt(metadata: &Metadata, desired: &Desired) -> Option<String> {
    let label = |key: &str| metadata.labels.get(key);
    let is_known = desired
        .known_by
        .as_ref()
        .is_none_or(|known_by| known_by.iter().all(|(key, value)| label(key) == Some(value)));
    if !is_known {
        return Some("was not created by this daemon".to_owned());
    }
    let other_owner = desired.identity.iter().find_map(|(key, ours)| {
        let other = label(key).filter(|value| Some(*value) != ours.as_deref())?;
        Some(format!(
            "has no owner, but its label {key} assigns it to {other}: delete the object or the label"
        ))
    });
    other_owner.or_else(|| of_other_part(metadata, desired))
}

/// Returns the patch that restores the enforced fields of an existing object; `None` if they are up to date.
///
/// # Errors
/// When the object has another owner, or is being deleted.
pub fn needed(desired: &Desired, seen: &dyn AnyObject) -> Result<Option<ObjectPatch>, ApiError> {
    let (metadata, kind, name) = (seen.metadata(), desired.kind.kind, &desired.key.name);
    match owner_of(metadata, desired) {
        Owner::Us => {}
        Owner::Predecessor => return Err(leaving(desired, metadata, Some(desired.owner.kind.clone()))),
        Owner::Foreign(owner) => {
            return Err(ApiError::NameConflict { kind, name: name.to_string(), owner });
        }
    }
    if metadata.deletion_timestamp.is_some() {
        return Err(leaving(desired, metadata, None));
    }
    let version = || metadata.resource_version.as_ref().map(ToString::to_string);
    Ok(repair(desired, seen).map(|(patch, exact)| ObjectPatch {
        component: Component::Whole,
        kind: desired.kind,
        key: desired.key.clone(),
        subresource: None,
        uid: metadata.uid.to_string(),
        resource_version: exact.then(version).flatten(),
        patch,
    }))
}

/// Returns the error that the existing object with this metadata must be gone before it can be created again.
fn leaving(desired: &Desired, metadata: &Metadata, former_owner: Option<String>) -> ApiError {
    ApiError::Leaving(Box::new(Leaving {
        kind: desired.kind.kind,
        key: desired.key.clone(),
        former_owner,
        since: metadata.deletion_timestamp.as_ref().map(|since| since.0),
        finalizers: metadata.finalizers.to_vec(),
    }))
}

/// Returns the merge patch that restores the enforced fields, and whether it is valid only for the resource version in
/// the store (because it replaces a list). `None` if nothing differs.
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
        // The object is converted to JSON only if there is something to compare.
        fields @ Value::Object(_) => {
            let (found, kept) = (seen.json(), as_kept(desired.kind, fields));
            // The store keeps only the digest of a long value, but the patch contains the whole value.
            merge::required(&found, kept.as_ref().unwrap_or(fields)).and_then(|patch| match kept {
                Some(_) => merge::required(&found, fields),
                None => Some(patch),
            })
        }
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

/// Returns the enforced fields of an object that the store does not hold, as a merge patch: the fields of the plan or,
/// if the plan has none, the differing members of [`Desired::members`]. The role of a binding is immutable, so it is
/// left out; the next plan handles it.
pub fn unseen_fields(desired: &Desired, object: &Value) -> Value {
    let (Some(manifest), Value::Null) = (&desired.manifest, &desired.fields) else {
        return desired.fields.clone();
    };
    let members = desired.members.iter().filter(|member| *member != "roleRef");
    let differences = members.filter_map(|member| {
        let found = object.get(member).unwrap_or(&Value::Null);
        let wanted = manifest.json().get(member).unwrap_or(&Value::Null);
        Some((member.clone(), merge::difference(found, wanted)?))
    });
    Value::Object(differences.collect())
}

/// Returns the patch of the labels or annotations that differ from `wanted`. A wanted `None` means that the key must be
/// absent.
fn entries<'a>(
    current: &TextMap,
    wanted: impl Iterator<Item = (&'a String, Option<&'a String>)>,
) -> Map<String, Value> {
    wanted
        .filter(|(key, value)| current.get(key) != value.map(|value| kept_annotation(value)).as_deref())
        .map(|(key, value)| (key.clone(), value.map_or(Value::Null, |value| value.as_str().into())))
        .collect()
}

/// Returns the owner references that an object should have; `None` if it has them.
fn owners(metadata: &Metadata, ours: &OwnerReference, ownership: Ownership) -> Option<Vec<OwnerReference>> {
    let current = || metadata.owner_references.iter().map(OwnerReference::from);
    let as_wanted = match ownership {
        Ownership::Controlled => current().any(|owner| owner == *ours),
        Ownership::Kept => current().all(|owner| owner.uid != ours.uid),
        Ownership::Unowned => true,
    };
    if as_wanted {
        return None;
    }
    let others = current().filter(|owner| owner.uid != ours.uid);
    Some(others.chain((ownership == Ownership::Controlled).then(|| ours.clone())).collect())
}

/// Returns the fields as a store keeps them; `None` unless the object is a Secret with a value that is kept as a
/// digest.
fn as_kept(kind: KindInfo, fields: &Value) -> Option<Value> {
    let data = fields.get("data").filter(|_| kind == KindInfo::of::<SecretKind>())?.as_object()?;
    let is_long = |text: &str| matches!(kept_data(text), Cow::Owned(_));
    if !data.values().any(|value| value.as_str().is_some_and(is_long)) {
        return None;
    }
    let mut kept = fields.clone();
    for value in kept["data"].as_object_mut()?.values_mut() {
        if let Value::String(text) = value {
            *text = kept_data(text).into_owned();
        }
    }
    Some(kept)
}

fn contains_array(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(members) => members.values().any(contains_array),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_found_at_any_depth() {
        for (value, expected) in [
            (json!({"a": {"b": {"c": [1]}}}), true),
            (json!({"a": 1, "b": []}), true),
            (json!([]), true),
            (json!({"a": {"b": "c"}, "d": null}), false),
            (json!("[1]"), false),
        ] {
            assert_eq!(contains_array(&value), expected, "{value}");
        }
    }
}
