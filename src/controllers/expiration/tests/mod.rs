//! Tests of the plan and the report of expiration.

mod contract;
mod refused;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::Settings;
use super::observe::Observed;
use super::plan::plan;
use super::report::report;
use crate::api::condition::EXPIRING;
use crate::api::instance::{Instance, InstanceStatus};
use crate::api::openings::Site;
use crate::api::promise::Promise;
use crate::api::{labels, reason};
use crate::clients::mail::MailKind;
use crate::config::{ExpirationConfig, Undeliverable};
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::cleanup::ending::Effect;
use crate::controllers::cleanup::mail_log::Mailed;
use crate::controllers::shared::fixtures;
use crate::fixtures::at;
use crate::runtime::clock::rfc3339;
use crate::runtime::component::Component;
use crate::runtime::plan::{Plan, Requeue};
use crate::runtime::problem::Problem;
use crate::runtime::reconciler::{EffectError, EffectOutcome, Outcome, Reconciled};

const DAY: i64 = 86_400;
const NOW: i64 = 1_000 * DAY;

fn settings(notifications: bool) -> Settings {
    let config = ExpirationConfig { notifications, ..ExpirationConfig::default() };
    let site = Site { dashboard: String::new(), website: "crownlabs.example.com".to_owned() };
    Settings { config, site, undeliverable: Undeliverable::Keep }
}

/// An Instance of this age in seconds, of a Template that deletes after 30 days.
fn observed(age: i64) -> Observed {
    let template =
        json!({"metadata": {"name": "vm", "namespace": "workspace-tea"}, "spec": {"deleteAfter": "30d"}});
    let tenant = json!({"metadata": {"name": "ada"}, "spec": {"email": "ada@example.org"}});
    Observed {
        instance: Arc::new(fixtures::running_instance(at(NOW - age))),
        template: Some(Arc::new(serde_json::from_value(template).expect("a Template"))),
        tenant: Some(Arc::new(serde_json::from_value(tenant).expect("a Tenant"))),
        managers: Vec::new(),
        mailed: Mailed::default(),
        is_exempt: false,
    }
}

fn action(plan: &Plan<Effect>) -> &'static str {
    match (plan.effects.first(), plan.remove.first()) {
        (Some(Effect::Mail(notice)), None) if notice.mail.kind == MailKind::ExpirationWarning => "warn",
        (Some(Effect::Mail(notice)), None) if notice.mail.kind == MailKind::Expired => "final mail",
        (None, Some(_)) => "delete",
        (None, None) if plan.requeue == Requeue::OnChange => "nothing",
        (None, None) => "wait",
        _ => "both",
    }
}

fn judged(observed: &Observed) -> &'static str {
    action(&plan(observed, &settings(true), at(NOW)))
}

fn with_promise(observed: &mut Observed, promise: Promise) {
    Arc::make_mut(&mut observed.instance).status.expiration = Some(Box::new(promise));
}

fn with_annotations(observed: &mut Observed, annotations: &[(&str, String)]) {
    Arc::make_mut(&mut observed.instance).metadata.annotations = annotations.iter().cloned().collect();
}

#[test]
fn an_old_instance_is_warned_about_and_deleted_an_interval_later() {
    assert_eq!(judged(&observed(30 * DAY - 1)), "wait");
    assert_eq!(judged(&observed(30 * DAY)), "warn");
    let mut warned = observed(40 * DAY);
    let promise = |ago: i64| Promise {
        warnings: 1,
        last_warning: Some(Time(at(NOW - ago))),
        deadline: Some(Time(at(NOW - ago + DAY))),
        ..Promise::default()
    };
    for (ago, wanted) in [(0, "wait"), (DAY - 1, "wait"), (DAY, "final mail"), (2 * DAY, "final mail")] {
        with_promise(&mut warned, promise(ago));
        assert_eq!(judged(&warned), wanted, "{ago}");
    }
    with_promise(&mut warned, Promise { final_mail: Some(Time(at(NOW))), ..promise(DAY) });
    assert_eq!(judged(&warned), "delete");
    assert_eq!(plan(&warned, &settings(true), at(NOW)).remove[0].resource_version, "7");
}

#[test]
fn without_notifications_an_expired_instance_is_deleted_at_once() {
    assert_eq!(action(&plan(&observed(30 * DAY), &settings(false), at(NOW))), "delete");
    assert_eq!(action(&plan(&observed(30 * DAY - 1), &settings(false), at(NOW))), "wait");
}

#[test]
fn warnings_of_the_go_operators_are_continued() {
    let mut warned = observed(40 * DAY);
    for (ago, wanted) in [(60, "wait"), (DAY, "final mail")] {
        with_annotations(&mut warned, &[(labels::EXPIRY_WARNED_AT, rfc3339(at(NOW - ago)))]);
        assert_eq!(judged(&warned), wanted);
    }
    // A warning without a valid time counts as sent now.
    for annotation in [(labels::EXPIRY_WARNED, "true"), (labels::EXPIRY_WARNED_AT, "yesterday")] {
        with_annotations(&mut warned, &[(annotation.0, annotation.1.to_owned())]);
        assert_eq!(judged(&warned), "wait", "{annotation:?}");
    }
}

