//! A request to keep an Instance counts as a use at the time in the annotation.

use proptest::prelude::*;

use super::table::{DAY, NOW, judged, observed, with_promise};
use super::*;
use crate::api::labels;
use crate::api::promise::Promise;
use crate::controllers::inactivity::observe::KEPT;
use crate::controllers::shared::fixtures;
use crate::runtime::clock::rfc3339;
use crate::runtime::events::EventType;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::Reconciled;

/// The same Instance with the annotation.
fn kept(mut observed: Observed, text: &str) -> Observed {
    let instance = Arc::make_mut(&mut observed.candidate.instance);
    let known = instance.metadata.annotations.iter();
    let known: Vec<(String, String)> = known.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let annotation = (labels::KEPT_AT.to_owned(), text.to_owned());
    instance.metadata.annotations = known.into_iter().chain([annotation]).collect();
    observed
}

/// The same Instance, kept `ago` seconds ago.
fn kept_ago(observed: Observed, ago: i64) -> Observed {
    kept(observed, &rfc3339(at(NOW - ago)))
}

/// An Instance that is stopped on its third day without use, after all mails.
fn overdue() -> Observed {
    let mut observed = observed(3 * DAY, 2, Some(2 * INTERVAL));
    with_promise(&mut observed, |promise| promise.final_mail = Some(Time(at(NOW))));
    observed
}

/// An Instance that was stopped 20 days ago, of a Template that deletes after 10, after all mails.
fn abandoned() -> Observed {
    let mut observed = observed(0, 0, None);
    let instance = Arc::make_mut(&mut observed.candidate.instance);
    (instance.spec.running, instance.status.inactivity) = (false, None);
    instance.metadata.annotations =
        [(labels::LAST_POWERED_OFF, rfc3339(at(NOW - 20 * DAY)))].into_iter().collect();
    let promise = Promise {
        since: Some(Time(at(NOW - 20 * DAY))),
        warnings: 2,
        last_warning: Some(Time(at(NOW - 2 * DAY))),
        final_mail: Some(Time(at(NOW))),
        ..Promise::default()
    };
    instance.status.destruction = Some(Box::new(promise));
    let mut template = template("24h", true);
    template.spec.cleanup.delete_after_inactivity = Some("10d".to_owned());
    observed.candidate.template = Some(Arc::new(template));
    observed
}

/// Reconciles the Instance once and writes its report. Returns whether anything was written.
fn look(observed: &mut Observed, now: Timestamp) -> bool {
    let made = plan(observed, &settings(), now);
    let told = report(&Reconciled::of(observed, &settings(), &made, &Outcome::default(), now));
    fixtures::write(told, &mut observed.candidate.instance)
}

#[test]
fn a_request_to_keep_an_instance_withdraws_its_warnings_like_any_use() {
    for (case, observed, end) in [("running", overdue(), "stop"), ("stopped", abandoned(), "delete")] {
        assert_eq!(judged(&observed, &settings()), end, "{case}");
        // A request before the last known use, or before the stop, does not count.
        assert_eq!(judged(&kept_ago(observed.clone(), 30 * DAY), &settings()), end, "{case}");
        let mut kept = kept_ago(observed, 60);
        assert_eq!(judged(&kept, &settings()), "wait", "{case}");
        assert!(look(&mut kept, at(NOW)) && !look(&mut kept, at(NOW)), "{case}: written once");
        let status = &kept.instance.status;
        let promise = status.inactivity.as_ref().or(status.destruction.as_ref()).expect("a promise");
        assert_eq!((promise.warnings, &promise.deadline, &promise.final_mail), (0, &None, &None), "{case}");
        assert_eq!((&promise.since, &*promise.witness), (&Some(Time(at(NOW - 60))), KEPT), "{case}");
    }
    assert_eq!(kept_ago(overdue(), 60).witness(at(NOW)), Some(KEPT));
}

