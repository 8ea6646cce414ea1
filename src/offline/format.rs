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
        if self == Self::Yaml {
            let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
            let document = serde_saphyr::to_string_with_options(value, options);
            let document = document.context("an object cannot be written as YAML")?;
            if !document.contains(|character| character != '\n' && shown::is_control(character)) {
                return Ok(document);
            }
            // The serialiser does not escape some characters, such as those that change the direction of text. JSON is
            // valid YAML and can escape them.
        }
        Ok(shown::escaped_json(&format!("{value:#}\n")).into_owned())
    }
}
