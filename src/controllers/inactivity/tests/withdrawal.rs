//! A withdrawn promise stays withdrawn; and the text of the status about a promise.

use super::table::{DAY, NOW, action, judged, observed, with, with_promise};
use super::*;
use crate::api::instance::InstanceKind;
use crate::api::labels;
use crate::api::promise::End;
use crate::controllers::cleanup::delivery::Sent;
use crate::controllers::shared::fixtures;
use crate::runtime::clock::rfc3339;
use crate::runtime::events::EventType;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::{EffectOutcome, Reconciled, Report};

/// An Instance without a status, unused for five days. The Go operator has sent `sent` warnings, the last one `ago`
/// seconds ago.
fn annotated(sent: i64, ago: i64) -> Observed {
    let mut observed = observed(0, 0, None);
    let instance = Arc::make_mut(&mut observed.candidate.instance);
    instance.status.inactivity = None;
    instance.metadata.annotations = [
        (labels::LAST_ACTIVITY, rfc3339(at(NOW - 5 * DAY))),
        (labels::ALERTS_SENT, sent.to_string()),
        (labels::LAST_NOTIFICATION, rfc3339(at(NOW - ago))),
        (labels::LAST_RUNNING, "true".to_owned()),
    ]
    .into_iter()
    .collect();
    observed
}

/// Reconciles the Instance once and writes its report. Returns whether anything was written.
fn look(observed: &mut Observed) -> bool {
    let made = plan(observed, &settings(), at(NOW));
    let told = report(&Reconciled::of(observed, &settings(), &made, &Outcome::default(), at(NOW)));
    fixtures::write(told, &mut observed.candidate.instance)
}

#[test]
fn a_withdrawn_promise_does_not_come_back() {
    let stored = || {
        let mut observed = annotated(2, INTERVAL);
        Arc::make_mut(&mut observed.candidate.instance).status =
            super::table::observed(5 * DAY, 2, Some(INTERVAL)).instance.status.clone();
        observed
    };
    for (origin, warned) in [("annotations", annotated(2, INTERVAL)), ("status", stored())] {
        assert_eq!(judged(&warned, &settings()), "final mail", "{origin}");
        let exempt = with(&warned, |known| known.is_exempt = true);
        let orphan = with(&warned, |known| known.template = None);
        let of = |idle| with(&warned, |known| known.template = Some(Arc::new(template(idle, true))));
        let cases = [
            ("exempt", exempt),
            ("orphan", orphan),
            ("never", of("never")),
            ("longer", of("6d")),
            ("unreadable", of("soon")),
        ];
        for (case, mut withdrawn) in cases {
            assert!(look(&mut withdrawn), "{origin}, {case}");
            assert!(!look(&mut withdrawn), "{origin}, {case}: nothing is written twice");
            let annotation = |key| withdrawn.instance.annotation(key).map(ToOwned::to_owned);
            assert_eq!(annotation(labels::ALERTS_SENT).as_deref(), Some("0"), "{origin}, {case}");
            assert_eq!(
                annotation(labels::LAST_ACTIVITY),
                Some(rfc3339(at(NOW - 5 * DAY))),
                "{origin}, {case}"
            );
            let back = with(&warned, |known| known.instance = withdrawn.candidate.instance);
            assert_eq!(judged(&back, &settings()), "warn", "{origin}, {case}");
        }
    }
}

#[test]
fn a_promise_of_a_young_instance_that_was_withdrawn_does_not_come_back() {
    let mut young = annotated(2, INTERVAL);
    Arc::make_mut(&mut young.candidate.instance).metadata.creation_timestamp = Some(Time(at(NOW - 60)));
    young.candidate.template = Some(Arc::new(template("6d", true)));
    assert!(look(&mut young));
    young.candidate.template = Some(Arc::new(template("24h", true)));
    assert_eq!(judged(&young, &settings()), "warn");
}

