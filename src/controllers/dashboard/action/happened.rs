//! Whether an action has happened: pure functions of the object as it is now. They are used after a refusal and after a
//! change that was not confirmed, because a form may be sent twice, and an answer may be lost.

use serde_json::Value;

use super::entry::NewInstance;
use crate::api::{GenericRef, Instance, Kind, Object};
use crate::controllers::dashboard::texts::Problem;
use crate::runtime::merge;

/// Whether an Instance is the one that a form creates. Its name comes from the page, so an equal Instance of another
/// form is unlikely.
pub fn created(found: &Instance, new: &NewInstance) -> bool {
    let template = GenericRef::new(&new.template.namespace, &new.template.name);
    !found.is_terminating() && found.spec.template_ref == template
}

/// Whether an object has a change: the next plan of the action for it changes nothing, or the patch `sent` changes
/// nothing in it. It has not if the action is not possible any more.
pub fn patched<T: Kind>(found: &Object<T>, sent: &Value, next: &Result<Option<Value>, Problem>) -> bool {
    match next {
        Ok(None) => true,
        Ok(Some(_)) => has(found, sent).unwrap_or(false),
        Err(_) => false,
    }
}

/// Whether a merge patch changes neither the spec nor the annotations of an object; `None` for another patch.
fn has<T: Kind>(found: &Object<T>, patch: &Value) -> Option<bool> {
    let change = patch.as_object()?;
    let mut after = serde_json::to_value(found).ok()?;
    // Without the preconditions, which name an earlier version.
    let annotations =
        change.get("metadata").map(|metadata| metadata["annotations"].clone()).unwrap_or_default();
    if annotations.is_object() {
        merge::apply(&mut after["metadata"]["annotations"], &annotations);
    }
    if let Some(spec) = change.get("spec") {
        merge::apply(&mut after["spec"], spec);
    }
    let after: Object<T> = serde_json::from_value(after).ok()?;
    Some(after.spec == found.spec && after.metadata.annotations == found.metadata.annotations)
}

/// Whether an object is the one that a form creates: it has all members of the body, and is not being deleted.
pub fn is_new(found: &Value, body: &Value) -> bool {
    !is_terminating(found) && contains(&found["spec"], &body["spec"])
}

/// Whether an object has a change, like [`patched`].
pub fn changed(found: &Value, sent: &Value, next: &Result<Option<Value>, Problem>) -> bool {
    match next {
        Ok(None) => true,
        Ok(Some(_)) => {
            let mut sent = sent.clone();
            // Without the preconditions, which name an earlier version.
            if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|member, _| member != "uid" && member != "resourceVersion");
            }
            sent.is_object() && contains(found, &sent)
        }
        Err(_) => false,
    }
}

/// Whether the object with this uid is deleted or being deleted.
pub fn deleted(found: Option<&Value>, uid: &str) -> bool {
    found.is_none_or(|found| found["metadata"]["uid"] != uid || is_terminating(found))
}

