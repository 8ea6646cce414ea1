//! Values as text, for programs.

use anyhow::Context;
use serde_json::Value;

use crate::api::shown;

/// An output format for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
}

impl Format {
    /// Formats a value as a document that ends with a newline, without control characters.
    ///
    /// # Errors
    /// Never for values that were made from objects.
    pub fn write(self, value: &Value) -> anyhow::Result<String> {
        let yaml = if self == Self::Yaml { yaml(value)? } else { None };
        Ok(yaml.unwrap_or_else(|| json(value)))
    }
}

/// Formats two values for a comparison by lines: both as YAML, or both as JSON. `Null` has no lines.
pub fn comparable(one: &Value, other: &Value) -> [String; 2] {
    let both = [one, other];
    let document =
        |value: &Value| if value.is_null() { Some(String::new()) } else { yaml(value).ok().flatten() };
    if let [Some(one), Some(other)] = both.map(document) {
        return [one, other];
    }
    both.map(|value| if value.is_null() { String::new() } else { json(value) })
}

/// Formats a value as YAML; `None` if the text would contain control characters: the serialiser does not escape some
/// of them, such as those that change the direction of text. JSON is valid YAML and can escape them.
fn yaml(value: &Value) -> anyhow::Result<Option<String>> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let document = serde_saphyr::to_string_with_options(value, options);
    let document = document.context("an object cannot be written as YAML")?;
    let is_clean = !document.contains(|character| character != '\n' && shown::is_control(character));
    Ok(is_clean.then_some(document))
}

fn json(value: &Value) -> String {
    shown::escaped_json(&format!("{value:#}\n")).into_owned()
}
