//! The type of all objects that are read: metadata, a spec and a status, decoded leniently.
//!
//! The API server may hold objects that the present schema would reject, because they were stored before the schema
//! changed or under another version of the CRDs. If decoding one object failed, decoding the whole list would fail.
//! So an [`Object`] can always be decoded. A spec that cannot be read is replaced by its default,
//! [`Object::malformed`] contains the error, and the control loops report it on the object. A spec or status that is
//! larger than any in practical use ([`Kind::LARGEST`]) is not read either.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::lenient;
use super::meta::Metadata;
use super::text::Text;

/// A kind of the Kubernetes API: its names, and the types of its spec and status.
///
/// For our custom resources, `Spec` and `Status` contain all fields. For kinds of other projects (Deployments,
/// virtual machines, …) they contain only the fields that a control loop reads. Decoding skips all other fields, so
/// that they take no memory in a store.
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
    /// The field that contains [`Kind::Spec`]: `data` for Secrets, `spec` for most kinds, and empty for kinds such as
    /// `ClusterRole` that have their fields at the top level.
    const BODY: &'static str = "spec";
    /// Whether a store keeps objects as JSON text and decodes an object each time it is read. This takes several
    /// times less memory. It is for kinds with many objects that are read only when their owner is reconciled.
    const ENCODED: bool = false;
    /// Whether every new version of an object counts as a change, even if no field that is read has changed. This is
    /// for kinds that are read only as metadata.
    const EACH_VERSION: bool = false;
    /// The limit for the spec, and for the status, in bytes of JSON of the fields that are read. If all fields of a
    /// kind are read, a larger spec or status is not decoded, because decoding could take a hundred times the memory
    /// of its text.
    const LARGEST: usize = 64 << 10;
    /// The desired state, or the fields of it that are read.
    type Spec: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// The observed state, or the fields of it that are read.
    type Status: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
}

/// Declares a kind: a marker type that implements `Kind`, and an alias for its `Object`.
macro_rules! kind {
    ($(#[$doc:meta])* $marker:ident, $alias:ident, $group:expr, $version:literal, $kind:literal,
     $plural:literal, namespaced: $namespaced:literal, $spec:ty, $status:ty $(, body: $body:literal)? $(, encoded: $encoded:literal)?
     $(, each_version: $each_version:literal)? $(, largest: $largest:expr)?) => {
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
            $(const EACH_VERSION: bool = $each_version;)?
            $(const LARGEST: usize = $largest;)?
            type Spec = $spec;
            type Status = $status;
        }
    };
}
pub(crate) use kind;

/// An object of kind `T`. See the module documentation for how it is decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<T: Kind> {
    /// The metadata, always without `managedFields`.
    pub metadata: Metadata,
    /// The desired state; the default if it is absent or cannot be read.
    pub spec: T::Spec,
    /// The observed state; the default if it is absent or cannot be read.
    pub status: T::Status,
    /// The error if the spec cannot be read, for example
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

/// An object of any kind whose spec and status have not been decoded yet. `R` is their JSON text.
#[derive(Debug, Deserialize)]
#[serde(bound = "R: Deserialize<'de>")]
struct RawObject<R> {
    /// The metadata, always without `managedFields`.
    #[serde(default)]
    metadata: Metadata,
    spec: Option<R>,
    data: Option<R>,
    status: Option<R>,
    /// The whole object, for kinds that have their fields at the top level.
    #[serde(skip)]
    whole: Option<R>,
}

impl<T: Kind> Object<T> {
    /// Whether only the metadata is read.
    pub const IS_METADATA: bool = size_of::<T::Spec>() == 0 && size_of::<T::Status>() == 0;

    /// Reads an object from its JSON without copying its parts.
    ///
    /// # Errors
    /// When the text is not an object, or its metadata cannot be read.
    pub fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        let mut raw: RawObject<&RawValue> = serde_json::from_slice(text)?;
        if T::BODY.is_empty() {
            raw.whole = Some(serde_json::from_slice(text)?);
        }
        Ok(Self::decode(raw))
    }

    fn decode<R: Deref<Target = RawValue>>(raw: RawObject<R>) -> Self {
        let body = match T::BODY {
            "" => raw.whole,
            "data" => raw.data,
            _ => raw.spec,
        };
        let (spec, malformed) = match read::<T, _>(body.as_deref()) {
            Ok(spec) => (spec, None),
            Err(reason) => (T::Spec::default(), Some(format!("{}{reason}", T::BODY))),
        };
        Self {
            metadata: raw.metadata,
            spec,
            // The next reconcile replaces a status that cannot be read.
            status: read::<T, _>(raw.status.as_deref()).unwrap_or_default(),
            malformed,
        }
    }
}

/// Decodes a spec or status of `T`, or returns the reason why it cannot be decoded.
fn read<T: Kind, H: Default + Serialize + DeserializeOwned>(raw: Option<&RawValue>) -> Result<H, String> {
    let length = raw.map_or(0, |raw| raw.get().len());
    let too_large = || format!(" has {length} bytes, but at most {} can be read", T::LARGEST);
    if length > T::LARGEST && T::GROUP == super::GROUP {
        return Err(too_large());
    }
    let part = lenient::read(raw)?;
    if length > T::LARGEST && is_longer(&part, T::LARGEST) { Err(too_large()) } else { Ok(part) }
}

/// Whether the JSON of a value is longer than this many bytes.
pub fn is_longer(value: &impl Serialize, limit: usize) -> bool {
    /// Counts the bytes written, up to a limit.
    struct Space(usize);

    impl io::Write for Space {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Space(limit), value).is_err()
}

impl<'de, T: Kind> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !T::BODY.is_empty() {
            return RawObject::<Box<RawValue>>::deserialize(deserializer).map(Self::decode);
        }
        let whole = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(whole.get().as_bytes()).map_err(serde::de::Error::custom)
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
