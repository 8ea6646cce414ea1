//! The changes that do or do not add an Instance to the queue.

use serde_json::{Value, json};

use super::*;
use crate::api::{Kind, Object};
use crate::runtime::merge;
use crate::runtime::store::Index;

fn object<T: Kind>(base: &Value, more: &Value) -> Arc<Object<T>> {
    Arc::new(serde_json::from_value(merged(base, more)).expect("an object"))
}

fn change<T: Kind>(base: &Value, old: Option<&Value>, new: Option<&Value>) -> Change<T> {
    let [old, new] = [old, new].map(|more| more.map(|more| object(base, more)));
    Change { old, new, origin: None }
}

/// An Instance without ports.
fn instance() -> Value {
    json!({
        "metadata": {"name": "box", "namespace": "tenant-ada", "uid": "u1"},
        "spec": {
            "running": true,
            "template.crownlabs.polito.it/TemplateRef": {"name": "box", "namespace": "workspace-tea"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
        },
    })
}

fn ports(port: u16) -> Value {
    json!({"spec": {"publicExposure": {"ports": [{"name": "web", "port": port, "targetPort": 80}]}}})
}

fn condition_of(reason: &str) -> Value {
    json!([{"type": "PublicExposureReady", "status": "False", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

#[test]
fn an_instance_with_ports_in_spec_or_status_is_exposed() {
    let other = json!([{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    for (more, expected) in [
        (json!({}), false),
        (json!({"status": {"phase": "Ready", "conditions": other}}), false),
        (ports(80), true),
        (json!({"status": {"publicExposure": {"externalIP": "10.0.0.1"}}}), true),
        (json!({"status": {"conditions": condition_of("Any")}}), true),
    ] {
        let instance: Arc<Instance> = object(&instance(), &more);
        assert_eq!(is_exposed(&instance), expected, "{more}");
        let template = ObjectKey::new("workspace-tea", "box");
        assert_eq!(ExposedByTemplate::keys(&instance).first(), expected.then_some(&template));
        let service = ObjectKey::new("tenant-ada", "box-pe");
        assert_eq!(ByServiceName::keys(&instance).first(), expected.then_some(&service));
        let namespaces: Vec<String> =
            ExposedByNamespace::keys(&instance).iter().map(ToString::to_string).collect();
        assert_eq!(namespaces, Vec::from_iter(expected.then(|| "tenant-ada".to_owned())));
    }
}

#[test]
fn changes_that_concern_the_exposure_count() {
    let exposed = merged(&instance(), &ports(80));
    let nothing = json!({});
    let concerns = |base: &Value, old: Option<&Value>, new: Option<&Value>| concerns(&change(base, old, new));
    // Without ports, no change counts. With ports, creation and deletion count.
    assert!(!concerns(&instance(), None, Some(&nothing)));
    assert!(!concerns(&instance(), Some(&nothing), Some(&json!({"spec": {"running": false}}))));
    assert!(concerns(&exposed, None, Some(&nothing)));
    assert!(concerns(&exposed, Some(&nothing), None));
    for (new, expected) in [
        (json!({}), false),
        (json!({"status": {"phase": "Ready", "ip": "10.1.1.1"}}), false),
        (json!({"metadata": {"labels": {"a": "b"}}}), false),
        (json!({"spec": {"running": false}}), true),
        (json!({"spec": {"running": "no"}}), true),
        (ports(81), true),
        (json!({"spec": {"publicExposure": null}}), true),
        (json!({"metadata": {"uid": "u2"}}), true),
        (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true),
        (json!({"status": {"publicExposure": {"externalIP": "10.0.0.1"}}}), true),
        (json!({"status": {"environments": [{"name": "main"}]}}), true),
        (json!({"status": {"conditions": condition_of("Any")}}), true),
    ] {
        assert_eq!(concerns(&exposed, Some(&nothing), Some(&new)), expected, "{new}");
    }
}

fn merged(base: &Value, more: &Value) -> Value {
    let mut object = base.clone();
    merge::apply(&mut object, more);
    object
}

#[test]
fn a_template_change_counts_if_it_changes_the_permission() {
    let base = json!({
        "metadata": {"name": "box", "namespace": "workspace-tea"},
        "spec": {"allowPublicExposure": true, "environmentList": [{"name": "main"}]},
    });
    let nothing = json!({});
    let rules_changed = |new: &Value| {
        let change = change::<TemplateKind>(&base, Some(&nothing), Some(new));
        change.object_if(rules).is_some()
    };
    for (new, expected) in [
        (json!({}), false),
        (json!({"spec": {"prettyName": "another"}}), false),
        (json!({"spec": {"allowPublicExposure": false}}), true),
        (json!({"spec": {"environmentList": [{"name": "a"}, {"name": "b"}]}}), true),
        (json!({"spec": {"environmentList": "none"}}), true),
    ] {
        assert_eq!(rules_changed(&new), expected, "{new}");
    }
}

#[test]
fn a_service_that_has_fewer_ports_or_is_gone_frees_some() {
    let base = json!({
        "metadata": {"name": "box-pe", "namespace": "tenant-ada", "annotations": {"a": "10.0.0.1"}},
        "spec": {"ports": [{"name": "web", "port": 80, "targetPort": 80}]},
    });
    let nothing = json!({});
    let has_fewer = |old: Option<&Value>, new: Option<&Value>| has_fewer(&change(&base, old, new));
    assert!(!has_fewer(None, Some(&nothing)));
    assert!(has_fewer(Some(&nothing), None));
    for (new, expected) in [
        (json!({}), false),
        (json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}}), false),
        (json!({"spec": {"ports": []}}), true),
        (json!({"metadata": {"annotations": {"a": "10.0.0.2"}}}), true),
    ] {
        assert_eq!(has_fewer(Some(&nothing), Some(&new)), expected, "{new}");
    }
}
