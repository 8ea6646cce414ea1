//! Object metadata as stores hold them: only what the daemon reads, with shared text. `managedFields`, often
//! the larger half of an object, and the copy of it that `kubectl apply` keeps are skipped while decoding.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::{Interned, Text};

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata of an object, in the order in which Kubernetes' own types write them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Annotations, without the one of `kubectl apply`.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub annotations: TextMap,
    /// When the object was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Since when it is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Finalizers.
    #[serde(deserialize_with = "null_is_none", skip_serializing_if = "<[Text]>::is_empty")]
    pub finalizers: Box<[Text]>,
    /// The number of changes of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Labels.
    #[serde(skip_serializing_if = "TextMap::is_empty")]
    pub labels: TextMap,
    /// The name; empty when the object has none yet.
    #[serde(deserialize_with = "Text::deserialize_interned")]
    pub name: Text,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(deserialize_with = "Text::deserialize_interned", skip_serializing_if = "is_empty")]
    pub namespace: Text,
    /// Owners.
    #[serde(deserialize_with = "null_is_none", skip_serializing_if = "<[Owner]>::is_empty")]
    pub owner_references: Box<[Owner]>,
    /// The version; `None` when the object does not come from an API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<ResourceVersion>,
    /// The uid; empty when the object does not come from an API server.
    #[serde(skip_serializing_if = "is_empty")]
    pub uid: Text,
}

fn null_is_none<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Box<[T]>, D::Error> {
    Ok(Option::<Box<[T]>>::deserialize(deserializer)?.unwrap_or_default())
}

fn is_empty(text: &Text) -> bool {
    text.is_empty()
}

impl Metadata {
    /// The owner that controls the object, if one does.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// A reference to an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// API group and version.
    #[serde(deserialize_with = "Text::deserialize_interned")]
    pub api_version: Text,
    /// Kind.
    #[serde(deserialize_with = "Text::deserialize_interned")]
    pub kind: Text,
    /// Name.
    #[serde(deserialize_with = "Text::deserialize_interned")]
    pub name: Text,
    /// Uid.
    #[serde(deserialize_with = "Text::deserialize_interned")]
    pub uid: Text,
    /// Whether it controls the object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub controller: bool,
    /// Whether its deletion waits for the object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub block_owner_deletion: bool,
}

impl From<&Owner> for OwnerReference {
    fn from(owner: &Owner) -> Self {
        Self {
            api_version: owner.api_version.to_string(),
            kind: owner.kind.to_string(),
            name: owner.name.to_string(),
            uid: owner.uid.to_string(),
            controller: owner.controller.then_some(true),
            block_owner_deletion: owner.block_owner_deletion.then_some(true),
        }
    }
}

/// The version of an object. Versions are integers that grow (Kubernetes API conventions since 1.35, and
/// etcd revisions before); what is none is kept as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceVersion {
    /// An integer.
    Number(u64),
    /// Anything else.
    Other(Box<str>),
}

impl ResourceVersion {
    /// The integer, which can be compared with that of every object of the same kind.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Other(_) => None,
        }
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => Self::Number(number),
            _ => Self::Other(text.into()),
        }
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Other(text) => formatter.write_str(text),
        }
    }
}

impl Serialize for ResourceVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(&*Text::deserialize(deserializer)?))
    }
}

/// Text by key, such as labels, annotations or the data of a Secret, in the order of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextMap(Box<[(Text, Text)]>);

impl TextMap {
    fn sorted(mut entries: Vec<(Text, Text)>) -> Self {
        entries.sort_unstable();
        entries.dedup_by(|later, earlier| later.0 == earlier.0);
        Self(entries.into_boxed_slice())
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        self.0.get(place).map(|(_, value)| value.as_str())
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for TextMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let intern = |(key, value): (K, V)| (Text::interned(key.as_ref()), Text::interned(value.as_ref()));
        Self::sorted(entries.map(intern).collect())
    }
}

impl Serialize for TextMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for TextMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(TextMapVisitor)
    }
}

/// Reads a map of text, or `null`.
struct TextMapVisitor;

impl<'de> Visitor<'de> for TextMapVisitor {
    type Value = TextMap;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of text")
    }

    fn visit_unit<E>(self) -> Result<TextMap, E> {
        Ok(TextMap::default())
    }

    fn visit_none<E>(self) -> Result<TextMap, E> {
        Ok(TextMap::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<TextMap, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextMap, A::Error> {
        let mut entries: Vec<(Text, Text)> = Vec::new();
        while let Some(Interned(key)) = map.next_key()? {
            if key == LAST_APPLIED {
                map.next_value::<IgnoredAny>()?;
            } else {
                entries.push((key, map.next_value::<Interned>()?.0));
            }
        }
        Ok(TextMap::sorted(entries))
    }
}
