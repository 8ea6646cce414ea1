//! Generates the reference of the custom resources from their definitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use std::fmt::Write;

use super::generated::generated;
use crate::reference::{HEADER, check, code, escaped, table};

const HEAD: [&str; 4] = ["field", "type", "default", "meaning"];

/// Returns the text of a member of a schema.
fn text<'a>(schema: &'a Value, member: &str) -> &'a str {
    schema.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn type_of(schema: &Value) -> String {
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return "quantity or number".to_owned();
    }
    match (text(schema, "type"), text(schema, "format")) {
        ("string", "date-time") => "time".to_owned(),
        ("string", _) => "text".to_owned(),
        ("array", _) => format!("list of {}", type_of(&schema["items"])),
        ("object", _) if schema.get("additionalProperties").is_some_and(Value::is_object) => {
            format!("mapping to {}", type_of(&schema["additionalProperties"]))
        }
        ("object", _) => "object".to_owned(),
        ("integer", _) => "whole number".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// Returns the description of a field, with the values that the schema allows.
fn meaning(schema: &Value) -> String {
    let mut text = text(schema, "description").to_owned();
    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<String> =
        values.filter_map(Value::as_str).filter(|value| !value.is_empty()).map(code).collect();
    // Descriptions of phases already explain each value.
    if !values.is_empty() && !values.iter().all(|value| text.contains(value.as_str())) {
        write!(text, " One of {}.", values.join(", ")).expect("text");
    }
    for (member, words) in [("minimum", "At least"), ("maximum", "At most")] {
        if let Some(limit) = schema.get(member).filter(|_| schema.get("x-kubernetes-int-or-string").is_none())
        {
            let limit = limit.to_string();
            let limit = limit.strip_suffix(".0").unwrap_or(&limit);
            write!(text, " {words} {}.", code(limit)).expect("text");
        }
    }
    text
}

/// Adds a row for a field and for each field below it. The fields of conditions are left out: they are the same
/// everywhere and are described once.
fn rows(path: &str, schema: &Value, is_required: bool, found: &mut Vec<Vec<String>>) {
    let default = match (schema.get("default"), is_required) {
        (Some(Value::String(empty)), _) if empty.is_empty() => "empty".to_owned(),
        (Some(Value::String(text)), _) => code(text),
        (Some(value), _) => code(&value.to_string()),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    };
    found.push(vec![code(path), type_of(schema), default, meaning(schema)]);
    if path.ends_with(".conditions") {
        return;
    }
    fields(path, schema, found);
    for (member, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(inner) = schema.get(member) {
            fields(&format!("{path}{mark}"), inner, found);
        }
    }
}

fn fields(path: &str, schema: &Value, found: &mut Vec<Vec<String>>) {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        rows(&path, inner, required.contains(&name.as_str()), found);
    }
}

/// Returns the section of a kind.
fn section(crd: &CustomResourceDefinition) -> String {
    let (names, version) = (&crd.spec.names, &crd.spec.versions[0]);
    let schema = serde_json::to_value(&version.schema).expect("JSON");
    let schema = &schema["openAPIV3Schema"];
    let short = names.short_names.iter().flatten().map(|name| code(name)).collect::<Vec<_>>().join(", ");
    let about = [
        ("apiVersion", code(&format!("{}/{}", crd.spec.group, version.name))),
        ("scope", crd.spec.scope.clone()),
        ("`kubectl get`", code(&names.plural)),
        ("short names", if short.is_empty() { "none".to_owned() } else { short }),
        (
            "categories",
            names.categories.iter().flatten().map(|name| code(name)).collect::<Vec<_>>().join(", "),
        ),
    ];
    let mut text = format!("## {}\n\n{}\n\n", names.kind, escaped(self::text(schema, "description")));
    let about = about.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    text.push_str(&table(&["", ""], about));
    let columns: Vec<Vec<String>> = version
        .additional_printer_columns
        .iter()
        .flatten()
        .map(|column| {
            let wide = if column.priority.unwrap_or(0) > 0 { "with `-o wide`" } else { "always" };
            vec![column.name.clone(), code(&column.json_path), wide.to_owned()]
        })
        .collect();
    if !columns.is_empty() {
        write!(text, "Columns:\n\n{}", table(&["column", "from", "shown"], columns)).expect("text");
    }
    for part in ["spec", "status"] {
        let mut found = Vec::new();
        fields(part, &schema["properties"][part], &mut found);
        if !found.is_empty() {
            write!(text, "### {part} of {}\n\n{}", names.kind, table(&HEAD, found)).expect("text");
        }
    }
    text
}

/// Returns the table of the fields of a condition. They are the same in every list of conditions.
fn conditions() -> String {
    let crds: Vec<Value> = generated().iter().map(|crd| serde_json::to_value(crd).expect("JSON")).collect();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions/items";
    let schemas: Vec<&Value> = crds.iter().filter_map(|crd| crd.pointer(path)).collect();
    let first = schemas.first().expect("a kind with conditions");
    assert!(schemas.iter().all(|schema| schema == first), "conditions differ from kind to kind");
    let mut found = Vec::new();
    fields("", first, &mut found);
    table(&HEAD, found)
}

#[test]
fn the_page_is_up_to_date() {
    let mut page = format!(
        "# Custom resources\n\n{HEADER}\n\n\
         `kubectl explain KIND.spec` says the same in a cluster. `[]` stands for each item of a list, `.*` for each key of a \
         mapping. The status is written by the daemon alone.\n\n"
    );
    for crd in generated() {
        page.push_str(&section(&crd));
    }
    page.push_str("## Conditions\n\nEach entry of `status.conditions` has these fields. Types and reasons: [reasons](reasons.md).\n\n");
    page.push_str(&conditions());
    check("crds.md", &format!("{}\n", page.trim_end_matches('\n')));
}
