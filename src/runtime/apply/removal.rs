//! Deletions: what is deleted, and whether it is gone then.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Engine, Failure, failure, path};
use crate::api::meta::Metadata;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::plan::Removal;

impl Engine {
    /// Deletes an object, if all is so that the removal is founded on.
    pub(super) async fn remove_guarded(&self, removal: &Removal) -> Option<Failure> {
        for evidence in &removal.founded_on {
            let checked = self.check(evidence).await;
            if checked.is_err() {
                return failure(&removal.component, evidence.kind(), &removal.key, checked);
            }
        }
        failure(&removal.component, removal.kind, &removal.key, self.remove(removal).await)
    }

    /// Deletes an object, with uid and resource version as preconditions; nothing is sent for one that is being deleted
    /// already. An object with finalizers, and a namespace, stays in the store until the watch shows its end.
    async fn remove(&self, removal: &Removal) -> Result<(), ApiError> {
        let store = self.stores.get(removal.kind)?;
        let is_leaving = |seen: &Metadata| seen.uid == *removal.uid && seen.deletion_timestamp.is_some();
        if store.seen(&removal.key).is_some_and(|seen| is_leaving(seen.metadata())) {
            return Ok(());
        }
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": removal.uid, "resourceVersion": removal.resource_version},
        });
        match self.send(Method::DELETE, &path(removal.kind, &removal.key)?, Some(&options)).await {
            Ok(answer) if is_being_deleted(removal, &answer)? => {
                store.record(&removal.key, &answer, self.origin)
            }
            Ok(_) | Err(ApiError::NotFound(_)) => {
                store.record_deletion(&removal.key, &removal.uid, self.origin);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// What is read of the answer to a deletion.
#[derive(Deserialize)]
struct Deleted {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Metadata,
}

/// Whether the answer to a deletion says that the object still exists: it is the object itself, with the time of its
/// deletion, as long as finalizers hold it, or a namespace has something in it. Otherwise the answer is a `Status`, or the
/// object as it last was.
fn is_being_deleted(removal: &Removal, answer: &[u8]) -> Result<bool, ApiError> {
    let Deleted { kind, metadata } = decoded(answer)?;
    Ok(kind == removal.kind.kind && metadata.uid == *removal.uid && metadata.deletion_timestamp.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::kinds::NamespaceKind;
    use crate::runtime::ObjectKey;
    use crate::runtime::plan::KindInfo;

    #[test]
    fn an_object_with_a_time_of_deletion_is_still_there() {
        let removal = Removal {
            kind: KindInfo::of::<NamespaceKind>(),
            key: ObjectKey::new("", "a"),
            component: String::new(),
            uid: "u1".to_owned(),
            resource_version: "7".to_owned(),
            founded_on: Vec::new(),
        };
        let namespace = |uid: &str, deleted: Value| {
            json!({"kind": "Namespace", "status": {"phase": "Terminating"},
                "metadata": {"name": "a", "uid": uid, "deletionTimestamp": deleted}})
        };
        for (answer, expected) in [
            (namespace("u1", json!("2026-11-20T10:00:00Z")), true),
            (namespace("u1", Value::Null), false),
            (namespace("u2", json!("2026-11-20T10:00:00Z")), false),
            (json!({"kind": "Status", "status": "Success", "details": {"name": "a", "uid": "u1"}}), false),
        ] {
            let answer = answer.to_string();
            assert_eq!(is_being_deleted(&removal, answer.as_bytes()), Ok(expected), "{answer}");
        }
        is_being_deleted(&removal, b"<html>").expect_err("no answer of an API server");
    }
}
