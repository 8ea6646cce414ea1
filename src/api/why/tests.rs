use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::warning::latest;
use super::*;
use crate::api::promise::End;

fn time(text: &str) -> Time {
    Time(text.parse().expect("a time"))
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn instance(status: &Value) -> Instance {
    let spec = json!({
        "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
        "tenant.crownlabs.polito.it/TenantRef": {"name": "eve"},
    });
    let metadata = json!({"name": "box", "namespace": "tenant-ada", "uid": "1", "resourceVersion": "1", "generation": 2});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}))
        .expect("an Instance")
}

fn template(persistent: bool) -> Template {
    let spec = json!({"environmentList": [{"name": "a", "persistent": persistent}], "deleteAfter": "365d",
        "cleanup": {"stopAfterInactivity": "7d"}});
    serde_json::from_value(
        json!({"metadata": {"name": "desktop", "namespace": "workspace-tea"}, "spec": spec}),
    )
    .expect("a Template")
}

fn why(status: &Value, template: Option<&Template>, managers: Option<&[String]>) -> Why {
    let instance = instance(status);
    Facts { instance: &instance, owner: Some("ada"), template, managers, warnings: Ok(Vec::new()) }.why()
}

fn types(conditions: &[Condition]) -> Vec<&str> {
    conditions.iter().map(|condition| &*condition.type_).collect()
}

#[test]
fn the_facts_come_from_the_status_and_the_spec() {
    let status = json!({"phase": "Ready", "observedGeneration": 1,
        "environments": [{"name": "a", "phase": "Ready", "url": "https://labs/box"}, {"name": "b", "phase": "Off"}],
        "conditions": [condition("Ready", "True", "Ready", "The Instance can be used"),
            condition("Inactive", "True", "Overdue", "2 of 3 warnings were sent")]});
    let why = why(&status, None, None);
    // The Tenant is determined by the namespace, not by the spec.
    assert_eq!((&*why.tenant, why.instance.to_string()), ("ada", "tenant-ada/box".to_owned()));
    assert_eq!(why.template.to_string(), "workspace-tea/desktop");
    assert_eq!((why.phase, &*why.url), (InstancePhase::Ready, "https://labs/box"));
    assert_eq!(why.since, Some(time("2026-01-01T00:00:00Z")));
    let environments = [("a".into(), InstancePhase::Ready), ("b".into(), InstancePhase::Off)];
    assert_eq!(why.environments, environments);
    assert!(why.is_to_run && why.is_behind && !why.is_terminating && !why.is_ready);
    assert_eq!((types(&why.waits), types(&why.automation)), (vec![], vec!["Inactive"]));
    assert_eq!((why.next, why.limits), (vec![], None));
}

#[test]
fn an_instance_is_ready_in_the_state_that_its_present_spec_asks_for() {
    for (ready, generation, deletion, expected) in [
        ("True", 2, Value::Null, true),
        ("False", 2, Value::Null, false),
        ("True", 1, Value::Null, false),
        ("True", 2, json!("2026-01-01T00:00:00Z"), false),
    ] {
        let status =
            json!({"observedGeneration": generation, "conditions": [condition("Ready", ready, "Off", "")]});
        let mut instance = instance(&status);
        instance.metadata.deletion_timestamp = serde_json::from_value(deletion).expect("a time");
        let facts =
            Facts { instance: &instance, owner: None, template: None, managers: None, warnings: Ok(vec![]) };
        assert_eq!(facts.why().is_ready, expected, "{status}");
    }
}

#[test]
fn each_problem_is_shown_once() {
    let message = "Template workspace-tea/desktop not found";
    let status = json!({"conditions": [
        condition("Ready", "False", "TemplateNotFound", "See condition Reconciled"),
        condition("Reconciled", "False", "TemplateNotFound", message),
        condition("Stalled", "True", "TemplateNotFound", message),
        condition("NameConflict", "True", "NameConflict", "Service box belongs to another Instance"),
        condition("TenantMismatch", "False", "TenantMismatch", "it is not"),
        condition("PublicExposureReady", "Unknown", "Allocating", "An address is allocated"),
    ]});
    assert_eq!(types(&why(&status, None, None).waits), ["Reconciled", "NameConflict", "PublicExposureReady"]);
    assert!(is_waiting(&instance(&status)));
    let ready = json!({"conditions": [condition("Ready", "True", "Ready", "")]});
    assert!(!is_waiting(&instance(&ready)));
}

