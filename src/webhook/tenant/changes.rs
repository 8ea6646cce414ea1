//! What differs between two versions of a Tenant.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::Quantity;
use crate::api::tenant::{Role, TenantSpec};
use crate::webhook::decision::Denial;

/// An entry of `spec.workspaces` that is added, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolment<'a> {
    /// The name of the Workspace.
    pub workspace: &'a str,
    /// The role before, unless there was none.
    pub before: Option<&'a Role>,
    /// The role afterwards, unless the entry is removed.
    pub after: Option<&'a Role>,
}

/// The entries that differ, in the order of their names.
///
/// # Errors
/// When a Workspace is named twice: nobody could tell which role counts.
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

/// How the values of a member may be spelled.
#[derive(Clone, Copy)]
enum Spelling {
    /// In one way.
    Exact,
    /// As amounts: `2` and `2000m`.
    Amounts,
    /// As a time, in any zone.
    Time,
}

impl Spelling {
    fn of(member: &str) -> Self {
        match member {
            "quota" | "personalWorkspace" => Self::Amounts,
            "lastLogin" => Self::Time,
            _ => Self::Exact,
        }
    }

    fn equal(self, a: &Value, b: &Value) -> bool {
        let equal = match self {
            Self::Exact => None,
            Self::Amounts => amount(a).zip(amount(b)).map(|(a, b)| a == b),
            Self::Time => time(a).zip(time(b)).map(|(a, b)| a == b),
        };
        equal.unwrap_or_else(|| a == b)
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// The first member of `spec` that differs, other than those in `free`.
///
/// The objects are compared as JSON, so that a member which these rules do not know is guarded too.
/// What is false, null or an empty list is the same as absent, and amounts and times are compared by
/// value: clients in Go write them in their own way.
#[must_use]
pub fn changed_member(old: &Value, new: &Value, free: &[&str]) -> Option<String> {
    let (old, new) = (&old["spec"], &new["spec"]);
    let members = [old, new].into_iter().filter_map(Value::as_object).flat_map(|spec| spec.keys());
    let differs = |name: &&String| {
        !free.contains(&name.as_str()) && !same(&old[name.as_str()], &new[name.as_str()], Spelling::of(name))
    };
    members.into_iter().find(differs).cloned()
}

fn same(old: &Value, new: &Value, spelling: Spelling) -> bool {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            a.keys().chain(b.keys()).all(|key| same(&old[key], &new[key], spelling))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| same(a, b, spelling))
        }
        _ => (is_absent(old) && is_absent(new)) || spelling.equal(old, new),
    }
}

fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
