//! The differences between two versions of a Tenant.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Quantity;
use crate::api::tenant::{Role, TenantSpec};
use crate::webhook::decision::Denial;

/// A change of `spec.workspaces`: an entry that is added, removed, or gets another role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolment<'a> {
    /// The name of the Workspace.
    pub workspace: &'a str,
    /// The role before; `None` if the entry is added.
    pub before: Option<&'a Role>,
    /// The role afterwards; `None` if the entry is removed.
    pub after: Option<&'a Role>,
}

/// Returns the entries that differ, sorted by the name of the Workspace.
///
/// # Errors
/// When the new list names a Workspace twice, because it would not be defined which role is effective.
pub fn enrolments<'a>(old: &'a TenantSpec, new: &'a TenantSpec) -> Result<Vec<Enrolment<'a>>, Denial> {
    let mut roles: BTreeMap<&str, (Option<&Role>, Option<&Role>)> = BTreeMap::new();
    for entry in &old.workspaces {
        roles.entry(&entry.name).or_default().0 = Some(&entry.role);
    }
    for entry in &new.workspaces {
        if roles.entry(&entry.name).or_default().1.replace(&entry.role).is_some() {
            return Err(Denial::malformed(format!("spec.workspaces names {:?} twice", entry.name)));
        }
    }
    let differing = roles.into_iter().filter(|(_, (before, after))| before != after);
    Ok(differing.map(|(workspace, (before, after))| Enrolment { workspace, before, after }).collect())
}

/// Whether two values are equal.
type Equal = fn(&Value, &Value) -> bool;

/// Returns how the values of a member of `spec` are compared: as quantities, where `2` equals `2000m`, as points in
/// time, independent of the time zone, or as JSON.
fn comparison(member: &str) -> Equal {
    match member {
        "quota" | "personalWorkspace" => |a, b| a == b || quantity(a).is_some_and(|a| Some(a) == quantity(b)),
        "lastLogin" => |a, b| a == b || time(a).is_some_and(|a| Some(a) == time(b)),
        _ => |a, b| a == b,
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Returns the name of the first member of `spec` that differs, except for members in `ignored`.
///
/// The objects are compared as JSON, so that changes of unknown members are found, too. False, null and the empty list
/// equal an absent member. Quantities and times are compared by value, because Go clients write them differently when
/// they update an object.
pub fn changed_member(old: &Value, new: &Value, ignored: &[&str]) -> Option<String> {
    let (old, new) = (&old["spec"], &new["spec"]);
    let members = [old, new].into_iter().filter_map(Value::as_object).flat_map(|spec| spec.keys());
    let differs = |name: &&String| {
        !ignored.contains(&name.as_str()) && !same(&old[name.as_str()], &new[name.as_str()], comparison(name))
    };
    members.into_iter().find(differs).cloned()
}

/// Members of `metadata` that the API server writes, or that identify the object.
const OF_SERVER: [&str; 9] = [
    "name",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// Returns the name of the first member of `metadata` that differs, except for members that the API server writes and
/// the `ignored` labels.
pub fn changed_metadata(old: &Value, new: &Value, ignored: &[&str]) -> Option<String> {
    let [old, new] = [old, new].map(|object| {
        let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
        metadata.retain(|name, _| !OF_SERVER.contains(&name.as_str()));
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.retain(|key, _| !ignored.contains(&key.as_str()));
        }
        metadata.retain(|_, value| !is_absent(value) && *value != json!({}));
        metadata
    });
    let mut members = old.keys().chain(new.keys());
    members.find(|name| old.get(*name) != new.get(*name)).cloned()
}

fn same(old: &Value, new: &Value, is_equal: Equal) -> bool {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            a.keys().chain(b.keys()).all(|key| same(&old[key], &new[key], is_equal))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| same(a, b, is_equal))
        }
        _ => (is_absent(old) && is_absent(new)) || is_equal(old, new),
    }
}

fn is_absent(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || value.as_array().is_some_and(Vec::is_empty)
}