#[test]
fn warnings_sent_while_the_template_allowed_less_do_not_count() {
    // It has been overdue since yesterday. The warnings and their deadline are from days before.
    let mut longer = annotated(2, 4 * DAY);
    longer.candidate.template = Some(Arc::new(template("4d", true)));
    assert_eq!(judged(&longer, &settings()), "warn");
    let mut longer = observed(5 * DAY, 2, Some(4 * DAY));
    longer.candidate.template = Some(Arc::new(template("4d", true)));
    assert_eq!(judged(&longer, &settings()), "warn");
    // The deadline, an interval after the last warning, is later than the end of the allowed idle time.
    let mut warned = observed(5 * DAY, 2, Some(DAY + 60));
    warned.candidate.template = Some(Arc::new(template("4d", true)));
    assert_eq!(judged(&warned, &settings()), "final mail");
}

#[test]
fn a_promise_of_the_go_operator_gets_the_deadline_in_its_mail() {
    // Two intervals after the first of two warnings, one after the second. A number above the maximum counts as the
    // maximum.
    for (sent, intervals) in [(1, 2), (2, 1), (7, 1)] {
        let mut observed = annotated(sent, 60);
        let made = plan(&observed, &settings(), at(NOW));
        let told = report(&Reconciled::of(&observed, &settings(), &made, &Outcome::default(), at(NOW)));
        assert!(told.requeue_at_once, "the gauges show the deadline");
        assert!(look(&mut observed) && !look(&mut observed), "{sent}");
        let promise = observed.instance.status.inactivity.clone().expect("a promise");
        let due = |number: i64| Some(Time(at(NOW - 60 + number * INTERVAL)));
        assert_eq!(promise.deadline, due(intervals), "{sent}");
        assert_eq!(promise.next_warning, due(1).filter(|_| sent == 1), "{sent}");
    }
}

#[test]
fn a_takeover_does_not_claim_the_warnings_of_another_operator() {
    let mut observed = annotated(2, 60);
    let made = plan(&observed, &settings(), at(NOW));
    let told = report(&Reconciled::of(&observed, &settings(), &made, &Outcome::default(), at(NOW)));
    let end = rfc3339(at(NOW - 60 + INTERVAL));
    let then =
        format!("the Instance is stopped at {end}, and its disk is kept, so that it can be started again");
    let events: Vec<_> = told.events.iter().map(|event| (&event.type_, &*event.message)).collect();
    let message = format!("According to the annotations, 2 of 2 warnings were sent before; {then}");
    assert_eq!(events, [(&EventType::Normal, &*message)]);
    let condition = |told: &Report<InstanceKind>| {
        told.status
            .conditions
            .iter()
            .find(|known| known.type_ == INACTIVE)
            .map(|known| known.message.to_string())
    };
    assert_eq!(condition(&told), Some(format!("2 of 2 warnings were sent; {then}")));
    assert!(look(&mut observed));
    let made = plan(&observed, &settings(), at(NOW));
    assert!(
        report(&Reconciled::of(&observed, &settings(), &made, &Outcome::default(), at(NOW)))
            .events
            .is_empty(),
        "once"
    );
    // A warning that this loop sends after a takeover is its own.
    let mut observed = annotated(1, INTERVAL);
    assert!(look(&mut observed), "the takeover");
    with_promise(&mut observed, |promise| promise.sending = promise.deadline.clone());
    observed.candidate.template = Some(Arc::new(template("24h", false)));
    let made = plan(&observed, &settings(), at(NOW));
    let effects = vec![EffectOutcome::done(Sent::at(at(NOW)))];
    let told = report(&Reconciled::of(
        &observed,
        &settings(),
        &made,
        &Outcome { effects, ..Outcome::default() },
        at(NOW),
    ));
    let [event] = told.events.as_slice() else { panic!("{:?}", told.events) };
    assert_eq!(event.type_, EventType::Warning);
    assert!(event.message.starts_with("Warning 2 of 2 was sent; the Instance is deleted at "), "{event:?}");
    assert!(event.message.ends_with(", with all data in it"), "{event:?}");
}

