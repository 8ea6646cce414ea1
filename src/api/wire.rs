//! How members of custom resources are read and written: texts from a closed list, numbers that
//! may come as text, and what is left out.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Visitor};

use super::quantity::Quantity;

/// Declares a text from a closed list. Any other text is kept in `Other`, so that one unknown word
/// does not hide the rest of the object, and a loop can name it; the schema shows the list only.
///
/// The text after `default` stands for an absent member.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident, default $default:literal,
     { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A text that is not in the list, as it was stored; empty for an absent one.
            Other(String),
        }

        impl $name {
            /// The texts that the schema admits.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// The text on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }

            /// Whether the text is in the list.
            #[must_use]
            pub const fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }

            /// Whether the text is empty.
            #[must_use]
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

/// Reads an integer that may come as text, as the Go types accept it (01 §6 item 3): `8`, `"8"`,
/// `"8000m"` (8), `""` (0); fractions are cut off.
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

/// The value of a switch that is on unless somebody turned it off.
pub(crate) const fn on() -> bool {
    true
}

/// Whether a switch is off, for members that are left out then.
// The signature is that of `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) const fn is_off(value: &bool) -> bool {
    !*value
}

/// Whether a member has nothing to say, for members that are left out then.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// For the schema only: the member is optional and has no default there, although it is always
/// written.
pub(crate) const fn no_default<T>(_: &T) -> bool {
    true
}

/// The schema of a point in time.
pub(crate) fn date_time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "format": "date-time"})
}
