//! The values of fields: from the object to the form, and back.

use serde_json::{Map, Value, json};

use super::fields::{Field, Input};
use crate::controllers::dashboard::http::fields::Fields;

/// The maximum number of rows of a field.
pub const MOST_ROWS: usize = 40;

/// The value of a field as the form shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A text.
    Text(String),
    /// Whether it is so.
    YesNo(bool),
    /// Rows: the texts in the columns of each row. For labels, whether the selector is present and empty.
    Rows(Vec<[String; 3]>, bool),
}

/// Returns the value at a path.
pub fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, member| value.get(*member)).filter(|value| !value.is_null())
}

/// Sets or removes the value at a path. Parents are created, and removed with their last member.
pub fn set(object: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    if !object.is_object() {
        *object = json!({});
    }
    let Some(members) = object.as_object_mut() else { return };
    match (rest.is_empty(), value) {
        (true, Some(value)) => drop(members.insert((*first).to_owned(), value)),
        (true, None) => drop(members.shift_remove(*first)),
        (false, value) => {
            let has_parent = members.get(*first).is_some_and(Value::is_object);
            if !has_parent && value.is_none() {
                return;
            }
            let parent = members.entry((*first).to_owned()).or_insert_with(|| json!({}));
            set(parent, rest, value);
            if parent.as_object().is_some_and(Map::is_empty) {
                members.shift_remove(*first);
            }
        }
    }
}

/// Returns a value as one text.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the text of a member; empty if it is absent.
fn member(value: &Value, name: &str) -> String {
    value.get(name).filter(|value| !value.is_null()).map(text).unwrap_or_default()
}

/// Formats a reference to another object: `namespace/name`, or the name alone.
fn reference(value: &Value) -> String {
    let [namespace, name] = ["namespace", "name"].map(|part| member(value, part));
    if namespace.is_empty() { name } else { format!("{namespace}/{name}") }
}

/// Returns the value of a field as the form shows it.
pub fn shown(field: &Field, value: Option<&Value>) -> Shown {
    let null = Value::Null;
    let found = value.unwrap_or(&null);
    let pairs = || found.as_object().into_iter().flatten();
    match field.input {
        Input::YesNo(default) => Shown::YesNo(found.as_bool().unwrap_or(default)),
        Input::Labels => {
            let rows =
                pairs().map(|(key, value)| [format!("{key}={}", text(value)), String::new(), String::new()]);
            Shown::Rows(rows.collect(), found.as_object().is_some_and(Map::is_empty))
        }
        Input::Resources => Shown::Rows(
            pairs().map(|(name, amount)| [name.clone(), text(amount), String::new()]).collect(),
            false,
        ),
        Input::Mounts => {
            let mount = |mount: &Value| {
                let is_read_only = mount.get("readOnly").and_then(Value::as_bool).unwrap_or_default();
                let read_only = if is_read_only { "on" } else { "" };
                let volume = mount.get("sharedVolume").map(reference).unwrap_or_default();
                [volume, member(mount, "mountPath"), read_only.to_owned()]
            };
            Shown::Rows(found.as_array().into_iter().flatten().map(mount).collect(), false)
        }
        Input::Lines => {
            let lines: Vec<String> = found.as_array().into_iter().flatten().map(text).collect();
            Shown::Text(lines.join("\n"))
        }
        Input::Reference if found.is_object() => Shown::Text(reference(found)),
        _ if found.is_null() => Shown::Text(String::new()),
        _ => Shown::Text(text(found)),
    }
}

/// Returns the name of a column of a row in the form.
pub fn row_name(name: &str, row: usize, column: usize) -> String {
    format!("{name}.{row}.{column}")
}

/// Returns the name of the box that makes a selector of nodes present and empty.
pub fn open_name(name: &str) -> String {
    format!("{name}.open")
}

/// Returns the filled rows of a field.
fn rows(form: &Fields, name: &str) -> Vec<[String; 3]> {
    let column = |row, column| form.get(&row_name(name, row, column)).trim().to_owned();
    let rows = (0..MOST_ROWS).map(|row| [0, 1, 2].map(|at| column(row, at)));
    rows.filter(|[first, second, _]| !(first.is_empty() && second.is_empty())).collect()
}

