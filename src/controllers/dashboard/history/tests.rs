//! Tests of histories.

use serde_json::{Value, json};

use super::model::{Did, Entry, History, MOST, Recorded, Told, What};
use super::view::history;
use crate::api::instance::InstanceKind;
use crate::api::why::Event;
use crate::config::Language;
use crate::controllers::dashboard::tests::fixtures::{now, read, view};
use crate::controllers::dashboard::texts::texts;
use crate::fixtures::time;

/// Returns an Instance with these fields in its metadata, and these conditions.
fn told(metadata: &Value, conditions: &Value) -> Told<InstanceKind> {
    let mut object = json!({"metadata": {"name": "vm", "namespace": "tenant-ada", "uid": "u1"},
        "spec": {"running": true}, "status": {"phase": "Ready", "conditions": conditions}});
    crate::runtime::merge::apply(&mut object["metadata"], metadata);
    serde_json::from_str(&object.to_string()).expect("an Instance")
}

fn of(metadata: &Value, conditions: &Value, events: Vec<Event>) -> History {
    let Told { object, recorded } = told(metadata, conditions);
    History::of(&recorded, &object.status.conditions, &[], Ok(events), now())
}

/// Returns each entry as a text, without its day.
fn lines(history: &History) -> Vec<String> {
    let line = |Entry { at, by, what }: &Entry| {
        let by = by.as_deref().unwrap_or("-");
        let what = match what {
            What::Did(did) => format!("{did:?}"),
            What::Wrote(fields) => format!("Wrote {}", fields.join(" ")),
            What::Became { type_, status, reason } => format!("{type_}={status} {reason}"),
            What::Event(event) => format!("{}: {} {}", event.reason, event.message, event.times),
        };
        format!("{} {by} {what}", at.strftime("%H:%M"))
    };
    history.entries.iter().map(line).collect()
}

fn written(manager: &str, at: &str, more: &Value) -> Value {
    let mut written = json!({"manager": manager, "operation": "Update", "apiVersion": "crownlabs.polito.it/v1alpha2",
        "time": format!("2026-11-26T{at}:00Z"), "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}, "f:running": {}}}});
    crate::runtime::merge::apply(&mut written, more);
    written
}

#[test]
fn the_sources_of_a_history_are_sorted_by_time() {
    let metadata = json!({
        "creationTimestamp": "2026-11-26T08:00:00Z",
        "deletionTimestamp": "2026-11-26T17:00:00Z",
        "annotations": {
            "crownlabs.polito.it/kept-at": "2026-11-26T12:00:00Z",
            "crownlabs.polito.it/restarted-at": "2026-11-26T13:00:00Z",
            "crownlabs.polito.it/mailed-inactivity": "2026-11-26T14:00:00Z",
            // 2026-11-26T10:00:00Z
            "crownlabs.polito.it/class-action": "abcdefghijklmnop-1795687200",
            "crownlabs.polito.it/number-alerts-sent": "2",
            "other.example.org/time": "2026-11-26T14:30:00Z",
        },
        "managedFields": [
            written("dashboard", "08:00", &json!({})),
            written("kubectl-edit", "11:00", &json!({"fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:prettyName": {}, "f:running": {}}}})),
            written("crownlabs", "16:00", &json!({"subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}})),
        ],
    });
    let ready = json!([{"type": "Ready", "status": "False", "reason": "Stopping", "message": "m", "lastTransitionTime": "2026-11-26T15:00:00Z"}]);
    let event = |reason: &str, last: Value| -> Event {
        read(
            json!({"involvedObject": {"kind": "Instance", "name": "vm"}, "reason": reason, "message": "words", "count": 3, "lastTimestamp": last}),
        )
    };
    let events = vec![event("Stopped", json!("2026-11-26T16:30:00Z")), event("WithoutTime", Value::Null)];
    let expected = [
        "17:00 - Deleted",
        "16:30 - Stopped: words 3",
        "15:00 - Ready=False Stopping",
        "14:00 - Mailed",
        "13:00 - Restarted",
        "12:00 - Kept",
        "11:00 kubectl-edit Wrote metadata.labels spec.prettyName spec.running",
        "10:00 - ClassAction",
        "08:00 dashboard Created",
    ];
    assert_eq!(lines(&of(&metadata, &ready, events)), expected);
}

#[test]
fn an_object_without_history_has_no_section() {
    assert!(of(&json!({}), &json!([]), vec![]).is_empty());
    let page = history(&view(Language::ENGLISH, "/"), &History::default()).into_string();
    assert_eq!(page, "");
}

#[test]
fn times_that_are_invalid_or_in_the_future_are_left_out() {
    for value in ["soon", "", "2026-11-27T00:00:00Z", "9999-12-31T23:59:59Z"] {
        let metadata = json!({"annotations": {"crownlabs.polito.it/kept-at": value}});
        assert!(of(&metadata, &json!([]), vec![]).entries.is_empty(), "{value}");
    }
}

#[test]
fn the_latest_entries_of_a_long_history_are_kept() {
    let writes: Vec<Value> = (0..5_000)
        .map(|number| {
            written(&format!("m{number}"), &format!("{:02}:{:02}", number / 400, number % 60), &json!({}))
        })
        .collect();
    let history = of(&json!({"managedFields": writes}), &json!([]), vec![]);
    assert_eq!(history.entries.len(), MOST);
    assert!(
        history.entries.iter().all(|entry| entry.at >= time("2026-11-26T12:43:00Z")),
        "{:?}",
        lines(&history)
    );
}

#[test]
fn a_write_names_few_fields() {
    let fields: Value = (0..100)
        .map(|number| (format!("f:a{number:02}"), json!({})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut metadata = json!({"managedFields": [written("x", "08:00", &json!({}))]});
    metadata["managedFields"][0]["fieldsV1"] = json!({"f:spec": fields, "v:ignored": {}});
    let expected = "08:00 x Wrote spec.a00 spec.a01 spec.a02 spec.a03 spec.a04 spec.a05 spec.a06 spec.a07";
    assert_eq!(lines(&of(&metadata, &json!([]), vec![])), [expected]);
}

#[test]
fn texts_of_users_are_escaped_and_cut() {
    let hostile = format!("<b>\u{202e}\n{}", "x".repeat(5_000));
    let metadata = json!({"managedFields": [written(&hostile, "08:00", &json!({}))]});
    let history_of = of(&metadata, &json!([]), vec![]);
    for language in Language::all() {
        let page = history(&view(language, "/"), &history_of).into_string();
        assert!(!page.contains("<b>") && !page.contains('\u{202e}') && page.len() < 3_000, "{page}");
        assert!(page.contains("&lt;b&gt;\\u{202e}\\n"), "{page}");
    }
}

#[test]
fn unknown_events_have_a_reason() {
    let unknown = Err("the API server does not respond".to_owned());
    let history_of = History::of(&Recorded::default(), &[], &[(now(), Did::LoggedIn)], unknown, now());
    for language in Language::all() {
        let page = history(&view(language, "/"), &history_of).into_string();
        let texts = &texts(language).history;
        for words in
            [texts.no_events.as_str(), "the API server does not respond", texts.did.of(Did::LoggedIn)]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}
