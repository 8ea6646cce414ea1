//! Tests of plans and reports, with JSON as the API server returns it.

mod times;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::observe::{Check, Observed};
use super::plan::{Decision, Effect, decide, plan};
use super::report::report;
use crate::api::instance::InstanceKind;
use crate::clients::status_check::Verdict;
use crate::config::TerminationConfig;
use crate::controllers::shared::queries::LastQuery;
use crate::fixtures::{object, time};
use crate::runtime::events::EventType;
use crate::runtime::merge;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::{Outcome, Reconciled, Report};

const URL: &str = "https://exams.example.org/status?key=secret";
const WATCH: &str = "crownlabs.polito.it/watch-for-instance-termination";
const REQUESTED: &str = "crownlabs.polito.it/instance-submission-requested";

fn now() -> Timestamp {
    time("2026-03-04T05:00:00Z")
}

fn config() -> TerminationConfig {
    TerminationConfig {
        status_check_interval: "2m".parse().expect("a duration"),
        ..TerminationConfig::default()
    }
}

/// An exam with further members of the Instance.
fn observed(more: &Value) -> Observed {
    let mut instance = json!({
        "metadata": {
            "name": "exam", "namespace": "exams", "uid": "i1", "generation": 3, "resourceVersion": "7",
            "labels": {WATCH: "true"},
        },
        "spec": {
            "running": true,
            "template.crownlabs.polito.it/TemplateRef": {"name": "t", "namespace": "w"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "service-tenant"},
            "statusCheckUrl": URL,
            "customizationUrls": {"contentDestination": "https://exams.example.org/upload"},
        },
    });
    merge::apply(&mut instance, more);
    let environment = json!({"name": "main", "environmentType": "Container", "persistent": true});
    let template =
        json!({"metadata": {"name": "t", "namespace": "w"}, "spec": {"environmentList": [environment]}});
    Observed { instance: object(&instance), template: Some(object(&template)), check: None, begun: None }
}

/// The same exam with a query that ended `ago` seconds ago with this verdict.
fn checked(more: &Value, ago: i64, verdict: Verdict) -> Observed {
    let mut check = begun(true);
    check.end(before(ago), verdict);
    Observed { check: Some(check), ..observed(more) }
}

/// A query without a result yet.
fn begun(was_ready: bool) -> Check {
    Check {
        uid: "i1".to_owned(),
        url: URL.to_owned(),
        generation: Some(3),
        was_ready,
        failures: 0,
        gone_since: None,
        result: None,
    }
}

fn before(seconds: i64) -> Timestamp {
    now().checked_sub(jiff::SignedDuration::from_secs(seconds)).expect("a time")
}

/// The same exam with a second answer, `ago` seconds ago, that the exam is over.
fn confirmed(more: &Value, ago: i64) -> Observed {
    let mut observed = checked(more, ago + 10, gone());
    observed.check.as_mut().expect("a query").end(before(ago), gone());
    observed
}

fn kept() -> Verdict {
    Verdict::Keep { code: 200, deadline: Ok(None) }
}

fn gone() -> Verdict {
    Verdict::Gone { code: 404 }
}

fn failed() -> Verdict {
    Verdict::Failed { reason: "it answered 500".to_owned(), has_answered: false }
}

fn condition(reason: &str, generation: i64) -> Value {
    json!([{"type": "StatusChecked", "status": "True", "reason": reason, "message": "m",
        "lastTransitionTime": "2026-03-04T04:00:00Z", "observedGeneration": generation}])
}

fn next(observed: &Observed) -> Decision {
    decide(observed, &config(), now())
}

fn told(observed: &Observed) -> Report<InstanceKind> {
    let planned = plan(observed, &config(), now());
    report(&Reconciled::of(observed, &config(), &planned, &Outcome::default(), now()))
}

#[test]
fn only_watched_instances_are_queried() {
    assert_eq!(next(&observed(&json!({}))), Decision::Check);
    for value in [json!("false"), json!(""), json!("True"), json!(null)] {
        let other = observed(&json!({"metadata": {"labels": {WATCH: value}}}));
        assert_eq!(next(&other), Decision::Ignore, "{value}");
        assert_eq!(plan(&other, &config(), now()).requeue, Requeue::OnChange);
    }
    let malformed = observed(&json!({"spec": {"running": {}}}));
    assert_eq!(next(&malformed), Decision::Ignore);
    let planned = plan(&observed(&json!({})), &config(), now());
    assert_eq!(planned.effects, [Effect::Check { url: URL.to_owned() }]);
}

