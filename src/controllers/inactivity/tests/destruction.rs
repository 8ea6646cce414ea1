//! The actions that are due for a stopped Instance, and their effects.

use super::table::{DAY, NOW, action, judged, observed, with};
use super::*;
use crate::api::condition::ABANDONED;
use crate::api::labels;
use crate::api::promise::Promise;
use crate::runtime::clock::rfc3339;
use crate::runtime::plan::Requeue;
use crate::runtime::reconciler::Reconciled;

/// An Instance that was stopped `ago` seconds ago, of a Template that deletes after 10 days.
fn stopped(ago: i64, persistent: bool) -> Observed {
    let mut observed = observed(0, 0, None);
    let instance = Arc::make_mut(&mut observed.candidate.instance);
    instance.spec.running = false;
    instance.status.inactivity = None;
    let since = crate::runtime::clock::rfc3339(at(NOW - ago));
    instance.metadata.annotations = [(labels::LAST_POWERED_OFF, since)].into_iter().collect();
    let mut template = template("24h", persistent);
    template.spec.cleanup.delete_after_inactivity = Some("10d".to_owned());
    observed.candidate.template = Some(Arc::new(template));
    observed.seen = None;
    observed
}

/// The same Instance after `sent` warnings. The last one was accepted `last` seconds ago.
fn warned(ago: i64, sent: i64, last: i64) -> Observed {
    let mut observed = stopped(ago, true);
    let promise = Promise {
        since: Some(Time(at(NOW - ago))),
        warnings: sent,
        last_warning: Some(Time(at(NOW - last))),
        ..Promise::default()
    };
    Arc::make_mut(&mut observed.candidate.instance).status.destruction = Some(Box::new(promise));
    observed
}

fn with_stamp(mut observed: Observed, stamp: &str) -> Observed {
    Arc::make_mut(&mut observed.candidate.instance).metadata.annotations =
        [(labels::LAST_POWERED_OFF, stamp.to_owned())].into_iter().collect();
    observed
}

fn with_template(mut observed: Observed, change: impl FnOnce(&mut Template)) -> Observed {
    change(Arc::make_mut(observed.candidate.template.as_mut().expect("a Template")));
    observed
}

#[test]
fn each_state_of_a_stopped_instance_has_one_action() {
    let with_number = |observed, number: &str| {
        let annotations = [(labels::CUSTOM_NUMBER_ALERTS, number.to_owned())];
        with_template(observed, |template| template.metadata.annotations = annotations.into_iter().collect())
    };
    let with_time = |observed, time: &str| {
        with_template(observed, |template| {
            template.spec.cleanup.delete_after_inactivity = Some(time.to_owned());
        })
    };
    let mut unstamped = stopped(20 * DAY, true);
    Arc::make_mut(&mut unstamped.candidate.instance).metadata.annotations =
        [("other", "text")].into_iter().collect();
    let exempt = with(&warned(20 * DAY, 2, DAY), |known| known.is_exempt = true);
    let orphan = with(&warned(20 * DAY, 2, DAY), |known| known.template = None);
    // The Instance, the action, and the delay in seconds before the next look if nothing is due.
    for (case, observed, wanted, again) in [
        ("young", stopped(10 * DAY - 7, true), "wait", Some(7)),
        ("no warning yet", stopped(10 * DAY, true), "warn", None),
        ("long overdue", stopped(90 * DAY, true), "warn", None),
        ("a warning a moment ago", warned(20 * DAY, 1, 1), "wait", Some(DAY - 1)),
        ("almost an interval ago", warned(20 * DAY, 1, DAY - 1), "wait", Some(1)),
        ("an interval ago", warned(20 * DAY, 1, DAY), "warn", None),
        ("all warnings, almost an interval ago", warned(20 * DAY, 2, DAY - 1), "wait", Some(1)),
        ("all warnings, an interval ago", warned(20 * DAY, 2, DAY), "final mail", None),
        ("more than all", warned(20 * DAY, 9, DAY), "final mail", None),
        ("the Template asks for less", with_number(warned(20 * DAY, 1, DAY), "1"), "final mail", None),
        ("the Template asks for more", with_number(warned(20 * DAY, 2, DAY), "3"), "warn", None),
        ("the Template asks for none", with_number(stopped(10 * DAY, true), "0"), "final mail", None),
        ("no stamp", unstamped, "wait", None),
        ("an empty stamp", with_stamp(stopped(20 * DAY, true), ""), "wait", None),
        ("an unreadable stamp", with_stamp(stopped(20 * DAY, true), "yesterday"), "wait", None),
        ("exempt", exempt, "wait", None),
        ("no Template", orphan, "wait", None),
        ("no persistent data", stopped(20 * DAY, false), "wait", None),
        ("never", with_time(warned(20 * DAY, 2, DAY), "never"), "wait", None),
        ("an unreadable time", with_time(warned(20 * DAY, 2, DAY), "106752d"), "problem", None),
        ("at once", with_time(stopped(0, true), "0s"), "warn", None),
    ] {
        let made = plan(&observed, &settings(), at(NOW));
        assert_eq!(action(&made), wanted, "{case}");
        let seconds = |again: i64| Requeue::After(std::time::Duration::from_secs(again.unsigned_abs()));
        if wanted == "wait" {
            assert_eq!(made.requeue, again.map_or(Requeue::OnChange, seconds), "{case}");
        }
        assert!(made.remove.is_empty() && made.patches.is_empty(), "{case}");
    }
}

