//! JSON patches of the lists of a spec.

use serde_json::{Value, json};

/// Returns the operations that append an entry to a list of a spec. An empty list may be absent, so it is created.
pub fn append(list: &str, is_empty: bool, entry: Value) -> Vec<Value> {
    let (path, value) =
        if is_empty { (format!("/spec/{list}"), json!([entry])) } else { (format!("/spec/{list}/-"), entry) };
    vec![json!({"op": "add", "path": path, "value": value})]
}

/// Returns the operations that remove an entry of a list of a spec. The version guarantees its position; a `test` of the entry would
/// fail for a text with `<`, `>` or `&`, which the API server escapes before it compares.
pub fn remove(list: &str, position: usize) -> Vec<Value> {
    vec![json!({"op": "remove", "path": format!("/spec/{list}/{position}")})]
}
