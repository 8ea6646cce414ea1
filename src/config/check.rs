//! Comparison of a tree with the schema: finds all faults with their lines, and returns what is valid as a
//! value to decode.
//!
//! It implements those keywords of JSON Schema that are generated from the types of the configuration:
//! `type`, `properties`, `required`, `additionalProperties` (`true` for the object of another API, whose values are not
//! checked), `propertyNames`, `minProperties`, `items`,
//! `const`, `enum`, `oneOf` of constants, `minimum`, `maximum`, and `format`. The other keywords are for other
//! validators: they express what the formats, the bounds and the [rules](super::rules) check here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fault::Fault;
use super::formats::Format;
use super::tree::{Content, Entry, Node};
use super::{schema, suggest};

/// The result of a check.
#[derive(Default)]
pub(super) struct Checked {
    /// The valid part of the tree.
    pub value: Value,
    /// The faults.
    pub faults: Vec<Fault>,
    /// Keys whose value in [`Self::value`] is probably not what the administrator meant: they have a fault,
    /// or an unknown key is a misspelling of them.
    pub doubtful: BTreeSet<String>,
    /// The line of each known key.
    pub lines: BTreeMap<String, u64>,
}

/// Checks a tree; `file` is the name of the file for the faults.
pub(super) fn check(file: &str, tree: &Node, schema: &Value) -> Checked {
    let mut checker = Checker { file, root: schema, checked: Checked::default() };
    let place = Place { key: String::new(), line: tree.line };
    let expected = "expected a mapping that begins with apiVersion and kind";
    let value = match &tree.content {
        Content::Map(entries) => checker.mapping(&place, entries, schema),
        Content::Scalar(Value::Null) => {
            checker.fault(&Place { line: None, ..place }, "empty", expected);
            Map::new()
        }
        other => {
            checker.fault(&place, describe(other, schema), expected);
            Map::new()
        }
    };
    // Required keys at the top level have defaults: the rest can be decoded without them.
    checker.checked.value = Value::Object(value);
    checker.checked
}

struct Checker<'a> {
    file: &'a str,
    root: &'a Value,
    checked: Checked,
}

/// The place of a value in the file.
struct Place {
    /// The path of its key, for example `leaderElection.leaseDuration`.
    key: String,
    /// The line of the key, or of the value if it has no key.
    line: Option<u64>,
}

impl Place {
    fn child(&self, entry: &Entry) -> Self {
        Self { key: join(&self.key, &entry.key), line: entry.line.or(self.line) }
    }

    fn item(&self, index: usize, node: &Node) -> Self {
        Self { key: format!("{}[{index}]", self.key), line: node.line.or(self.line) }
    }
}

/// The path of `key` below `above`. A key that is not a plain word is put in brackets and quotes.
fn join(above: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    match (plain, above) {
        (true, "") => key.to_owned(),
        (true, above) => format!("{above}.{key}"),
        (false, above) => format!("{above}[{key:?}]"),
    }
}

