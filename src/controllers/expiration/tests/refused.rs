//! Warnings that the mail server rejects permanently, and attempts of users to receive them again.

use super::*;
use crate::api::tenant::Tenant;
use crate::controllers::cleanup::delivery::{Managers, Notice};
use crate::controllers::cleanup::mail_log::{MailLog, record};
use crate::runtime::component::Component;
use crate::runtime::reconciler::Reconciled;

const HOUR: i64 = 3_600;

/// The mail of a plan.
fn notice_of(plan: &Plan<Effect>) -> Notice {
    match plan.effects.first() {
        Some(Effect::Mail(notice)) => (**notice).clone(),
        other => panic!("{other:?}"),
    }
}

fn with(undeliverable: Undeliverable) -> Settings {
    Settings { undeliverable, ..settings(true) }
}

fn manager(number: usize) -> Arc<Tenant> {
    let tenant = json!({"metadata": {"name": format!("m{number}")}, "spec": {"email": "m@example.org"}});
    Arc::new(serde_json::from_value(tenant).expect("a Tenant"))
}

/// The managers who are notified if the next mail is rejected.
fn told(observed: &Observed, settings: &Settings, now: i64) -> Managers {
    notice_of(&plan(observed, settings, at(now))).managers
}

/// The outcome of the plan after a permanent rejection by the mail server at [`NOW`].
fn refusal(counts: bool) -> Outcome<Sent> {
    let problem = Problem::fault(Component::Whole, reason::MAIL_UNDELIVERABLE, "550 no such mailbox");
    let sent = Sent { accepted: counts.then(|| at(NOW)), refused: Some(at(NOW)) };
    let effect = EffectOutcome { result: Some(sent), error: Some(EffectError::Postponed(problem)) };
    Outcome { effects: vec![effect], ..Outcome::default() }
}

/// The Instance after the report on an outcome, and whether it is requeued at once.
fn after(observed: &Observed, settings: &Settings, outcome: &Outcome<Sent>, now: i64) -> (Observed, bool) {
    let made = plan(observed, settings, at(now));
    let told = report(&Reconciled::of(observed, settings, &made, outcome, at(now)));
    let requeue_at_once = told.requeue_at_once;
    let mut after = observed.clone();
    fixtures::write(told, &mut after.instance);
    (after, requeue_at_once)
}

fn expiring(observed: &Observed) -> (String, String, String) {
    let mut conditions = observed.instance.status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == EXPIRING).expect("a condition");
    (found.status.to_string(), found.reason.to_string(), found.message.to_string())
}

#[test]
fn a_permanently_rejected_warning_keeps_the_instance_and_is_retried_after_an_hour() {
    let kept = with(Undeliverable::Keep);
    let overdue = observed(40 * DAY);
    let made = plan(&overdue, &kept, at(NOW));
    let told = report(&Reconciled::of(&overdue, &kept, &made, &refusal(false), at(NOW)));
    assert_eq!(
        told.events.iter().map(|event| event.reason).collect::<Vec<_>>(),
        [reason::MAIL_UNDELIVERABLE]
    );
    let (refused, at_once) = after(&overdue, &kept, &refusal(false), NOW);
    assert!(at_once, "it is requeued in time");
    let promise = refused.instance.status.expiration.clone().expect("a promise");
    assert_eq!((promise.warnings, promise.undeliverable), (0, Some(Time(at(NOW)))));
    let condition = ("True".to_owned(), "MailUndeliverable".to_owned(), "550 no such mailbox".to_owned());
    assert_eq!(expiring(&refused), condition);
    for (later, wanted) in [(0, "wait"), (HOUR - 1, "wait"), (HOUR, "warn"), (400 * DAY, "warn")] {
        assert_eq!(action(&plan(&refused, &kept, at(NOW + later))), wanted, "{later}");
    }
    let made = plan(&refused, &kept, at(NOW));
    assert_eq!(made.requeue, Requeue::After(std::time::Duration::from_hours(1)));
    // Nothing is written while it waits, and the condition stays the same.
    let nothing = Outcome::default();
    let (waits, at_once) = after(&refused, &kept, &nothing, NOW);
    assert_eq!((&waits.instance.status, at_once), (&refused.instance.status, false));
    // It is accepted.
    let accepted =
        Outcome { effects: vec![EffectOutcome::done(Sent::at(at(NOW + HOUR)))], ..Outcome::default() };
    let (warned, _) = after(&refused, &kept, &accepted, NOW + HOUR);
    let promise = warned.instance.status.expiration.clone().expect("a promise");
    assert_eq!((promise.warnings, promise.undeliverable), (1, None));
    assert_eq!(expiring(&warned).1, "Warned");
}

