//! References from one object to another.

use std::fmt;

use macro_rules_attribute::apply;

use super::text::Text;
use super::wire::{Optional, resource_part};

/// A reference to another object.
#[apply(resource_part)]
#[derive(PartialOrd, Ord, Hash)]
pub struct GenericRef {
    /// Name of the object.
    pub name: Text,
    /// Namespace of the object. Default: empty, for cluster-scoped objects.
    pub namespace: Optional<Text>,
}

impl GenericRef {
    /// A reference to the object `name` in `namespace`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { name: name.into(), namespace: namespace.into() }
    }

    /// Whether the name is empty, so that the reference does not point to an object.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }
}

/// Formats `namespace/name`, or only `name` for a reference without a namespace.
impl fmt::Display for GenericRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            formatter.write_str(&self.name)
        } else {
            write!(formatter, "{}/{}", self.namespace, self.name)
        }
    }
}