impl Checker<'_> {
    fn fault(&mut self, place: &Place, problem: impl Into<String>, expected: impl Into<String>) {
        self.checked.doubtful.insert(place.key.clone());
        self.checked.faults.push(Fault::new(self.file, place.line, &place.key, problem, expected));
    }

    /// The value of a node; `None` if the node itself is not valid.
    fn node(&mut self, place: &Place, node: &Node, schema: &Value) -> Option<Value> {
        match (kind(schema), &node.content) {
            ("object", Content::Map(_)) if is_open(schema) => Some(self.verbatim(place, node)),
            ("object", Content::Map(entries)) => {
                let value = self.mapping(place, entries, schema);
                let complete = strings(schema, "required").all(|key| value.contains_key(key));
                complete.then_some(Value::Object(value))
            }
            ("array", Content::List(items)) => Some(self.list(place, items, schema)),
            ("boolean", Content::Scalar(value @ Value::Bool(_))) => Some(value.clone()),
            ("integer", Content::Scalar(value @ Value::Number(_))) => self.integer(place, value, schema),
            ("string", Content::Scalar(Value::String(text))) => self.text(place, text, schema),
            (_, content) => {
                let problem = describe(content, schema);
                self.fault(place, problem, format!("expected {}", expected_instead(content, schema)));
                None
            }
        }
    }

    fn mapping(&mut self, place: &Place, entries: &[Entry], schema: &Value) -> Map<String, Value> {
        let mut value = Map::new();
        let mut first: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        for entry in entries {
            let child = place.child(entry);
            if let Some(line) = first.insert(&entry.key, entry.line) {
                first.insert(&entry.key, line);
                let before = line.map_or_else(String::new, |line| format!(", first in line {line}"));
                self.fault(&child, format!("given twice{before}"), "expected it once");
            }
            if let Some(known) = self.known(place, &child, entry, schema) {
                if let Some(line) = child.line {
                    self.checked.lines.entry(child.key.clone()).or_insert(line);
                }
                if let Some(sound) = self.node(&child, &entry.value, known) {
                    value.insert(entry.key.clone(), sound);
                }
            }
        }
        for required in strings(schema, "required").filter(|required| !first.contains_key(required)) {
            let expected = schema.pointer(&format!("/properties/{required}")).map(expected_value);
            // The file as a whole has no line; an item of a list has the line of its first key.
            let line = place.line.filter(|_| !place.key.is_empty());
            let missing = Place { key: join(&place.key, required), line };
            self.fault(&missing, "missing", format!("expected {}", expected.unwrap_or_default()));
        }
        if number(schema, "minProperties").is_some_and(|least| entries.is_empty() && least > 0) {
            self.fault(place, "empty", "expected at least one entry");
        }
        value
    }

    /// The value of a node that has no schema. A key that is given twice is a fault.
    fn verbatim(&mut self, place: &Place, node: &Node) -> Value {
        match &node.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => {
                let items = items.iter().enumerate();
                items.map(|(index, item)| self.verbatim(&place.item(index, item), item)).collect()
            }
            Content::Map(entries) => {
                let mut value = Map::new();
                for entry in entries {
                    let child = place.child(entry);
                    let inner = self.verbatim(&child, &entry.value);
                    if value.insert(entry.key.clone(), inner).is_some() {
                        self.fault(&child, "given twice", "expected it once");
                    }
                }
                Value::Object(value)
            }
        }
    }

    /// The schema of a key's value. For an unknown key, it adds a fault and returns `None`.
    fn known<'s>(
        &mut self,
        above: &Place,
        child: &Place,
        entry: &Entry,
        schema: &'s Value,
    ) -> Option<&'s Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        if let Some(known) = properties.and_then(|properties| properties.get(&entry.key)) {
            return Some(known);
        }
        if let Some(others) = schema.get("additionalProperties").filter(|others| others.is_object()) {
            let format = schema.get("propertyNames").and_then(format);
            if let Some(format) = format.filter(|format| !(format.accepts)(&entry.key)) {
                self.fault(child, "not a valid key", format!("expected {}", format.expected));
                return None;
            }
            return Some(others);
        }
        let mut keys = properties.into_iter().flat_map(Map::keys).map(String::as_str);
        let nearest = suggest::nearest(&entry.key, keys.clone());
        let expected = if let Some(nearest) = nearest {
            self.checked.doubtful.insert(join(&above.key, nearest));
            format!("did you mean \"{nearest}\"?")
        } else if let [place] = places(self.root, "", &entry.key).as_slice()
            // Keys of a list item are not keys of a section.
            && !above.key.ends_with(']')
        {
            self.checked.doubtful.insert(place.clone());
            format!("did you mean \"{place}\"?")
        } else {
            let first = keys.next().unwrap_or_default().to_owned();
            let known = keys.fold(first, |known, key| known + ", " + key);
            format!("known here: {known}")
        };
        self.fault(child, "unknown key", expected);
        None
    }

    fn list(&mut self, place: &Place, items: &[Node], schema: &Value) -> Value {
        let item_schema = schema.get("items").unwrap_or(&Value::Null);
        let items = items.iter().enumerate();
        items.filter_map(|(index, item)| self.node(&place.item(index, item), item, item_schema)).collect()
    }

    fn integer(&mut self, place: &Place, value: &Value, schema: &Value) -> Option<Value> {
        let whole = value.as_i64().filter(|whole| {
            number(schema, "minimum").is_none_or(|least| *whole >= least)
                && number(schema, "maximum").is_none_or(|most| *whole <= most)
        });
        if whole.is_none() {
            let expected = format!("expected {}", expected_value(schema));
            self.fault(place, format!("{value} is not valid"), expected);
        }
        whole.map(Value::from)
    }

    fn text(&mut self, place: &Place, text: &str, schema: &Value) -> Option<Value> {
        let constants = constants(schema);
        let format = format(schema);
        let fits = format.is_none_or(|format| (format.accepts)(text))
            && (constants.is_empty() || constants.contains(&text));
        if !fits {
            let problem = match (is_secret(schema), text) {
                (_, "") => "empty".to_owned(),
                (true, _) => "not valid".to_owned(),
                (false, text) => format!("{text:?} is not valid"),
            };
            self.fault(place, problem, format!("expected {}", expected_value(schema)));
        }
        fits.then(|| text.into())
    }
}