/// Returns the value of a field of a form; `None` if it is absent. A value that the user has not changed stays as it is
/// in the object (`before`). An invalid text stays a text, which the API server rejects.
pub fn read(field: &Field, name: &str, form: &Fields, before: Option<&Value>) -> Option<Value> {
    let typed = form.get(name).replace("\r\n", "\n");
    let typed = typed.trim();
    let is_same = |typed: &str| matches!(shown(field, before), Shown::Text(stored) if stored.replace("\r\n", "\n").trim() == typed);
    match field.input {
        Input::YesNo(default) => {
            let is_on = !typed.is_empty();
            // An absent field stays absent unless it changes.
            let is_absent = before.is_none() && is_on == default && !field.is_required;
            (!is_absent).then_some(is_on.into())
        }
        Input::Labels => {
            let rows = rows(form, name);
            let pairs = rows.iter().map(|[label, ..]| label.split_once('=').unwrap_or((label, "")));
            let labels: Map<String, Value> =
                pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().into())).collect();
            let is_open = !form.get(&open_name(name)).is_empty();
            (is_open || !labels.is_empty()).then_some(labels.into())
        }
        Input::Resources => {
            let known = |name: &str| before.and_then(|before| before.get(name));
            let amount = |name: &str, typed: &str| match known(name) {
                Some(value) if text(value) == typed => value.clone(),
                _ => typed.into(),
            };
            let rows = rows(form, name);
            let resources: Map<String, Value> =
                rows.iter().map(|[name, typed, _]| (name.clone(), amount(name, typed))).collect();
            (!resources.is_empty()).then_some(resources.into())
        }
        Input::Mounts => {
            let mount = |[volume, path, read_only]: &[String; 3]| {
                json!({
                    "sharedVolume": referred(volume), "mountPath": path, "readOnly": !read_only.is_empty(),
                })
            };
            let mounts: Vec<Value> = rows(form, name).iter().map(mount).collect();
            (!mounts.is_empty()).then_some(mounts.into())
        }
        _ if is_same(typed) => before.cloned(),
        _ if typed.is_empty() => None,
        Input::Lines => {
            let lines = typed.lines().map(str::trim).filter(|line| !line.is_empty());
            Some(lines.map(Value::from).collect::<Vec<_>>().into())
        }
        Input::Number => Some(typed.parse::<i64>().map_or_else(|_| typed.into(), Value::from)),
        Input::Reference => Some(referred(typed)),
        Input::Text
        | Input::Area
        | Input::OneOf(_)
        | Input::Duration
        | Input::Amount
        | Input::Image
        | Input::StorageClass => Some(typed.into()),
    }
}

