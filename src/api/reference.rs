//! References to other objects.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of another object, and its namespace if it has one.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(default)]
#[schemars(!default)]
pub struct GenericRef {
    /// The name of the resource.
    pub name: String,
    /// The namespace of the resource; empty for a resource without namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub namespace: String,
}

impl GenericRef {
    /// A reference to `name` in `namespace`.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { name: name.to_owned(), namespace: namespace.to_owned() }
    }

    /// Whether it names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }
}

/// `namespace/name`, or `name` alone.
impl fmt::Display for GenericRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            formatter.write_str(&self.name)
        } else {
            write!(formatter, "{}/{}", self.namespace, self.name)
        }
    }
}
