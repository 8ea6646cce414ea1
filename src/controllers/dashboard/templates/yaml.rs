//! The YAML view of a Template.

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use super::fields::{ENVIRONMENT, ENVIRONMENTS, Field, SPEC, TEMPLATES};
use crate::config::tree::problem;

/// Writes an object.
pub fn write(object: &Value) -> String {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    // JSON can always be written as YAML.
    serde_saphyr::to_string_with_options(object, options).unwrap_or_default()
}

/// Reads a Template. `name` is the name of the Template that is edited.
///
/// # Errors
/// A sentence about the first fault.
pub fn read(text: &str, name: Option<&str>) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        // Decoding is recursive; the deepest key of a Template is at depth 8.
        budget: serde_saphyr::budget! { max_depth: 32 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let object: Value = serde_saphyr::from_str_with_options(text, options).map_err(problem)?;
    let version = TEMPLATES.api_version();
    for (member, expected) in [("apiVersion", version.as_str()), ("kind", TEMPLATES.kind)] {
        if object[member] != expected {
            return Err(format!("{member} is {}; \"{expected}\" is expected", object[member]));
        }
    }
    if let Some(unknown) = unknown(&object["spec"]) {
        return Err(format!("spec.{unknown} is not a field of a Template"));
    }
    let found = &object["metadata"]["name"];
    match name {
        Some(name) if *found != name => {
            Err(format!("metadata.name is {found}; \"{name}\" is expected, because a name cannot be changed"))
        }
        _ => Ok(object),
    }
}

/// Returns the path of the first member of a spec that is not in the schema: the API server would drop it without a word.
fn unknown(spec: &Value) -> Option<String> {
    let environments = spec[ENVIRONMENTS].as_array().into_iter().flatten().enumerate();
    let mut of_environments = environments.filter_map(|(index, environment)| {
        let path = unknown_in(ENVIRONMENT, environment, &[], &[])?;
        Some(format!("{ENVIRONMENTS}[{index}].{path}"))
    });
    unknown_in(SPEC, spec, &[], &[ENVIRONMENTS]).or_else(|| of_environments.next())
}

/// Returns the path of the first member of an object that no field of the table has, below a path. The members of a field
/// are left to the API server, and `but` are no fields of the table.
fn unknown_in(table: &[Field], object: &Value, path: &[&str], but: &[&str]) -> Option<String> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(name, _)| !but.contains(&name.as_str())).find_map(|(name, value)| {
        let path = [path, &[name.as_str()]].concat();
        if table.iter().any(|field| field.path == path) {
            None
        } else if table.iter().any(|field| field.path.starts_with(&path)) {
            unknown_in(table, value, &path, &[])
        } else {
            Some(path.join("."))
        }
    })
}