#[test]
fn each_promise_is_a_step_with_its_action_and_the_warnings_before_it() {
    let (last, deadline, warning) = ("2025-12-31T00:00:00Z", "2026-01-02T03:12:30Z", "2026-06-01T00:00:00Z");
    let status = json!({
        "inactivity": {"warnings": 2, "lastWarning": last, "deadline": deadline, "nextWarning": warning},
        "destruction": {"since": last, "warnings": 1},
        "expiration": {"nextWarning": warning, "lastWarning": last},
    });
    let unused = |end| Step {
        because: Because::Unused,
        end,
        next: Next::End(time(deadline)),
        warned: Some(Warned { times: 2, last: time(last) }),
    };
    let age = Step {
        because: Because::Age,
        end: Some(End::Deleted),
        next: Next::Warning(time(warning)),
        warned: None,
    };
    // An unused Instance is stopped if stopping keeps its data. Without the Template, the action is not known.
    for (template, end) in [
        (Some(template(true)), Some(End::Stopped)),
        (Some(template(false)), Some(End::Deleted)),
        (None, None),
    ] {
        assert_eq!(why(&status, template.as_ref(), None).next, [unused(end), age.clone()]);
    }
}

#[test]
fn limits_that_are_never_are_left_out() {
    let limit = |because, end, after: &str| Limit { because, end, after: after.to_owned() };
    let mut template = template(true);
    let limits = [limit(Because::Unused, End::Stopped, "7d"), limit(Because::Age, End::Deleted, "365d")];
    assert_eq!(why(&json!({}), Some(&template), None).limits, Some(limits.to_vec()));
    template.spec.cleanup.stop_after_inactivity = None;
    template.spec.delete_after = "never".to_owned();
    assert_eq!(why(&json!({}), Some(&template), None).limits, Some(vec![]));
}

#[test]
fn the_tenant_managers_and_administrators_may_stop_or_delete_it() {
    let names = ["bob".to_owned(), "eve".to_owned()];
    for (managers, ender) in [
        (None, Some(Ender::UnknownManagers)),
        (Some(&[][..]), None),
        (Some(&names[..]), Some(Ender::Managers(names.to_vec()))),
    ] {
        let all = [Some(Ender::Tenant("ada".to_owned())), ender, Some(Ender::Administrators)];
        let all: Vec<Ender> = all.into_iter().flatten().collect();
        assert_eq!(why(&json!({}), None, managers).enders, all);
    }
}

#[test]
fn the_latest_events_about_its_objects_are_warnings() {
    let event = |name: &str, message: &str, more: Value| -> Event {
        let mut event = json!({"involvedObject": {"kind": "Pod", "name": name}, "reason": "FailedMount",
            "message": message});
        crate::runtime::merge::apply(&mut event, &more);
        serde_json::from_value(event).expect("an Event")
    };
    let mut events = vec![
        event("lab-1", "mount failed", json!({"count": 3, "lastTimestamp": "2026-01-01T00:01:00Z"})),
        event(
            "lab-1",
            "not yet",
            json!({"eventTime": "2026-01-01T00:02:00.5Z",
            "series": {"count": 7, "lastObservedTime": "2026-01-01T00:04:00.000000Z"}}),
        ),
        event("lab-1", "known", json!({"lastTimestamp": "2026-01-01T00:04:30Z"})),
        event("other", "mount failed", json!({"lastTimestamp": "2026-01-01T00:04:40Z"})),
        event("lab-1", "once", json!({})),
    ];
    let names = BTreeSet::from(["lab-1".to_owned()]);
    let warning = |message: &str, times, last: Option<&str>| Warning {
        about: About { kind: "Pod".to_owned(), name: "lab-1".to_owned() },
        reason: "FailedMount".to_owned(),
        message: message.to_owned(),
        times,
        last: last.map(time),
    };
    let expected = [
        warning("not yet", 7, Some("2026-01-01T00:04:00Z")),
        warning("mount failed", 3, Some("2026-01-01T00:01:00Z")),
        warning("once", 1, None),
    ];
    assert_eq!(latest(events.clone(), &names, "what is known"), expected);
    events.extend((0..9).map(|number| event("lab-1", &format!("no {number}"), json!({}))));
    assert_eq!(latest(events, &names, "").len(), 5);
}

#[test]
fn the_objects_of_an_instance_are_its_pods_and_those_with_its_name() {
    let status = json!({"environments": [{"name": "a"}],
        "conditions": [condition("Ready", "False", "PodUnschedulable", "Pod box-7d: no node")]});
    let instance = instance(&status);
    let event = |name: &str, message: &str| -> Event {
        serde_json::from_value(json!({"involvedObject": {"kind": "Pod", "name": name}, "message": message}))
            .expect("an Event")
    };
    let names = ["box-7d", "box", "box-a", "box-7e", "boxes"];
    let events = names.iter().map(|name| event(name, "mount failed")).chain([event("box-7d", "no node")]);
    let found = warnings(&instance, ["box-7d"], events.collect());
    let about: Vec<_> = found.iter().map(|warning| (&*warning.about.name, &*warning.message)).collect();
    let told = ["box-7d", "box", "box-a"].map(|name| (name, "mount failed"));
    assert_eq!(about, told, "and messages of conditions are not repeated");
    assert_eq!(pods_of(&instance), "&labelSelector=crownlabs.polito.it%2Finstance%3Dbox");
}
