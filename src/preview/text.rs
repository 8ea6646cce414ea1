//! Formats writes as text for people: each object and loop, followed by its writes and their fields.

use std::fmt::Write as _;

use serde_json::Value;

use super::obstacles::Obstacles;
use crate::api::shown::{cut, escaped_json, message};
use crate::runtime::apply::{Verb, Write};
use crate::runtime::preview::Previewed;

/// The maximum length of a displayed value, in characters.
const MOST: usize = 120;

/// The status fields that the Go operators do not know.
const ADDED: [&str; 3] = ["conditions", "environments", "observedGeneration"];

/// Formats all writes, and their number.
pub fn changes(previews: &[Previewed], messages: &[String]) -> String {
    let mut text = String::new();
    for preview in previews {
        object(&mut text, preview, &|_| true);
    }
    lines(&mut text, "Not checked:", messages.iter());
    summary(&mut text, previews);
    text
}

/// Formats the obstacles and the writes that matter to users. Statuses are included only if existing fields change.
pub fn takeover(obstacles: &Obstacles, previews: &[Previewed], messages: &[String]) -> String {
    let mut text = String::new();
    for (_, heading, found) in obstacles.sections() {
        lines(&mut text, heading, found.iter());
    }
    let mut written = String::new();
    for preview in previews {
        object(&mut written, preview, &|write| !only_adds(write));
    }
    if !written.is_empty() {
        let _ = writeln!(text, "The daemon would write:\n{written}");
    }
    let additions =
        previews.iter().flat_map(|preview| &preview.writes).filter(|write| only_adds(write)).count();
    if additions > 0 {
        let fields = ADDED.join(", ");
        let _ = writeln!(text, "{additions} statuses get fields that the Go operators ignore ({fields}).");
    }
    lines(&mut text, "Not checked:", messages.iter().chain(&obstacles.unread));
    summary(&mut text, previews);
    let _ = match obstacles.count() {
        0 => writeln!(text, "No obstacles were found."),
        1 => writeln!(text, "1 obstacle was found."),
        count => writeln!(text, "{count} obstacles were found."),
    };
    text
}

/// Whether a write only adds status fields that the Go operators do not know.
fn only_adds(write: &Write) -> bool {
    let is_known = |key: &String| !ADDED.contains(&&**key);
    write.subresource == Some("status")
        && write.body["status"].as_object().is_some_and(|status| !status.keys().any(is_known))
}

/// Appends a heading and the lines below it, if there are any.
fn lines<'a>(text: &mut String, heading: &str, lines: impl Iterator<Item = &'a String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "{heading}");
    for line in lines {
        let _ = writeln!(text, "  {}", message(line));
    }
    text.push('\n');
}

/// Appends the writes, problems and remarks of one object.
fn object(text: &mut String, preview: &Previewed, is_shown: &dyn Fn(&Write) -> bool) {
    let Previewed { controller, kind, key, writes, later, problems, remarks } = preview;
    let shown =
        |writes: &[Write]| writes.iter().filter(|write| is_shown(write)).map(written).collect::<String>();
    let (writes, later) = (shown(writes), shown(later));
    if writes.is_empty() && later.is_empty() && problems.is_empty() && remarks.is_empty() {
        return;
    }
    let _ = writeln!(text, "{kind} {key} ({controller})");
    text.push_str(&writes);
    if !later.is_empty() {
        let _ = writeln!(text, "  after that, depending on Keycloak or Prometheus:");
        text.push_str(&later);
    }
    for problem in problems {
        let _ = writeln!(text, "  problem: {}", message(problem));
    }
    for remark in remarks {
        let _ = writeln!(text, "  note: {}", message(remark));
    }
}

/// Formats a write, followed by the fields that it changes.
fn written(write: &Write) -> String {
    let mut text = String::new();
    let subresource = write.subresource.map_or_else(String::new, |name| format!(", {name}"));
    let _ = writeln!(text, "  {} {} {}{subresource}", verb(write.verb), write.kind.kind, write.key);
    if write.verb == Verb::Patch {
        let mut found = Vec::new();
        fields("", &write.before, &write.body, &mut found);
        for line in found {
            let _ = writeln!(text, "    {}", message(&line));
        }
    }
    text
}

pub fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "create",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
    }
}

/// Collects the fields that a merge patch changes, one line each: `path: before -> after`.
fn fields(path: &str, before: &Value, change: &Value, found: &mut Vec<String>) {
    match change {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                let is_plain = key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
                let path = match (path, is_plain) {
                    ("", true) => key.clone(),
                    (path, true) => format!("{path}.{key}"),
                    (path, false) => format!("{path}[{key}]"),
                };
                fields(&path, before.get(key).unwrap_or(&Value::Null), value, found);
            }
        }
        after => found.push(format!("{path}: {} -> {}", shown(before), shown(after))),
    }
}

/// Formats a value, truncated if it is long; `-` for none.
fn shown(value: &Value) -> String {
    if value.is_null() {
        return "-".to_owned();
    }
    cut(&escaped_json(&value.to_string()), MOST).into_owned()
}

/// Appends the number of objects and the number of writes.
fn summary(text: &mut String, previews: &[Previewed]) {
    let what = |write: &Write| if write.subresource.is_some() { "status" } else { verb(write.verb) };
    let writes: Vec<&str> = previews.iter().flat_map(|preview| &preview.writes).map(what).collect();
    let count = |wanted: &str| writes.iter().filter(|what| **what == wanted).count();
    let [create, patch, delete, status] = ["create", "patch", "delete", "status"].map(count);
    let _ = writeln!(
        text,
        "{} objects checked: {create} to create, {patch} to patch, {delete} to delete, {status} statuses to write",
        previews.len()
    );
}
