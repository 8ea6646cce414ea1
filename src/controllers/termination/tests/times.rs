//! The times of queries, and the answers that count.

use super::*;

#[test]
fn the_time_of_the_next_query_follows_from_the_last_one() {
    let until = |text| Decision::WaitUntil(time(text));
    let none = json!({});
    assert_eq!(next(&checked(&none, 30, kept())), until("2026-03-04T05:01:30Z"));
    assert_eq!(next(&checked(&none, 120, kept())), Decision::Check);
    assert_eq!(next(&checked(&none, 4, failed())), until("2026-03-04T05:00:01Z"));
    assert_eq!(next(&checked(&none, 5, failed())), Decision::Check);
    // The spec has changed since the query.
    let changed = json!({"metadata": {"generation": 4}});
    for verdict in [kept(), failed()] {
        assert_eq!(next(&checked(&changed, 4, verdict.clone())), until("2026-03-04T05:00:01Z"));
        assert_eq!(next(&checked(&changed, 5, verdict)), Decision::Check);
    }
    let other = json!({"spec": {"statusCheckUrl": "https://other"}});
    assert_eq!(next(&checked(&other, 0, gone())), Decision::Check, "that was another URL");
    let again = json!({"metadata": {"uid": "i2"}});
    assert_eq!(next(&checked(&again, 0, gone())), Decision::Check, "that was another Instance");
    let mut under_way = checked(&none, 0, kept());
    under_way.check.as_mut().expect("a query").result = None;
    assert_eq!(next(&under_way), Decision::UnderWay);
    assert!(plan(&under_way, &config(), now()).effects.is_empty());
}

#[test]
fn one_answer_does_not_end_an_exam() {
    let until = |text| Decision::WaitUntil(time(text));
    let none = json!({});
    let first = checked(&none, 4, gone());
    assert_eq!(next(&first), until("2026-03-04T05:00:06Z"));
    assert_eq!(next(&checked(&none, 10, gone())), Decision::Check);
    let report = told(&first);
    let condition = &report.status.conditions[0];
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "Unconfirmed"));
    assert_eq!(
        condition.message.as_str(),
        "exams.example.org answered 404: the exam is over if a second answer says so; it is queried again"
    );
    assert_eq!(report.status.automation.termination_time, None);
    assert!(report.events.is_empty() && plan(&first, &config(), now()).patches.is_empty());
    // Consecutive answers, with their age in seconds, and the decision after the last one.
    let decided = |answers: &[(i64, Verdict)]| {
        let mut check = begun(true);
        for (ago, verdict) in answers {
            check.end(before(*ago), verdict.clone());
        }
        next(&Observed { check: Some(check), ..observed(&none) })
    };
    let concluded = Decision::Conclude { at: before(0), code: 404 };
    let other = || Verdict::Gone { code: 410 };
    assert_eq!(decided(&[(10, gone()), (0, gone())]), concluded);
    assert_eq!(decided(&[(10, other()), (0, gone())]), concluded, "it says the same");
    assert_eq!(decided(&[(10, gone()), (5, gone()), (0, gone())]), concluded);
    assert_eq!(decided(&[(9, gone()), (0, gone())]), until("2026-03-04T05:00:01Z"), "too early");
    for between in [failed(), kept()] {
        assert_eq!(decided(&[(20, gone()), (9, between), (0, gone())]), until("2026-03-04T05:00:10Z"));
    }
    let slower = TerminationConfig { confirm_after: "1m".parse().expect("a duration"), ..config() };
    assert_eq!(decide(&first, &slower, now()), until("2026-03-04T05:00:56Z"));
}

