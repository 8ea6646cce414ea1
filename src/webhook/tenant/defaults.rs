//! The defaults of a Tenant: the label that this daemon selects it by, and the base Workspaces. The patch contains no
//! other members, because the API server would store them in the spelling of the patch.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use serde_json::{Value, json};

use super::{SERVICE_TENANT, Settings};
use crate::webhook::decision::{Decision, Denial};
use crate::webhook::requester::Requester;
use crate::webhook::review::{Operation, Request};

/// Sets the defaults of a Tenant that is created or changed.
pub fn complete(request: &Request, settings: &Settings) -> Decision {
    if !request.is_write() {
        return Decision::allowed();
    }
    patch(request, settings).map_or_else(Decision::denied, Decision::patched)
}

fn patch(request: &Request, settings: &Settings) -> Result<Vec<PatchOperation>, Denial> {
    if !request.object.is_object() {
        return Err(Denial::malformed("the Tenant is not an object"));
    }
    let mut patch = labels(request, settings)?;
    patch.extend(workspaces(&request.object, &settings.base_workspaces)?);
    Ok(patch)
}

/// The change of a label.
#[derive(Debug, PartialEq, Eq)]
enum Label {
    Kept,
    Set(String),
    Removed,
}

fn labels(request: &Request, settings: &Settings) -> Result<Vec<PatchOperation>, Denial> {
    let mut patch = Vec::new();
    let mut has_labels = request.object.pointer("/metadata/labels").is_some_and(Value::is_object);
    for (key, ours) in &settings.selector {
        let requested = label(&request.object, key)?;
        let tokens = ["metadata", "labels", key];
        match wanted(request, settings, key, ours)? {
            Label::Set(value) if requested != Some(value.as_str()) => {
                if !has_labels {
                    patch.push(add(&["metadata", "labels"], json!({})));
                    has_labels = true;
                }
                patch.push(add(&tokens, value.into()));
            }
            Label::Removed if requested.is_some() => {
                let removal = RemoveOperation { path: PointerBuf::from_tokens(tokens) };
                patch.push(PatchOperation::Remove(removal));
            }
            _ => {}
        }
    }
    Ok(patch)
}

/// Returns the change of the label `key`, which has the value `ours` on Tenants that this daemon reconciles. The first
/// matching row applies, and an absent label counts as an empty one.
///
/// | request | label |
/// |---|---|
/// | for the service Tenant | kept if it is `ours`, else emptied |
/// | of an administrator or this daemon, with a label | kept |
/// | creates the Tenant | set to `ours` |
/// | changes the Tenant | as it is stored |
fn wanted(request: &Request, settings: &Settings, key: &str, ours: &str) -> Result<Label, Denial> {
    let requested = label(&request.object, key)?.unwrap_or_default();
    if request.object_name() == SERVICE_TENANT {
        return Ok(if requested == ours { Label::Kept } else { Label::Set(String::new()) });
    }
    let bypass = settings.bypass.requester(&request.user_info) != Requester::Other;
    if bypass && !requested.is_empty() {
        return Ok(Label::Kept);
    }
    if request.operation == Operation::Create {
        return Ok(Label::Set(ours.to_owned()));
    }
    let stored = label(&request.old_object, key)?;
    Ok(match stored {
        _ if stored.unwrap_or_default() == requested => Label::Kept,
        Some(stored) => Label::Set(stored.to_owned()),
        None => Label::Removed,
    })
}

/// The value of a label; fails if it is not a string.
pub(super) fn label<'a>(object: &'a Value, key: &str) -> Result<Option<&'a str>, Denial> {
    match object.pointer("/metadata/labels").and_then(|labels| labels.get(key)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(Denial::malformed(format!("metadata.labels[{key:?}] is {other}, not a text"))),
    }
}

/// Returns the operations that append the missing base Workspaces. An existing entry keeps its role. An object without
/// `spec` is not changed: a generated `spec` would lack members that the schema requires.
fn workspaces(object: &Value, base: &[String]) -> Result<Vec<PatchOperation>, Denial> {
    let spec = match object.get("spec") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(spec)) => spec,
        Some(other) => return Err(Denial::malformed(format!("spec is {other}, not an object"))),
    };
    let entries = match spec.get("workspaces") {
        None | Some(Value::Null) => None,
        Some(Value::Array(entries)) => Some(entries),
        Some(other) => return Err(Denial::malformed(format!("spec.workspaces is {other}, not a list"))),
    };
    let is_in = |name: &str| entries.into_iter().flatten().any(|entry| entry["name"] == name);
    let mut missing: Vec<&str> = Vec::new();
    for name in base {
        if !is_in(name) && !missing.contains(&name.as_str()) {
            missing.push(name);
        }
    }
    let added = missing.iter().map(|name| json!({"name": name, "role": "user"}));
    Ok(match entries {
        Some(_) => added.map(|value| add(&["spec", "workspaces", "-"], value)).collect(),
        None if missing.is_empty() => Vec::new(),
        None => vec![add(&["spec", "workspaces"], added.collect())],
    })
}

/// Returns the operation that sets the member at `path`, or appends to a list if `path` ends in `-`.
pub(super) fn add(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}
