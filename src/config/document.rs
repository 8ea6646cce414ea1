//! The default file: every key with its default value, and above it its description as a comment.

use serde_json::{Map, Value};

use super::schema::schema;
use super::types::Config;

/// The maximum length of a line with a comment, including the indentation.
const WIDTH: usize = 100;

/// The default file as YAML with comments. It is read back as [`Config::default`].
pub fn default_document() -> String {
    let schema = schema();
    // Plain data can always be converted to a JSON value.
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut document = String::new();
    comment(&mut document, &schema, 0);
    if let Some(defaults) = defaults.as_object() {
        mapping(&mut document, &schema, defaults, 0);
    }
    document
}

/// Writes the keys of a mapping with their values, in the order of the types' fields.
fn mapping(document: &mut String, schema: &Value, values: &Map<String, Value>, depth: usize) {
    for (key, value) in values {
        let described = &schema["properties"][key];
        if depth == 0 {
            document.push('\n');
        }
        comment(document, described, depth);
        indent(document, depth);
        document.push_str(&scalar(key));
        document.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                document.push('\n');
                mapping(document, described, inner, depth + 1);
            }
            Value::String(text) => document.extend([" ", &scalar(text), "\n"]),
            // JSON is valid YAML in flow style.
            other => document.extend([" ", &other.to_string(), "\n"]),
        }
    }
}

/// Writes the description of a key as a comment, wrapped at [`WIDTH`].
fn comment(document: &mut String, schema: &Value, depth: usize) {
    let description = schema["description"].as_str().unwrap_or_default();
    let mut column = 0;
    for word in description.split_whitespace() {
        let length = word.chars().count() + 1;
        if column == 0 || column + length > WIDTH {
            if column > 0 {
                document.push('\n');
            }
            indent(document, depth);
            document.push('#');
            column = 2 * depth + 1;
        }
        document.push(' ');
        document.push_str(word);
        column += length;
    }
    if column > 0 {
        document.push('\n');
    }
}

fn indent(document: &mut String, depth: usize) {
    document.push_str(&"  ".repeat(depth));
}

/// Writes a text as YAML: without quotes if every parser reads it as text, otherwise in double quotes as in
/// JSON.
fn scalar(text: &str) -> String {
    let inside = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(inside);
    let is_duration = text.parse::<super::ConfigDuration>().is_ok();
    // Booleans and null of YAML 1.1 and 1.2, and their short forms.
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    let is_reserved = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if (is_word || is_duration) && !is_reserved { text.to_owned() } else { Value::from(text).to_string() }
}
