//! The annotations of an Instance that only this daemon writes: the times when mails about it were accepted.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::labels::MAILED_PREFIX;
use crate::webhook::decision::Denial;
use crate::webhook::requester::{Bypass, Requester};
use crate::webhook::review::Request;

/// Refuses to set, change or remove the annotations that record when mails were accepted, unless the request is from
/// this daemon or an administrator.
pub fn check(request: &Request, bypass: &Bypass) -> Result<(), Denial> {
    if !request.is_write() || bypass.requester(&request.user_info) != Requester::Other {
        return Ok(());
    }
    let (old, new) = (records(&request.old_object), records(&request.object));
    let differs = |key: &&&str| old.get(**key) != new.get(**key);
    old.keys().chain(new.keys()).find(differs).map_or(Ok(()), |key| {
        Err(Denial::forbidden(format!(
            "the annotation {key} records when a mail about the Instance was accepted: only CrownLabs writes it, so leave it {}",
            if old.contains_key(key) { "as it is" } else { "out" }
        )))
    })
}

/// Returns these annotations of an object.
fn records(object: &Value) -> BTreeMap<&str, &Value> {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let all = annotations.into_iter().flatten().map(|(key, value)| (key.as_str(), value));
    all.filter(|(key, _)| key.starts_with(MAILED_PREFIX)).collect()
}