#[test]
fn both_generations_of_the_url_are_queried() {
    let older =
        json!({"spec": {"statusCheckUrl": null, "customizationUrls": {"statusCheck": "http://older"}}});
    let planned = plan(&observed(&older), &config(), now());
    assert_eq!(planned.effects, [Effect::Check { url: "http://older".to_owned() }]);
    let none = observed(&json!({"spec": {"statusCheckUrl": null}}));
    assert_eq!(next(&none), Decision::NoUrl);
    let report = told(&none);
    assert_eq!(report.status.conditions[0].reason.as_str(), "StatusCheckFailed");
    assert_eq!((report.events.len(), report.events[0].type_), (1, EventType::Warning));
}

#[test]
fn an_exam_that_is_kept_shows_its_deadline_in_all_places() {
    let deadline = Some(time("2026-03-04T06:00:00Z"));
    let old = json!({"status": {
        "automation": {"terminationTime": "2026-01-01T00:00:00Z", "submissionTime": "2026-01-02T00:00:00Z"},
        "environments": [{"name": "main", "phase": "Ready"}],
    }});
    let report = told(&checked(&old, 10, Verdict::Keep { code: 204, deadline: Ok(deadline) }));
    let automation = |more: Value| {
        let mut times =
            json!({"lastCheckTime": "2026-03-04T04:59:50Z", "terminationTime": "2026-03-04T06:00:00Z"});
        merge::apply(&mut times, &more);
        times
    };
    let status = serde_json::to_value(&report.status).expect("JSON");
    assert_eq!(status["automation"], automation(json!({"submissionTime": "2026-01-02T00:00:00Z"})));
    assert_eq!(status["environments"][0]["automation"], automation(json!({})));
    assert_eq!(status["environments"][0]["phase"], "Ready");
    assert_eq!(status["conditions"][0]["message"], "exams.example.org answered 204: the Instance is kept");
    assert!(report.events.is_empty() && !report.requeue_at_once);
    let report = told(&checked(&old, 10, kept()));
    assert_eq!(report.status.automation.termination_time, None, "no deadline any more");
    // Nothing is written a second time.
    let stored = json!({"status": serde_json::to_value(&report.status).expect("JSON")});
    let again = checked(&stored, 10, kept());
    assert_eq!(told(&again).status, again.instance.status);
}

#[test]
fn an_answer_that_cannot_be_read_keeps_the_instance_and_the_known_end_of_the_exam() {
    let known = time("2026-03-04T06:00:00Z");
    let old = json!({"status": {"automation": {"terminationTime": "2026-03-04T06:00:00Z"}}});
    let unreadable = || Verdict::Keep { code: 200, deadline: Err("the answer is not JSON".to_owned()) };
    let observed = checked(&old, 10, unreadable());
    let report = told(&observed);
    let condition = &report.status.conditions[0];
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "Kept"));
    assert_eq!(
        condition.message.as_str(),
        "exams.example.org answered 200: the Instance is kept; the end of the exam cannot be read: the answer is \
         not JSON"
    );
    let automation = &report.status.automation;
    assert_eq!(automation.termination_time.as_ref().map(|time| time.0), Some(known));
    assert_eq!(automation.last_check_time.as_ref().map(|time| time.0), Some(time("2026-03-04T04:59:50Z")));
    assert!(report.events.is_empty());
    // It is queried again after the interval, as after any other answer that keeps it.
    assert_eq!(decide(&observed, &config(), now()), decide(&checked(&old, 10, kept()), &config(), now()));
}

#[test]
fn a_failure_is_reported_once_and_without_the_query_of_the_url() {
    let times = json!({"status": {"automation": {"lastCheckTime": "2026-01-01T00:00:00Z"}}});
    let report = told(&checked(&times, 10, failed()));
    let condition = &report.status.conditions[0];
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "StatusCheckFailed"));
    let message = "the status URL at exams.example.org could not be checked: it answered 500; it is retried";
    assert_eq!(condition.message.as_str(), message);
    assert_eq!((report.events.len(), report.events[0].message.as_str()), (1, message));
    assert_eq!(report.status.automation, observed(&times).instance.status.automation);
    let stored = json!({"status": serde_json::to_value(&report.status).expect("JSON")});
    let again = checked(&stored, 0, failed());
    assert_eq!((told(&again).status, told(&again).events.len()), (again.instance.status.clone(), 0));
    let answered = Verdict::Failed { reason: "it answered 503".to_owned(), has_answered: true };
    let report = told(&checked(&times, 10, answered));
    let last = report.status.automation.last_check_time.expect("a time");
    assert_eq!(last.0, time("2026-03-04T04:59:50Z"));
}

