//! The shape that all custom resources share: metadata, a spec and a status, read leniently.
//!
//! The API server may hold objects that today's schema would refuse: stored before a schema
//! changed, or written while another generation of the CRDs was installed. A reader that fails on
//! one of them fails on the whole list, and every other object with it. So an [`Object`] always
//! decodes: what cannot be read is replaced by its default and named in [`Object::malformed`], and
//! the loops report it on the object itself (00 decision 1, 01 §6).

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

/// What is fixed about a kind: its names in the API, and the parts of it that we read.
///
/// Custom resources are kinds whose parts are complete; for the kinds of others (Deployments,
/// virtual machines, …) `Spec` and `Status` hold only the fields that a loop looks at, and the
/// rest is skipped while decoding, so that a store holds what it needs and nothing else.
pub trait Kind: Debug + Clone + PartialEq + Send + Sync + 'static {
    /// API group; empty for the core group.
    const GROUP: &'static str;
    /// Version.
    const VERSION: &'static str;
    /// Kind, in `CamelCase`.
    const KIND: &'static str;
    /// Plural name, as in URLs.
    const PLURAL: &'static str;
    /// Whether objects live in a namespace.
    const NAMESPACED: bool;
    /// The member that holds [`Kind::Spec`]: `data` for Secrets; empty for kinds whose members stand at
    /// the top, as those of roles do; `spec` for all others.
    const BODY: &'static str = "spec";
    /// Whether a store keeps objects as text, several times smaller, and reads them anew each time: for
    /// kinds of which there are many for each user, and that only whole passes look at.
    const ENCODED: bool = false;
    /// What is asked for.
    type Spec: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// What was reported.
    type Status: Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;
}

/// An object of kind `T` as it is stored: see the module's documentation for how it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<T: Kind> {
    /// Names, labels, owners; never `managedFields`.
    pub metadata: Metadata,
    /// What is asked for; the default where it is absent or unreadable.
    pub spec: T::Spec,
    /// What was reported; the default where it is absent or unreadable.
    pub status: T::Status,
    /// Why the spec could not be read, for example
    /// `spec.running: invalid type: string "yes", expected a boolean`. Absent members are no fault.
    pub malformed: Option<String>,
}

impl<T: Kind> Object<T> {
    /// An object with a name and a spec, as a user would write it.
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

    /// `metadata.name`, empty when the object has none yet.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// `metadata.namespace`, empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// `metadata.uid`, empty when the object does not come from an API server.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.get(key)
    }

    /// Whether the object carries all these labels.
    #[must_use]
    pub fn has_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(key, value)| self.label(key) == Some(value))
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key)
    }

    /// Whether the object is being deleted.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The uid of the owner that controls the object, if one does.
    #[must_use]
    pub fn controller_uid(&self) -> Option<&str> {
        self.metadata.controller().map(|owner| owner.uid.as_str())
    }
}

/// The members of an object before its halves are read.
#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    metadata: Metadata,
    spec: Option<Box<RawValue>>,
    data: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
}

impl<'de, T: Kind> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (raw, body);
        if T::BODY.is_empty() {
            let whole = Box::<RawValue>::deserialize(deserializer)?;
            raw = serde_json::from_str::<Raw>(whole.get()).map_err(serde::de::Error::custom)?;
            body = Some(whole);
        } else {
            let mut parts = Raw::deserialize(deserializer)?;
            body = if T::BODY == "data" { parts.data.take() } else { parts.spec.take() };
            raw = parts;
        }
        let (spec, malformed) = match lenient::read(body.as_deref()) {
            Ok(spec) => (spec, None),
            Err(reason) => (T::Spec::default(), Some(format!("{}{reason}", T::BODY))),
        };
        Ok(Self {
            metadata: raw.metadata,
            spec,
            // An unreadable status is ours to write again.
            status: lenient::read(raw.status.as_deref()).unwrap_or_default(),
            malformed,
        })
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