#[test]
fn the_mail_states_the_machine_its_owner_its_end_and_the_warning_number() {
    for (persistent, end) in [(true, End::Stopped), (false, End::Deleted)] {
        for (sent, ago, kind, warning) in [
            (0, None, MailKind::InactivityWarning, Some((1, 2))),
            (1, Some(INTERVAL), MailKind::InactivityWarning, Some((2, 2))),
            (2, Some(INTERVAL), MailKind::InactivityStopped, None),
        ] {
            let mut observed = observed(5 * DAY, sent, ago);
            observed.candidate.template = Some(Arc::new(template("24h", persistent)));
            let names = [("", "", ""), ("Ada", "", "Ada"), (" Ada ", "Rossi", "Ada Rossi")];
            for (first, last, full) in names {
                let mut tenant = tenant();
                (tenant.spec.first_name, tenant.spec.last_name) = (first.to_owned(), last.to_owned());
                observed.candidate.tenant = Some(Arc::new(tenant));
                let made = plan(&observed, &settings(), at(NOW));
                let [Effect::Mail(notice)] = made.effects.as_slice() else { panic!("{made:?}") };
                let mail = &notice.mail;
                assert_eq!((mail.kind, mail.end, mail.warning), (kind, Some(end), warning));
                assert_eq!(mail.full_name, full);
            }
        }
    }
}

#[test]
fn an_annotation_that_cannot_be_read_is_repaired_at_the_first_look_and_once() {
    let broken = [
        (labels::LAST_ACTIVITY, "yesterday"),
        (labels::ALERTS_SENT, "x"),
        (labels::LAST_NOTIFICATION, "soon"),
        (labels::LAST_RUNNING, "perhaps"),
    ];
    // Young without a status, known for long, exempt, without a time in its Template, and stopped.
    let young = || {
        let mut young = observed(60, 0, None);
        let instance = Arc::make_mut(&mut young.candidate.instance);
        instance.status.inactivity = None;
        instance.metadata.creation_timestamp = Some(Time(at(NOW - 60)));
        young
    };
    let mut known = observed(60, 0, None);
    assert!(look(&mut known) && !look(&mut known));
    let exempt = with(&known, |known| known.is_exempt = true);
    let never = with(&young(), |known| known.template = Some(Arc::new(template("never", true))));
    let mut stopped = young();
    Arc::make_mut(&mut stopped.candidate.instance).spec.running = false;
    for (case, sound) in
        [("young", young()), ("known", known), ("exempt", exempt), ("never", never), ("stopped", stopped)]
    {
        for (key, text) in broken {
            let mut one = sound.clone();
            let instance = Arc::make_mut(&mut one.candidate.instance);
            let others = instance.metadata.annotations.iter().filter(|(known, _)| *known != key);
            let others: Vec<(String, String)> =
                others.map(|(key, value)| (key.into(), value.into())).collect();
            instance.metadata.annotations =
                others.into_iter().chain([(key.to_owned(), text.to_owned())]).collect();
            assert!(look(&mut one), "{case} {key}");
            let repaired = one.instance.annotation(key).unwrap_or_default();
            let is_sound = match key {
                labels::ALERTS_SENT => repaired == "0",
                labels::LAST_NOTIFICATION => repaired.is_empty(),
                labels::LAST_RUNNING => repaired == one.instance.spec.running.to_string(),
                _ => repaired.parse::<Timestamp>().is_ok_and(|time| time <= at(NOW) && time >= at(NOW - 60)),
            };
            assert!(is_sound, "{case} {key}: {repaired}");
            // Everything else that has to be written is written only once, too.
            for _ in 0..2 {
                look(&mut one);
            }
            assert!(!look(&mut one), "{case} {key}");
        }
    }
}

