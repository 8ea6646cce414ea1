//! Who asks to keep an Instance uses it, at the time that the annotation says.

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

/// The same with the annotation.
fn kept(mut observed: Observed, text: &str) -> Observed {
    let instance = Arc::make_mut(&mut observed.candidate.instance);
    let known = instance.metadata.annotations.iter();
    let known: Vec<(String, String)> = known.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let annotation = (labels::KEPT_AT.to_owned(), text.to_owned());
    instance.metadata.annotations = known.into_iter().chain([annotation]).collect();
    observed
}

/// The same, kept so long ago.
fn kept_ago(observed: Observed, ago: i64) -> Observed {
    kept(observed, &rfc3339(at(NOW - ago)))
}

/// An Instance that is stopped for its third day without use, after all mails.
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

/// One look at the Instance: its report is written. Returns whether there was something to be written.
fn look(observed: &mut Observed, now: Timestamp) -> bool {
    let made = plan(observed, &settings(), now);
    let told = report(observed, &settings(), &made, &Outcome::default(), now);
    fixtures::write(told, &mut observed.candidate.instance)
}

#[test]
fn who_keeps_an_instance_has_its_warnings_withdrawn_as_any_use_does() {
    for (case, observed, end) in [("running", overdue(), "stop"), ("stopped", abandoned(), "delete")] {
        assert_eq!(judged(&observed, &settings()), end, "{case}");
        // Before the last use that is known, or before the stop, it was not asked for now.
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
fn nobody_is_kept_for_longer_than_the_template_allows() {
    let later = |seconds: i64, observed: Observed| {
        let now = at(NOW + seconds);
        let mut observed = kept_ago(observed, 0);
        observed.seen.as_mut().expect("seen").answered = now;
        super::table::what(&plan(&observed, &settings(), now))
    };
    for (observed, limit) in [(overdue(), DAY), (abandoned(), 10 * DAY)] {
        assert_eq!(later(limit - 1, observed.clone()), "wait");
        assert_eq!(later(limit, observed), "warn");
    }
}

#[test]
fn a_time_that_is_still_to_come_is_no_use_until_it_has_come() {
    for (observed, end) in [(overdue(), "stop"), (abandoned(), "delete")] {
        for ahead in [1, 3_600, DAY, 4_000 * DAY] {
            assert_eq!(judged(&kept_ago(observed.clone(), -ahead), &settings()), end, "{ahead}");
        }
        assert_eq!(judged(&kept_ago(observed, 0), &settings()), "wait", "it has come");
    }
    // The clock of who wrote it may be ahead: it is looked at again when it has come.
    let young = observed(60, 0, None);
    let requeue = |ahead: i64| plan(&kept_ago(young.clone(), -ahead), &settings(), at(NOW)).requeue;
    let seconds = |seconds: i64| Requeue::After(std::time::Duration::from_secs(seconds.unsigned_abs()));
    assert_eq!(requeue(90), seconds(90));
    assert_eq!(requeue(4_000 * DAY), seconds(DAY - 60), "when it is overdue");
}

#[test]
fn a_text_that_is_no_time_is_no_use_and_is_removed_with_an_event() {
    for (observed, end) in [(overdue(), "stop"), (abandoned(), "delete")] {
        for text in ["tomorrow", "2026-11-20", "1", "\u{1b}[2J", &"x".repeat(10_000)] {
            let mut bad = kept(observed.clone(), text);
            let made = plan(&bad, &settings(), at(NOW));
            assert_eq!(super::table::what(&made), end, "{text}");
            let told = report(&bad, &settings(), &made, &Outcome::default(), at(NOW));
            let about = told.events.iter().find(|event| event.reason == "InvalidKeptAt").expect("an event");
            assert_eq!(about.type_, EventType::Warning);
            assert!(
                about.message.starts_with("The annotation crownlabs.polito.it/kept-at was \""),
                "{about:?}"
            );
            assert!(about.message.len() < 1_000 && !about.message.contains('\u{1b}'), "{about:?}");
            assert!(look(&mut bad, at(NOW)));
            assert_eq!(bad.instance.annotation(labels::KEPT_AT), None, "{text}");
            let told = report(&bad, &settings(), &made, &Outcome::default(), at(NOW));
            assert!(!told.events.iter().any(|event| event.reason == "InvalidKeptAt"), "once");
        }
    }
    let mut empty = kept(observed(60, 0, None), "");
    look(&mut empty, at(NOW));
    assert_eq!(empty.instance.annotation(labels::KEPT_AT), Some(""), "as if there were none");
}

proptest! {
    #[test]
    fn a_use_is_never_in_the_future_nor_earlier_than_what_is_known(
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
        // As long as nobody asks again, it is one use, not a new one at each look.
        look(&mut observed, at(NOW));
        prop_assert!(!look(&mut observed, at(NOW)));
        let later = if ago < 0 { NOW - ago - 1 } else { NOW + DAY };
        prop_assert_eq!(since(&observed, later), at(expected));
        prop_assert_eq!(since(&observed, later + 20 * DAY), at(known.max(NOW - ago)));
    }
}
