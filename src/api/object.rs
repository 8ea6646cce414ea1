//! The type of all objects that we read: metadata, a spec and a status, decoded leniently.
//!
//! The API server may hold objects that the present schema would reject, because they were stored before
//! the schema changed or under another version of the CRDs. If decoding one object failed, the whole list
//! that it comes in would fail. So an [`Object`] can always be decoded: a spec that cannot be read is
//! replaced by its default, [`Object::malformed`] says what is wrong with it, and the control loops report
//! that on the object.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::lenient;
use super::meta::Metadata;
use super::text::Text;

/// A kind of the Kubernetes API: its names, and the types of its spec and status.
///
/// For our custom resources, `Spec` and `Status` have all fields. For kinds of other projects (Deployments,
/// virtual machines, …) they have only the fields that a control loop reads; all others are skipped while
/// decoding, so that they take no memory in a store.
pub trait Kind: Debug + Clone + PartialEq + Send + Sync + 'static {
    /// The API group; empty for the core group.
    const GROUP: &'static str;
    /// The API version, for example `v1alpha2`.
    const VERSION: &'static str;
    /// The name of the kind in `CamelCase`, for example `Instance`.
    const KIND: &'static str;
    /// The plural name that is used in URLs, for example `instances`.
    const PLURAL: &'static str;
    /// Whether objects are in a namespace; false for cluster-scoped kinds.
    const NAMESPACED: bool;
    /// The field that contains [`Kind::Spec`]: `data` for Secrets, `spec` for most kinds, and empty for
    /// kinds such as `ClusterRole` that have their fields at the top level.
    const BODY: &'static str = "spec";
    /// Whether a store keeps objects as JSON text, which takes several times less memory, and decodes one
    /// each time it is read. For kinds with many objects that are only read when their owner is reconciled.
    const ENCODED: bool = false;
    /// The desired state, or those fields of it that we read.
    type Spec: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// The observed state, or those fields of it that we read.
    type Status: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
}

/// Declares a kind: a marker type that implements `Kind`, and an alias for `Object` of it.
macro_rules! kind {
    ($(#[$doc:meta])* $marker:ident, $alias:ident, $group:expr, $version:literal, $kind:literal,
     $plural:literal, namespaced: $namespaced:literal, $spec:ty, $status:ty $(, body: $body:literal)? $(, encoded: $encoded:literal)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $marker;

        $(#[$doc])*
        #[allow(dead_code, reason = "not every kind is named by its objects")]
        pub type $alias = crate::api::Object<$marker>;

        impl crate::api::Kind for $marker {
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const KIND: &'static str = $kind;
            const PLURAL: &'static str = $plural;
            const NAMESPACED: bool = $namespaced;
            $(const BODY: &'static str = $body;)?
            $(const ENCODED: bool = $encoded;)?
            type Spec = $spec;
            type Status = $status;
        }
    };
}
pub(crate) use kind;

/// An object of kind `T`. The documentation of the module says how it is decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<T: Kind> {
    /// The metadata, always without `managedFields`.
    pub metadata: Metadata,
    /// The desired state; the default if it is absent or cannot be read.
    pub spec: T::Spec,
    /// The observed state; the default if it is absent or cannot be read.
    pub status: T::Status,
    /// Why the spec cannot be read, for example
    /// `spec.running: invalid type: string "yes", expected a boolean`. Absent fields are not an error.
    pub malformed: Option<String>,
}

impl<T: Kind> Object<T> {
    /// An object with a name and a spec, as a user would create it.
    pub fn new(namespace: Option<&str>, name: &str, spec: T::Spec) -> Self {
        Self {
            metadata: Metadata {
                name: Text::interned(name),
                namespace: namespace.map(Text::interned).unwrap_or_default(),
                ..Metadata::default()
            },
            spec,
            status: T::Status::default(),
            malformed: None,
        }
    }

    /// `metadata.name`; empty if the object has none yet.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// `metadata.uid`; empty if the object does not come from an API server.
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// `metadata.resourceVersion`; `None` if the object does not come from an API server.
    pub fn resource_version(&self) -> Option<String> {
        self.metadata.resource_version.as_ref().map(ToString::to_string)
    }

    /// The value of a label; `None` if the object does not have it.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.get(key)
    }

    /// Whether the object has all these labels with these values.
    pub fn has_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(key, value)| self.label(key) == Some(value))
    }

    /// The value of an annotation; `None` if the object does not have it.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key)
    }

    /// Whether the object is being deleted (`metadata.deletionTimestamp` is set).
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether `owner` controls the object.
    pub fn is_controlled_by<O: Kind>(&self, owner: &Object<O>) -> bool {
        self.controller_uid() == Some(owner.uid())
    }

    /// The uid of the controller owner reference, if there is one.
    pub fn controller_uid(&self) -> Option<&str> {
        self.metadata.controller().map(|owner| owner.uid.as_str())
    }
}

/// An object of any kind whose spec and status have not been decoded yet.
#[derive(Debug, Clone, Deserialize)]
pub struct RawObject {
    /// The metadata, always without `managedFields`.
    #[serde(default)]
    pub metadata: Metadata,
    spec: Option<Box<RawValue>>,
    data: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
    /// All of it, for kinds that have their fields at the top level.
    #[serde(skip)]
    whole: Option<Box<RawValue>>,
}

impl RawObject {
    /// Reads an object; `is_flat` for kinds that have their fields at the top level, whose [`Kind::BODY`] is empty.
    ///
    /// # Errors
    /// When it is no object, or its metadata cannot be read.
    pub fn read<'de, D: Deserializer<'de>>(deserializer: D, is_flat: bool) -> Result<Self, D::Error> {
        if !is_flat {
            return Self::deserialize(deserializer);
        }
        let whole = Box::<RawValue>::deserialize(deserializer)?;
        let parts = serde_json::from_str::<Self>(whole.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { whole: Some(whole), ..parts })
    }
}

impl<T: Kind> Object<T> {
    /// The object, decoded. It was read as [`Kind::BODY`] says.
    pub fn decode(raw: RawObject) -> Self {
        let body = match T::BODY {
            "" => raw.whole,
            "data" => raw.data,
            _ => raw.spec,
        };
        let (spec, malformed) = match lenient::read(body.as_deref()) {
            Ok(spec) => (spec, None),
            Err(reason) => (T::Spec::default(), Some(format!("{}{reason}", T::BODY))),
        };
        Self {
            metadata: raw.metadata,
            spec,
            // A status that cannot be read is written anew by the next reconcile.
            status: lenient::read(raw.status.as_deref()).unwrap_or_default(),
            malformed,
        }
    }
}

impl<'de, T: Kind> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawObject::read(deserializer, T::BODY.is_empty()).map(Self::decode)
    }
}

impl<T: Kind> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let version =
            if T::GROUP.is_empty() { T::VERSION.to_owned() } else { format!("{}/{}", T::GROUP, T::VERSION) };
        map.serialize_entry("apiVersion", &version)?;
        map.serialize_entry("kind", T::KIND)?;
        map.serialize_entry("metadata", &self.metadata)?;
        if T::BODY.is_empty() {
            let members = serde_json::to_value(&self.spec).map_err(serde::ser::Error::custom)?;
            for (name, member) in members.as_object().into_iter().flatten() {
                map.serialize_entry(name, member)?;
            }
        } else {
            map.serialize_entry(T::BODY, &self.spec)?;
        }
        if self.status != T::Status::default() {
            map.serialize_entry("status", &self.status)?;
        }
        map.end()
    }
}
