//! The reference of the configuration: every key of the schema, with its default.

use serde_json::Value;
use std::fmt::Write;

use super::*;
use crate::manager::RELOADED;
use crate::reference::{HEADER, code, escaped, table};

const HEAD: [&str; 5] = ["key", "type", "default", "allowed", "meaning"];

/// The text of a member of a schema.
fn text<'a>(schema: &'a Value, member: &str) -> &'a str {
    schema.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn type_of(schema: &Value) -> String {
    match text(schema, "type") {
        "string" if text(schema, "format") == duration::DURATION.name => "duration".to_owned(),
        "string" => "text".to_owned(),
        "" => "word".to_owned(),
        "integer" => "whole number".to_owned(),
        "array" => format!("list of {}", schema.get("items").map_or_else(String::new, type_of)),
        "object" => schema.get("additionalProperties").filter(|values| values.is_object()).map_or_else(
            || match keys(schema) {
                none if none.is_empty() => "mapping".to_owned(),
                keys => format!("mapping of {}", keys.join(", ")),
            },
            |values| format!("mapping to {}", type_of(values)),
        ),
        other => other.to_owned(),
    }
}

/// The keys of a mapping, as code.
fn keys(schema: &Value) -> Vec<String> {
    let keys = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    keys.map(|(key, _)| code(key)).collect()
}

/// The allowed values, as the check reports them after "expected".
fn allowed(schema: &Value) -> String {
    let inner = |member: &str| schema.get(member).filter(|inner| inner.is_object()).map(allowed);
    let words = check::constants(schema);
    match text(schema, "type") {
        "boolean" => "`true`, `false`".to_owned(),
        "array" => inner("items").unwrap_or_default(),
        "object" => {
            let parts = [("keys", inner("propertyNames")), ("values", inner("additionalProperties"))];
            let parts = parts
                .into_iter()
                .filter_map(|(name, part)| Some((name, part.filter(|part| !part.is_empty())?)));
            parts.map(|(name, part)| format!("{name}: {part}")).collect::<Vec<_>>().join("; ")
        }
        _ if !words.is_empty() => words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", "),
        // Stated once, at the top of the page.
        "string" if text(schema, "format") == duration::DURATION.name => String::new(),
        "string" => schema::format(text(schema, "format"))
            .map_or_else(String::new, |format| format.expected.to_owned()),
        _ => check::expected_value(schema)
            .trim_start_matches("a whole number")
            .trim_start_matches(',')
            .trim()
            .to_owned(),
    }
}

/// Adds a row for each key below a mapping that has no section of its own.
fn rows(schema: &Value, defaults: &Value, above: &str, rows_of: &mut Vec<Vec<String>>) {
    for (key, described) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        let default = defaults.get(key).unwrap_or(&Value::Null);
        if described.get("properties").is_some() {
            rows(described, default, &path, rows_of);
            continue;
        }
        let default = match default {
            Value::Null => String::new(),
            Value::String(empty) if empty.is_empty() => "empty".to_owned(),
            Value::String(text) => code(text),
            other => code(&other.to_string()),
        };
        let meaning = text(described, "description").to_owned();
        rows_of.push(vec![code(&path), type_of(described), default, allowed(described), meaning]);
        if let Some(items) = described.get("items").filter(|items| items.get("properties").is_some()) {
            rows(items, &Value::Null, &format!("{path}[]"), rows_of);
        }
    }
}

/// A section of the page: a heading with an anchor, the description, and the keys below it.
fn section(page: &mut String, path: &str, schema: &Value, defaults: &Value) {
    let mut found = Vec::new();
    rows(schema, defaults, "", &mut found);
    let description = escaped(text(schema, "description"));
    write!(page, "## {path}\n\n{description}\n\n{}", table(&HEAD, found)).expect("text");
}

/// First the keys without their own section, then the sections: each part of the file, each loop and each service.
fn sections() -> String {
    // The schema of the types: the stored one may be out of date while this page is generated.
    let (schema, defaults) = (generated::generated(), serde_json::to_value(Config::default()).unwrap());
    let mut page = String::new();
    let mut top = schema.clone();
    let parts = top["properties"].as_object_mut().unwrap();
    parts.retain(|_, described| described.get("properties").is_none());
    section(&mut page, "Beginning", &top, &defaults);
    for (key, described) in schema["properties"].as_object().unwrap() {
        if described.get("properties").is_none() {
            continue;
        }
        if !["controllers", "integrations"].contains(&key.as_str()) {
            section(&mut page, key, described, &defaults[key]);
            continue;
        }
        for (name, inner) in described["properties"].as_object().unwrap() {
            section(&mut page, &format!("{key}.{name}"), inner, &defaults[key][name]);
        }
    }
    page
}

#[test]
fn the_page_is_up_to_date() {
    let reloaded = RELOADED.map(code).join(", ");
    let mut page = format!(
        "# Configuration\n\n{HEADER}\n\n\
         One YAML file, `--config`. [config/crownlabs.yaml](../../config/crownlabs.yaml) has every key with its default; the \
         value `config` of the chart is the same. A key that is left out has its default. Unknown keys and values that are not \
         allowed are refused at start, all at once, with file, line and what would be right; `crownlabs config check FILE` \
         says the same beforehand.\n\n\
         **Without a restart**, only a change of {reloaded} counts; the daemon logs the other keys that were changed. Files \
         that keys name (secrets, keys, authorities) are read again as the keys say.\n\n\
         A duration is a number with a unit, or several: `90s`, `1h30m`, `7d`; the units are `d`, `h`, `m`, `s`, `ms`. The longest is `36500d`.\n\n"
    );
    page.push_str(&sections());
    page.push_str("## Rules between keys\n\nThese are checked beside what each key allows:\n\n");
    let defaults = Config::default();
    let rules = rules::applied(&defaults).map(|rule| {
        let keys: Vec<String> = rule.keys.iter().map(|key| code(key)).collect();
        vec![keys.join(", "), rule.expected]
    });
    page.push_str(table(&["keys", "rule"], rules).trim_end_matches('\n'));
    crate::reference::check("configuration.md", &(page + "\n"));
}

#[test]
fn the_page_has_every_key_of_the_default_file() {
    let page = sections();
    let document = default_document();
    let keys = document.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut path: Vec<&str> = Vec::new();
    let mut number = 0;
    for line in keys.filter(|line| !line.is_empty()) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let (key, value) = line.trim_start().split_once(':').unwrap();
        path.truncate(depth);
        path.push(key);
        // The labels of the default selector are values, not keys.
        if value.is_empty()
            || path[0] == "selector"
            || key.contains('/')
            || path.iter().any(|key| key.ends_with("Labels"))
        {
            continue;
        }
        number += 1;
        let below = if ["controllers", "integrations"].contains(&path[0]) { 2 } else { 1 };
        let (heading, rest) = path.split_at(below.min(path.len() - 1));
        let heading = if heading.is_empty() {
            "## Beginning\n".to_owned()
        } else {
            format!("## {}\n", heading.join("."))
        };
        let (_, section) = page.split_once(&heading).unwrap_or_else(|| panic!("no section {heading}"));
        let section = section.split("\n## ").next().unwrap();
        assert!(
            section.contains(&format!("\n| `{}` | ", rest.join("."))),
            "{} is missing in {heading}",
            path.join(".")
        );
    }
    assert!(number > 150, "{number}");
}