#[test]
fn exempt_never_and_unreadable_instances_are_left_alone() {
    let mut exempt = observed(400 * DAY);
    exempt.is_exempt = true;
    assert_eq!(judged(&exempt), "nothing");
    for age in ["never", "", "106752d", "-1d", "30", "99999999999999999999d"] {
        let mut observed = observed(400 * DAY);
        let mut template = (**observed.template.as_ref().expect("a Template")).clone();
        template.spec.delete_after = age.to_owned();
        observed.template = Some(Arc::new(template));
        assert_eq!(judged(&observed), "nothing", "{age}");
    }
    let mut orphan = observed(400 * DAY);
    orphan.template = None;
    assert_eq!(judged(&orphan), "nothing");
}

#[test]
fn the_report_follows_the_mail() {
    let mut observed = observed(30 * DAY);
    let told = |observed: &Observed, outcome: &Outcome<Sent>| {
        let made = plan(observed, &settings(true), at(NOW));
        report(&Reconciled::of(observed, &settings(true), &made, outcome, at(NOW)))
    };
    let before = told(&observed, &Outcome::pending());
    let sending = before.status.expiration.clone().expect("a promise");
    let deadline = sending.sending.clone().expect("a deadline");
    assert!(deadline.0 >= at(NOW + DAY) && sending.warnings == 0 && before.events.is_empty());

    let refused = Problem::fault(Component::Whole, reason::MAIL_REFUSED, "the mail server is away");
    let refused = EffectOutcome { result: None, error: Some(EffectError::Failed(refused)) };
    let failed = told(&observed, &Outcome { effects: vec![refused], ..Outcome::default() });
    assert_eq!(failed.events[0].reason, "MailRefused");
    assert_eq!(failed.status.expiration.as_ref().expect("a promise").warnings, 0);

    // Before the next attempt, the condition still states why the last one failed.
    let condition_of = |told: &InstanceStatus| {
        told.conditions.iter().find(|condition| condition.type_ == EXPIRING).cloned().expect("a condition")
    };
    let mut retried = observed.clone();
    Arc::make_mut(&mut retried.instance).status = failed.status.clone();
    let again = told(&retried, &Outcome::pending());
    assert_eq!(condition_of(&again.status), condition_of(&failed.status));
    assert_eq!((&*condition_of(&again.status).reason, again.events.len()), ("MailRefused", 0));

    let accepted = EffectOutcome::done(Sent::at(at(NOW + 5)));
    let done = told(&observed, &Outcome { effects: vec![accepted], ..Outcome::default() });
    let promise = done.status.expiration.clone().expect("a promise");
    assert_eq!((promise.warnings, promise.last_warning), (1, Some(Time(at(NOW + 5)))));
    assert_eq!(promise.deadline, Some(deadline), "as the mail says");
    assert_eq!(done.events[0].reason, "ExpirationWarning");
    assert_eq!(&*condition_of(&done.status).status, "True");
    Arc::make_mut(&mut observed.instance).status = done.status;
    assert_eq!(judged(&observed), "wait");
}

#[test]
fn nothing_is_written_about_an_instance_that_is_not_overdue() {
    let young = observed(DAY);
    let made = plan(&young, &settings(true), at(NOW));
    let told = report(&Reconciled::of(&young, &settings(true), &made, &Outcome::default(), at(NOW)));
    assert_eq!((told.status, told.events.len()), (young.instance.status.clone(), 0));
}

/// Reconciles the Instance once and writes its report. Returns whether anything was written.
fn look(observed: &mut Observed) -> bool {
    let made = plan(observed, &settings(true), at(NOW));
    let told = report(&Reconciled::of(observed, &settings(true), &made, &Outcome::default(), at(NOW)));
    fixtures::write(told, &mut observed.instance)
}

fn with_age(observed: &Observed, age: &str) -> Observed {
    let mut observed = observed.clone();
    Arc::make_mut(observed.template.as_mut().expect("a Template")).spec.delete_after = age.to_owned();
    observed
}

fn annotations(observed: &Observed) -> [Option<&str>; 2] {
    [labels::EXPIRY_WARNED, labels::EXPIRY_WARNED_AT].map(|key| observed.instance.annotation(key))
}