#[test]
fn the_end_is_written_before_the_instance_is_stopped() {
    let over = confirmed(&json!({}), 1);
    let planned = plan(&over, &config(), now());
    assert!(planned.patches.is_empty() && planned.effects.is_empty());
    let report = told(&over);
    assert!(report.requeue_at_once && report.events.is_empty());
    let status = serde_json::to_value(&report.status).expect("JSON");
    let time = "2026-03-04T04:59:59Z";
    assert_eq!(status["automation"], json!({"lastCheckTime": time, "terminationTime": time}));
    assert_eq!(status["conditions"][0]["reason"], "Terminating");

    let recorded = confirmed(&json!({"status": status}), 1);
    let planned = plan(&recorded, &config(), now());
    assert_eq!(planned.patches.len(), 1);
    let patch = &planned.patches[0];
    assert_eq!(patch.resource_version.as_deref(), Some("7"), "valid only for what was seen");
    let labels = json!({WATCH: "false", REQUESTED: "true"});
    assert_eq!(patch.patch, json!({"metadata": {"labels": labels}, "spec": {"running": false}}));

    let stopped = json!({"metadata": {"labels": labels}, "spec": {"running": false}, "status": status});
    let report = told(&observed(&stopped));
    assert_eq!(report.status.conditions[0].reason.as_str(), "Terminated");
    assert_eq!(report.events.len(), 1);
    assert_eq!(
        (report.events[0].type_, report.events[0].message.as_str()),
        (EventType::Normal, "The exam is over: the Instance was stopped, its content will be uploaded")
    );
}

#[test]
fn an_upload_is_requested_only_if_there_is_something_to_upload() {
    let ending = json!({"status": {"conditions": condition("Terminating", 3)}});
    let requested = |more: &Value, environments: Value| {
        let mut instance = more.clone();
        merge::apply(&mut instance, &ending);
        let template =
            json!({"metadata": {"name": "t", "namespace": "w"}, "spec": {"environmentList": environments}});
        let observed = Observed { template: Some(object(&template)), ..observed(&instance) };
        let planned = plan(&observed, &config(), now());
        planned.patches[0].patch["metadata"]["labels"][REQUESTED].clone()
    };
    let one = |persistent: bool| json!([{"name": "main", "environmentType": "Container", "persistent": persistent}]);
    let two = json!([
        {"name": "web", "environmentType": "Container"},
        {"name": "main", "environmentType": "VirtualMachine", "persistent": true},
    ]);
    let nowhere = json!({"spec": {"customizationUrls": null}});
    let newer = |name: &str| json!({"spec": {"customizationUrls": null, "contentUrls": {name: {"destination": "https://x"}}}});
    let cases = [
        (json!({}), one(true), "true"),
        (json!({}), one(false), "false"),
        (nowhere.clone(), one(true), "false"),
        (newer("main"), one(true), "true"),
        (newer("default"), one(true), "true"),
        (newer("other"), one(true), "false"),
        (json!({}), two.clone(), "false"),
        (newer("main"), two.clone(), "true"),
        (newer("default"), two, "false"),
        (json!({}), json!([]), "false"),
    ];
    for (more, environments, expected) in cases {
        assert_eq!(requested(&more, environments.clone()), expected, "{more} {environments}");
    }
}

#[test]
fn without_its_template_an_instance_is_not_stopped_yet() {
    let ending = observed(&json!({"status": {"conditions": condition("Terminating", 3)}}));
    let malformed = json!({"metadata": {"name": "t", "namespace": "w"}, "spec": {"environmentList": 1}});
    for template in [None, Some(object(&malformed))] {
        let observed = Observed { template, ..ending.clone() };
        let planned = plan(&observed, &config(), now());
        assert!(planned.patches.is_empty());
        let report = told(&observed);
        let condition = &report.status.conditions[0];
        assert_eq!(condition.reason.as_str(), "Terminating", "it is not queried again");
        assert!(condition.message.contains("the exam is over, but Template w/t "), "{}", condition.message);
        assert_eq!((report.events.len(), report.events[0].type_), (1, EventType::Warning));
    }
}
