//! Object metadata as stores keep it: only the fields that the daemon reads, with shared text. Decoding skips
//! `managedFields`, which often take more than half of an object, and the copy of the object that `kubectl apply`
//! keeps.
//!
//! Users write metadata, too, and the API server accepts more than a megabyte of it. So decoding limits its size
//! ([`TextMap`], [`MOST`]).

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use ring::digest;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::interned::{Interner, List, element};
use super::labels;
use super::text::Text;
use super::wire::first;

/// The annotation that `kubectl apply` uses to keep a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The limit for the finalizers, and for the owners, that are kept of an object. The controlling owner is always
/// kept.
const MOST: usize = 64;
/// The limit for a name in an owner reference, in bytes. No object has a longer name.
const LONGEST_NAME: usize = 256;

/// The limits for a map of text.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// The limit for a value in bytes. A longer value is replaced by its digest.
    value: usize,
    /// The limit for all entries together in bytes. Each entry counts its text and [`ENTRY`]. Entries beyond the
    /// limit are dropped.
    total: usize,
}

/// About how much memory an entry takes in addition to its text.
const ENTRY: usize = 64;

/// The API server limits the value of a label to 63 bytes. A Tenant has one label for each of its Workspaces.
const OF_LABELS: Bounds = Bounds { value: usize::MAX, total: 32 << 10 };
/// The longest annotation that is read is the list of the shared volumes of a machine.
const OF_ANNOTATIONS: Bounds = Bounds { value: 8 << 10, total: 16 << 10 };
/// The longest value that is compared is the cloud-init document of a machine in base64.
const OF_DATA: Bounds = Bounds { value: 32 << 10, total: 64 << 10 };

/// Returns the form of a text that is kept: the text itself, or its digest if it has more than `longest` bytes.
/// Different texts have different kept forms.
fn kept(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest {
        return Cow::Borrowed(text);
    }
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    // The colon does not occur in base64.
    Cow::Owned(format!("sha256:{}", STANDARD.encode(digest)))
}

/// Returns an annotation in the form that [`Metadata::annotations`] keeps.
pub fn kept_annotation(text: &str) -> Cow<'_, str> {
    kept(text, OF_ANNOTATIONS.value)
}

/// Returns a value in the form that the data of a Secret is kept in.
pub fn kept_data(text: &str) -> Cow<'_, str> {
    kept(text, OF_DATA.value)
}

/// The metadata of an object. The fields are in the order that Kubernetes' own types use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Annotations, except the one of `kubectl apply`.
    #[serde(deserialize_with = "read_annotations", skip_serializing_if = "TextMap::is_empty")]
    pub annotations: TextMap,
    /// Creation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Start of the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Box<Time>>,
    /// Finalizers.
    #[serde(deserialize_with = "read_finalizers", skip_serializing_if = "<[Text]>::is_empty")]
    pub finalizers: List<Text>,
    /// Generation of the spec; it grows with each change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Labels.
    #[serde(deserialize_with = "read_labels", skip_serializing_if = "TextMap::is_empty")]
    pub labels: TextMap,
    /// Name; empty if the object has no name yet.
    pub name: Text,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: Text,
    /// Owners.
    #[serde(deserialize_with = "read_owners", skip_serializing_if = "<[Owner]>::is_empty")]
    pub owner_references: List<Owner>,
    /// Version; `None` if the object does not come from an API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<ResourceVersion>,
    /// Uid; empty if the object does not come from an API server.
    #[serde(deserialize_with = "Text::deserialize_unshared", skip_serializing_if = "str::is_empty")]
    pub uid: Text,
}

fn read_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TextMap, D::Error> {
    deserializer.deserialize_any(TextMapVisitor(OF_ANNOTATIONS))
}

fn read_labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TextMap, D::Error> {
    deserializer.deserialize_any(TextMapVisitor(OF_LABELS))
}

fn read_finalizers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<Text>, D::Error> {
    Ok(first(deserializer, MOST, |_| false)?.into())
}

fn read_owners<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<Owner>, D::Error> {
    Ok(first(deserializer, MOST, |owner: &Owner| owner.controller)?.into())
}

