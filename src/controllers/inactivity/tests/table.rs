//! The action that is due in each state of an Instance.

use super::*;
use crate::api::labels;
use crate::api::promise::Promise;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::Reconciled;

pub(super) const DAY: i64 = 86_400;
/// The current time in all rows.
pub(super) const NOW: i64 = 100 * DAY;

/// The action of a plan in one word.
pub(super) fn action(plan: &crate::runtime::plan::Plan<Effect>) -> &'static str {
    let mail = plan.effects.iter().find_map(|effect| match effect {
        Effect::Mail(notice) => Some(notice.mail.kind),
        Effect::Check => None,
    });
    match (mail, plan.effects.as_slice(), plan.patches.as_slice(), plan.remove.as_slice()) {
        (Some(MailKind::InactivityWarning | MailKind::DestructionWarning), ..) => "warn",
        (Some(MailKind::InactivityStopped | MailKind::Destroyed), ..) => "final mail",
        (_, [Effect::Check], ..) => "check",
        (_, _, [_], _) => "stop",
        (.., [_]) => "delete",
        _ if !plan.problems.is_empty() => "problem",
        _ => "wait",
    }
}

/// An Instance with a promise: unused for `unused` seconds, `sent` warnings, the last one `ago` seconds ago.
pub(super) fn observed(unused: i64, sent: i64, ago: Option<i64>) -> Observed {
    let mut instance = running_instance(at(NOW - 90 * DAY));
    let time = |ago: i64| Some(Time(at(NOW - ago)));
    instance.status.inactivity = Some(Box::new(Promise {
        since: time(unused),
        generation: 1,
        warnings: sent,
        last_warning: ago.and_then(time),
        ..Promise::default()
    }));
    let candidate = Candidate {
        instance: Arc::new(instance),
        template: Some(Arc::new(template("24h", true))),
        tenant: Some(Arc::new(tenant())),
        managers: Vec::new(),
        mailed: Mailed::default(),
        is_exempt: false,
    };
    let seen =
        Some(RoundResult { since: Some(at(0)), answered: at(NOW), problems: Vec::new(), last_use: None });
    Observed { candidate, seen, connected: None }
}

/// The same observation after a change of the candidate.
pub(super) fn with(observed: &Observed, change: impl FnOnce(&mut Candidate)) -> Observed {
    let mut changed = observed.clone();
    change(&mut changed.candidate);
    changed
}

pub(super) fn judged(observed: &Observed, settings: &Settings) -> &'static str {
    action(&plan(observed, settings, at(NOW)))
}

pub(super) fn with_promise(observed: &mut Observed, change: impl FnOnce(&mut Promise)) {
    let instance = Arc::make_mut(&mut observed.candidate.instance);
    change(instance.status.inactivity.as_mut().expect("a promise"));
}

#[test]
fn warnings_come_one_interval_apart_and_the_stop_one_after_the_last() {
    let hour = 3_600;
    for (unused, sent, ago, wanted) in [
        (DAY - 1, 0, None, "wait"),
        (DAY, 0, None, "warn"),
        (2 * DAY, 0, None, "warn"),
        // A warning time without a number of warnings does not count.
        (2 * DAY, 0, Some(hour), "warn"),
        (2 * DAY, 1, Some(hour), "wait"),
        (2 * DAY, 1, Some(INTERVAL - 60), "wait"),
        (2 * DAY, 1, Some(INTERVAL), "warn"),
        (2 * DAY, 2, Some(hour), "wait"),
        (2 * DAY, 2, Some(INTERVAL - 60), "wait"),
        (2 * DAY, 2, Some(INTERVAL), "final mail"),
        (9 * DAY, 2, Some(8 * DAY), "final mail"),
        (2 * DAY, 9, Some(hour), "wait"),
        (2 * DAY, -4, None, "warn"),
    ] {
        let observed = observed(unused, sent, ago);
        assert_eq!(judged(&observed, &settings()), wanted, "{unused} {sent} {ago:?}");
    }
}