fn is_terminating(found: &Value) -> bool {
    !found["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a value has all members of another one. The API server adds defaults, also to the entries of lists.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (_, Value::Object(members)) => {
            members.iter().all(|(name, value)| contains(found.get(name).unwrap_or(&Value::Null), value))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(one, other)| contains(one, other))
        }
        // An empty list may be absent.
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::ObjectKey;

    fn instance(more: &Value) -> Instance {
        let mut object = json!({
            "metadata": {"name": "vm", "namespace": "tenant-ada", "uid": "u1", "resourceVersion": "8"},
            "spec": {
                "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
                "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
            },
        });
        merge::apply(&mut object, more);
        serde_json::from_value(object).expect("an Instance")
    }

    fn leaving() -> Value {
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    }

    #[test]
    fn an_instance_is_created_by_the_form_with_its_template() {
        let of =
            |template: &str| NewInstance::new("vm".to_owned(), ObjectKey::new("workspace-tea", template));
        let is_created = |more: &Value, template: &str| created(&instance(more), &of(template));
        assert!(is_created(&json!({}), "desktop"));
        assert!(is_created(&json!({"spec": {"running": false}}), "desktop"), "it was stopped since");
        assert!(!is_created(&json!({}), "other"));
        assert!(!is_created(&leaving(), "desktop"));
    }

    #[test]
    fn a_change_has_happened_if_it_would_change_nothing() {
        let running = |running: bool| json!({"spec": {"running": running}});
        let kept = |time: &str| json!({"metadata": {"annotations": {"kept": time}}});
        let named = json!({"spec": {"prettyName": "Lab"}});
        let again = Ok(Some(json!({})));
        for (found, sent, is_there) in [
            (running(true), running(true), true),
            (running(false), running(true), false),
            // An absent field has its default.
            (json!({}), running(true), true),
            (json!({}), running(false), false),
            (named.clone(), named.clone(), true),
            (json!({}), named, false),
            (kept("10:00"), kept("10:00"), true),
            (kept("09:00"), kept("10:00"), false),
            (json!({}), kept("10:00"), false),
        ] {
            let mut patch = sent.clone();
            merge::apply(&mut patch, &json!({"metadata": {"uid": "u1", "resourceVersion": "7"}}));
            assert_eq!(patched(&instance(&found), &patch, &again), is_there, "{found} {sent}");
        }
        // The Instance was created again, or the form is not possible any more.
        assert!(!patched(&instance(&json!({})), &running(true), &Err(Problem::Changed)));
        // The operations of a JSON patch are compared by the plan only.
        let operations = json!([{"op": "remove", "path": "/spec/publicKeys/0"}]);
        for (next, is_done) in [(Ok(None), true), (again, false), (Err(Problem::KnownKey), false)] {
            assert_eq!(patched(&instance(&json!({})), &operations, &next), is_done, "{next:?}");
        }
    }

    #[test]
    fn an_object_is_created_by_the_form_if_it_has_all_its_fields() {
        let sent =
            json!({"metadata": {"name": "t"}, "spec": {"list": [{"name": "a"}], "none": [], "more": {}}});
        let stored = json!({"list": [{"name": "a", "added": true}], "default": 1});
        for (found, expected) in [
            (json!({"spec": stored}), true),
            (json!({"spec": stored, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), false),
            (json!({"spec": {"list": [{"name": "b"}]}}), false),
            (json!({"spec": {"list": [{"name": "a"}, {"name": "b"}]}}), false),
            (json!({"spec": {"list": [{"name": "a"}], "none": [1]}}), false),
            (json!({}), false),
        ] {
            assert_eq!(is_new(&found, &sent), expected, "{found}");
        }
    }

    #[test]
    fn a_change_of_an_object_of_any_kind_has_happened_if_it_would_change_nothing() {
        let again = Ok(Some(json!({})));
        let sent =
            json!({"metadata": {"uid": "u1", "resourceVersion": "7"}, "spec": {"size": "2Gi", "old": null}});
        let of = |spec: &Value| json!({"metadata": {"uid": "u1", "resourceVersion": "8"}, "spec": spec});
        for (spec, expected) in [
            (json!({"size": "2Gi", "other": 1}), true),
            (json!({"size": "1Gi"}), false),
            (json!({"size": "2Gi", "old": 1}), false),
            (json!({}), false),
        ] {
            assert_eq!(changed(&of(&spec), &sent, &again), expected, "{spec}");
        }
        let operations = json!([{"op": "remove", "path": "/spec/workspaces/0"}]);
        for (next, expected) in [(Ok(None), true), (again, false), (Err(Problem::Changed), false)] {
            assert_eq!(changed(&of(&json!({})), &operations, &next), expected, "{next:?}");
        }
    }

    #[test]
    fn an_object_is_deleted_if_it_is_gone_replaced_or_leaving() {
        let found = |more: Value| {
            let mut object = json!({"metadata": {"uid": "u1"}});
            merge::apply(&mut object, &more);
            object
        };
        assert!(deleted(None, "u1"));
        assert!(!deleted(Some(&found(json!({}))), "u1"));
        assert!(deleted(Some(&found(json!({}))), "of-the-one-before"));
        assert!(deleted(Some(&found(leaving())), "u1"));
    }
}
