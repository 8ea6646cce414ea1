//! Reports the values that were not carried over and the parts that a file lacks.

use std::fmt;

use serde_json::Value;

use super::table::{Fate, PARTS, PODS, Part, below};
use super::{Conversion, rows};

/// The values that can be converted.
const EXPECTED: &str = "expected the output of `helm get values RELEASE --all -o yaml`";

/// The remarks about a conversion, one sentence each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The steps that must be done before the file can be used.
    pub steps: Vec<String>,
    /// The facts that should be known: the file can be used, but it may differ from the intended one.
    pub notes: Vec<String>,
    /// The values that have no effect on the file, with the reasons.
    pub ignored: Vec<String>,
}

impl fmt::Display for Remarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, notes, ignored } = self;
        for (heading, remarks) in [
            ("Must be done before the file can be used:", steps),
            ("Should be known:", notes),
            ("Ignored:", ignored),
        ] {
            if !remarks.is_empty() {
                writeln!(f, "{heading}")?;
            }
            for remark in remarks {
                writeln!(f, "  {}", remark.replace('\n', "\n    "))?;
            }
        }
        Ok(())
    }
}

/// Whether a value is empty, at any depth.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The paths of all values that are neither objects nor empty.
pub fn leaves(values: &Value) -> Vec<String> {
    fn walk(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(&path, value, found);
                }
            }
            value if is_empty(value) => {}
            _ => found.push(path.to_owned()),
        }
    }
    let mut found = Vec::new();
    walk("", values, &mut found);
    found
}

/// The row of a value: the row with the longest path that covers it.
pub fn row<'r>(rows: &'r [(String, Fate)], path: &str) -> Option<&'r (String, Fate)> {
    let covers =
        |row: &str| path.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    rows.iter().filter(|(row, _)| covers(row)).max_by_key(|(row, _)| row.len())
}

/// Explains why values without any part of the chart cannot be used. The values of a part's own chart belong below the
/// part's name.
pub fn no_parts(values: &Value) -> String {
    if values.is_null() {
        return format!("it is empty; {EXPECTED}");
    }
    let leaves = leaves(values);
    let count = |rows: &[(String, Fate)]| leaves.iter().filter(|path| row(rows, path).is_some()).count();
    let known = |part: &&Part| count(&part.rows(""));
    let own = leaves.len() - count(&below("", PODS));
    let best = PARTS.iter().filter(|part| known(part) > 0).max_by_key(known);
    if let Some(part) = best.filter(|part| 2 * known(part) >= own) {
        let names: Vec<String> = part.names.iter().map(|name| format!("`{name}:`")).collect();
        return format!(
            "these values belong to one part of the Go operators' chart: indent them below {}, next to \
             the values of the other parts; `helm get values RELEASE --all` prints them in this form",
            names.join(", or in an older one ")
        );
    }
    let parts = PARTS.map(|part| part.names.join(", ")).join(", ");
    format!("these are not values of the Go operators' chart: none of {parts} was found; {EXPECTED}")
}

impl Conversion<'_> {
    /// Reports every value that is not carried over, grouped by reason, and the missing parts.
    pub(super) fn report(&mut self, parts: &[(&'static str, &'static Part)]) {
        let rows = rows(parts);
        let mut left_out: Vec<(&str, Vec<&str>)> = Vec::new();
        for path in leaves(self.values) {
            match row(&rows, &path) {
                Some((row, Fate::Left(why))) => match left_out.iter_mut().find(|(reason, _)| reason == why) {
                    Some((_, paths)) if paths.contains(&row.as_str()) => {}
                    Some((_, paths)) => paths.push(row),
                    None => left_out.push((why, vec![row])),
                },
                Some(_) => {}
                None => self.remarks.ignored.push(format!("{path}: the configuration has no such key")),
            }
        }
        for (why, paths) in left_out {
            self.remarks.ignored.push(format!("{}: {why}", paths.join(", ")));
        }
        let missing = PARTS.iter().filter(|part| part.is_current && self.part(part.names).is_none());
        let missing: Vec<_> = missing.map(|part| part.names[0]).collect();
        if !missing.is_empty() {
            self.remarks.notes.push(format!(
                "{}: this file has no values for these parts: the defaults of their charts are not carried \
                 over; `helm get values RELEASE --all` also prints the defaults",
                missing.join(", ")
            ));
        }
    }
}
