//! The plan of a reconcile: the intended writes, as a value that can be printed, compared and carried out in part.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde_json::{Value, json};

use super::component::Component;
use super::error::ApiError;
use super::key::ObjectKey;
use super::merge;
use super::object_events::About;
use super::problem::Problem;
use crate::api::meta::Metadata;
use crate::api::{Kind, Object};

/// Group, version, kind and plural name of a kind.
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
    /// Returns the names of the kind `T`.
    pub const fn of<T: Kind>() -> Self {
        Self { group: T::GROUP, version: T::VERSION, kind: T::KIND, plural: T::PLURAL }
    }

    /// Returns the names of a kind that is in the configuration. They are kept until the process ends.
    pub fn leaked([group, version, kind, plural]: [&str; 4]) -> Self {
        let leak = |text: &str| -> &'static str { Box::leak(Box::<str>::from(text)) };
        Self { group: leak(group), version: leak(version), kind: leak(kind), plural: leak(plural) }
    }

    /// Returns `<group>/<version>`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the path of the collection in `namespace`; of the cluster-wide collection if that is empty.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let version = self.api_version();
        if namespace.is_empty() {
            format!("{root}/{version}/{}", self.plural)
        } else {
            format!("{root}/{version}/namespaces/{namespace}/{}", self.plural)
        }
    }

    /// Returns the path of an object.
    ///
    /// # Errors
    /// As for [`ObjectKey::check`].
    pub fn object_path(&self, key: &ObjectKey) -> Result<String, ApiError> {
        key.check()?;
        Ok(format!("{}/{}", self.path(&key.namespace), key.name))
    }
}

/// A complete object, ready to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest(Value);

impl Manifest {
    /// Builds an object of a kind with this metadata and these further members (`spec`, …).
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

    /// Applies a merge patch to the object.
    pub fn merged(mut self, patch: &Value) -> Self {
        merge::apply(&mut self.0, patch);
        self
    }

    /// Returns the object as JSON.
    pub fn json(&self) -> &Value {
        &self.0
    }
}

/// Converts a value that always serialises to JSON.
pub fn to_value<T: Serialize>(value: &T) -> Value {
    // API types have text keys and no fallible serialisers, so neither of the two causes of an error exists.
    serde_json::to_value(value).unwrap_or_default()
}

/// An object that must exist, and its enforced fields. All other fields are written only at creation; later changes of
/// them by others are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    /// Kind.
    pub kind: KindInfo,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// The component that the object belongs to, for example an environment. After a name conflict in a component,
    /// objects of the component and its parts in later waves are not written.
    pub component: Component,
    /// Objects of a lower wave are written first.
    pub wave: u8,
    /// Whether it is not created after a failure of its component in an earlier wave, because an object of that wave
    /// protects it.
    pub is_guarded: bool,
    /// The whole object, sent if it does not exist. `None` if the store holds the object, which saves building it; if
    /// the object is deleted meanwhile, the next reconcile creates it.
    pub manifest: Option<Manifest>,
    /// Labels that it must have; others are kept.
    pub labels: BTreeMap<String, String>,
    /// Annotations that it must have (`Some`) or must not have (`None`); others are kept.
    pub annotations: BTreeMap<String, Option<String>>,
    /// The reference to its owner; the default for [`Ownership::Unowned`].
    pub owner: OwnerReference,
    /// Whether it is deleted with its owner.
    pub ownership: Ownership,
    /// The labels that identify its owner. An object without a controller is adopted, unless it has one of these labels
    /// with another value; `None` means that any value prevents adoption.
    pub identity: BTreeMap<String, Option<String>>,
    /// An object without a controller is adopted only if it has all of these labels; `None` disables the rule.
    pub known_by: Option<BTreeMap<String, String>>,
    /// The members of the manifest that are enforced as a whole if the store does not hold the object because it has
    /// lost its labels.
    pub members: Vec<String>,
    /// Further enforced fields, as a JSON merge patch; `Null` for none.
    pub fields: Value,
}

/// The fate of an object when its owner is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The garbage collector deletes it: it has an owner reference with `controller: true`.
    Controlled,
    /// It is kept: it has no owner reference to its owner, and is identified by its labels.
    Kept,
    /// It has no owner: the configuration names it. Owner references that it may have are not changed.
    Unowned,
}

/// An object to delete, with the uid and resource version in the store as preconditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Kind.
    pub kind: KindInfo,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// See [`Desired::component`].
    pub component: Component,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
    /// The preconditions, for objects that cannot be recreated unchanged.
    pub preconditions: Vec<Precondition>,
}

/// A precondition of a deletion, checked against the store and, immediately before, the API server. If something
/// differs, nothing is deleted, the store is updated, and the object is reconciled again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// This object exists, and the store has its current spec and deletion state.
    Object(KindInfo, ObjectKey),
    /// The store has every object of this kind in this namespace.
    Within(KindInfo, String),
    /// There is no object of this kind in this namespace, whether or not the store has it: it may have arrived after
    /// the plan.
    NoneWithin(KindInfo, String),
    /// The store has the current spec, labels and annotations of every object of its selection.
    Every(KindInfo),
}

impl Precondition {
    /// The precondition for this object.
    pub fn object<T: Kind>(object: &Object<T>) -> Self {
        Self::Object(KindInfo::of::<T>(), ObjectKey::of(object))
    }

