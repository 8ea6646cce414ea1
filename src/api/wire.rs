//! Decoding and encoding of the parts of custom resources: structs, enumerations, integers that may be text, and
//! fields that are left out.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::quantity::Quantity;

/// A field that may be absent, and is not written while it has its default value. The alias is the type itself;
/// [`resource_part`] and `foreign_part` look for its name.
pub type Optional<T> = T;

/// Makes a struct a part of a custom resource, such as its spec. Keys are in `camelCase`. When an object is read, any
/// field may be absent and then has its default value. The schema requires all fields whose type is not an
/// [`Optional`] or an [`Option`].
macro_rules! resource_part {
    ($($item:tt)*) => {
        $crate::api::wire::resource_part_without_default! { #[derive(Default)] $($item)* }
    };
}
pub(crate) use resource_part;

/// The same for a struct that implements `Default` itself.
macro_rules! resource_part_without_default {
    ($($item:tt)*) => {
        #[serde_with::apply(
            Option => #[serde(skip_serializing_if = "Option::is_none")] #[schemars(default)],
            Option<Time> => #[schemars(schema_with = "crate::api::wire::date_time")],
            Optional => #[serde(skip_serializing_if = "crate::api::wire::is_default")] #[schemars(default)],
            Optional<Vec<_>> => #[serde(deserialize_with = "crate::api::wire::exact")],
            Optional<Vec<Condition>> => #[schemars(schema_with = "crate::api::condition::list_schema")],
        )]
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        #[schemars(!default)]
        $($item)*
    };
}
pub(crate) use resource_part_without_default;

/// Declares an enumeration of texts. A text that is not in it is kept in `Other`, so that one unknown value does not
/// make the whole object unreadable and a control loop can report it. The schema contains only the known values.
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
            Other($crate::api::text::Text),
        }

        impl $name {
            /// The values in the schema.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// The value as text in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
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
                    other => Self::Other(other.into()),
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

/// Decodes an integer that may also be text, as the Go types of CrownLabs accept it: `8`, `"8"`, `"8000m"` (8), `""`
/// (0). Fractions are cut off. A number outside the range of `T` is an error.
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

/// Reads a list without spare capacity.
pub(crate) fn exact<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(ListVisitor(|_, _: &T| true, PhantomData))
}

/// Reads at most `most` elements of a list.
pub(crate) fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    most: usize,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(ListVisitor(move |kept: usize, _: &T| kept < most, PhantomData))
}

/// Reads the first elements of a list, or `null`: at most a given number, and the first later element that is needed.
pub(crate) fn first<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    most: usize,
    is_needed: fn(&T) -> bool,
) -> Result<Vec<T>, D::Error> {
    let is_kept = |kept: usize, element: &T| kept < most || kept == most && is_needed(element);
    deserializer.deserialize_any(ListVisitor(is_kept, PhantomData))
}

/// Reads a list, or `null`, and keeps only some elements.
pub(crate) fn kept<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    mut is_kept: impl FnMut(&T) -> bool,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(ListVisitor(|_, element: &T| is_kept(element), PhantomData))
}

/// Keeps the elements for which a function is true, given the number of those before. Lists are short, and thousands of
/// objects have them: room for four elements, and the hole that is left when a list is shortened, would be most of them.
struct ListVisitor<T, F>(F, PhantomData<T>);

/// Lists grow by single elements up to this length.
const SHORT: usize = 8;

impl<'de, T: Deserialize<'de>, F: FnMut(usize, &T) -> bool> Visitor<'de> for ListVisitor<T, F> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut list: Vec<T> = Vec::new();
        while let Some(element) = elements.next_element()? {
            if (self.0)(list.len(), &element) {
                if list.len() < SHORT {
                    list.reserve_exact(1);
                }
                list.push(element);
            }
        }
        list.shrink_to_fit();
        Ok(list)
    }
}

/// Reads a map into its entries in their order. Duplicate keys are kept.
pub(crate) fn pairs<'de, D: Deserializer<'de>, K: Deserialize<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(K, V)>, D::Error> {
    deserializer.deserialize_map(PairsVisitor(PhantomData))
}

struct PairsVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<K, V> {
    type Value = Vec<(K, V)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<(K, V)>, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}

/// The value of an absent boolean whose default is true.
pub(crate) const fn on() -> bool {
    true
}

/// Whether a field has its default value; for `skip_serializing_if`.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// For `schemars` only: a field that is always written is optional in the schema and has no default there.
pub(crate) const fn no_default<T>(_: &T) -> bool {
    true
}

/// The schema of a time in RFC 3339.
pub(crate) fn date_time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "format": "date-time"})
}