#[test]
fn a_request_keeps_an_instance_no_longer_than_the_template_allows() {
    let later = |seconds: i64, observed: Observed| {
        let now = at(NOW + seconds);
        let mut observed = kept_ago(observed, 0);
        observed.seen.as_mut().expect("seen").answered = now;
        super::table::action(&plan(&observed, &settings(), now))
    };
    for (observed, limit) in [(overdue(), DAY), (abandoned(), 10 * DAY)] {
        assert_eq!(later(limit - 1, observed.clone()), "wait");
        assert_eq!(later(limit, observed), "warn");
    }
}

#[test]
fn a_time_in_the_future_does_not_count_as_a_use_yet() {
    for (observed, end) in [(overdue(), "stop"), (abandoned(), "delete")] {
        for ahead in [1, 3_600, DAY, 4_000 * DAY] {
            assert_eq!(judged(&kept_ago(observed.clone(), -ahead), &settings()), end, "{ahead}");
        }
        assert_eq!(judged(&kept_ago(observed, 0), &settings()), "wait", "it has come");
    }
    // The clock of the requester may be ahead: the Instance is reconciled again at the time in the annotation.
    let young = observed(60, 0, None);
    let requeue = |ahead: i64| plan(&kept_ago(young.clone(), -ahead), &settings(), at(NOW)).requeue;
    let seconds = |seconds: i64| Requeue::After(std::time::Duration::from_secs(seconds.unsigned_abs()));
    assert_eq!(requeue(90), seconds(90));
    assert_eq!(requeue(4_000 * DAY), seconds(DAY - 60), "when it is overdue");
}

#[test]
fn an_invalid_time_is_removed_with_an_event_and_does_not_count_as_a_use() {
    for (observed, end) in [(overdue(), "stop"), (abandoned(), "delete")] {
        for text in ["tomorrow", "2026-11-20", "1", "\u{1b}[2J", &"x".repeat(10_000)] {
            let mut bad = kept(observed.clone(), text);
            let made = plan(&bad, &settings(), at(NOW));
            assert_eq!(super::table::action(&made), end, "{text}");
            let told = report(&Reconciled::of(&bad, &settings(), &made, &Outcome::default(), at(NOW)));
            let about = told.events.iter().find(|event| event.reason == "InvalidKeptAt").expect("an event");
            assert_eq!(about.type_, EventType::Warning);
            assert!(
                about.message.starts_with("The annotation crownlabs.polito.it/kept-at was \""),
                "{about:?}"
            );
            assert!(about.message.len() < 1_000 && !about.message.contains('\u{1b}'), "{about:?}");
            assert!(look(&mut bad, at(NOW)));
            assert_eq!(bad.instance.annotation(labels::KEPT_AT), None, "{text}");
            let told = report(&Reconciled::of(&bad, &settings(), &made, &Outcome::default(), at(NOW)));
            assert!(!told.events.iter().any(|event| event.reason == "InvalidKeptAt"), "once");
        }
    }
    let mut empty = kept(observed(60, 0, None), "");
    look(&mut empty, at(NOW));
    assert_eq!(empty.instance.annotation(labels::KEPT_AT), Some(""), "as without an annotation");
}

proptest! {
    #[test]
    fn a_use_is_never_in_the_future_nor_before_the_last_known_use(
        unused in 0..20 * DAY,
        ago in -20 * DAY..20 * DAY,
        running: bool,
    ) {
        let known = NOW - if running { unused } else { 20 * DAY };
        let observed = if running { observed(unused, 1, Some(60)) } else { abandoned() };
        let mut observed = kept_ago(observed, ago);
        let since = |observed: &Observed, now| observed.ending(&settings(), at(now)).expect("sound").expect("an end").since;
        let expected = if ago >= 0 { known.max(NOW - ago) } else { known };
        prop_assert_eq!(since(&observed, NOW), at(expected));
        // Without another request it is one use, and not a new one at each reconciliation.
        look(&mut observed, at(NOW));
        prop_assert!(!look(&mut observed, at(NOW)));
        let later = if ago < 0 { NOW - ago - 1 } else { NOW + DAY };
        prop_assert_eq!(since(&observed, later), at(expected));
        prop_assert_eq!(since(&observed, later + 20 * DAY), at(known.max(NOW - ago)));
    }
}
