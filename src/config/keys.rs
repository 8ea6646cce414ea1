//! Macros that declare the keys of the file: each once, with its type, the values that it allows, and its default.

/// Declares sections of the file: structs with keys written as `pub key: Type as FORMAT where BOUND = default,`.
/// `as FORMAT` is for text with a format, `as [FORMAT]` for a list of such texts, and `as 1..=256` for a whole number.
/// `where "1m"..` and `where "5s"..="1d"` are for a duration, and `where BOUND` for any other
/// [`Bound`](super::bound::Bound). Without a default, a key has the default of its type.
macro_rules! keys {
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    ($(
        $(#[$of_section:meta])*
        pub struct $section:ident {
            $(
                $(#[$of_key:meta])*
                pub $key:ident: $type:ty
                    $(as $($format:ident)::+)? $(as [$($items:ident)::+])? $(as $least:literal..=$most:literal)?
                    $(where $from:literal $(..=$to:literal)? $(..)?)? $(where $bound:path)?
                    $(= $default:expr)?,
            )*
        }
    )*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        $(#[$of_section])*
        pub struct $section {
            $(
                $(#[$of_key])*
                $(#[schemars(with = "String", extend("format" = $($format)::+.name))])?
                $(#[schemars(extend("items" = {"type": "string", "format": $($items)::+.name}))])?
                $(#[schemars(range(min = $least, max = $most))])?
                pub $key: $type,
            )*
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: keys!(@default $($default)?),)* }
            }
        }

        impl $crate::config::bound::Section for $section {
            const BOUNDS: &'static [(&'static str, $crate::config::bound::Bound)] = &[
                $(
                    $((stringify!($key), $crate::config::bound::Bound::Time($from, [$($to)?].first().copied())),)?
                    $((stringify!($key), $bound),)?
                )*
            ];
        }
    )*};
}
pub(super) use keys;

/// Declares the words that a key allows: an enum whose names the file has in camel case.
macro_rules! choice {
    ($($item:tt)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        $($item)*
    };
}
pub(super) use choice;

/// Makes a type appear in the file as text, written by `Display` and read by `FromStr`. Declares the format of the text,
/// with its pattern in the schema.
macro_rules! text {
    ($type:ident, $format:ident = $name:literal, $expected:literal, $pattern:expr) => {
        /// The format of this type.
        pub(super) const $format: $crate::config::formats::Format = $crate::config::formats::Format {
            name: $name,
            expected: $expected,
            accepts: |text| text.parse::<$type>().is_ok(),
            #[cfg(test)]
            pattern: $pattern,
        };

        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <::std::borrow::Cow<'_, str> as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }

        impl ::schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({"type": "string", "format": $name})
            }
        }
    };
}
pub(super) use text;
