//! The apply engine carries out plans. All control loops write to the cluster through it.
//!
//! It compares desired objects with the stores and sends only the enforced fields that differ. Every write has the uid
//! of the stored object as a precondition, and its resource version if the write replaces a list. The response of the
//! API server is stored at once. After a failure, everything that does not depend on the failed write is still carried
//! out. The client rejects writes while the lease is not held (see [`super::gate`]).

mod compare;
mod preconditions;
mod preview;
mod read;
mod removal;

use futures::future::join_all;
use futures::join;
use http::{Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};
use tracing::debug;

use self::compare::{Owner, needed, owner_of, unseen_fields};
pub use self::preview::{Verb, Write};
use super::client::Writer;
use super::component::Component;
use super::error::{ApiError, decoded};
use super::key::ObjectKey;
use super::merge;
use super::plan::{Desired, KindInfo, ObjectPatch, Plan, Precondition, Removal, to_value};
use super::store::{AnyObject, WrittenStores};
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};
use crate::kinds::SecretKind;

/// A part of a plan that could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name}: {error}")]
pub struct Failure {
    /// See [`Desired::component`].
    pub component: Component,
    /// The kind of the object.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Why the write failed.
    pub error: ApiError,
}

/// The result of applying a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// Whether any write was sent.
    pub is_written: bool,
    /// Whether an object was adopted that the stores did not hold. The plan did not know the object, so a new plan is
    /// made.
    pub is_incomplete: bool,
    /// Every failure.
    pub failures: Vec<Failure>,
}

/// The result for an object that must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ensured {
    /// The object is up to date.
    Unchanged,
    /// It was created or repaired.
    Written,
    /// The stores did not hold it. It was repaired as far as possible by a plan that does not know it.
    Adopted,
}

/// Carries out the plans of one loop.
#[derive(Clone)]
pub struct Engine {
    writer: Writer,
    stores: WrittenStores,
    /// The name of the loop, see [`super::store::Change::origin`].
    origin: &'static str,
}

/// An object that the store does not hold, as returned by the API server: its labels do not match the selector of the
/// watch, or the watch lags behind.
struct Found {
    metadata: Metadata,
    object: Value,
}

impl AnyObject for Found {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn json(&self) -> Value {
        self.object.clone()
    }
}

impl Engine {
    /// Creates an engine that writes through `writer` and updates `stores` with the responses.
    pub fn new(writer: Writer, stores: WrittenStores, origin: &'static str) -> Self {
        Self { writer, stores, origin }
    }

    /// Carries out a plan as far as possible. `owner` is the object that is being reconciled. `is_planned` makes the
    /// plan again after the preconditions of a removal were checked, and returns whether it still has the removal.
    pub async fn apply<E>(
        &self,
        plan: &Plan<E>,
        owner: &Precondition,
        is_planned: impl Fn(&Removal) -> bool,
    ) -> Applied {
        let patches =
            join_all(plan.patches.iter().map(async |patch| {
                failure(&patch.component, patch.kind, &patch.key, self.patch(patch).await)
            }));
        let removals =
            join_all(plan.remove.iter().map(async |removal| self.remove_guarded(removal, &is_planned).await));
        let mut waves: Vec<u8> = plan.ensure.iter().map(|desired| desired.wave).collect();
        waves.sort_unstable();
        waves.dedup();
        let is_written = !plan.patches.is_empty() || !plan.remove.is_empty();
        let mut applied = Applied { is_written, ..Applied::default() };
        // All other writes wait for the first wave, which detects name conflicts.
        let (first, later) = waves.split_at(waves.len().min(1));
        self.ensure_waves(plan, owner, first, &mut applied).await;
        // Patches do not depend on other writes, and no write depends on patches.
        let ensured = self.ensure_waves(plan, owner, later, &mut applied);
        let (others, removed, ()) = join!(patches, removals, ensured);
        applied.failures.extend(removed.into_iter().chain(others).flatten());
        applied
    }

