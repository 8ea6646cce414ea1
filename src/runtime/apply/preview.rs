//! Computes what the engine would send for a plan. Objects that the stores do not hold are read; nothing is written.

use serde_json::Value;

use super::{Engine, Failure, failure, is_within, needed, shown, status_patch};
use crate::api::{Kind, Object};
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;
use crate::runtime::plan::{Desired, KindInfo, ObjectPatch, Plan};
use crate::runtime::store::AnyObject;

/// A write that was not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The operation.
    pub verb: Verb,
    /// The kind of the object.
    pub kind: KindInfo,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// `status`, or `None` for the object itself.
    pub subresource: Option<&'static str>,
    /// The current object, as far as we read it; `Null` if it does not exist. Values of Secrets are masked.
    pub before: Value,
    /// The new object, or the merge patch; `Null` for a deletion. Values of Secrets are masked.
    pub body: Value,
}

/// The operation of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Creates the object.
    Create,
    /// Changes fields of the object.
    Patch,
    /// Deletes the object.
    Delete,
}

impl Engine {
    /// Returns the writes that [`Engine::apply`] would send for this plan if all of them succeed, and the failures that
    /// prevent others.
    pub async fn preview<E>(&self, plan: &Plan<E>) -> (Vec<Write>, Vec<Failure>) {
        let mut writes: Vec<Write> = plan.patches.iter().map(|patch| self.patching(patch)).collect();
        let mut failures = Vec::new();
        let mut ensure: Vec<&Desired> = plan.ensure.iter().collect();
        ensure.sort_by_key(|desired| desired.wave);
        let mut conflicted = Vec::new();
        for desired in ensure {
            if is_within(&desired.component, &conflicted) {
                continue;
            }
            match self.ensuring(desired).await {
                Ok(write) => writes.extend(write),
                Err(error) => {
                    if matches!(error, ApiError::NameConflict { .. }) {
                        conflicted.push(desired.component.clone());
                    }
                    let failed = failure::<()>(&desired.component, desired.kind, &desired.key, Err(error));
                    failures.extend(failed);
                }
            }
        }
        writes.extend(plan.remove.iter().map(|removal| {
            let (kind, key) = (removal.kind, &removal.key);
            self.write(Verb::Delete, kind, key, None, &Value::Null)
        }));
        (writes, failures)
    }

    /// Returns the write that [`Engine::publish`] would send; `None` if nothing differs.
    pub fn publishing<T: Kind>(&self, object: &Object<T>, status: &T::Status) -> Option<Write> {
        status_patch(object, status).map(|patch| self.patching(&patch))
    }

    /// Returns a patch as a write.
    pub fn patching(&self, patch: &ObjectPatch) -> Write {
        self.write(Verb::Patch, patch.kind, &patch.key, patch.subresource, &patch.patch)
    }

    /// Returns the write for an object that must exist; `None` if it is up to date.
    async fn ensuring(&self, desired: &Desired) -> Result<Option<Write>, ApiError> {
        let store = self.stores.get(desired.kind)?;
        if let Some(seen) = store.seen(&desired.key) {
            return Ok(needed(desired, &*seen)?.map(|patch| self.patching(&patch)));
        }
        let found =
            if store.is_whole() { Err(ApiError::NotFound(String::new())) } else { self.find(desired).await };
        match found {
            Ok((desired, found)) => Ok(needed(&desired, &found)?
                .map(|patch| Write { before: shown(desired.kind, &found.json()), ..self.patching(&patch) })),
            Err(ApiError::NotFound(_)) => Ok(desired
                .manifest
                .as_ref()
                .map(|manifest| self.write(Verb::Create, desired.kind, &desired.key, None, manifest.json()))),
            Err(error) => Err(error),
        }
    }

    fn write(
        &self,
        verb: Verb,
        kind: KindInfo,
        key: &ObjectKey,
        subresource: Option<&'static str>,
        body: &Value,
    ) -> Write {
        let seen = self.stores.get(kind).ok().and_then(|store| store.seen(key));
        let before = seen.map_or(Value::Null, |seen| shown(kind, &seen.json()));
        Write { verb, kind, key: key.clone(), subresource, before, body: shown(kind, body) }
    }
}
