//! What a loop intends to do, as a value: it can be printed, compared and carried out in part.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde_json::{Value, json};

use super::key::ObjectKey;
use super::merge;
use super::problem::Problem;
use crate::api::{Kind, Object};

/// A kind, without its types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindInfo {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name.
    pub plural: &'static str,
}

impl KindInfo {
    /// The names of `T`.
    #[must_use]
    pub const fn of<T: Kind>() -> Self {
        Self { group: T::GROUP, version: T::VERSION, kind: T::KIND, plural: T::PLURAL }
    }

    /// `<group>/<version>`, or the version alone for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of the collection in `namespace` (of the cluster where that is empty).
    #[must_use]
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let version = self.api_version();
        if namespace.is_empty() {
            format!("{root}/{version}/{}", self.plural)
        } else {
            format!("{root}/{version}/namespaces/{namespace}/{}", self.plural)
        }
    }
}

/// A complete object, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest(Value);

impl Manifest {
    /// The object of the given kind with these metadata and these further members (`spec`, …).
    ///
    /// # Panics
    /// Never for types that serialise to JSON objects with text keys, as all API types do.
    pub fn new<B: Serialize>(kind: KindInfo, metadata: &ObjectMeta, body: &B) -> Self {
        let mut object = serde_json::Map::new();
        object.insert("apiVersion".into(), kind.api_version().into());
        object.insert("kind".into(), kind.kind.into());
        object.insert("metadata".into(), to_value(metadata));
        if let Value::Object(members) = to_value(body) {
            object.extend(members);
        }
        Self(Value::Object(object))
    }

    /// The object with a merge patch applied.
    #[must_use]
    pub fn merged(mut self, patch: &Value) -> Self {
        merge::apply(&mut self.0, patch);
        self
    }

    /// The object as JSON.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.0
    }
}

/// A value that serialises without failure, as JSON.
pub fn to_value<T: Serialize>(value: &T) -> Value {
    // API types have text keys and no fallible serialisers: the only two causes of an error.
    serde_json::to_value(value).unwrap_or_default()
}

/// An object that must exist, and the part of it that is enforced for as long as it does.
/// Everything else is written at creation only, and stays as whoever changes it wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    /// Kind.
    pub kind: KindInfo,
    /// Where, and under which name.
    pub key: ObjectKey,
    /// The group of objects that stand or fall together, for example an environment's name. When a name
    /// of `a` is taken, later waves of `a` are left out, and those of `a/b`.
    pub component: String,
    /// Objects of a lower wave are written first.
    pub wave: u8,
    /// The whole object, sent when it does not exist. `None` when it exists already, so that
    /// nobody needs to build what is not sent; should it have gone meanwhile, the next pass does.
    pub manifest: Option<Manifest>,
    /// Labels that it must carry; others are kept.
    pub labels: BTreeMap<String, String>,
    /// Annotations that it must carry (`Some`) or must not (`None`); others are kept.
    pub annotations: BTreeMap<String, Option<String>>,
    /// The object that it is made for.
    pub owner: OwnerReference,
    /// Whether it goes when its owner goes.
    pub ownership: Ownership,
    /// The labels by which an object that nobody controls is known as ours; `None` for all of
    /// [`Desired::labels`].
    pub known_by: Option<BTreeMap<String, String>>,
    /// Further enforced members, as a JSON merge patch; `Null` for none.
    pub fields: Value,
}

/// What becomes of an object when the one that it was made for is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// It goes too: it carries a reference to its owner, by which it is known as ours.
    Controlled,
    /// It stays: it carries no such reference, and is known as ours by the labels that are enforced.
    Kept,
}

/// An object that must not exist any more. It was seen with this uid and version, and ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Kind.
    pub kind: KindInfo,
    /// Where, and under which name.
    pub key: ObjectKey,
    /// See [`Desired::component`].
    pub component: String,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
    /// The object, a namespace, is removed only if the API server says at that moment that it holds no
    /// object of these kinds: the stores may be late.
    pub only_if_empty: Vec<KindInfo>,
}