#[test]
fn no_answer_counts_before_the_machine_was_ready() {
    let until = |text| Decision::WaitUntil(time(text));
    let mut early = observed(&json!({}));
    let mut check = begun(false);
    for ago in [300, 200, 0] {
        check.end(before(ago), gone());
    }
    early.check = Some(check);
    assert_eq!(next(&early), until("2026-03-04T05:00:20Z"), "less and less often");
    let report = told(&early);
    assert_eq!(report.status.conditions[0].reason.as_str(), "Unconfirmed");
    let message = report.status.conditions[0].message.as_str();
    assert!(
        message.contains("answered 404, which does not end an exam before its machine has been ready"),
        "{message}"
    );
    // The machine is ready now: earlier answers do not count, and the URL is queried soon.
    for status in [json!({"phase": "Ready"}), json!({"initialReadyTime": "1m", "phase": "Off"})] {
        let ready = Observed { check: early.check.clone(), ..observed(&json!({"status": status})) };
        assert_eq!(next(&ready), until("2026-03-04T05:00:05Z"));
    }
    let check = early.check.as_mut().expect("a query");
    check.was_ready = true;
    check.end(now(), gone());
    assert_eq!(next(&early), until("2026-03-04T05:00:10Z"));
}

#[test]
fn an_instance_is_queried_at_most_every_five_seconds() {
    let until = |text| Decision::WaitUntil(time(text));
    let another_url = json!({"spec": {"statusCheckUrl": "https://other"}});
    let recreated = json!({"metadata": {"uid": "i2"}});
    // The label was set again: only the start of the last query is known.
    for (what, observed) in [
        ("label", observed(&json!({}))),
        ("URL", checked(&another_url, 4, kept())),
        ("uid", checked(&recreated, 4, kept())),
    ] {
        let recent = Observed { begun: Some(before(4)), ..observed.clone() };
        assert_eq!(next(&recent), until("2026-03-04T05:00:01Z"), "{what}");
        for begun in [before(5), before(-3_600)] {
            assert_eq!(next(&Observed { begun: Some(begun), ..observed.clone() }), Decision::Check, "{what}");
        }
    }
}

#[test]
fn failed_queries_are_repeated_less_and_less_often() {
    let waits = |interval: &str| {
        let config = TerminationConfig {
            status_check_interval: interval.parse().expect("a duration"),
            ..TerminationConfig::default()
        };
        let wait = |failures| {
            let mut observed = checked(&json!({}), 0, failed());
            observed.check.as_mut().expect("a query").failures = failures;
            match decide(&observed, &config, now()) {
                Decision::WaitUntil(due) => due.duration_since(now()).as_secs(),
                other => panic!("{other:?}"),
            }
        };
        [1, 2, 3, 6, 7, 8, 100, u32::MAX].map(wait)
    };
    assert_eq!(waits("24h"), [5, 10, 20, 160, 300, 300, 300, 300]);
    assert_eq!(waits("7s"), [5, 7, 7, 7, 7, 7, 7, 7]);
}

#[test]
fn after_a_restart_the_status_says_when_the_url_was_queried() {
    let at_restart = |reason: &str, generation: i64, last: &str| {
        let automation = json!({"lastCheckTime": last});
        next(&observed(
            &json!({"status": {"conditions": condition(reason, generation), "automation": automation}}),
        ))
    };
    let soon = Decision::WaitUntil(time("2026-03-04T05:01:00Z"));
    assert_eq!(at_restart("Kept", 3, "2026-03-04T04:59:00Z"), soon);
    assert_eq!(at_restart("Kept", 3, "2026-03-04T04:58:00Z"), Decision::Check);
    assert_eq!(at_restart("Kept", 3, "2036-03-04T04:58:00Z"), Decision::Check, "another client wrote it");
    assert_eq!(at_restart("Unconfirmed", 3, "2026-03-04T04:59:00Z"), Decision::Check);
    assert_eq!(at_restart("Kept", 2, "2026-03-04T04:59:00Z"), Decision::Check, "the spec has changed");
    assert_eq!(at_restart("StatusCheckFailed", 3, "2026-03-04T04:59:00Z"), Decision::Check);
    assert_eq!(
        at_restart("Terminated", 3, "2026-03-04T04:59:00Z"),
        Decision::Check,
        "the label was set again"
    );
    assert_eq!(at_restart("Terminating", 3, "2026-03-04T04:59:00Z"), Decision::Terminate);
    assert_eq!(at_restart("Terminating", 2, "2026-03-04T04:59:00Z"), Decision::Check);
}