#[test]
fn without_notifications_a_stopped_instance_is_deleted_when_its_time_is_over() {
    let mut settings = settings();
    settings.config.notifications = false;
    assert_eq!(judged(&stopped(10 * DAY - 1, true), &settings), "wait");
    assert_eq!(judged(&stopped(10 * DAY, true), &settings), "delete");
    assert_eq!(judged(&stopped(20 * DAY, false), &settings), "wait");
    // The stored promise is kept.
    assert_eq!(judged(&warned(20 * DAY, 1, DAY - 1), &settings), "wait");
    assert_eq!(judged(&warned(20 * DAY, 1, DAY), &settings), "delete");
}

#[test]
fn a_stamp_with_a_fraction_of_a_second_is_one_stop() {
    let stamp = rfc3339(at(NOW - 20 * DAY - 1)).replace('Z', ".25Z");
    let observed = with_stamp(warned(20 * DAY, 1, 60), &stamp);
    assert_eq!(judged(&observed, &settings()), "wait", "the warning still counts");
}

#[test]
fn a_stopped_instance_is_deleted_after_its_time() {
    assert_eq!(judged(&stopped(9 * DAY, true), &settings()), "wait");
    assert_eq!(judged(&stopped(10 * DAY, true), &settings()), "warn");
    assert_eq!(judged(&stopped(90 * DAY, false), &settings()), "wait", "it has no persistent data");
    let mut observed = stopped(20 * DAY, true);
    let promise = Promise {
        since: Some(Time(at(NOW - 20 * DAY))),
        warnings: 2,
        last_warning: Some(Time(at(NOW - DAY - 1))),
        final_mail: Some(Time(at(NOW - 1))),
        ..Promise::default()
    };
    Arc::make_mut(&mut observed.candidate.instance).status.destruction = Some(Box::new(promise));
    let plan = plan(&observed, &settings(), at(NOW));
    assert_eq!(action(&plan), "delete");
    let told = report(&Reconciled::of(&observed, &settings(), &plan, &Outcome::pending(), at(NOW)));
    assert!(told.status.conditions.iter().any(|condition| condition.type_ == ABANDONED));
    assert_eq!(told.events[0].reason, "Destroyed");
    // If it is stopped again later, the earlier promise does not count.
    let mut again = observed;
    let since = crate::runtime::clock::rfc3339(at(NOW - 10 * DAY));
    Arc::make_mut(&mut again.candidate.instance).metadata.annotations =
        [(labels::LAST_POWERED_OFF, since)].into_iter().collect();
    assert_eq!(judged(&again, &settings()), "warn");
    let never = with(&again, |known| known.template = Some(Arc::new(template("24h", true))));
    assert_eq!(judged(&never, &settings()), "wait");
}