/// The type that a schema requires; constants have none and are text.
fn kind(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or("string")
}

/// Whether a schema is for mappings with any content.
fn is_open(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(true))
}

fn number(schema: &Value, keyword: &str) -> Option<i64> {
    schema.get(keyword).and_then(Value::as_i64)
}

fn strings<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn format(schema: &Value) -> Option<&'static Format> {
    schema.get("format").and_then(Value::as_str).and_then(schema::format)
}

/// Whether messages must not repeat a value, because it may be a secret.
fn is_secret(schema: &Value) -> bool {
    schema.get("writeOnly").is_some()
}

/// The texts that a schema allows; empty if it is not an enumeration.
pub(super) fn constants(schema: &Value) -> Vec<&str> {
    let alternatives = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let constant = |schema| Value::as_str(Value::get(schema, "const")?);
    alternatives.chain([schema]).filter_map(constant).chain(strings(schema, "enum")).collect()
}

/// The paths of all keys of that name in a schema.
fn places(schema: &Value, above: &str, word: &str) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut found = Vec::new();
    for (key, inner) in properties.into_iter().flatten() {
        let place = join(above, key);
        found.extend(places(inner, &place, word));
        if key == word {
            found.push(place);
        }
    }
    found
}

/// Describes a value of the wrong type.
fn describe(content: &Content, schema: &Value) -> String {
    match content {
        Content::Map(_) => "a mapping".to_owned(),
        Content::List(_) => "a list".to_owned(),
        Content::Scalar(Value::Null) => "no value".to_owned(),
        Content::Scalar(Value::String(text)) if text.is_empty() => "empty text".to_owned(),
        Content::Scalar(_) if is_secret(schema) => "not text".to_owned(),
        Content::Scalar(Value::String(text)) => format!("{text:?} is text"),
        Content::Scalar(Value::Bool(value)) => format!("{value} is a boolean"),
        Content::Scalar(value) => format!("{value} is a number"),
    }
}

/// Describes what is expected instead of a value of the wrong type.
fn expected_instead(content: &Content, schema: &Value) -> String {
    let accepted = |text: &str| format(schema).is_none_or(|format| (format.accepts)(text));
    match content {
        Content::Scalar(value @ (Value::Bool(_) | Value::Number(_)))
            if kind(schema) == "string" && constants(schema).is_empty() && accepted(&value.to_string()) =>
        {
            "text; put it in quotes".to_owned()
        }
        _ => expected_value(schema),
    }
}

/// Describes the values that a schema allows, to be read after "expected".
pub(super) fn expected_value(schema: &Value) -> String {
    let constants = constants(schema);
    if let Some((last, others)) = constants.split_last() {
        return if others.is_empty() {
            (*last).to_owned()
        } else {
            format!("{} or {last}", others.join(", "))
        };
    }
    if let Some(format) = format(schema) {
        return format.expected.to_owned();
    }
    match (kind(schema), number(schema, "minimum"), number(schema, "maximum")) {
        ("object", ..) => "a mapping (or omit the key)".to_owned(),
        ("array", ..) => "a list ([] if empty)".to_owned(),
        ("boolean", ..) => "true or false".to_owned(),
        ("integer", Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
        ("integer", Some(least), None) => format!("a whole number, at least {least}"),
        ("integer", ..) => "a whole number".to_owned(),
        _ => "text".to_owned(),
    }
}