#[test]
fn the_status_and_the_condition_say_when_the_next_warning_is_sent() {
    let mut hours = settings();
    hours.config.max_number_of_alerts = 3;
    for (sent, ago) in [(0, None), (1, Some(60)), (2, Some(INTERVAL - 60))] {
        let observed = observed(if sent == 0 { DAY - 60 } else { 2 * DAY }, sent, ago);
        let made = plan(&observed, &hours, at(NOW));
        let told = report(&Reconciled::of(&observed, &hours, &made, &Outcome::default(), at(NOW)));
        let next = told.status.inactivity.expect("a promise").next_warning.expect("a time").0;
        assert_eq!(
            made.requeue,
            Requeue::After(std::time::Duration::try_from(next.duration_since(at(NOW))).expect("later"))
        );
        let message = &*told.status.conditions[0].message;
        assert!(message.contains(&format!("due at {}", rfc3339(next))), "{message}");
        let at_time = |now: Timestamp| {
            let seen = observed.seen.clone().map(|seen| RoundResult { answered: now, ..seen });
            action(&plan(&Observed { seen, ..observed.clone() }, &hours, now))
        };
        assert_eq!(at_time(next), "warn", "{sent}");
        assert_ne!(at_time(at(next.as_second() - 1)), "warn", "{sent}");
    }
    // No warning follows the last one, and without notifications no warning is sent at all.
    let mut silent = settings();
    silent.config.notifications = false;
    for (settings, observed) in [(hours, observed(2 * DAY, 3, Some(60))), (silent, observed(60, 0, None))] {
        let made = plan(&observed, &settings, at(NOW));
        let told = report(&Reconciled::of(&observed, &settings, &made, &Outcome::default(), at(NOW)));
        assert_eq!(told.status.inactivity.expect("a promise").next_warning, None);
    }
}

#[test]
fn a_changed_time_in_the_template_is_shown_at_once() {
    let mut observed = observed(60, 0, None);
    assert!(look(&mut observed), "the first look");
    assert!(!look(&mut observed));
    observed.candidate.template = Some(Arc::new(template("48h", true)));
    assert!(look(&mut observed));
    let promise = observed.instance.status.inactivity.clone().expect("a promise");
    assert_eq!(promise.next_warning, Some(Time(at(NOW - 60 + 2 * DAY))));
    assert!(!look(&mut observed));
}

#[test]
fn a_slow_clock_does_not_move_a_use_to_an_earlier_time() {
    let since = |observed: &Observed| {
        let ending = observed.ending(&settings(), at(NOW - 3_600)).expect("a time").expect("an end");
        ending.since
    };
    // A start, or another change of the spec.
    let mut started = observed(60, 1, Some(30));
    Arc::make_mut(&mut started.candidate.instance).metadata.generation = Some(3);
    assert_eq!(since(&started), at(NOW - 60));
    // A use that a source of metrics reports.
    let mut used = observed(60, 1, Some(30));
    used.seen.as_mut().expect("seen").last_use = Some((at(NOW - 10), "ssh"));
    assert_eq!(since(&used), at(NOW - 60));
    // With a correct clock, a use counts from its own time, and a start from the time of its reconciliation.
    let ending = used.ending(&settings(), at(NOW)).expect("a time").expect("an end");
    assert_eq!(ending.since, at(NOW - 10));
    with_promise(&mut started, |promise| promise.since = Some(Time(at(NOW - DAY))));
    assert_eq!(since(&started), at(NOW - 3_600));
}

#[test]
fn a_start_right_after_a_stop_does_not_bring_warnings_back() {
    let mut warned = annotated(2, INTERVAL);
    let stored = super::table::observed(5 * DAY, 2, Some(INTERVAL)).instance.status.clone();
    let instance = Arc::make_mut(&mut warned.candidate.instance);
    (instance.status, instance.spec.running) = (stored, false);
    assert!(look(&mut warned), "the promise ends");
    assert_eq!(warned.instance.status.inactivity, None);
    // It is started before the stop has been recorded.
    Arc::make_mut(&mut warned.candidate.instance).spec.running = true;
    assert_eq!(judged(&warned, &settings()), "warn");
}