#[test]
fn a_withdrawn_promise_does_not_come_back() {
    let (mut timed, mut untimed, mut stored) = (observed(40 * DAY), observed(40 * DAY), observed(40 * DAY));
    with_annotations(&mut timed, &[(labels::EXPIRY_WARNED_AT, rfc3339(at(NOW - 5 * DAY)))]);
    with_annotations(&mut untimed, &[(labels::EXPIRY_WARNED, "true".to_owned())]);
    with_promise(
        &mut stored,
        Promise {
            warnings: 1,
            last_warning: Some(Time(at(NOW - 5 * DAY))),
            deadline: Some(Time(at(NOW - 4 * DAY))),
            ..Promise::default()
        },
    );
    assert!(look(&mut stored), "the annotations");
    for (origin, warned) in [("with a time", timed), ("without", untimed), ("status", stored)] {
        let exempt = Observed { is_exempt: true, ..warned.clone() };
        let orphan = Observed { template: None, ..warned.clone() };
        let of = |age| with_age(&warned, age);
        let cases = [
            ("exempt", exempt),
            ("orphan", orphan),
            ("never", of("never")),
            ("longer", of("60d")),
            ("unreadable", of("soon")),
        ];
        for (case, mut withdrawn) in cases {
            assert!(look(&mut withdrawn), "{origin}, {case}");
            assert_eq!(annotations(&withdrawn), [None, None], "{origin}, {case}");
            assert_eq!(withdrawn.instance.status.expiration, None, "{origin}, {case}");
            assert!(!look(&mut withdrawn), "{origin}, {case}: nothing is written twice");
            let back = Observed { instance: withdrawn.instance, ..warned.clone() };
            assert_eq!(judged(&back), "warn", "{origin}, {case}");
        }
    }
}

#[test]
fn a_warning_sent_while_the_template_allowed_less_does_not_count() {
    // It has been overdue for ten days. The warning and its deadline are from before that.
    let mut warned = observed(40 * DAY);
    with_annotations(&mut warned, &[(labels::EXPIRY_WARNED_AT, rfc3339(at(NOW - 12 * DAY)))]);
    assert_eq!(judged(&warned), "warn");
    let mut stored = observed(40 * DAY);
    with_promise(
        &mut stored,
        Promise {
            warnings: 1,
            last_warning: Some(Time(at(NOW - 12 * DAY))),
            deadline: Some(Time(at(NOW - 11 * DAY))),
            ..Promise::default()
        },
    );
    assert_eq!(judged(&stored), "warn");
    // A warning with a time in the future does not count, either.
    with_annotations(&mut warned, &[(labels::EXPIRY_WARNED_AT, rfc3339(at(NOW + 2 * DAY)))]);
    assert_eq!(judged(&warned), "warn");
}

#[test]
fn a_promise_of_the_go_operator_gets_the_deadline_in_its_mail() {
    let time = || rfc3339(at(NOW - 60));
    let named = Some(Time(at(NOW - 60 + DAY)));
    for (key, value, deadline) in [
        (labels::EXPIRY_WARNED_AT, time(), named),
        (labels::EXPIRY_WARNED, "true".to_owned(), Some(Time(at(NOW + DAY)))),
    ] {
        let mut warned = observed(40 * DAY);
        with_annotations(&mut warned, &[(key, value)]);
        let made = plan(&warned, &settings(true), at(NOW));
        let told = report(&Reconciled::of(&warned, &settings(true), &made, &Outcome::default(), at(NOW)));
        assert!(told.requeue_at_once, "the gauges show the deadline");
        let message = &*told.status.conditions[0].message;
        let end = rfc3339(deadline.as_ref().expect("a time").0);
        assert!(
            message.ends_with(&format!("the Instance is deleted at {end}, with all data in it")),
            "{message}"
        );
        let event = &told.events[0].message;
        assert!(
            event.starts_with("According to the annotations, 1 of 1 warnings were sent before; "),
            "{event}"
        );
        assert!(look(&mut warned) && !look(&mut warned), "{key}");
        assert_eq!(warned.instance.status.expiration.as_ref().expect("a promise").deadline, deadline);
        let since = rfc3339(at(deadline.expect("a time").0.as_second() - DAY));
        assert_eq!(annotations(&warned), [Some("true"), Some(&*since)]);
    }
}

#[test]
fn an_accepted_warning_is_written_into_both_annotations() {
    let overdue = observed(30 * DAY);
    let made = plan(&overdue, &settings(true), at(NOW));
    let told = |outcome| report(&Reconciled::of(&overdue, &settings(true), &made, &outcome, at(NOW)));
    let before = told(Outcome::pending());
    assert_eq!(before.patch, None, "nothing was accepted yet");
    let accepted =
        told(Outcome { effects: vec![EffectOutcome::done(Sent::at(at(NOW + 5)))], ..Outcome::default() });
    let written = json!({labels::EXPIRY_WARNED: "true", labels::EXPIRY_WARNED_AT: rfc3339(at(NOW + 5))});
    let patch = accepted.patch.expect("a patch").patch;
    assert_eq!(patch, json!({"metadata": {"annotations": written}}));
    // The process dies before it writes the status. The warning is not sent again, and its deadline holds.
    let mut dead = overdue.clone();
    let instance = Arc::make_mut(&mut dead.instance);
    instance.status = before.status.clone();
    let times =
        [(labels::EXPIRY_WARNED, "true".to_owned()), (labels::EXPIRY_WARNED_AT, rfc3339(at(NOW + 5)))];
    with_annotations(&mut dead, &times);
    assert_eq!(judged(&dead), "wait");
    assert!(look(&mut dead) && !look(&mut dead));
    let promise = dead.instance.status.expiration.clone().expect("a promise");
    assert_eq!(promise.deadline, before.status.expiration.expect("a promise").sending);
    assert_eq!((promise.warnings, promise.last_warning), (1, Some(Time(at(NOW + 5)))));
}