#[test]
fn the_stored_deadline_is_kept() {
    let mut observed = observed(3 * DAY, 2, Some(2 * DAY));
    with_promise(&mut observed, |promise| promise.deadline = Some(Time(at(NOW + 1))));
    assert_eq!(judged(&observed, &settings()), "wait");
    with_promise(&mut observed, |promise| promise.deadline = Some(Time(at(NOW))));
    assert_eq!(judged(&observed, &settings()), "final mail");
    with_promise(&mut observed, |promise| promise.final_mail = Some(Time(at(NOW))));
    assert_eq!(judged(&observed, &settings()), "stop");
    // If no server accepts the last mail, it is retried for one interval.
    with_promise(&mut observed, |promise| {
        (promise.final_mail, promise.sending) = (None, Some(Time(at(NOW + 1))));
    });
    assert_eq!(judged(&observed, &settings()), "final mail");
    with_promise(&mut observed, |promise| promise.sending = Some(Time(at(NOW))));
    assert_eq!(judged(&observed, &settings()), "stop");
}

#[test]
fn a_connection_seen_by_this_process_is_a_use_even_without_metrics() {
    let overdue = || {
        let mut observed = observed(3 * DAY, 2, Some(2 * INTERVAL));
        with_promise(&mut observed, |promise| promise.final_mail = Some(Time(at(NOW))));
        observed
    };
    assert_eq!(judged(&overdue(), &settings()), "stop");
    let connected = |ago| Some((at(NOW - ago), "ssh"));
    let answers = overdue().seen;
    for seen in [answers, None] {
        let used = Observed { connected: connected(60), seen: seen.clone(), ..overdue() };
        assert_ne!(judged(&used, &settings()), "stop", "{seen:?}");
        assert_eq!(used.witness(at(NOW)), Some("ssh"));
        let basis = used.ending(&settings(), at(NOW)).expect("a time").expect("an end").promise;
        assert_eq!((basis.warnings, basis.since), (0, Some(Time(at(NOW - 60)))), "{seen:?}");
    }
    // A connection before the last known use changes nothing.
    let before = Observed { connected: connected(4 * DAY), ..overdue() };
    assert_eq!(judged(&before, &settings()), "stop");
}

#[test]
fn an_instance_without_persistent_data_is_deleted() {
    let mut observed = observed(3 * DAY, 2, Some(2 * INTERVAL));
    with_promise(&mut observed, |promise| promise.final_mail = Some(Time(at(NOW))));
    observed.candidate.template = Some(Arc::new(template("24h", false)));
    assert_eq!(judged(&observed, &settings()), "delete");
}

#[test]
fn without_notifications_no_warning_is_sent() {
    let mut settings = settings();
    settings.config.notifications = false;
    assert_eq!(judged(&observed(DAY, 0, None), &settings), "stop");
    assert_eq!(judged(&observed(DAY - 1, 0, None), &settings), "wait");
    // The stored promise is kept.
    assert_eq!(judged(&observed(3 * DAY, 1, Some(60)), &settings), "wait");
}

#[test]
fn the_template_sets_the_number_of_warnings() {
    let mut observed = observed(3 * DAY, 0, None);
    for (number, wanted) in [("0", "final mail"), ("-3", "final mail"), ("1", "warn"), ("many", "warn")] {
        let mut template = template("24h", true);
        template.metadata.annotations = [(labels::CUSTOM_NUMBER_ALERTS, number)].into_iter().collect();
        observed.candidate.template = Some(Arc::new(template));
        assert_eq!(judged(&observed, &settings()), wanted, "{number}");
    }
}

#[test]
fn nothing_happens_unless_every_source_answers() {
    let mut blind = observed(9 * DAY, 2, Some(7 * DAY));
    let sound = blind.seen.clone().expect("seen");
    blind.seen = None;
    assert_eq!(judged(&blind, &settings()), "check");
    blind.seen = Some(RoundResult { answered: at(NOW - 301), ..sound.clone() });
    assert_eq!(judged(&blind, &settings()), "check", "the round is too old");
    blind.seen = Some(RoundResult { since: Some(at(NOW - DAY + 1)), ..sound.clone() });
    assert_eq!(judged(&blind, &settings()), "check", "the round was made for a shorter time");
    let gap = vec!["the source ssh was missing before".to_owned()];
    blind.seen = Some(RoundResult { since: Some(at(NOW - DAY + 1)), problems: gap, ..sound.clone() });
    assert_eq!(judged(&blind, &settings()), "problem", "the sources look back too little");
    blind.seen = Some(RoundResult {
        since: Some(at(NOW - DAY)),
        problems: vec!["not before".to_owned()],
        ..sound.clone()
    });
    assert_eq!(judged(&blind, &settings()), "final mail", "earlier data does not matter");
    blind.seen = Some(RoundResult { since: None, problems: vec!["ssh: no answer".to_owned()], ..sound });
    let plan = plan(&blind, &settings(), at(NOW));
    assert_eq!(action(&plan), "problem");
    assert!(plan.problems[0].message.contains("ssh: no answer") && plan.problems[0].waiting);
}

