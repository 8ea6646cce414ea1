//! Formats the writes of an object as `kubectl diff` does: a unified diff of YAML, from the live object to the planned
//! one.

use serde_json::Value;
use similar::TextDiff;

use crate::kinds::SecretKind;
use crate::offline::format::comparable;
use crate::runtime::apply::{Verb, Write};
use crate::runtime::merge;
use crate::runtime::plan::KindInfo;

/// Returns the difference that these writes make, all of them of the same object. Lines are never shortened. A value of a
/// Secret that changes is `*** (before)` and `*** (after)`, as in `kubectl diff`.
pub fn unified(writes: &[&Write]) -> String {
    let Some(first) = writes.first() else { return String::new() };
    let (mut live, mut planned) = (first.before.clone(), first.before.clone());
    for write in writes {
        match write.verb {
            Verb::Create => planned.clone_from(&write.body),
            Verb::Patch => merge::apply(&mut planned, &write.body),
            Verb::Delete => planned = Value::Null,
        }
    }
    if first.kind == KindInfo::of::<SecretKind>() {
        let patches = writes.iter().filter(|write| write.verb == Verb::Patch);
        patches.for_each(|write| distinguish(&mut live, &mut planned, &write.body));
    }
    // Otherwise a list whose items have other orders of fields would differ as a whole.
    live.sort_all_objects();
    planned.sort_all_objects();
    let [live, planned] = comparable(&live, &planned);
    TextDiff::from_lines(live.as_str(), planned.as_str()).unified_diff().header("live", "planned").to_string()
}

/// Makes the masked values of a Secret differ where the patch changes them.
fn distinguish(live: &mut Value, planned: &mut Value, patch: &Value) {
    for key in patch["data"].as_object().into_iter().flat_map(serde_json::Map::keys) {
        let place = |secret: &mut Value, text: &str| {
            let value = secret.get_mut("data").and_then(|data| data.get_mut(key));
            value.map(|value| *value = text.into())
        };
        if place(live, "*** (before)").is_some() {
            place(planned, "*** (after)");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::DeploymentKind;
    use crate::runtime::ObjectKey;

    fn write(verb: Verb, before: Value, body: Value) -> Write {
        let (kind, key) = (KindInfo::of::<DeploymentKind>(), ObjectKey::new("ns", "box"));
        Write { verb, kind, key, subresource: None, before, body }
    }

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "box", "namespace": "ns"},
            "spec": {"paused": true, "replicas": 0, "revisionHistoryLimit": 10, "minReadySeconds": 1},
        })
    }

    const WHOLE: [&str; 10] = [
        "apiVersion: apps/v1",
        "kind: Deployment",
        "metadata:",
        "  name: box",
        "  namespace: ns",
        "spec:",
        "  minReadySeconds: 1",
        "  paused: true",
        "  replicas: 0",
        "  revisionHistoryLimit: 10",
    ];

    #[test]
    fn a_patch_is_a_hunk_with_three_lines_of_context() {
        let patch = write(Verb::Patch, deployment(), json!({"spec": {"replicas": 1}}));
        let expected = "--- live
+++ planned
@@ -6,5 +6,5 @@
 spec:
   minReadySeconds: 1
   paused: true
-  replicas: 0
+  replicas: 1
   revisionHistoryLimit: 10
";
        assert_eq!(unified(&[&patch]), expected);
    }

    #[test]
    fn an_object_that_is_created_or_deleted_is_shown_as_a_whole() {
        let lines = |sign: &str| WHOLE.map(|line| format!("{sign}{line}\n")).concat();
        let created = write(Verb::Create, Value::Null, deployment());
        let expected = format!("--- live\n+++ planned\n@@ -0,0 +1,10 @@\n{}", lines("+"));
        assert_eq!(unified(&[&created]), expected);
        let deleted = write(Verb::Delete, deployment(), Value::Null);
        let expected = format!("--- live\n+++ planned\n@@ -1,10 +0,0 @@\n{}", lines("-"));
        assert_eq!(unified(&[&deleted]), expected);
    }

    #[test]
    fn several_writes_of_an_object_are_one_difference() {
        let labels = write(Verb::Patch, deployment(), json!({"metadata": {"labels": {"a": "b"}}}));
        let status = Write {
            subresource: Some("status"),
            ..write(Verb::Patch, deployment(), json!({"status": {"readyReplicas": 1}}))
        };
        let expected = "--- live
+++ planned
@@ -1,6 +1,8 @@
 apiVersion: apps/v1
 kind: Deployment
 metadata:
+  labels:
+    a: b
   name: box
   namespace: ns
 spec:
@@ -8,3 +10,5 @@
   paused: true
   replicas: 0
   revisionHistoryLimit: 10
+status:
+  readyReplicas: 1
";
        assert_eq!(unified(&[&labels, &status]), expected);
    }

    #[test]
    fn values_of_secrets_are_masked_and_their_changes_are_visible() {
        let secret = json!({"kind": "Secret", "data": {"kept": "***", "changed": "***"}});
        let body = json!({"data": {"changed": "***", "added": "***"}});
        let patch = Write { kind: KindInfo::of::<SecretKind>(), ..write(Verb::Patch, secret, body) };
        let lines: Vec<String> =
            unified(&[&patch]).lines().skip(3).map(|line| line.replace(['"', '\''], "")).collect();
        let expected = [
            " data:",
            "-  changed: *** (before)",
            "+  added: ***",
            "+  changed: *** (after)",
            "   kept: ***",
            " kind: Secret",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn long_values_are_complete_and_control_characters_are_escaped() {
        let long = "x".repeat(5_000);
        let patch = write(Verb::Patch, json!({"kind": "A"}), json!({"note": long}));
        assert_eq!(
            unified(&[&patch]),
            format!("--- live\n+++ planned\n@@ -1 +1,2 @@\n kind: A\n+note: {long}\n")
        );
        let hostile = write(Verb::Patch, json!({"kind": "A"}), json!({"note": "\u{202e}x\u{1b}"}));
        let text = unified(&[&hostile]);
        assert!(text.contains("+  \"note\": \"\\u202ex\\u001b\"\n"), "{text}");
    }
}
