//! Deletions: which objects are deleted, and whether they are gone afterwards.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;
use tracing::info;

use super::{Engine, Failure, failure};
use crate::api::meta::{Metadata, Owner};
use crate::runtime::clock;
use crate::runtime::error::{ApiError, decoded};
use crate::runtime::plan::{Desired, Precondition, Removal};

/// The time that the garbage collector gets to delete the dependents of a deleted object after a new object has its
/// name.
const COLLECTION: SignedDuration = SignedDuration::from_secs(30);

impl Engine {
    /// Deletes an object, if the preconditions of the removal hold and it is still planned then: the store may have
    /// received a change after the plan was made, and is equal to the API server for that very reason.
    pub(super) async fn remove_guarded(
        &self,
        removal: &Removal,
        is_planned: impl Fn(&Removal) -> bool,
    ) -> Option<Failure> {
        for precondition in &removal.preconditions {
            let checked = self.check(precondition).await;
            if checked.is_err() {
                return failure(&removal.component, precondition.kind(), &removal.key, checked);
            }
        }
        let removed = if removal.preconditions.is_empty() || is_planned(removal) {
            self.remove(removal).await
        } else {
            Err(ApiError::Stale("the plan has changed: it is made again before a deletion".to_owned()))
        };
        failure(&removal.component, removal.kind, &removal.key, removed)
    }

    /// Deletes an object that has the name of `desired` but belonged to a deleted object with the name of `owner`.
    /// Normally the garbage collector does that. It misses the deletion of an object that is recreated while its watch
    /// is interrupted, until the controller manager restarts. Nothing is deleted until `owner` is 30 seconds old.
    pub(super) async fn collect(
        &self,
        desired: &Desired,
        metadata: &Metadata,
        owner: &Precondition,
    ) -> Result<(), ApiError> {
        let Precondition::Object(kind, key) = owner else { return Ok(()) };
        let owner_seen = self.stores.get(*kind)?.seen(key);
        let is_due = owner_seen.is_some_and(|seen| is_left(metadata, seen.metadata(), desired, clock::now()));
        if !is_due || metadata.resource_version.is_none() {
            return Ok(());
        }
        let (kind, name, of) = (desired.kind.kind, &desired.key, &desired.owner.kind);
        info!(kind, %name, "deleting an object of a deleted {of} of the same name");
        let removal = Removal::seen(desired.kind, metadata, desired.component.clone());
        let removal = removal.with_preconditions([owner.clone()]);
        self.remove_guarded(&removal, |_| true).await.map_or(Ok(()), |failure| Err(failure.error))
    }

    /// Deletes an object, with uid and resource version as preconditions. Sends nothing if the object is already being
    /// deleted. An object with finalizers, or a namespace, stays in the store until the watch shows its deletion.
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
        match self.send(Method::DELETE, &removal.kind.object_path(&removal.key)?, Some(&options)).await {
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

/// Whether the garbage collector has missed an object whose owner was deleted. It is not being deleted, although a new
/// object with the name of the owner has existed for some time.
fn is_left(metadata: &Metadata, owner: &Metadata, desired: &Desired, now: Timestamp) -> bool {
    let made = owner.creation_timestamp.as_ref().map(|made| made.0);
    // The garbage collector also keeps an object that has another owner. A kind with the same name in another API group
    // is not ours.
    let group =
        |api_version: &str| api_version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    let is_of_kind = |other: &Owner| group(&other.api_version) == group(&desired.owner.api_version);
    metadata.deletion_timestamp.is_none()
        && matches!(&*metadata.owner_references, [only] if is_of_kind(only))
        && owner.uid == *desired.owner.uid
        && owner.deletion_timestamp.is_none()
        && made.is_some_and(|made| now.duration_since(made) >= COLLECTION)
}

/// The fields of the response to a deletion that we read.
#[derive(Deserialize)]
struct Deleted {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Metadata,
}

/// Whether the response to a deletion says that the object still exists. It is then the object itself, with a deletion
/// timestamp, because finalizers hold it or, for a namespace, because it still has content. Otherwise the response is a
/// `Status`, or the last state of the object.
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
    use crate::runtime::component::Component;
    use crate::runtime::plan::KindInfo;

    #[test]
    fn an_object_with_a_deletion_timestamp_still_exists() {
        let removal = Removal {
            kind: KindInfo::of::<NamespaceKind>(),
            key: ObjectKey::new("", "a"),
            component: Component::Whole,
            uid: "u1".to_owned(),
            resource_version: "7".to_owned(),
            preconditions: Vec::new(),
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
        is_being_deleted(&removal, b"<html>").expect_err("not a response of an API server");
    }

    #[test]
    fn an_orphan_that_still_exists_after_half_a_minute_is_left_over() {
        let metadata = |json: Value| -> Metadata { serde_json::from_value(json).expect("metadata") };
        let desired = crate::runtime::apply::tests::desired();
        let owner = || json!({"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"});
        let leaving = |mut object: Value| {
            object["deletionTimestamp"] = "2026-01-01T00:00:10Z".into();
            object
        };
        let former = |api_version: &str| json!({"apiVersion": api_version, "kind": "Instance", "name": "i", "uid": "u0"});
        let v1 = "crownlabs.polito.it/v1alpha1";
        let left = |owners: &[Value]| json!({"ownerReferences": owners});
        for (left, owner, second, expected) in [
            (left(&[former(v1)]), owner(), 29, false),
            (left(&[former(v1)]), owner(), 30, true),
            (left(&[former("capsule.clastix.io/v1")]), owner(), 59, false),
            (left(&[former(v1), former("v1")]), owner(), 59, false),
            (left(&[]), owner(), 59, false),
            (leaving(left(&[former(v1)])), owner(), 59, false),
            (left(&[former(v1)]), leaving(owner()), 59, false),
            (
                left(&[former(v1)]),
                json!({"uid": "u2", "creationTimestamp": "2026-01-01T00:00:00Z"}),
                59,
                false,
            ),
            (left(&[former(v1)]), json!({"uid": "u1"}), 59, false),
        ] {
            let now: Timestamp = format!("2026-01-01T00:00:{second}Z").parse().expect("a time");
            let found = is_left(&metadata(left.clone()), &metadata(owner.clone()), &desired, now);
            assert_eq!(found, expected, "{left} {owner} {second}");
        }
    }
}