#[test]
fn a_mail_to_the_managers_counts_with_proceed() {
    let proceed = with(Undeliverable::Proceed);
    let (warned, _) = after(&observed(40 * DAY), &proceed, &refusal(true), NOW);
    let promise = warned.instance.status.expiration.clone().expect("a promise");
    assert_eq!((promise.warnings, promise.last_warning), (1, Some(Time(at(NOW)))));
    assert_eq!(promise.undeliverable, Some(Time(at(NOW))), "it is still said");
    let deadline = promise.deadline.expect("a deadline").0.as_second();
    assert!(deadline >= NOW + DAY);
    assert_eq!(expiring(&warned).1, "MailUndeliverable");
    assert_eq!(action(&plan(&warned, &proceed, at(deadline - 1))), "wait");
    assert_eq!(action(&plan(&warned, &proceed, at(deadline))), "final mail");
    // A rejected last mail counts at once with `proceed`, and otherwise after an interval.
    let last = refusal(true);
    let (told, _) = after(&warned, &proceed, &last, deadline);
    assert_eq!(action(&plan(&told, &proceed, at(deadline))), "delete");
    let kept = with(Undeliverable::Keep);
    let outcome = Outcome {
        effects: vec![EffectOutcome {
            result: Some(Sent { accepted: None, refused: Some(at(deadline)) }),
            ..refusal(false).effects.remove(0)
        }],
        ..Outcome::default()
    };
    let (waits, _) = after(&warned, &kept, &outcome, deadline);
    for (later, wanted) in [(0, "wait"), (HOUR, "final mail"), (DAY - 1, "final mail"), (DAY, "delete")] {
        assert_eq!(action(&plan(&waits, &kept, at(deadline + later))), wanted, "{later}");
    }
}

#[test]
fn a_limited_number_of_managers_is_notified_once() {
    let (kept, proceed) = (with(Undeliverable::Keep), with(Undeliverable::Proceed));
    let mut overdue = observed(40 * DAY);
    assert_eq!(told(&overdue, &kept, NOW), Managers::Notify(Vec::new()));
    overdue.managers = (0..9).map(manager).collect();
    let Managers::Notify(all) = told(&overdue, &kept, NOW) else { panic!("no managers") };
    assert_eq!(all.iter().map(|manager| &*manager.name).collect::<Vec<_>>(), ["m0", "m1", "m2", "m3", "m4"]);
    let told_at = |ago: i64| vec![(record(MailKind::ExpirationWarning, true), rfc3339(at(NOW - ago)))];
    let with_record = |ago: i64| {
        let mut observed = overdue.clone();
        Arc::make_mut(&mut observed.instance).metadata.annotations = told_at(ago).into_iter().collect();
        observed
    };
    assert_eq!(told(&with_record(DAY - 1), &kept, NOW), Managers::Notified);
    assert_ne!(told(&with_record(DAY), &kept, NOW), Managers::Notified, "about an earlier promise");
    assert_ne!(told(&with_record(1), &proceed, NOW), Managers::Notified, "each warning counts separately");
    let mut refused = with_record(9 * DAY);
    let undeliverable = Some(Time(at(NOW - DAY)));
    with_promise(&mut refused, Promise { undeliverable, ..Promise::default() });
    assert_eq!(told(&refused, &kept, NOW), Managers::Notified, "about this one");
}