    /// Returns the kind that is checked.
    pub fn kind(&self) -> KindInfo {
        match self {
            Self::Object(kind, _) | Self::Within(kind, _) | Self::NoneWithin(kind, _) | Self::Every(kind) => {
                *kind
            }
        }
    }
}

impl Removal {
    /// Creates the removal of an object with its uid and resource version.
    pub fn of<T: Kind>(object: &Object<T>, component: Component) -> Self {
        Self::seen(KindInfo::of::<T>(), &object.metadata, component)
    }

    /// Creates the removal of an object of a kind with this metadata.
    pub fn seen(kind: KindInfo, metadata: &Metadata, component: Component) -> Self {
        Self {
            kind,
            key: ObjectKey::new(metadata.namespace.clone(), metadata.name.clone()),
            component,
            uid: metadata.uid.to_string(),
            resource_version: metadata.resource_version.as_ref().map(ToString::to_string).unwrap_or_default(),
            preconditions: Vec::new(),
        }
    }

    /// Sets the preconditions.
    pub fn with_preconditions(self, preconditions: impl Into<Vec<Precondition>>) -> Self {
        Self { preconditions: preconditions.into(), ..self }
    }
}

/// A JSON merge patch of one object, with its uid and usually its resource version as preconditions.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectPatch {
    /// See [`Desired::component`].
    pub component: Component,
    /// Kind.
    pub kind: KindInfo,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// `status`, or `None` for the object itself.
    pub subresource: Option<&'static str>,
    /// The uid of the object, a precondition of the patch.
    pub uid: String,
    /// The resource version of the object, a precondition of the patch; `None` if there is no such precondition.
    pub resource_version: Option<String>,
    /// The patch, without the preconditions.
    pub patch: Value,
}

/// Everything that a reconcile intends to do. `E` is the type of its effects outside the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<E = ()> {
    /// Patches of the object itself, and of other existing objects.
    pub patches: Vec<ObjectPatch>,
    /// The objects that must exist.
    pub ensure: Vec<Desired>,
    /// The objects to delete.
    pub remove: Vec<Removal>,
    /// Effects outside the cluster, carried out concurrently with the writes.
    pub effects: Vec<E>,
    /// The objects that this object waits for. Their events are read until a plan awaits none.
    pub awaited: Option<About>,
    /// The problems that prevent parts of the plan, reported in conditions and events.
    pub problems: Vec<Problem>,
    /// The time of the next reconcile if nothing changes.
    pub requeue: Requeue,
    /// The preconditions of all writes, for a plan that causes other components to destroy something.
    pub preconditions: Vec<Precondition>,
    /// Objects that the plan depends on although the stores may lag behind. Before the plan is carried out, they are
    /// read from the API server, and a new plan is made. For rejections that are final.
    pub confirm: Vec<(KindInfo, ObjectKey)>,
    /// Whether a report is also written before the plan is carried out. That write is valid only for the resource
    /// version in the store, so a process with an outdated store does not continue.
    pub announce: bool,
    /// Whether the waves after a wave with a failure are skipped.
    pub stop_at_failure: bool,
    /// The finalizer that is removed from the object after everything else has succeeded.
    pub remove_finalizer: Option<&'static str>,
    /// The preconditions for the removal of the finalizer. The object is gone afterwards.
    pub finalizer_preconditions: Vec<Precondition>,
}

impl ObjectPatch {
    /// Creates a patch of an object, valid only for its resource version in the store; `None` if the object already has
    /// all fields of `wanted`.
    pub fn of<T: Kind>(object: &Object<T>, wanted: &Value) -> Option<Self> {
        let current = json!({"metadata": to_value(&object.metadata), "spec": to_value(&object.spec)});
        Some(Self::exactly(object, merge::required(&current, wanted)?))
    }

    /// Creates a patch of an object, valid only for its resource version in the store.
    pub fn exactly<T: Kind>(object: &Object<T>, patch: Value) -> Self {
        Self {
            component: Component::Whole,
            kind: KindInfo::of::<T>(),
            key: ObjectKey::of(object),
            subresource: None,
            uid: object.uid().to_owned(),
            resource_version: object.resource_version(),
            patch,
        }
    }
}

/// The time of the next reconcile of an object if nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requeue {
    /// At its periodic reconcile.
    #[default]
    Resync,
    /// After this time, or at its periodic reconcile if that is earlier.
    After(Duration),
    /// Never: only a change requires another reconcile.
    OnChange,
}

impl<E> Default for Plan<E> {
    fn default() -> Self {
        Self {
            patches: Vec::new(),
            ensure: Vec::new(),
            remove: Vec::new(),
            effects: Vec::new(),
            awaited: None,
            problems: Vec::new(),
            requeue: Requeue::default(),
            preconditions: Vec::new(),
            confirm: Vec::new(),
            announce: false,
            stop_at_failure: false,
            remove_finalizer: None,
            finalizer_preconditions: Vec::new(),
        }
    }
}

impl<E> Plan<E> {
    /// Requeues the object after this time at the latest; `None` changes nothing.
    pub fn requeue_after(&mut self, after: impl Into<Option<Duration>>) {
        let Some(after) = after.into() else { return };
        self.requeue = Requeue::After(match self.requeue {
            Requeue::After(sooner) => sooner.min(after),
            Requeue::Resync | Requeue::OnChange => after,
        });
    }
}
