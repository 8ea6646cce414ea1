//! Decoding of specs and statuses that may not match the schema: see [`super::object`] for the reasons.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// Decodes a part of an object. If the part is absent, the result is the default; `null` means absent at any
/// depth. An error names the path of the first wrong value and what is wrong with it, for example
/// `.environmentList[0].persistent: invalid type: string "yes", expected a boolean`.
pub(super) fn read<H: Default + DeserializeOwned>(raw: Option<&RawValue>) -> Result<H, String> {
    let Some(text) = raw.map(RawValue::get).filter(|text| *text != "null") else {
        return Ok(H::default());
    };
    if let Ok(part) = serde_json::from_str(text) {
        return Ok(part);
    }
    let mut value: Value = serde_json::from_str(text).map_err(|error| format!(": {error}"))?;
    drop_nulls(&mut value);
    H::deserialize(&value).map_err(|error| format!("{}: {error}", fault::<H>(&value)))
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

/// The path of the first member that keeps `value` from being read.
///
/// Absent members are never at fault, so it is the last of the fewest leading members with which
/// the reading fails; and so on inside that one, until it fails even when emptied.
fn fault<H: DeserializeOwned>(value: &Value) -> String {
    let mut tree = value.clone();
    let (mut path, mut pointer) = (String::new(), String::new());
    loop {
        let fails = |count: &usize| {
            let mut probe = tree.clone();
            keep_leading(probe.pointer_mut(&pointer), *count);
            H::deserialize(&probe).is_err()
        };
        let count = tree.pointer(&pointer).map_or(0, len);
        let Some(count) = (0..=count).find(fails).filter(|count| *count > 0) else {
            return path;
        };
        if let Some(name) = keep_leading(tree.pointer_mut(&pointer), count) {
            path = format!("{path}.{name}");
            pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        } else {
            path = format!("{path}[{}]", count - 1);
            pointer = format!("{pointer}/{}", count - 1);
        }
    }
}

/// How many members or items a value has.
fn len(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// Removes all but the first `count` members or items; the name of the last one left, if it has one.
fn keep_leading(value: Option<&mut Value>, count: usize) -> Option<String> {
    match value? {
        Value::Object(members) => {
            *members = std::mem::take(members).into_iter().take(count).collect();
            members.keys().next_back().cloned()
        }
        Value::Array(items) => {
            items.truncate(count);
            None
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Part {
        name: String,
        on: bool,
        #[serde(rename = "a/b~c")]
        inner: Vec<Part>,
    }

    fn read_text(text: &str) -> Result<Part, String> {
        read(Some(&RawValue::from_string(text.to_owned()).unwrap()))
    }

    #[test]
    fn null_is_absent_at_any_depth() {
        assert_eq!(read::<Part>(None), Ok(Part::default()));
        assert_eq!(read_text("null"), Ok(Part::default()));
        assert_eq!(read_text(r#"{"name": null, "on": null, "a/b~c": null}"#), Ok(Part::default()));
        let inner = vec![Part { on: true, ..Part::default() }];
        assert_eq!(
            read_text(r#"{"a/b~c": [{"on": true, "name": null}, null]}"#),
            Ok(Part { inner, ..Part::default() })
        );
    }

    #[test]
    fn the_first_fault_is_named_with_its_path() {
        let cases = [
            (r"5", ": invalid type: integer `5`, expected struct Part"),
            (r#""text""#, ": invalid type: string \"text\", expected struct Part"),
            (r#"{"name": "x", "on": "yes"}"#, ".on: invalid type: string \"yes\", expected a boolean"),
            (
                r#"{"on": true, "a/b~c": [{"on": false}, {"name": 5, "on": 1}], "name": []}"#,
                ".a/b~c[1].name: invalid type: integer `5`, expected a string",
            ),
            (r#"{"a/b~c": {"on": true}}"#, ".a/b~c: invalid type: map, expected a sequence"),
        ];
        for (text, message) in cases {
            assert_eq!(read_text(text), Err(message.to_owned()), "{text}");
        }
    }
}