#[test]
fn a_reset_status_causes_no_second_mail_within_an_interval() {
    let config = settings(true);
    let mut fresh = observed(40 * DAY);
    assert_eq!(judged(&fresh), "warn");
    let key = record(MailKind::ExpirationWarning, false);
    for (ago, wanted) in [(0, "wait"), (DAY - 1, "wait"), (DAY, "warn")] {
        with_annotations(&mut fresh, &[(&key, rfc3339(at(NOW - ago)))]);
        assert_eq!(judged(&fresh), wanted, "{ago}");
    }
    // The same with the memory of the leader, which also restores the annotation.
    let log = MailLog::default();
    let mut remembered = observed(40 * DAY);
    let sent = notice_of(&plan(&remembered, &config, at(NOW)));
    log.remember(&sent, Sent::at(at(NOW)), at(NOW));
    remembered.mailed = log.of(&remembered.instance);
    assert_eq!(judged(&remembered), "wait");
    assert!(look(&mut remembered) && !look(&mut remembered));
    assert_eq!(remembered.instance.annotation(&key), Some(&*rfc3339(at(NOW))));
    assert_eq!(remembered.instance.status.expiration, None, "nothing is promised");
    // A forged deadline causes one last mail, not many.
    let forged = Promise {
        warnings: 1,
        last_warning: Some(Time(at(NOW - 9 * DAY))),
        deadline: Some(Time(at(NOW - 8 * DAY))),
        ..Promise::default()
    };
    let mut forging = observed(40 * DAY);
    with_promise(&mut forging, forged.clone());
    assert_eq!(judged(&forging), "final mail");
    let sent = notice_of(&plan(&forging, &config, at(NOW)));
    log.remember(&sent, Sent::at(at(NOW)), at(NOW));
    forging.mailed = log.of(&forging.instance);
    with_promise(&mut forging, Promise { deadline: Some(Time(at(NOW - 7 * DAY))), ..forged });
    assert_eq!(judged(&forging), "delete");
}

#[test]
fn an_acceptance_that_could_not_be_written_is_written_without_another_mail() {
    let config = settings(true);
    let overdue = observed(40 * DAY);
    let made = plan(&overdue, &config, at(NOW));
    let announced = report(&Reconciled::of(&overdue, &config, &made, &Outcome::pending(), at(NOW)));
    let mut sending = overdue.clone();
    fixtures::write(announced, &mut sending.instance);
    let (log, sent) = (MailLog::default(), notice_of(&made));
    log.remember(&sent, Sent::at(at(NOW)), at(NOW));
    sending.mailed = log.of(&sending.instance);
    // In the report of the reconcile that has sent the mail, the mail counts once.
    let accepted = Outcome { effects: vec![EffectOutcome::done(Sent::at(at(NOW)))], ..Outcome::default() };
    let told = report(&Reconciled::of(&sending, &config, &made, &accepted, at(NOW)));
    let written = told.status.expiration.clone().expect("a promise");
    assert_eq!((written.warnings, &written.deadline), (1, &Some(Time(sent.mail.deadline))));
    let annotations = &told.patch.expect("a patch").patch["metadata"]["annotations"];
    assert_eq!(
        annotations[record(MailKind::ExpirationWarning, false)],
        rfc3339(at(NOW)),
        "in the same write"
    );
    assert_eq!(annotations[labels::EXPIRY_WARNED], "true");
    // The Instance was changed by another writer: the next reconcile writes the same.
    assert_eq!(judged(&sending), "wait");
    let again = report(&Reconciled::of(
        &sending,
        &config,
        &plan(&sending, &config, at(NOW)),
        &Outcome::default(),
        at(NOW),
    ));
    assert_eq!(again.status.expiration, Some(written));
    assert_eq!(
        again.events.iter().map(|event| event.reason).collect::<Vec<_>>(),
        [reason::EXPIRATION_WARNING]
    );
}
