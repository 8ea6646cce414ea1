//! Parsing of YAML text into a tree that has the line of each key and value.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{DefaultMessageFormatter, Location, MessageFormatter, Spanned};

use super::fault::Fault;

/// A value, and the line where it begins.
pub struct Node {
    /// The line, from 1; `None` if the parser does not know it.
    pub line: Option<u64>,
    /// The value.
    pub content: Content,
}

/// The content of a node.
pub enum Content {
    /// Entries in the order of the file; a key may occur twice.
    Map(Vec<Entry>),
    /// The items of a list.
    List(Vec<Node>),
    /// A text, number, boolean or null.
    Scalar(Value),
}

/// A key of a mapping, with its value.
pub struct Entry {
    /// The key.
    pub key: String,
    /// The line of the key, from 1; `None` if the parser does not know it.
    pub line: Option<u64>,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The value of a key, if the node is a mapping that contains the key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Content::Map(entries) = &self.content else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The text, if the node is a text.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// The reason why a text is not a single valid YAML document.
pub struct SyntaxError {
    line: Option<u64>,
    problem: String,
    expected: &'static str,
}

impl SyntaxError {
    pub(super) fn into_fault(self, file: &str) -> Fault {
        Fault::new(file, self.line, "", self.problem, self.expected)
    }
}

impl From<serde_saphyr::Error> for SyntaxError {
    fn from(error: serde_saphyr::Error) -> Self {
        let line = error.location().and_then(line);
        match error.without_snippet() {
            serde_saphyr::Error::MultipleDocuments { .. } => {
                let problem = "a second YAML document begins".to_owned();
                Self { line, problem, expected: "expected one document in the file" }
            }
            serde_saphyr::Error::DuplicateMappingKey { key, .. } => {
                let problem = format!("the key {} is given twice", key.as_deref().unwrap_or_default());
                Self { line, problem, expected: "expected it once" }
            }
            error => {
                let problem = format!("not valid YAML: {}", DefaultMessageFormatter.format_message(error));
                Self { line, problem, expected: "" }
            }
        }
    }
}

/// Describes an error of the parser on one line, with its line and in plain words: the parser's own text contains a part
/// of the file, and advice to programmers.
pub fn problem(error: serde_saphyr::Error) -> String {
    let SyntaxError { line, problem, expected } = error.into();
    let line = line.map_or_else(String::new, |line| format!("line {line}: "));
    let end = if expected.is_empty() { "" } else { "; " };
    format!("{line}{problem}{end}{expected}")
}

/// Parses a text that is one YAML document.
///
/// # Errors
/// With the first syntax error: the parser cannot continue after it.
pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    match parse(text, DuplicateKeyPolicy::Error) {
        // The parser stops at the first duplicate key. With this policy it returns all of them.
        Err(error) if is_duplicate(&error) => match parse(text, DuplicateKeyPolicy::LastWins) {
            Ok(node) if has_duplicates(&node) => Ok(node),
            // It does not do so for numeric keys, so only the first duplicate is reported.
            Ok(_) => Err(error.into()),
            Err(other) => Err(other.into()),
        },
        result => Ok(result?),
    }
}

/// Parses a text with any number of documents, as leniently as the API server does. Empty documents are skipped. The
/// text comes from the caller itself, so its size is not limited.
///
/// # Errors
/// With the first syntax error.
pub fn documents(text: &str) -> Result<Vec<Node>, serde_saphyr::Error> {
    serde_saphyr::from_multiple_with_options(text, serde_saphyr::options! { budget: None })
}

fn parse(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Node, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        // Decoding is recursive and must not overflow the stack; the deepest key is at depth 6.
        budget: serde_saphyr::budget! { max_depth: 32 },
        duplicate_keys: duplicate_keys,
        // Merge keys are not part of YAML 1.2, so `<<` is an ordinary, unknown key.
        merge_keys: MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

fn is_duplicate(error: &serde_saphyr::Error) -> bool {
    matches!(error.without_snippet(), serde_saphyr::Error::DuplicateMappingKey { .. })
}

fn has_duplicates(node: &Node) -> bool {
    match &node.content {
        Content::Map(entries) => entries.iter().enumerate().any(|(index, entry)| {
            entries.iter().take(index).any(|earlier| earlier.key == entry.key) || has_duplicates(&entry.value)
        }),
        Content::List(items) => items.iter().any(has_duplicates),
        Content::Scalar(_) => false,
    }
}

/// The line of a location, from 1; `None` if the parser does not know it (it returns 0).
fn line(location: Location) -> Option<u64> {
    Some(location.line()).filter(|line| *line > 0)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { line: line(spanned.referenced), content: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a mapping, a list, text, a number, a boolean or null")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Node>()? {
            entries.push(Entry { line: line(key.referenced), key: key.value, value });
        }
        Ok(Content::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Content, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(sequence)).map(Content::List)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }
}