/// Parses a reference to another object, as [`reference`] formats it.
fn referred(text: &str) -> Value {
    match text.split_once('/') {
        Some((namespace, name)) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": text}),
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::controllers::dashboard::templates::fields::{ENVIRONMENT, SPEC};

    fn field(name: &str) -> &'static Field {
        let mut all = SPEC.iter().chain(ENVIRONMENT);
        all.find(|field| field.name == name).expect("a field")
    }

    /// The value of a field after the user has sent these fields of the form.
    fn sent(name: &str, form: &[(&str, &str)], before: Option<&Value>) -> Option<Value> {
        let form = form.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        read(field(name), "f", &Fields(form.collect()), before)
    }

    /// The fields that a form with this value sends.
    fn form_of(shown: &Shown) -> Vec<(String, String)> {
        match shown {
            Shown::Text(text) => vec![("f".to_owned(), text.replace('\n', "\r\n"))],
            Shown::YesNo(is_on) => is_on.then(|| ("f".to_owned(), "on".to_owned())).into_iter().collect(),
            Shown::Rows(rows, is_open) => {
                let open = is_open.then(|| (open_name("f"), "on".to_owned()));
                let column = |row: usize, at: usize, text: &str| (row_name("f", row, at), text.to_owned());
                let rows = rows.iter().enumerate().flat_map(|(row, columns)| {
                    columns
                        .iter()
                        .enumerate()
                        .map(move |(at, text)| column(row, at, text))
                        .collect::<Vec<_>>()
                });
                rows.chain(open).collect()
            }
        }
    }

    #[test]
    fn a_form_that_is_sent_unchanged_keeps_every_value() {
        for (name, value) in [
            ("prettyName", json!("Lab")),
            ("description", json!("Two\nlines\n")),
            ("cpu", json!(2)),
            ("memory", json!("4Gi")),
            ("memory", json!(4)),
            ("disk", Value::Null),
            ("persistent", json!(true)),
            ("persistent", Value::Null),
            ("guiEnabled", json!(false)),
            ("guiEnabled", Value::Null),
            ("workspace", json!({"name": "tea"})),
            ("workspace", json!({"name": "tea", "namespace": "x"})),
            ("nodeSelector", Value::Null),
            ("nodeSelector", json!({})),
            ("nodeSelector", json!({"disk": "fast", "gpu": ""})),
            ("otherResources", json!({"nvidia.com/gpu": 1, "a.b/c": "2"})),
            (
                "sharedVolumeMounts",
                json!([{"sharedVolume": {"name": "m", "namespace": "w"}, "mountPath": "/m", "readOnly": true}]),
            ),
            ("startupArgs", json!(["--one", "two words"])),
            ("startupArgs", json!(["a\nb"])),
        ] {
            let before = Some(&value).filter(|value| !value.is_null());
            let form = form_of(&shown(field(name), before));
            assert_eq!(read(field(name), "f", &Fields(form), before).as_ref(), before, "{name}: {value}");
        }
    }

    #[test]
    fn typed_texts_become_values_and_an_invalid_number_stays_a_text() {
        for (name, typed, expected) in [
            ("prettyName", " Lab ", Some(json!("Lab"))),
            ("prettyName", " ", None),
            ("cpu", "4", Some(json!(4))),
            ("cpu", "four", Some(json!("four"))),
            ("cpu", "", None),
            ("memory", "4Gi", Some(json!("4Gi"))),
            ("startupArgs", "--one\r\n\r\n two ", Some(json!(["--one", "two"]))),
            ("workspace", "tea", Some(json!({"name": "tea"}))),
            ("persistent", "on", Some(json!(true))),
        ] {
            assert_eq!(sent(name, &[("f", typed)], None), expected, "{name}: {typed}");
        }
        assert_eq!(sent("persistent", &[], Some(&json!(true))), Some(json!(false)));
        assert_eq!(
            sent("mountMyDriveVolume", &[], None),
            Some(json!(false)),
            "a required field is never absent"
        );
    }

    #[test]
    fn empty_rows_are_left_out() {
        let labels = [("f.0.0", "disk = fast"), ("f.1.0", " "), ("f.2.0", "gpu")];
        assert_eq!(sent("nodes", &labels, None), Some(json!({"disk": "fast", "gpu": ""})));
        assert_eq!(sent("nodes", &[("f.open", "on")], None), Some(json!({})));
        let mounts = [("f.0.0", "w/m"), ("f.0.1", "/m"), ("f.0.2", "on"), ("f.1.0", ""), ("f.2.0", "n")];
        let expected = json!([
            {"sharedVolume": {"name": "m", "namespace": "w"}, "mountPath": "/m", "readOnly": true},
            {"sharedVolume": {"name": "n"}, "mountPath": "", "readOnly": false},
        ]);
        assert_eq!(sent("sharedVolumeMounts", &mounts, None), Some(expected));
    }

    #[test]
    fn parents_are_created_and_removed_with_their_last_member() {
        let mut object = json!({"a": 1});
        set(&mut object, &["b", "c"], None);
        assert_eq!(object, json!({"a": 1}));
        set(&mut object, &["b", "c"], Some(json!(2)));
        assert_eq!(object, json!({"a": 1, "b": {"c": 2}}));
        set(&mut object, &["b", "c"], None);
        assert_eq!(object, json!({"a": 1}));
    }
}
