//! JSON merge patches (RFC 7396): applying and computing them.

/// Applies a merge patch to a value (RFC 7396, section 2).
pub use json_patch::merge as apply;
use serde_json::{Map, Value};

/// Returns the smallest merge patch that gives `current` every field of `wanted`; `None` if it already has them. Fields
/// that `wanted` does not name are left unchanged, a `null` in it means that the field must be absent, and arrays are
/// compared and replaced as a whole.
pub fn required(current: &Value, wanted: &Value) -> Option<Value> {
    let Value::Object(wanted) = wanted else { return (current != wanted).then(|| wanted.clone()) };
    let changes = wanted.iter().filter_map(|(key, value)| {
        let before = current.get(key).unwrap_or(&Value::Null);
        Some((key.clone(), required(before, value)?))
    });
    not_empty(changes.collect())
}

/// Returns the merge patch from `old` to `new`, with `null` for removed fields; `None` if they are equal.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let removed = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter_map(|(key, value)| {
        let before = old.get(key).unwrap_or(&Value::Null);
        Some((key.clone(), difference(before, value)?))
    });
    not_empty(removed.chain(changed).collect())
}

/// Returns a patch with these members; `None` if there are none.
fn not_empty(members: Map<String, Value>) -> Option<Value> {
    (!members.is_empty()).then_some(Value::Object(members))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn json_value() -> impl Strategy<Value = Value> {
        // Without null: a stored object never contains null, and a merge patch cannot set it.
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..3i32).prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Value> {
        proptest::collection::btree_map("[a-c]", json_value(), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn a_difference_leads_from_old_to_new(old in object(), new in object()) {
            let mut patched = old.clone();
            if let Some(patch) = difference(&old, &new) {
                prop_assert_ne!(&old, &new);
                apply(&mut patched, &patch);
            }
            prop_assert_eq!(patched, new);
        }

        #[test]
        fn nothing_is_required_after_the_patch_is_applied(current in object(), wanted in object()) {
            let mut patched = current.clone();
            if let Some(patch) = required(&current, &wanted) {
                apply(&mut patched, &patch);
            }
            prop_assert_eq!(required(&patched, &wanted), None);
            // Fields that `wanted` does not name have not changed.
            for (key, value) in current.as_object().into_iter().flatten() {
                if wanted.get(key).is_none() {
                    prop_assert_eq!(patched.get(key), Some(value));
                }
            }
        }
    }

    #[test]
    fn absence_can_be_required() {
        let current = json!({"metadata": {"annotations": {"a": "1", "b": "2"}}});
        let wanted = json!({"metadata": {"annotations": {"a": null, "c": null}}});
        assert_eq!(required(&current, &wanted), Some(json!({"metadata": {"annotations": {"a": null}}})));
    }
}