impl Removal {
    /// The removal of an object as it was seen.
    pub fn of<T: Kind>(object: &Object<T>, component: &str) -> Self {
        Self {
            kind: KindInfo::of::<T>(),
            key: ObjectKey::of(object),
            component: component.to_owned(),
            uid: object.uid().to_owned(),
            resource_version: object
                .metadata
                .resource_version
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            only_if_empty: Vec::new(),
        }
    }
}

/// A JSON merge patch of one object, valid only for the version that was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectPatch {
    /// See [`Desired::component`]; empty when it concerns all of them.
    pub component: String,
    /// Kind.
    pub kind: KindInfo,
    /// Where, and under which name.
    pub key: ObjectKey,
    /// `status`, or `None` for the object itself.
    pub subresource: Option<&'static str>,
    /// The uid that was seen.
    pub uid: String,
    /// The version that was seen; `None` where a later one will do as well.
    pub resource_version: Option<String>,
    /// The patch, without the preconditions.
    pub patch: Value,
}

/// Everything that a reconcile intends to do; `E` is what it may want done outside of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<E = ()> {
    /// What to change on the object itself, and on others that exist already.
    pub patches: Vec<ObjectPatch>,
    /// What must exist.
    pub ensure: Vec<Desired>,
    /// What must not exist any more.
    pub remove: Vec<Removal>,
    /// What is to be done outside of the cluster, beside the writes.
    pub effects: Vec<E>,
    /// What cannot be done, and why.
    pub problems: Vec<Problem>,
    /// When the object is wanted again although nothing has changed.
    pub requeue: Requeue,
    /// What the plan rests on and a watch may be late with: these objects are read from the API server, and
    /// the plan is made anew, before it is carried out. For refusals that are final.
    pub confirm: Vec<(KindInfo, ObjectKey)>,
    /// Whether the report is written before the plan is carried out as well. That write is valid for the
    /// version that was seen only, so nobody whose view is out of date gets any further.
    pub announce: bool,
    /// Whether a failure in one wave leaves out the waves after it.
    pub stop_at_failure: bool,
    /// The finalizer that is taken off the object once everything else has been carried out.
    pub remove_finalizer: Option<&'static str>,
}

impl ObjectPatch {
    /// A patch of an object that exists, valid only for the version that was seen; `None` when `wanted`
    /// holds already.
    pub fn of<T: Kind>(object: &Object<T>, wanted: &Value) -> Option<Self> {
        let current = json!({"metadata": to_value(&object.metadata), "spec": to_value(&object.spec)});
        Some(Self {
            component: String::new(),
            kind: KindInfo::of::<T>(),
            key: ObjectKey::of(object),
            subresource: None,
            uid: object.uid().to_owned(),
            resource_version: object.metadata.resource_version.as_ref().map(ToString::to_string),
            patch: merge::required(&current, wanted)?,
        })
    }
}

/// When an object is wanted again although nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requeue {
    /// At its periodic reconcile.
    #[default]
    Resync,
    /// After this time, or at its periodic reconcile if that is sooner.
    After(Duration),
    /// Never: only a change can make a difference.
    OnChange,
}

impl<E> Default for Plan<E> {
    fn default() -> Self {
        Self {
            patches: Vec::new(),
            ensure: Vec::new(),
            remove: Vec::new(),
            effects: Vec::new(),
            problems: Vec::new(),
            requeue: Requeue::default(),
            confirm: Vec::new(),
            announce: false,
            stop_at_failure: false,
            remove_finalizer: None,
        }
    }
}

impl<E> Plan<E> {
    /// Asks for another reconcile after this time at the latest.
    pub fn requeue_after(&mut self, after: Duration) {
        self.requeue = Requeue::After(match self.requeue {
            Requeue::After(sooner) => sooner.min(after),
            Requeue::Resync | Requeue::OnChange => after,
        });
    }
}
