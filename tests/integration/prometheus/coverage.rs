//! Sources that are missing, or were missing for a time, and a Prometheus that does not answer.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::net::TcpListener;

use super::{DAY, HOUR, MINUTE, NOW, STEP, Samples, by_address, client, end_of_step, scraped, seen, shared};
use crate::daemon::reserved_port;

/// The start of the source `late`.
const LATE: i64 = NOW - 6 * HOUR;
/// The end of the source `gone`.
const GONE: i64 = NOW - HOUR;
/// The gap of the source `gap`.
const GAP: (i64, i64) = (NOW - 8 * HOUR, NOW - 6 * HOUR);
/// The time of the change in counters that change once.
const CHANGE: i64 = NOW - 3 * HOUR;

pub fn write(samples: &mut Samples) {
    let begin = NOW - 2 * DAY;
    let mut source = |name: &str, up: Vec<(i64, i64)>| {
        samples.series(&format!("up{{container=\"{name}\"}}"), up.iter().map(|(time, _)| (*time, 1)));
        let counter = |address: &str| format!("{name}_connections{{ip=\"{address}\"}}");
        samples.series(&counter("10.1.0.1"), up.iter().map(|(time, _)| (*time, 4)));
        let changed = |time: i64| if time < CHANGE { 4 } else { 5 };
        samples.series(&counter("10.1.0.2"), up.iter().map(|(time, _)| (*time, changed(*time))));
        // The first connection of a machine.
        let first = up.iter().filter(|(time, _)| *time >= CHANGE).map(|(time, _)| (*time, 1));
        samples.series(&counter("10.1.0.3"), first);
    };
    source("late", scraped(LATE, NOW, |_| 1));
    source("gone", scraped(begin, GONE, |_| 1));
    source("gap", [scraped(begin, GAP.0, |_| 1), scraped(GAP.1, NOW, |_| 1)].concat());
    // A target that was given another name, and its counter.
    samples.series("up{container=\"renamed\"}", scraped(GONE, NOW, |_| 1));
    samples.series("renamed_connections{ip=\"10.1.0.3\"}", scraped(CHANGE, NOW, |_| 1));
}

/// The keys that make SSH through the bastion another source, and the only one.
fn only(name: &str) -> String {
    format!(
        "    queries:\n      nginxData: ''\n      webSshData: ''\n      openData: ''\n      \
         bastionSshAvailable: 'count(up{{container=\"{name}\"}})'\n      \
         bastionSshData: '{name}_connections{{ip=%q}}'\n"
    )
}

/// The end of the step that contains the first sample after `time`, for samples that begin at `begin`.
fn step_of(begin: i64, time: i64) -> i64 {
    end_of_step(begin + (time - begin + MINUTE - 1) / MINUTE * MINUTE)
}

#[tokio::test]
async fn the_time_before_the_first_sample_is_ignored() {
    let server = shared();
    let client = client(&server.url(), &only("late"));
    let activity = seen(&client, NOW - DAY).await;
    assert!(!activity.is_complete());
    let observed = activity.observed_since().expect("the source is there").as_second();
    assert!((LATE..LATE + 2 * STEP).contains(&observed), "{observed}");
    let sentence = format!(
        "the source ssh was missing in Prometheus before {}",
        Timestamp::from_second(observed).expect("a time")
    );
    assert_eq!(activity.problems(), [sentence]);
    // Its counters have not started then: they existed before, but Prometheus did not.
    assert_eq!(by_address(&activity, "10.1.0.1"), None);
    assert_eq!(by_address(&activity, "10.1.0.2"), Some((step_of(LATE, CHANGE), "ssh")));
    assert_eq!(by_address(&activity, "10.1.0.3"), Some((step_of(LATE, CHANGE), "ssh")));
    // A window that begins with the samples, and one that begins later.
    for since in [LATE, LATE + 1, NOW - 5 * HOUR] {
        let activity = seen(&client, since).await;
        assert_eq!(activity.problems(), [""; 0], "{since}");
        assert_eq!(activity.observed_since(), Some(activity.since));
        assert_eq!(by_address(&activity, "10.1.0.1"), None, "{since}");
    }
}

