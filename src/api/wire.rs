//! How fields of custom resources are decoded and encoded: enumerations, integers that may be text, and
//! fields that are left out.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Visitor};

use super::quantity::Quantity;

/// Declares an enumeration of texts. A text that is not in it is kept in `Other`, so that one unknown value
/// does not make the whole object unreadable, and a control loop can report it. The schema only has the
/// known values.
///
/// The text after `default` is the value of an absent field.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident, default $default:literal,
     { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A text that is not in the enumeration, as it was stored; empty if the field is absent.
            Other(String),
        }

        impl $name {
            /// The values that the schema allows.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// The value as it is in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }

            /// Whether the value is in the enumeration.
            pub const fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }

            /// Whether the value is an empty text.
            pub fn is_empty(&self) -> bool {
                self.as_str().is_empty()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from($default)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": Self::KNOWN})
            }
        }
    };
}
pub(crate) use wire_enum;

/// Decodes an integer that may also be text, as the Go types of CrownLabs accept it: `8`, `"8"`, `"8000m"`
/// (8), `""` (0). Fractions are cut off. A number outside of the range of `T` is an error.
pub(crate) fn integer<'de, D: Deserializer<'de>, T: TryFrom<i64>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(IntegerVisitor(PhantomData))
}

struct IntegerVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i64>> Visitor<'_> for IntegerVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an integer")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::custom(format_args!("{value} is out of range")))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        let value = i64::try_from(value).map_err(|_| E::custom(format_args!("{value} is out of range")))?;
        self.visit_i64(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
        if value.is_empty() {
            return self.visit_i64(0);
        }
        let quantity: Quantity = value.parse().map_err(E::custom)?;
        self.visit_i64(quantity.milli_value() / 1000)
    }
}

/// The value of an absent boolean whose default is true.
pub(crate) const fn on() -> bool {
    true
}

/// Whether a boolean is false; for `skip_serializing_if`.
// The signature is that of `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) const fn is_off(value: &bool) -> bool {
    !*value
}

/// Whether a field has its default value; for `skip_serializing_if`.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// For `schemars` only, so that a field that is always written is optional in the schema and has no default
/// there.
pub(crate) const fn no_default<T>(_: &T) -> bool {
    true
}

/// The schema of a time in RFC 3339.
pub(crate) fn date_time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "format": "date-time"})
}
