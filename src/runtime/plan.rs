//! The plan of a reconcile: what it intends to write, as a value that can be printed, compared and carried
//! out in part.

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
    /// The names of `T`.
    pub const fn of<T: Kind>() -> Self {
        Self { group: T::GROUP, version: T::VERSION, kind: T::KIND, plural: T::PLURAL }
    }

    /// `<group>/<version>`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of the collection in `namespace`; of the cluster-wide collection if that is empty.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let version = self.api_version();
        if namespace.is_empty() {
            format!("{root}/{version}/{}", self.plural)
        } else {
            format!("{root}/{version}/namespaces/{namespace}/{}", self.plural)
        }
    }

    /// The path of an object.
    ///
    /// # Errors
    /// As of [`ObjectKey::check`].
    pub fn object_path(&self, key: &ObjectKey) -> Result<String, ApiError> {
        key.check()?;
        Ok(format!("{}/{}", self.path(&key.namespace), key.name))
    }
}

/// A complete object, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest(Value);

impl Manifest {
    /// An object of that kind with this metadata and these further members (`spec`, …).
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
    pub fn merged(mut self, patch: &Value) -> Self {
        merge::apply(&mut self.0, patch);
        self
    }

    /// The object as JSON.
    pub fn json(&self) -> &Value {
        &self.0
    }
}

/// A value that serialises without failure, as JSON.
pub fn to_value<T: Serialize>(value: &T) -> Value {
    // API types have text keys and no fallible serialisers: the only two causes of an error.
    serde_json::to_value(value).unwrap_or_default()
}

/// An object that must exist, and its enforced fields. All other fields are written at creation only; later
/// changes of them by others are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    /// Kind.
    pub kind: KindInfo,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// The component that the object belongs to, for example an environment. After a name conflict in it, its objects in
    /// later waves are not written, nor those of its parts.
    pub component: Component,
    /// Objects of a lower wave are written first.
    pub wave: u8,
    /// The whole object, sent when it does not exist. `None` if the store holds the object, so that nothing
    /// is built in vain; if it has been deleted meanwhile, the next reconcile creates it.
    pub manifest: Option<Manifest>,
    /// Labels that it must carry; others are kept.
    pub labels: BTreeMap<String, String>,
    /// Annotations that it must carry (`Some`) or must not (`None`); others are kept.
    pub annotations: BTreeMap<String, Option<String>>,
    /// The reference to its owner; the default for [`Ownership::Unowned`].
    pub owner: OwnerReference,
    /// Whether it is deleted with its owner.
    pub ownership: Ownership,
    /// An object without a controller is adopted, unless it has one of these labels with another value than this; `None`
    /// stands for any value. They say whose it is.
    pub identity: BTreeMap<String, Option<String>>,
    /// An object without a controller is adopted only if it has all of these labels; `None` for no such rule.
    pub known_by: Option<BTreeMap<String, String>>,
    /// The members of the manifest that are enforced as a whole in an object that the store does not hold, because it has
    /// lost its labels.
    pub members: Vec<String>,
    /// Further enforced fields, as a JSON merge patch; `Null` for none.
    pub fields: Value,
}

/// What happens to an object when its owner is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// It is deleted by the garbage collector: it has an owner reference with `controller: true`.
    Controlled,
    /// It is kept: it has no owner reference to its owner, and is recognised by its labels.
    Kept,
    /// It has no owner: the configuration names it. Whoever owns it otherwise is none of our business, and its owner
    /// references are left alone.
    Unowned,
}

/// An object to be deleted, with the uid and resource version of the store as preconditions.
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
    /// What has to hold; for what cannot be made again as it was.
    pub preconditions: Vec<Precondition>,
}