#[tokio::test]
async fn a_missing_source_is_named_and_its_earlier_samples_count() {
    let server = shared();
    let activity = seen(&client(&server.url(), &only("gone")), NOW - DAY).await;
    assert!(!activity.is_complete());
    assert_eq!(activity.observed_since(), None);
    assert_eq!(
        activity.problems()[0],
        "the source ssh is missing in Prometheus: count(up{container=\"gone\"}) has no result above 0"
    );
    assert_eq!(by_address(&activity, "10.1.0.2"), Some((step_of(NOW - 2 * DAY, CHANGE), "ssh")));
    assert_eq!(by_address(&activity, "10.1.0.1"), None);
    // A result of 0.
    let zero = only("gone").replace("})'", "}) or vector(0)'");
    let activity = seen(&client(&server.url(), &zero), NOW - DAY).await;
    assert!(activity.problems()[0].starts_with("the source ssh is missing"), "{:?}", activity.problems());
}

#[tokio::test]
async fn a_gap_in_the_window_is_reported() {
    let server = shared();
    let client = client(&server.url(), &only("gap"));
    let activity = seen(&client, NOW - DAY).await;
    assert!(!activity.is_complete());
    let observed = activity.observed_since().expect("the source is there").as_second();
    assert!((GAP.1..GAP.1 + 2 * STEP).contains(&observed), "{observed}");
    assert!(seen(&client, NOW - 5 * HOUR).await.is_complete());
}

#[tokio::test]
async fn uses_are_seen_from_before_the_source_has_its_name() {
    let server = shared();
    let activity = seen(&client(&server.url(), &only("renamed")), NOW - DAY).await;
    assert_eq!(by_address(&activity, "10.1.0.3"), Some((end_of_step(CHANGE), "ssh")));
    assert!(!activity.is_complete());
}

#[tokio::test]
async fn a_failed_query_is_named() {
    let server = shared();
    // Errors that only Prometheus finds: unknown functions and Unicode classes.
    let available = "    queries: {webSshAvailable: 'number(up)'}\n";
    let data = "    queries: {webSshData: 'c{ip=~\"%s\\\\pX\"}'}\n";
    for keys in [available, data] {
        let activity = seen(&client(&server.url(), keys), NOW - DAY).await;
        assert!(!activity.is_complete(), "{keys}");
        let problems = activity.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("the source webSsh cannot be read from Prometheus at http://"),
            "{problems:?}"
        );
        assert!(problems[0].contains("the query is refused: "), "{problems:?}");
        assert!(by_address(&activity, "10.0.0.2").is_some(), "the other sources are asked");
    }
}

#[tokio::test]
async fn a_silent_prometheus_takes_one_time_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let accepting = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok(connection) = listener.accept().await {
            open.push(connection);
        }
    });
    let client = client(&url, "    timeout: 3s\n");
    let begin = Instant::now();
    let activity = seen(&client, NOW - 90 * DAY).await;
    let took = begin.elapsed();
    // One after the other, the four sources would take twelve seconds.
    assert!((Duration::from_secs(3)..Duration::from_secs(8)).contains(&took), "{took:?}");
    assert!(!activity.is_complete());
    assert_eq!(activity.observed_since(), None);
    let problems = activity.problems();
    assert_eq!(problems.len(), 4, "{problems:?}");
    for (problem, source) in problems.iter().zip(["ingress", "ssh", "webSsh", "open"]) {
        assert_eq!(
            *problem,
            format!("the source {source} cannot be read from Prometheus at {url}: no answer within 3s")
        );
    }
    accepting.abort();
}

#[tokio::test]
async fn an_unreachable_prometheus_is_reported() {
    let url = format!("http://127.0.0.1:{}", reserved_port());
    let activity = seen(&client(&url, ""), NOW - DAY).await;
    assert!(!activity.is_complete());
    assert!(activity.problems()[0].contains("Connection refused"), "{:?}", activity.problems());
}
