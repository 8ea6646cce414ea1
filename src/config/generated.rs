//! Generates the schema of the file from the types and the rules, and compares it with `config/crownlabs.schema.json`.

use std::path::Path;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use super::RegistryConfig;
use super::bound::Bound;
use super::rules::{self, Combination, Test};
use super::schema::{self, SCHEMA};
use super::types::Config;

/// The schema of the file.
pub fn generated() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(tidy));
    let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    for (key, bound) in rules::bounds() {
        let described = schema.pointer_mut(&properties(&key)).and_then(Value::as_object_mut);
        described.expect("a key of a bound exists").extend(keywords(bound));
    }
    let required = json!({"imageListName": "a", "url": "https://a", "registryName": "a"});
    let registry: RegistryConfig = serde_json::from_value(required).expect("a registry");
    let registry = serde_json::to_value(registry).expect("a registry is JSON");
    let of_entries = rules::combinations_of_registries();
    let conditions: Value = of_entries.iter().map(|one| condition(one, &registry)).collect();
    schema.pointer_mut(&properties(rules::LIST)).expect("the list exists")["items"]["allOf"] = conditions;
    let defaults = serde_json::to_value(Config::default()).expect("the configuration is JSON");
    let conditions: Value = rules::combinations().iter().map(|one| condition(one, &defaults)).collect();
    schema["allOf"] = conditions;
    schema
}

/// The pointer to the schema of a key.
fn properties(key: &str) -> String {
    key.split('.').fold(String::new(), |pointer, part| pointer + "/properties/" + part)
}

/// Joins the lines of descriptions, removes the defaults of mappings, because their keys have their own defaults, and
/// adds the patterns of formats.
fn tidy(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if schema.get("properties").is_some() {
        schema.remove("default");
    }
    let format = schema.get("format").and_then(Value::as_str).and_then(schema::format);
    if let Some(format) = format {
        schema.insert("pattern".to_owned(), format.pattern.into());
        if !(format.accepts)("") {
            schema.insert("minLength".to_owned(), 1.into());
        }
    }
}

/// The keywords that express a bound, or the part of it that they can express: every bound of a time excludes zero.
fn keywords(bound: &Bound) -> Map<String, Value> {
    let keywords = match bound {
        Bound::Time(..) | Bound::TimeIf(..) => json!({"allOf": [{"pattern": "[1-9]"}]}),
        Bound::Count(least, usize::MAX, _) => json!({"minItems": least}),
        Bound::Count(least, most, _) => json!({"minItems": least, "maxItems": most}),
        Bound::Other(..) => json!({}),
    };
    keywords.as_object().cloned().unwrap_or_default()
}

/// A schema that rejects a combination: if all other keys pass their tests, the first must not.
fn condition(combination: &Combination, defaults: &Value) -> Value {
    let [(key, test), others @ ..] = combination.0.as_slice() else { panic!("a combination has a key") };
    let of = |key: &str| defaults.pointer(&format!("/{}", key.replace('.', "/"))).expect("a key");
    let holds: Vec<Value> = others.iter().map(|(key, test)| holds(key, *test, of(key))).collect();
    json!({"if": {"allOf": holds}, "then": corrected(key, *test, of(key))})
}

/// A schema for mappings where a key passes a test. A missing key has its default.
fn holds(key: &str, test: Test, default: &Value) -> Value {
    if test.passes(default) {
        json!({"not": at(key, &failing(test, default), true)})
    } else {
        at(key, &passing(test, default), true)
    }
}

/// A schema for mappings where a key fails a test.
fn corrected(key: &str, test: Test, default: &Value) -> Value {
    at(key, &failing(test, default), test.passes(default))
}

/// A schema for mappings in which a key has a value. The key itself may be optional.
fn at(key: &str, value: &Value, is_required: bool) -> Value {
    key.rsplit('.').fold(value.clone(), |inner, part| {
        let mut schema = json!({"properties": {part: inner}});
        if is_required {
            schema["required"] = json!([part]);
        }
        schema
    })
}

