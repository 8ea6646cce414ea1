//! The differences between two versions of a Tenant.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

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

/// The entries that differ, sorted by the name of the Workspace.
///
/// # Errors
/// When the new list names a Workspace twice, because it is not defined which role counts.
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

/// The comparison of the values of a member of `spec`.
#[derive(Clone, Copy)]
enum Comparison {
    /// As JSON.
    Exact,
    /// As quantities: `2` equals `2000m`.
    Quantities,
    /// As points in time, whatever their time zone.
    Time,
}

impl Comparison {
    fn of(member: &str) -> Self {
        match member {
            "quota" | "personalWorkspace" => Self::Quantities,
            "lastLogin" => Self::Time,
            _ => Self::Exact,
        }
    }

    fn equal(self, a: &Value, b: &Value) -> bool {
        let equal = match self {
            Self::Exact => None,
            Self::Quantities => quantity(a).zip(quantity(b)).map(|(a, b)| a == b),
            Self::Time => time(a).zip(time(b)).map(|(a, b)| a == b),
        };
        equal.unwrap_or_else(|| a == b)
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

/// The name of the first member of `spec` that differs, except for those in `ignored`.
///
/// The objects are compared as JSON, so that a change of a member that these rules do not know is found
/// too. False, null and the empty list equal an absent member, and quantities and times are compared by
/// value, because clients in Go write them differently when they update an object.
pub fn changed_member(old: &Value, new: &Value, ignored: &[&str]) -> Option<String> {
    let (old, new) = (&old["spec"], &new["spec"]);
    let members = [old, new].into_iter().filter_map(Value::as_object).flat_map(|spec| spec.keys());
    let differs = |name: &&String| {
        !ignored.contains(&name.as_str())
            && !same(&old[name.as_str()], &new[name.as_str()], Comparison::of(name))
    };
    members.into_iter().find(differs).cloned()
}

/// Members of `metadata` that the API server writes, or that name the object.
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

/// The name of the first member of `metadata` that differs, except for those that the API server writes, and for the
/// `ignored` labels.
pub fn changed_metadata(old: &Value, new: &Value, ignored: &[&str]) -> Option<String> {
    let [old, new] = [old, new].map(|object| {
        let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
        metadata.retain(|name, _| !OF_SERVER.contains(&name.as_str()));
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.retain(|key, _| !ignored.contains(&key.as_str()));
        }
        metadata.retain(|_, value| !is_empty(value));
        metadata
    });
    let mut members = old.keys().chain(new.keys());
    members.find(|name| old.get(*name) != new.get(*name)).cloned()
}

/// Whether a member of `metadata` says as much as an absent one.
fn is_empty(value: &Value) -> bool {
    is_absent(value) || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn same(old: &Value, new: &Value, comparison: Comparison) -> bool {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            a.keys().chain(b.keys()).all(|key| same(&old[key], &new[key], comparison))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| same(a, b, comparison))
        }
        _ => (is_absent(old) && is_absent(new)) || comparison.equal(old, new),
    }
}

fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
