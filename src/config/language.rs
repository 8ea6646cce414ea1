//! The languages of the dashboard, of which each has a file with its texts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The code of each language and the content of its file, English first.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/languages.rs"));

/// A language of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language(
    /// The index of a file: values come from [`Language::all`].
    usize,
);

impl Language {
    /// English, in which a text is shown that no browser has asked for in another language.
    pub const ENGLISH: Self = Self(0);

    /// All languages, English first.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..FILES.len()).map(Self)
    }

    /// Returns the language of a code such as `it`.
    pub fn of(code: &str) -> Option<Self> {
        Self::all().find(|language| language.code() == code)
    }

    /// The code of the language, as in `lang` of HTML.
    pub fn code(self) -> &'static str {
        FILES[self.0].0
    }

    /// The position of the language among [all](Self::all).
    pub const fn index(self) -> usize {
        self.0
    }

    /// The file with the texts, as YAML.
    pub fn file(self) -> &'static str {
        FILES[self.0].1
    }
}

impl Serialize for Language {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Language {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = Cow::<str>::deserialize(deserializer)?;
        Self::of(&code).ok_or_else(|| {
            let codes: Vec<&str> = Self::all().map(Self::code).collect();
            D::Error::custom(format!("unknown language {code:?}, expected one of {}", codes.join(", ")))
        })
    }
}

impl JsonSchema for Language {
    fn schema_name() -> Cow<'static, str> {
        "Language".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<&str> = Self::all().map(Self::code).collect();
        json_schema!({"description": "A language of the pages.", "type": "string", "enum": codes})
    }
}
