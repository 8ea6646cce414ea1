//! The JSON Schema of the file, generated from the types.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use super::types::Config;

/// The JSON Schema (draft 2020-12) of the file. It has no references: each key is described where it is
/// used. Formats that begin with `crownlabs-` are ours, and other validators ignore them.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(tidy));
    settings.into_generator().into_root_schema_for::<Config>().to_value()
}

/// Joins the lines of descriptions, and removes the defaults of mappings, whose keys have defaults of their
/// own.
fn tidy(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if schema.get("properties").is_some() {
        schema.remove("default");
    }
}
