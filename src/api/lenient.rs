//! Decoding of specs and statuses that may not match the schema: see [`super::object`] for the reasons.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use super::shown::cut;

/// Larger parts are not searched for their first wrong value: decoded as generic JSON, they take many times their
/// size.
const SEARCHED: usize = 256 << 10;
/// The limit for the description of an error, in characters. It may quote a text of the object.
const LONGEST: usize = 400;

/// Decodes a part of an object. If the part is absent, the result is the default; `null` means absent at any
/// depth. An error names the path of the first wrong value and what is wrong with it, for example
/// `.environmentList[0].persistent: invalid type: string "yes", expected a boolean`.
pub(super) fn read<H: Default + DeserializeOwned>(raw: Option<&RawValue>) -> Result<H, String> {
    let Some(text) = raw.map(RawValue::get).filter(|text| *text != "null") else {
        return Ok(H::default());
    };
    let error = match serde_json::from_str(text) {
        Ok(part) => return Ok(part),
        Err(error) => error,
    };
    if text.len() > SEARCHED {
        return Err(cut(&format!(": {error}"), LONGEST).into_owned());
    }
    let mut value: Value =
        serde_json::from_str(text).map_err(|error| cut(&format!(": {error}"), LONGEST).into_owned())?;
    drop_nulls(&mut value);
    serde_path_to_error::deserialize(&value)
        .map_err(|error| cut(&format!("{}: {}", written(error.path()), error.inner()), LONGEST).into_owned())
}

/// Removes every `null` from objects and arrays.
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

/// Formats a path as `.environmentList[0].persistent`; empty for the whole part.
fn written(path: &Path) -> String {
    path.iter().fold(String::new(), |above, segment| match segment {
        Segment::Seq { index } => format!("{above}[{index}]"),
        segment => format!("{above}.{segment}"),
    })
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

    #[test]
    fn an_error_quotes_only_the_beginning_of_a_text() {
        for length in [10_000, SEARCHED] {
            let text = format!(r#"{{"on": "{}"}}"#, "é".repeat(length));
            let error = read_text(&text).expect_err("no boolean");
            assert!(error.chars().count() == LONGEST && error.ends_with('…'), "{}", error.len());
        }
    }
}
