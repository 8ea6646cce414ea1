//! How the keys of the file are declared: each once, with its type, the format of its text and its default.

/// Declares sections of the file: structs in which `pub key: Type as FORMAT = default,` declares a key. `as FORMAT` is
/// for text with a format; without a default, that of the type is taken.
macro_rules! keys {
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    ($(
        $(#[$of_section:meta])*
        pub struct $section:ident {
            $($(#[$of_key:meta])* pub $key:ident: $type:ty $(as $($format:ident)::+)? $(= $default:expr)?,)*
        }
    )*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        $(#[$of_section])*
        pub struct $section {
            $(
                $(#[$of_key])*
                $(#[schemars(with = "String", extend("format" = $($format)::+.name))])?
                pub $key: $type,
            )*
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: keys!(@default $($default)?),)* }
            }
        }
    )*};
}
pub(super) use keys;

/// Writes and reads a type in the file as the text that it is displayed as and parsed from. The schema has its format,
/// and further keywords.
macro_rules! text {
    ($type:ident, $format:expr $(, $keyword:literal: $value:expr)*) => {
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
                ::schemars::json_schema!({"type": "string", "format": $format.name $(, $keyword: $value)*})
            }
        }
    };
}
pub(super) use text;