/// A schema for the values that pass a test. They have the type of the default.
fn passing(test: Test, default: &Value) -> Value {
    match test {
        Test::True => json!({"const": true}),
        Test::Is(word) => json!({"const": word}),
        Test::Empty => empty(default),
        Test::Set => set(default),
    }
}

/// A schema for the values that fail a test.
fn failing(test: Test, default: &Value) -> Value {
    match test {
        Test::True => json!({"const": false}),
        Test::Is(word) => json!({"not": {"const": word}}),
        Test::Empty => set(default),
        Test::Set => empty(default),
    }
}

fn set(default: &Value) -> Value {
    if default.is_string() {
        json!({"minLength": 1})
    } else if default.is_array() {
        json!({"minItems": 1})
    } else {
        json!({"minimum": 1})
    }
}

fn empty(default: &Value) -> Value {
    if default.is_string() {
        json!({"maxLength": 0})
    } else if default.is_array() {
        json!({"maxItems": 0})
    } else {
        json!({"maximum": 0})
    }
}

/// Writes a part of the schema: mappings of keys and the list of conditions with one entry per line, and everything else in
/// one line. This keeps the file short, and its changes readable.
fn write(text: &mut String, name: &str, value: &Value, depth: usize) {
    let (brackets, entries): (_, Vec<_>) = match value {
        Value::Object(members) if name == "properties" || members.contains_key("properties") => {
            (["{", "}"], members.iter().map(|(name, value)| (name.as_str(), value)).collect())
        }
        Value::Array(items) if name == "allOf" && depth == 1 => {
            (["[", "]"], items.iter().map(|item| ("", item)).collect())
        }
        other => {
            text.push_str(&other.to_string());
            return;
        }
    };
    let line = |depth: usize| format!("\n{}", " ".repeat(depth));
    text.push_str(brackets[0]);
    for (index, (name, value)) in entries.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        text.push_str(&line(depth + 1));
        if name.is_empty() {
            text.push_str(&value.to_string());
        } else {
            text.push_str(&(Value::from(*name).to_string() + ": "));
            write(text, name, value, depth + 1);
        }
    }
    text.push_str(&line(depth));
    text.push_str(brackets[1]);
}

/// Compares the stored schema with the types and rules. With `UPDATE_MANIFESTS=1`, it writes the file first; the next
/// build contains it.
#[test]
fn the_schema_is_up_to_date() {
    let mut text = String::new();
    write(&mut text, "", &generated(), 0);
    crate::reference::check_file(Path::new("config/crownlabs.schema.json"), &(text + "\n"));
}

#[test]
fn the_stored_schema_reads_back_as_the_generated_one() {
    assert_eq!(schema::schema(), generated());
    assert!(SCHEMA.ends_with("}\n"));
}

#[test]
fn a_condition_requires_a_key_unless_its_default_is_valid() {
    let defaults = json!({"a": {"on": false, "url": "", "listen": "x"}});
    let needed = |key| Combination(vec![(key, Test::Empty), ("a.on".to_owned(), Test::True)]);
    let is_on = json!({"allOf": [
        {"properties": {"a": {"properties": {"on": {"const": true}}, "required": ["on"]}}, "required": ["a"]}
    ]});
    assert_eq!(
        condition(&needed("a.url".to_owned()), &defaults),
        json!({"if": is_on, "then": {
            "properties": {"a": {"properties": {"url": {"minLength": 1}}, "required": ["url"]}}, "required": ["a"],
        }})
    );
    assert_eq!(
        condition(&needed("a.listen".to_owned()), &defaults),
        json!({"if": is_on, "then": {"properties": {"a": {"properties": {"listen": {"minLength": 1}}}}}})
    );
    // A missing key has its default.
    let unless = Combination(vec![("a.on".to_owned(), Test::True), ("a.url".to_owned(), Test::Empty)]);
    assert_eq!(
        condition(&unless, &defaults)["if"],
        json!({"allOf": [{"not": {
            "properties": {"a": {"properties": {"url": {"minLength": 1}}, "required": ["url"]}}, "required": ["a"],
        }}]})
    );
}
