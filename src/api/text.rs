//! Shared text: names, label keys and values. A cluster has few different ones and many copies.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::LazyLock;

use arcstr::ArcStr;
use derive_more::{AsRef, Debug, Deref};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::interned::{Interned, Interner, List, element};

/// Immutable text. Copies share it, and a copy is as large as a pointer.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, AsRef, Debug, Deref, derive_more::From)]
#[as_ref(str)]
#[deref(forward)]
#[from(&str, String, &String)]
#[debug("{_0:?}")]
pub struct Text(ArcStr);

/// Longer texts are not interned because they are rarely the same. The cloud-init document of a machine, which is the
/// same for all machines of a Tenant, is shorter.
const LONGEST: usize = 4 << 10;

static TEXTS: LazyLock<Interner<Text>> = LazyLock::new(Interner::default);

impl Text {
    /// Returns the shared copy of a text.
    pub fn interned(text: &str) -> Self {
        if text.len() > LONGEST { Self::from(text) } else { TEXTS.intern(text, || Self::from(text)) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a text that is unique to its object and is therefore not interned; `null` is empty. For
    /// `#[serde(deserialize_with = …)]`.
    pub fn deserialize_unshared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize_with(deserializer, |text| Self::from(text))
    }

    /// Reads a text with the function `read`; `null` is empty.
    pub fn deserialize_with<'de, D: Deserializer<'de>>(
        deserializer: D,
        read: impl Fn(&str) -> Self,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor(read))
    }
}

impl Interned for Text {
    fn copies(&self) -> usize {
        ArcStr::strong_count(&self.0).unwrap_or(usize::MAX)
    }

    fn bytes(&self) -> usize {
        self.len() + 32
    }
}

element!(Text, |text| [text]);

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Self {
        text.clone()
    }
}

impl From<&Text> for String {
    fn from(text: &Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize_with(deserializer, Self::interned)
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Reads a text without an intermediate copy; `null` is empty.
struct TextVisitor<R>(R);

impl<R: Fn(&str) -> Text> Visitor<'_> for TextVisitor<R> {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok((self.0)(text))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }
}

/// Declares a type of words that only tables of this crate can create: types of conditions, and reasons.
macro_rules! word {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Deref)]
        #[deref(forward)]
        pub struct $name(&'static str);

        impl $name {
            /// The word.
            pub const fn as_str(self) -> &'static str {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.0)
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.0.to_owned()
            }
        }

        impl PartialEq<$name> for $crate::api::text::Text {
            fn eq(&self, word: &$name) -> bool {
                self.as_str() == word.0
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                self.0 == *text
            }
        }
    };
}
pub(crate) use word;
