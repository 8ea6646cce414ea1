//! Formats writes as text for people: each object and loop, followed by its problems, its writes, and the differences
//! that they make.

use std::fmt::Write as _;

use super::diff::unified;
use super::obstacles::Obstacles;
use crate::api::shown::message;
use crate::runtime::apply::{Verb, Write};
use crate::runtime::preview::Previewed;

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
        let _ = write!(text, "The daemon would write:\n\n{written}");
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

/// Appends the problems, remarks and writes of one object, and an empty line.
fn object(text: &mut String, preview: &Previewed, is_shown: &dyn Fn(&Write) -> bool) {
    let Previewed { controller, kind, key, writes, later, problems, remarks } = preview;
    let shown = |writes: &[Write]| written(writes.iter().filter(|write| is_shown(write)));
    let (writes, later) = (shown(writes), shown(later));
    if writes.is_empty() && later.is_empty() && problems.is_empty() && remarks.is_empty() {
        return;
    }
    let _ = writeln!(text, "{kind} {key} ({controller})");
    for problem in problems {
        let _ = writeln!(text, "  problem: {}", message(problem));
    }
    for remark in remarks {
        let _ = writeln!(text, "  note: {}", message(remark));
    }
    text.push_str(&writes);
    if !later.is_empty() {
        let _ = writeln!(text, "after that, depending on Keycloak or Prometheus:");
        text.push_str(&later);
    }
    text.push('\n');
}

/// Formats writes by object, in the order of the first write of each: its writes, and the difference that they make.
fn written<'w>(writes: impl Iterator<Item = &'w Write>) -> String {
    let mut objects: Vec<Vec<&Write>> = Vec::new();
    for write in writes {
        let is_same = |first: &&Write| (first.kind, &first.key) == (write.kind, &write.key);
        match objects.iter_mut().find(|writes| writes.first().is_some_and(is_same)) {
            Some(writes) => writes.push(write),
            None => objects.push(vec![write]),
        }
    }
    let mut text = String::new();
    for writes in objects {
        for write in &writes {
            let subresource = write.subresource.map_or_else(String::new, |name| format!(", {name}"));
            let _ = writeln!(text, "{} {} {}{subresource}", verb(write.verb), write.kind.kind, write.key);
        }
        text.push_str(&unified(&writes));
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::DeploymentKind;
    use crate::runtime::ObjectKey;
    use crate::runtime::plan::KindInfo;

    #[test]
    fn an_object_has_its_problems_its_writes_and_one_difference_for_each_written_object() {
        let (kind, key) = (KindInfo::of::<DeploymentKind>(), ObjectKey::new("ns", "box"));
        let write = |verb, name: &str, subresource, before: Value, body: Value| {
            let key = ObjectKey::new("ns", name);
            Write { verb, kind, key, subresource, before, body }
        };
        let before = json!({"kind": "Deployment", "spec": {"replicas": 0}});
        let writes = vec![
            write(Verb::Patch, "box", None, before.clone(), json!({"spec": {"replicas": 1}})),
            write(Verb::Delete, "old", None, json!({"kind": "Deployment"}), Value::Null),
            write(Verb::Patch, "box", Some("status"), before, json!({"status": {"phase": "Ready"}})),
        ];
        let preview = Previewed {
            controller: "instance",
            kind: "Instance",
            key: key.clone(),
            writes,
            later: vec![write(Verb::Create, "new", None, Value::Null, json!({"kind": "Deployment"}))],
            problems: vec!["the image is missing".to_owned()],
            remarks: vec!["old is deleted".to_owned()],
        };
        let unchanged = Previewed {
            writes: Vec::new(),
            later: Vec::new(),
            problems: Vec::new(),
            remarks: Vec::new(),
            controller: "instance",
            kind: "Instance",
            key,
        };
        let expected = "Instance ns/box (instance)
  problem: the image is missing
  note: old is deleted
patch Deployment ns/box
patch Deployment ns/box, status
--- live
+++ planned
@@ -1,3 +1,5 @@
 kind: Deployment
 spec:
-  replicas: 0
+  replicas: 1
+status:
+  phase: Ready
delete Deployment ns/old
--- live
+++ planned
@@ -1 +0,0 @@
-kind: Deployment
after that, depending on Keycloak or Prometheus:
create Deployment ns/new
--- live
+++ planned
@@ -0,0 +1 @@
+kind: Deployment

Not checked:
  the tenants

2 objects checked: 0 to create, 1 to patch, 1 to delete, 1 statuses to write
";
        assert_eq!(changes(&[preview, unchanged], &["the tenants".to_owned()]), expected);
    }
}
