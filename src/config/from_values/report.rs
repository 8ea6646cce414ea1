//! What was not carried over, and what a file lacks.

use serde_json::Value;

use super::table::{Fate, PARTS, PODS, Part};
use super::{Conversion, rows};

/// Whether a value says nothing.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The paths of all values that are no objects and say something, each with the value.
pub fn leaves(values: &Value) -> Vec<(String, &Value)> {
    fn walk<'v>(path: &str, value: &'v Value, found: &mut Vec<(String, &'v Value)>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(&path, value, found);
                }
            }
            value if is_empty(value) => {}
            value => found.push((path.to_owned(), value)),
        }
    }
    let mut found = Vec::new();
    walk("", values, &mut found);
    found
}

/// The row of a value: the one with the longest path that is its own or one above it.
pub fn row<'r>(rows: &'r [(String, Fate)], path: &str) -> Option<&'r (String, Fate)> {
    let covers =
        |row: &str| path.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    rows.iter().filter(|(row, _)| covers(row)).max_by_key(|(row, _)| row.len())
}

/// Why values cannot be used that have no part of the chart. Those of a part's own chart belong below its name.
pub fn no_parts(values: &Value) -> String {
    let leaves = leaves(values);
    let known = |part: &Part| {
        let own: Vec<_> = part.rows.iter().map(|(path, fate)| ((*path).to_owned(), *fate)).collect();
        leaves.iter().filter(|(path, _)| row(&own, path).is_some()).count()
    };
    let is_pods =
        |path: &str| PODS.iter().any(|(row, _)| path == *row || path.starts_with(&format!("{row}.")));
    let own = leaves.iter().filter(|(path, _)| !is_pods(path)).count();
    let best = PARTS.iter().filter(|part| known(part) > 0).max_by_key(|part| known(part));
    if let Some(part) = best.filter(|part| 2 * known(part) >= own) {
        let names = part
            .names
            .iter()
            .map(|name| format!("`{name}:`"))
            .collect::<Vec<_>>()
            .join(", or in an older one ");
        return format!(
            "these are the values of one part of the chart with the Go operators: put them, indented, below {names}, beside those \
             of the other parts; `helm get values RELEASE --all` prints them so"
        );
    }
    let parts = PARTS.map(|part| part.names.join(", ")).join(", ");
    format!("these are no values of the chart with the Go operators: none of {parts} is there")
}

impl Conversion<'_> {
    /// Names every value that is not carried over, those with the same reason together, and the parts that are missing.
    pub(super) fn report(&mut self, parts: &[(&'static str, &'static Part)]) {
        let rows = rows(parts);
        let mut left_out: Vec<(&str, Vec<&str>)> = Vec::new();
        for (path, _) in leaves(self.values) {
            match row(&rows, &path) {
                Some((row, Fate::Left(why))) => {
                    let index = left_out.iter().position(|(reason, _)| reason == why).unwrap_or_else(|| {
                        left_out.push((why, Vec::new()));
                        left_out.len() - 1
                    });
                    if !left_out[index].1.contains(&row.as_str()) {
                        left_out[index].1.push(row);
                    }
                }
                Some(_) => {}
                None => self.messages.push(format!("{path}: left out: there is no such key here")),
            }
        }
        for (why, paths) in left_out {
            self.messages.push(format!("{}: left out: {why}", paths.join(", ")));
        }
        let missing = PARTS.iter().filter(|part| part.is_current && self.part(part.names).is_none());
        let missing: Vec<_> = missing.map(|part| part.names[0]).collect();
        if !missing.is_empty() {
            self.messages.push(format!(
                "{}: this file has no values of them: what their charts have by default is not carried over; \
                 `helm get values RELEASE --all` prints that, too",
                missing.join(", ")
            ));
        }
    }
}
