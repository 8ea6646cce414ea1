//! Whether an action has happened: pure functions of the object as it is now. They are used after a refusal and after a
//! change that was not confirmed, because a form may be sent twice, and an answer may be lost.

use serde_json::Value;

use super::entry::NewInstance;
use crate::api::instance_snapshot::InstanceSnapshotSpec;
use crate::api::{GenericRef, Instance, InstanceSnapshot, Kind, Object};
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

/// Whether the Instance with this uid is deleted or being deleted.
pub fn deleted(found: Option<&Instance>, uid: &str) -> bool {
    found.is_none_or(|found| found.uid() != uid || found.is_terminating())
}

/// Whether an `InstanceSnapshot` is the one that a form creates.
pub fn saved(found: &InstanceSnapshot, body: &Value) -> bool {
    let spec = serde_json::from_value::<InstanceSnapshotSpec>(body["spec"].clone());
    !found.is_terminating() && spec.is_ok_and(|spec| spec == found.spec)
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
    fn an_instance_is_deleted_if_it_is_gone_replaced_or_leaving() {
        assert!(deleted(None, "u1"));
        assert!(!deleted(Some(&instance(&json!({}))), "u1"));
        assert!(deleted(Some(&instance(&json!({}))), "of-the-one-before"));
        assert!(deleted(Some(&instance(&leaving())), "u1"));
    }

    #[test]
    fn an_image_is_saved_by_the_form_with_its_machine_and_its_name() {
        let spec = json!({"instanceRef": {"name": "vm", "namespace": "tenant-ada"}, "environmentRef": {"name": "desktop"}, "imageName": "lab"});
        let found = |spec: &Value| -> InstanceSnapshot {
            serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).expect("a snapshot")
        };
        let body = json!({"metadata": {"name": "s"}, "spec": spec});
        assert!(saved(&found(&spec), &body));
        for other in [json!({"imageName": "other"}), json!({"instanceRef": {"name": "vm2"}})] {
            let mut changed = spec.clone();
            merge::apply(&mut changed, &other);
            assert!(!saved(&found(&changed), &body), "{other}");
        }
    }
}