    /// Creates or repairs the objects of these waves, one wave after the other. After a name conflict in a component,
    /// its objects in later waves are skipped, and after any failure the guarded ones.
    async fn ensure_waves<E>(
        &self,
        plan: &Plan<E>,
        owner: &Precondition,
        waves: &[u8],
        applied: &mut Applied,
    ) {
        for wave in waves {
            if plan.stop_at_failure && !applied.failures.is_empty() {
                return;
            }
            let is_conflict = |failure: &&Failure| matches!(failure.error, ApiError::NameConflict { .. });
            let conflicted = components(applied.failures.iter().filter(is_conflict));
            let failed = components(applied.failures.iter());
            let is_skipped = |desired: &Desired| {
                is_within(&desired.component, if desired.is_guarded { &failed } else { &conflicted })
            };
            let wanted = plan.ensure.iter().filter(|desired| desired.wave == *wave && !is_skipped(desired));
            let writes = wanted.map(async |desired| {
                let result = self.ensure(desired, owner).await;
                let ensured = *result.as_ref().unwrap_or(&Ensured::Written);
                (ensured, failure(&desired.component, desired.kind, &desired.key, result))
            });
            for (ensured, failure) in join_all(writes).await {
                applied.is_written |= ensured != Ensured::Unchanged;
                applied.is_incomplete |= ensured == Ensured::Adopted;
                applied.failures.extend(failure);
            }
        }
    }

    /// Creates an object, or repairs its enforced fields if it exists.
    async fn ensure(&self, desired: &Desired, owner: &Precondition) -> Result<Ensured, ApiError> {
        let store = self.stores.get(desired.kind)?;
        let done = |ensured: Ensured| move |is_written| if is_written { ensured } else { Ensured::Unchanged };
        if let Some(seen) = store.seen(&desired.key) {
            return self.enforce(desired, &*seen, owner).await.map(done(Ensured::Written));
        }
        let Some(manifest) = &desired.manifest else {
            return Err(ApiError::transient("the object was just deleted"));
        };
        desired.key.check()?;
        match self.send(Method::POST, &desired.kind.path(&desired.key.namespace), Some(manifest.json())).await
        {
            Ok(body) => store.record(&desired.key, &body, self.origin).map(|()| Ensured::Written),
            Err(ApiError::AlreadyExists(message)) if store.is_whole() => {
                Err(ApiError::transient(format!("the watch lags behind: {message}")))
            }
            // The store does not hold the object: its labels do not match the watch, or the watch lags behind.
            Err(ApiError::AlreadyExists(_)) => {
                let (desired, found) = self.find(desired).await?;
                self.enforce(&desired, &found, owner).await.map(done(Ensured::Adopted))
            }
            Err(error) => Err(error),
        }
    }

    /// Reads an object that the store does not hold, and returns it with its enforced fields.
    async fn find(&self, desired: &Desired) -> Result<(Desired, Found), ApiError> {
        let body = self.send(Method::GET, &desired.kind.object_path(&desired.key)?, None).await?;
        let object: Value = decoded(&body)?;
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata: Metadata = serde_json::from_value(metadata).unwrap_or_default();
        let desired = Desired { fields: unseen_fields(desired, &object), ..desired.clone() };
        Ok((desired, Found { metadata, object }))
    }

    /// Restores the enforced fields of an existing object with one merge patch. Returns whether a patch was sent; none
    /// is sent if the fields are up to date.
    async fn enforce(
        &self,
        desired: &Desired,
        seen: &dyn AnyObject,
        owner: &Precondition,
    ) -> Result<bool, ApiError> {
        let metadata = seen.metadata();
        if matches!(owner_of(metadata, desired), Owner::Predecessor) {
            self.collect(desired, metadata, owner).await?;
        }
        let Some(patch) = needed(desired, seen)? else { return Ok(false) };
        debug!(kind = desired.kind.kind, name = %desired.key.name, patch = %shown(desired.kind, &patch.patch), "repairing");
        self.patch(&patch).await?;
        Ok(true)
    }

    /// Sends a merge patch with its preconditions (uid, and resource version if given).
    pub async fn patch(&self, patch: &ObjectPatch) -> Result<(), ApiError> {
        let mut body = patch.patch.clone();
        let preconditions = json!({"uid": patch.uid, "resourceVersion": patch.resource_version});
        merge::apply(&mut body, &json!({"metadata": preconditions}));
        let mut target = patch.kind.object_path(&patch.key)?;
        if let Some(subresource) = patch.subresource {
            target.push('/');
            target.push_str(subresource);
        }
        let answer = self.send(Method::PATCH, &target, Some(&body)).await?;
        self.stores.get(patch.kind)?.record(&patch.key, &answer, self.origin)
    }