#[test]
fn a_use_withdraws_the_promise() {
    let mut used = observed(9 * DAY, 2, Some(9 * DAY));
    let seen = used.seen.as_mut().expect("seen");
    seen.last_use = Some((at(NOW - 60), "ssh"));
    assert_eq!(judged(&used, &settings()), "wait");
    let ending = used.ending(&settings(), at(NOW)).expect("sound").expect("an ending");
    assert_eq!((ending.promise.warnings, &*ending.promise.witness), (0, "ssh"));
    // A use before the stored one changes nothing.
    let mut older = observed(DAY, 1, Some(INTERVAL));
    older.seen.as_mut().expect("seen").last_use = Some((at(NOW - 5 * DAY), "ssh"));
    assert_eq!(judged(&older, &settings()), "warn");
}

#[test]
fn a_change_of_the_spec_counts_as_a_use() {
    let mut started = observed(9 * DAY, 2, Some(9 * DAY));
    Arc::make_mut(&mut started.candidate.instance).metadata.generation = Some(3);
    assert_eq!(judged(&started, &settings()), "wait");
}

#[test]
fn a_start_resets_the_idle_time() {
    let mut restarted = observed(0, 0, None);
    let instance = Arc::make_mut(&mut restarted.candidate.instance);
    instance.status.inactivity = None;
    instance.metadata.creation_timestamp = Some(Time(at(NOW - 23 * 3_600)));
    instance.metadata.annotations = [(labels::LAST_RUNNING, "false")].into_iter().collect();
    restarted.candidate.template = Some(Arc::new(template("1h", true)));
    assert_eq!(judged(&restarted, &settings()), "wait");
    let made = plan(&restarted, &settings(), at(NOW));
    let told = report(&Reconciled::of(&restarted, &settings(), &made, &Outcome::default(), at(NOW)));
    assert_eq!(told.status.inactivity.expect("stored").since, Some(Time(at(NOW))));
    let patch = told.patch.expect("a patch").patch.to_string();
    assert!(patch.contains(r#""crownlabs.polito.it/last-running":"true""#), "{patch}");
    // The stop is recorded after the promise has ended.
    let stopped = Arc::make_mut(&mut restarted.candidate.instance);
    stopped.spec.running = false;
    stopped.metadata.annotations = [(labels::LAST_RUNNING, "true")].into_iter().collect();
    stopped.status.inactivity = Some(Box::default());
    let made = plan(&restarted, &settings(), at(NOW));
    let told = report(&Reconciled::of(&restarted, &settings(), &made, &Outcome::default(), at(NOW)));
    assert!(told.requeue_at_once && told.status.conditions.is_empty());
    // The warnings are withdrawn first. The annotation about the stop is written after the promise has ended.
    let patch = told.patch.expect("the annotations").patch.to_string();
    assert!(!patch.contains(r#""false""#), "{patch}");
    Arc::make_mut(&mut restarted.candidate.instance).status = told.status;
    let made = plan(&restarted, &settings(), at(NOW));
    let told = report(&Reconciled::of(&restarted, &settings(), &made, &Outcome::default(), at(NOW)));
    assert!(told.patch.expect("a patch").patch.to_string().contains(r#""false""#));
}

#[test]
fn the_status_names_the_loop_as_the_cause_of_a_stop_by_any_process() {
    // The process that stopped it has died since. Its annotation was written with the stop, and the promise is still
    // stored.
    let mut stopped = observed(9 * DAY, 2, Some(INTERVAL));
    let instance = Arc::make_mut(&mut stopped.candidate.instance);
    instance.spec.running = false;
    instance.metadata.annotations = [(labels::LAST_RUNNING, "false")].into_iter().collect();
    for _ in 0..2 {
        let made = plan(&stopped, &settings(), at(NOW));
        let told = report(&Reconciled::of(&stopped, &settings(), &made, &Outcome::default(), at(NOW)));
        let condition = told.status.conditions.iter().find(|condition| condition.type_ == INACTIVE);
        let condition = condition.expect("a condition");
        assert_eq!((&*condition.status, &*condition.reason), ("True", "Stopped"));
        assert_eq!(told.status.inactivity, None);
        Arc::make_mut(&mut stopped.candidate.instance).status = told.status;
    }
}

#[test]
fn exempt_never_and_unreadable_instances_are_left_alone() {
    let mut exempt = observed(9 * DAY, 2, Some(9 * DAY));
    exempt.candidate.is_exempt = true;
    assert_eq!(plan(&exempt, &settings(), at(NOW)).requeue, Requeue::OnChange);
    for (idle, wanted) in [
        ("never", "wait"),
        ("", "wait"),
        ("106752d", "problem"),
        ("213504d", "problem"),
        ("-1d", "problem"),
        ("soon", "problem"),
        ("106751d", "wait"),
        ("30s", "final mail"),
        ("0m", "final mail"),
    ] {
        let mut observed = observed(9 * DAY, 2, Some(INTERVAL));
        observed.candidate.template = Some(Arc::new(template(idle, true)));
        assert_eq!(judged(&observed, &settings()), wanted, "{idle}");
    }
    let mut orphan = observed(9 * DAY, 0, None);
    orphan.candidate.tenant = None;
    assert_eq!(judged(&orphan, &settings()), "problem", "no warning can be sent");
    orphan.candidate.template = None;
    assert_eq!(judged(&orphan, &settings()), "wait");
}

#[test]
fn promises_of_the_go_operator_are_continued() {
    let mut observed = observed(0, 0, None);
    let instance = Arc::make_mut(&mut observed.candidate.instance);
    instance.status.inactivity = None;
    let ago = |seconds: i64| crate::runtime::clock::rfc3339(at(NOW - seconds));
    instance.metadata.annotations = [
        (labels::LAST_ACTIVITY, ago(5 * DAY)),
        (labels::ALERTS_SENT, "1".to_owned()),
        (labels::LAST_NOTIFICATION, ago(60)),
        (labels::LAST_RUNNING, "true".to_owned()),
    ]
    .into_iter()
    .collect();
    assert_eq!(judged(&observed, &settings()), "wait", "one warning a minute ago");
    let mut later = observed.clone();
    let annotations = &mut Arc::make_mut(&mut later.candidate.instance).metadata.annotations;
    let notified = (labels::LAST_NOTIFICATION, ago(INTERVAL));
    let others = annotations.iter().filter(|(key, _)| *key != labels::LAST_NOTIFICATION);
    let others: Vec<(String, String)> = others.map(|(key, value)| (key.into(), value.into())).collect();
    *annotations = others.into_iter().chain([(notified.0.to_owned(), notified.1)]).collect();
    assert_eq!(judged(&later, &settings()), "warn");
    // Unreadable annotations count as missing: the idle time starts now.
    let broken = &mut Arc::make_mut(&mut later.candidate.instance).metadata.annotations;
    *broken = [(labels::LAST_ACTIVITY, "yesterday")].into_iter().collect();
    assert_eq!(judged(&later, &settings()), "wait");
}

#[test]
fn an_idle_instance_is_written_once_a_day() {
    let written = |observed: &Observed, now: i64| {
        let made = plan(observed, &settings(), at(now));
        let told = report(&Reconciled::of(observed, &settings(), &made, &Outcome::default(), at(now)));
        told.status != observed.instance.status || told.patch.is_some()
    };
    let mut used = observed(60, 0, None);
    used.seen.as_mut().expect("seen").last_use = Some((at(NOW - 1), "ssh"));
    // The first reconciliation writes the condition. After that, a stamp is written once a day.
    let made = plan(&used, &settings(), at(NOW));
    let told = report(&Reconciled::of(&used, &settings(), &made, &Outcome::default(), at(NOW)));
    Arc::make_mut(&mut used.candidate.instance).status = told.status;
    assert!(!written(&used, NOW));
    let seen = used.seen.as_mut().expect("seen");
    (seen.answered, seen.last_use) = (at(NOW + DAY - 120), Some((at(NOW + DAY - 120), "ssh")));
    assert!(!written(&used, NOW + DAY - 120));
    let seen = used.seen.as_mut().expect("seen");
    (seen.answered, seen.last_use) = (at(NOW + DAY), Some((at(NOW + DAY), "ssh")));
    assert!(written(&used, NOW + DAY));
    // A new Instance costs no write while it is young.
    let mut young = observed(0, 0, None);
    let instance = Arc::make_mut(&mut young.candidate.instance);
    instance.status.inactivity = None;
    instance.metadata.creation_timestamp = Some(Time(at(NOW - 600)));
    assert!(!written(&young, NOW));
}