fn read_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    Text::deserialize_with(deserializer, |text| Text::interned(&kept(text, LONGEST_NAME)))
}

impl Metadata {
    /// The owner that controls the object, if any.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// A reference to an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// API group and version.
    #[serde(deserialize_with = "read_name")]
    pub api_version: Text,
    /// Kind.
    #[serde(deserialize_with = "read_name")]
    pub kind: Text,
    /// Name.
    #[serde(deserialize_with = "read_name")]
    pub name: Text,
    /// Uid.
    #[serde(deserialize_with = "read_name")]
    pub uid: Text,
    /// Whether the owner controls the object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub controller: bool,
    /// Whether the deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub block_owner_deletion: bool,
}

element!(Owner, |owner| [&owner.api_version, &owner.kind, &owner.name, &owner.uid]);
element!((Text, Text), |(key, value)| [key, value]);

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

/// The version of an object. Versions are growing integers (the Kubernetes API conventions since 1.35, and etcd
/// revisions before). Other versions are kept as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceVersion {
    /// An integer.
    Number(u64),
    /// Anything else.
    Other(Text),
}

impl ResourceVersion {
    /// The version as an integer. Integers can be compared between all objects of the same kind.
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
        Ok(Self::from(&*Text::deserialize_unshared(deserializer)?))
    }
}

/// Text by key, such as labels, annotations or the data of a Secret, in the order of the keys.
///
/// Maps that are read from the API server are limited in size. A value that is too long is replaced by its digest. If
/// there are too many entries, entries with the prefix [`labels::PREFIX`] are kept first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextMap(List<(Text, Text)>);

impl TextMap {
    fn sorted(mut entries: Vec<(Text, Text)>) -> Self {
        entries.sort_unstable();
        entries.dedup_by(|later, earlier| later.0 == earlier.0);
        Self(entries.into())
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        self.0.get(place).map(|(_, value)| value.as_str())
    }

    /// Iterates over keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
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
        deserializer.deserialize_any(TextMapVisitor(OF_DATA))
    }
}

/// Keeps the first entries that fit into the limit.
fn bounded(entries: &mut Vec<(Text, Text)>, total: usize) {
    entries.sort_by(|(a, _), (b, _)| {
        let others = |key: &Text| !key.starts_with(labels::PREFIX);
        (others(a), a).cmp(&(others(b), b))
    });
    let mut left = total;
    let fitting = entries.iter().take_while(|entry| {
        let rest = left.checked_sub(size(entry));
        left = rest.unwrap_or_default();
        rest.is_some()
    });
    let length = fitting.count();
    entries.truncate(length);
}

fn size((key, value): &(Text, Text)) -> usize {
    key.len() + value.len() + ENTRY
}

/// Reads a map of text, or `null`.
struct TextMapVisitor(Bounds);

impl<'de> Visitor<'de> for TextMapVisitor {
    type Value = TextMap;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of text")
    }

    fn visit_unit<E>(self) -> Result<TextMap, E> {
        Ok(TextMap::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextMap, A::Error> {
        let Bounds { value: longest, total } = self.0;
        let (mut entries, mut sum): (Vec<(Text, Text)>, usize) = (Vec::new(), 0);
        while let Some(key) = map.next_key::<Text>()? {
            if key == LAST_APPLIED {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let entry = (key, map.next_value_seed(Kept(longest))?);
            sum += size(&entry);
            entries.push(entry);
            // The check runs during decoding, because a map may have a hundred thousand entries.
            if sum > 2 * total {
                bounded(&mut entries, total);
                sum = entries.iter().map(size).sum();
            }
        }
        if sum > total {
            bounded(&mut entries, total);
        }
        Ok(TextMap::sorted(entries))
    }
}

/// Reads a value of at most this many bytes.
struct Kept(usize);

impl<'de> DeserializeSeed<'de> for Kept {
    type Value = Text;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        Text::deserialize_with(deserializer, |text| Text::interned(&kept(text, self.0)))
    }
}

#[cfg(test)]
mod tests;
