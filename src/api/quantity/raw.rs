//! Quantities as they are stored in objects.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Quantity, QuantityError};

/// The pattern of a quantity in schemas, the same as in Kubernetes' own APIs.
pub const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A quantity as it is stored in an object. It can be any text, because one invalid amount must not make the whole
/// object unreadable. It is read from a text or a number, and written as text. The default is `0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, derive_more::From)]
#[from(&str)]
pub struct RawQuantity(String);

impl RawQuantity {
    /// The text, unchanged.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text.
    pub fn parse(&self) -> Result<Quantity, QuantityError> {
        self.0.parse()
    }
}

impl Default for RawQuantity {
    fn default() -> Self {
        Self("0".to_owned())
    }
}

impl fmt::Display for RawQuantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<&Quantity> for RawQuantity {
    fn from(quantity: &Quantity) -> Self {
        Self(quantity.to_string())
    }
}

impl<'de> Deserialize<'de> for RawQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawVisitor;

        impl Visitor<'_> for RawVisitor {
            type Value = RawQuantity;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a quantity")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<RawQuantity, E> {
                Ok(RawQuantity(value.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<RawQuantity, E> {
                Ok(RawQuantity(value.to_string()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<RawQuantity, E> {
                Ok(RawQuantity(value.to_string()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<RawQuantity, E> {
                Ok(RawQuantity(value.to_string()))
            }
        }

        deserializer.deserialize_any(RawVisitor)
    }
}

impl schemars::JsonSchema for RawQuantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}