    /// Patches the status of an object with the fields that differ from `status`, and returns whether any did. The
    /// patch is valid only for the resource version in the store, because it replaces whole lists that other loops also
    /// write to.
    pub async fn publish<T: Kind>(&self, object: &Object<T>, status: &T::Status) -> Result<bool, ApiError> {
        let Some(patch) = status_patch(object, status) else { return Ok(false) };
        self.patch(&patch).await?;
        Ok(true)
    }

    /// Reads an object from the API server and updates the store.
    pub async fn refresh(&self, kind: KindInfo, key: &ObjectKey) -> Result<(), ApiError> {
        // The name may be invalid: users write the references in their objects.
        let Ok(path) = kind.object_path(key) else { return Ok(()) };
        match self.send(Method::GET, &path, None).await {
            Ok(answer) => self.stores.get(kind)?.record(key, &answer, self.origin),
            Err(ApiError::NotFound(_)) => {
                if let Ok(store) = self.stores.get(kind)
                    && let Some(seen) = store.seen(key)
                {
                    store.record_deletion(key, &seen.metadata().uid, self.origin);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Bytes, ApiError> {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let uri = if matches!(method, Method::POST | Method::PATCH) {
            format!("{path}?fieldManager=crownlabs")
        } else {
            path.to_owned()
        };
        let invalid = |error: &dyn std::fmt::Display| {
            ApiError::Invalid(format!("the request cannot be built: {error}"))
        };
        let body = body.map_or(Ok(Vec::new()), serde_json::to_vec).map_err(|error| invalid(&error))?;
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", content)
            .header("accept", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| invalid(&error))?;
        self.writer.send(request).await
    }
}

/// Returns the patch from the status of an object to another one; `None` if they are equal.
fn status_patch<T: Kind>(object: &Object<T>, status: &T::Status) -> Option<ObjectPatch> {
    if *status == object.status {
        return None;
    }
    // A status that was never written has no fields yet, not even the required ones.
    let written = object.status != T::Status::default();
    let old = if written { to_value(&object.status) } else { Value::Object(Map::new()) };
    let difference = merge::difference(&old, &to_value(status))?;
    let patch = ObjectPatch::exactly(object, json!({"status": difference}));
    Some(ObjectPatch { subresource: Some("status"), ..patch })
}

fn failure<T>(
    component: &Component,
    kind: KindInfo,
    key: &ObjectKey,
    result: Result<T, ApiError>,
) -> Option<Failure> {
    let error = result.err()?;
    Some(Failure { component: component.clone(), kind: kind.kind, name: key.name.to_string(), error })
}

/// Returns a patch as it is logged, with the values of Secrets masked.
fn shown(kind: KindInfo, patch: &Value) -> Value {
    let mut shown = patch.clone();
    if kind == KindInfo::of::<SecretKind>() {
        for member in ["data", "stringData"] {
            let values = shown.get_mut(member).and_then(Value::as_object_mut);
            values.into_iter().flat_map(Map::values_mut).for_each(|value| *value = "***".into());
        }
    }
    shown
}

/// Returns the components of these failures.
fn components<'a>(failures: impl Iterator<Item = &'a Failure>) -> Vec<Component> {
    failures.map(|failure| failure.component.clone()).collect()
}

/// Whether a component is one of these, or a part of one.
fn is_within(component: &Component, components: &[Component]) -> bool {
    components.iter().any(|other| component.is_within(other))
}

/// Returns what the engine would send for an object of a plan that is in its store: the patch, and the resulting
/// object; `None` if nothing differs.
///
/// # Errors
/// When the object is not in its store, so it would be created.
#[cfg(test)]
pub fn rewritten(desired: &Desired, stores: &WrittenStores) -> Result<Option<(Value, Value)>, ApiError> {
    let absent = || ApiError::NotFound(desired.key.to_string());
    let seen = stores.get(desired.kind)?.seen(&desired.key).ok_or_else(absent)?;
    Ok(needed(desired, &*seen).ok().flatten().map(|patch| {
        let mut object = seen.json();
        merge::apply(&mut object, &patch.patch);
        (patch.patch, object)
    }))
}

#[cfg(test)]
mod tests;