/// What has to hold for a deletion, by the store and by the API server, which is asked right before. If something differs,
/// nothing is deleted, the store takes it, and the object is reconciled again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// This object exists and is as the store has it: its spec, and whether it is being deleted.
    Object(KindInfo, ObjectKey),
    /// The store has every object of this kind that is in this namespace.
    Within(KindInfo, String),
    /// The store has every object of its selection as it is: spec, labels and annotations.
    Every(KindInfo),
}

impl Precondition {
    /// This object.
    pub fn object<T: Kind>(object: &Object<T>) -> Self {
        Self::Object(KindInfo::of::<T>(), ObjectKey::of(object))
    }

    /// The kind that is looked at.
    pub fn kind(&self) -> KindInfo {
        match self {
            Self::Object(kind, _) | Self::Within(kind, _) | Self::Every(kind) => *kind,
        }
    }
}

impl Removal {
    /// The removal of an object with this uid and resource version.
    pub fn of<T: Kind>(object: &Object<T>, component: Component) -> Self {
        Self::seen(KindInfo::of::<T>(), &object.metadata, component)
    }

    /// The removal of an object of that kind with this metadata.
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

    /// The same, with these preconditions.
    pub fn with_preconditions(self, preconditions: impl Into<Vec<Precondition>>) -> Self {
        Self { preconditions: preconditions.into(), ..self }
    }
}

/// A JSON merge patch of one object, with its uid, and in most cases its resource version, as preconditions.
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
    /// The resource version of the object, a precondition of the patch; `None` for no such precondition.
    pub resource_version: Option<String>,
    /// The patch, without the preconditions.
    pub patch: Value,
}

/// Everything that a reconcile intends to do. `E` is the type of its effects outside of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<E = ()> {
    /// Patches of the object itself, and of others that exist already.
    pub patches: Vec<ObjectPatch>,
    /// The objects that must exist.
    pub ensure: Vec<Desired>,
    /// The objects to be deleted.
    pub remove: Vec<Removal>,
    /// Effects outside of the cluster, carried out at the same time as the writes.
    pub effects: Vec<E>,
    /// What cannot be done, and why; reported in conditions and events.
    pub problems: Vec<Problem>,
    /// When the object is reconciled again if nothing changes.
    pub requeue: Requeue,
    /// What has to hold before anything is written; for what the plan has others destroy.
    pub preconditions: Vec<Precondition>,
    /// Objects that the plan depends on and that the stores may be late with: they are read from the API
    /// server, and the plan is made again, before it is carried out. For refusals that are final.
    pub confirm: Vec<(KindInfo, ObjectKey)>,
    /// Whether a report is also written before the plan is carried out. That write is valid only for the
    /// resource version in the store, so a process with an outdated store goes no further.
    pub announce: bool,
    /// Whether the waves after one with a failure are left out.
    pub stop_at_failure: bool,
    /// The finalizer that is removed from the object once everything else has succeeded.
    pub remove_finalizer: Option<&'static str>,
    /// What has to hold for the removal of the finalizer, after which the object is gone.
    pub finalizer_preconditions: Vec<Precondition>,
}

impl ObjectPatch {
    /// A patch of an object, valid only for its resource version in the store; `None` when the object
    /// already has all that `wanted` names.
    pub fn of<T: Kind>(object: &Object<T>, wanted: &Value) -> Option<Self> {
        let current = json!({"metadata": to_value(&object.metadata), "spec": to_value(&object.spec)});
        Some(Self::exactly(object, merge::required(&current, wanted)?))
    }

    /// This patch of an object, valid only for its resource version in the store.
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

/// When an object is wanted again although nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requeue {
    /// At its periodic reconcile.
    #[default]
    Resync,
    /// After this time, or at its periodic reconcile if that is earlier.
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
    /// Requeues the object after this time at the latest.
    pub fn requeue_after(&mut self, after: Duration) {
        self.requeue = Requeue::After(match self.requeue {
            Requeue::After(sooner) => sooner.min(after),
            Requeue::Resync | Requeue::OnChange => after,
        });
    }
}
