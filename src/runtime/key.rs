//! The key of an object: its namespace and name.

use std::fmt;

use hashbrown::Equivalent;

use super::error::ApiError;
use crate::api::names::{self, NameError};
use crate::api::text::Text;
use crate::api::{Kind, Object};

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ObjectKey {
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Text,
    /// Name.
    pub name: Text,
}

impl ObjectKey {
    /// Creates a key from its parts.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object.
    pub fn of<T: Kind>(object: &Object<T>) -> Self {
        Self { namespace: object.metadata.namespace.clone(), name: object.metadata.name.clone() }
    }

    /// Rejects an invalid name, so that it never becomes part of a path.
    ///
    /// # Errors
    /// [`ApiError::Invalid`], with the name and the rule that it violates.
    pub fn check(&self) -> Result<(), ApiError> {
        let invalid = |error: NameError| ApiError::Invalid(error.to_string());
        names::check_object_name(&self.name).map_err(invalid)?;
        if !self.namespace.is_empty() {
            names::check_dns_label(&self.namespace).map_err(invalid)?;
        }
        Ok(())
    }
}

/// The parts of a key, to look up an object without copying them. Hashes like [`ObjectKey`].
#[derive(Hash)]
pub struct KeyRef<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Equivalent<ObjectKey> for KeyRef<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        key.name == self.name && key.namespace == self.namespace
    }
}

impl From<&Self> for ObjectKey {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_both_of_its_parts() {
        let key = ObjectKey::new("tenant-ada", "box");
        for (namespace, name, expected) in [
            ("tenant-ada", "box", true),
            ("tenant-bob", "box", false),
            ("tenant-ada", "vm", false),
            ("tenant-bob", "vm", false),
        ] {
            assert_eq!(KeyRef { namespace, name }.equivalent(&key), expected, "{namespace}/{name}");
        }
        assert_eq!(ObjectKey::from(&key), key);
    }
}
