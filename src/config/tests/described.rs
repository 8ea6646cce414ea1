//! The schema: it describes every key, and the check implements every keyword that it uses.

use serde_json::{Value, json};

use super::*;

/// Calls `seen` for a schema and all schemas below it, with the path of each.
fn visit(schema: &Value, place: &str, seen: &mut impl FnMut(&Value, &str)) {
    seen(schema, place);
    for (key, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        visit(inner, &format!("{place}.{key}"), seen);
    }
    for keyword in ["items", "additionalProperties", "propertyNames"] {
        if let Some(inner) = schema.get(keyword).filter(|inner| inner.is_object()) {
            visit(inner, &format!("{place}.{keyword}"), seen);
        }
    }
}

#[test]
fn the_check_implements_every_keyword_of_the_schema() {
    let known = [
        "$schema",
        "title",
        "description",
        "default",
        "writeOnly",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "propertyNames",
        "minProperties",
        "items",
        "const",
        "enum",
        "oneOf",
        "minimum",
        "maximum",
        "format",
    ];
    // Keywords for other validators. Ours knows the formats, the bounds and the rules that they express.
    let of_others = ["pattern", "minLength", "minItems", "maxItems", "allOf"];
    let types = ["object", "array", "boolean", "integer", "string"];
    visit(&schema(), "", &mut |schema, place| {
        for (keyword, value) in schema.as_object().unwrap() {
            let is_known = known.contains(&keyword.as_str()) || of_others.contains(&keyword.as_str());
            assert!(is_known, "{place}: {keyword}");
            match (keyword.as_str(), value.as_str()) {
                ("type", Some(name)) => assert!(types.contains(&name), "{place}: {name}"),
                ("type", None) => panic!("{place}: {value}"),
                // The formats that schemars gives to whole numbers; the bounds are checked separately.
                ("format", Some("uint" | "uint16" | "uint32")) => {
                    assert!(schema["maximum"].is_u64(), "{place}");
                }
                ("format", Some(name)) => assert!(schema::format(name).is_some(), "{place}: {name}"),
                ("pattern", Some(pattern)) => {
                    let format = schema["format"].as_str().and_then(schema::format);
                    assert!(format.is_some_and(|format| format.pattern == pattern), "{place}: {pattern}");
                    assert!(!pattern.contains("(?"), "{place}: not all validators have lookaheads");
                }
                ("oneOf", _) => {
                    assert!(value.as_array().unwrap().iter().all(|one| one["const"].is_string()), "{place}");
                }
                _ => {}
            }
        }
    });
}

#[test]
fn the_schema_describes_every_key_and_knows_no_other() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["title"], "CrownLabs controller manager");
    assert_eq!(schema["required"], json!(["apiVersion", "kind"]));
    visit(&schema, "", &mut |schema, place| {
        if schema.get("properties").is_some() {
            assert_eq!(schema["additionalProperties"], false, "{place}");
        }
        for (key, described) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let description = described["description"].as_str().unwrap_or_default();
            assert!(
                description.ends_with('.') && !description.contains('\n'),
                "{place}.{key}: {description:?}"
            );
        }
    });
}

/// The keys of this object that the value lacks, with their paths. Keys of list items are not keys of the file.
fn missing(schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .flat_map(|(key, inner)| {
            let place = format!("{place}.{key}");
            match value.get(key) {
                Some(found) => missing(inner, found, &place),
                None => vec![place],
            }
        })
        .collect()
}

#[test]
fn the_default_file_has_every_key_of_the_schema() {
    let document: Value = serde_saphyr::from_str(&default_document()).unwrap();
    assert_eq!(missing(&schema(), &document, ""), [] as [&str; 0]);
}
