//! The events that count as a use, and the machine that they count for.

use super::{
    DAY, HOUR, MINUTE, NOW, STEP, Samples, by_address, by_name, client, end_of_step, scraped, seen, shared,
};

/// The samples begin two days before the end.
const BEGIN: i64 = NOW - 2 * DAY;
/// The time of the change in counters that change once.
const CHANGE: i64 = NOW - 10 * HOUR;
const LATER: i64 = NOW - 4 * HOUR;

/// A counter that grows from `from` at `time`.
fn grows(from: i64, time: i64) -> Vec<(i64, i64)> {
    scraped(BEGIN, NOW, |now| if now < time { from } else { from + 1 })
}

fn constant(value: i64) -> Vec<(i64, i64)> {
    scraped(BEGIN, NOW, |_| value)
}

/// The time of the first sample of [`grows`] after a change at `time`.
fn first_sample(time: i64) -> i64 {
    BEGIN + (time - BEGIN + MINUTE - 1) / MINUTE * MINUTE
}

/// Drops the samples in a gap, which belongs to neither side.
fn without(samples: Vec<(i64, i64)>, gap: (i64, i64)) -> Vec<(i64, i64)> {
    samples.into_iter().filter(|(time, _)| *time <= gap.0 || *time >= gap.1).collect()
}

pub fn write(samples: &mut Samples) {
    for target in [
        r#"service="ingress-nginx-external-controller-metrics""#,
        r#"container="bastion-operator-tracker-sidecar""#,
        r#"container="webssh""#,
    ] {
        samples.series(&format!("up{{{target}}}"), constant(1));
    }
    let ssh = |address: &str, port: u16| {
        format!("bastion_ssh_connections{{destination_ip=\"{address}\",destination_port=\"{port}\"}}")
    };
    let web = |address: &str| {
        format!("bastion_web_ssh_connections{{destination_ip=\"{address}\",destination_port=\"22\"}}")
    };
    samples.series(&ssh("10.0.0.1", 22), constant(4));
    samples.series(&ssh("10.0.0.2", 22), grows(4, CHANGE));
    samples.series(&ssh("10.0.0.3", 22), scraped(BEGIN, NOW, |now| if now < CHANGE { 9 } else { 0 }));
    samples.series(&ssh("10.0.0.4", 22), scraped(first_sample(CHANGE), NOW, |_| 1));
    samples.series(&ssh("10.0.0.5", 22), scraped(first_sample(CHANGE), NOW, |_| 0));
    let gap = |length| (first_sample(CHANGE), first_sample(CHANGE) + length);
    samples.series(&ssh("10.0.0.6", 22), without(constant(4), gap(25 * MINUTE)));
    samples.series(&ssh("10.0.0.7", 22), without(grows(4, CHANGE + MINUTE), gap(25 * MINUTE)));
    samples.series(&ssh("10.0.0.8", 22), without(constant(4), gap(3 * HOUR)));
    samples.series(&ssh("10.0.0.9", 22), grows(4, LATER));
    samples.series(&ssh("10.0.0.9", 2_222), grows(4, CHANGE));
    samples.series(&ssh("10.0.0.10", 22), grows(4, NOW - 30 * HOUR));
    samples.series(&ssh("10.0.0.11", 22), grows(4, NOW - 50));
    samples.series(&ssh("10.0.0.12", 22), grows(4, LATER));
    samples.series(&web("10.0.0.12"), grows(4, CHANGE));
    samples.series(&web("10.0.0.13"), grows(0, CHANGE));
    samples.series(&ssh("10.0.0.14", 22), grows(4, CHANGE));
    samples.series(&web("10.0.0.14"), grows(4, LATER));
    write_open(samples);
    for (service, change) in [("x-1", CHANGE), ("x-12", LATER), ("tea-6831", LATER), ("y-db", CHANGE)] {
        let names = format!("exported_namespace=\"tenant-ada\",exported_service=\"{service}\"");
        let requests =
            |status: u16| format!("nginx_ingress_controller_requests{{{names},status=\"{status}\"}}");
        samples.series(&requests(101), grows(7, change));
        samples.series(&requests(200), constant(1_000));
        let route = format!("httproute/tenant-ada/{service}/rule/0");
        samples.series(
            &format!("envoy_cluster_upstream_rq_total{{envoy_cluster_name=\"{route}\"}}"),
            grows(0, change),
        );
    }
}

/// The gauge of open connections: one that was open all the time, one until `LATER`, one for some minutes in the middle
/// of a step, one that was closed before the window, and two that were never open. The counters of all of them stay as
/// they are.
fn write_open(samples: &mut Samples) {
    let gauge = |address: &str| {
        format!("bastion_ssh_open_connections{{destination_ip=\"{address}\",destination_port=\"22\"}}")
    };
    let open = |begin, end| scraped(BEGIN, NOW, move |now| i64::from(now >= begin && now < end));
    let only = |begin, end| scraped(first_sample(begin), end - 1, |_| 2);
    samples.series(&gauge("10.0.2.1"), only(BEGIN, NOW + 1));
    samples.series(&gauge("10.0.2.2"), only(BEGIN, LATER));
    let middle = end_of_step(CHANGE) + MINUTE;
    samples.series(&gauge("10.0.2.3"), open(middle, middle + 2 * MINUTE));
    samples.series(&gauge("10.0.2.4"), only(BEGIN, NOW - 25 * HOUR));
    samples.series(&gauge("10.0.2.5"), open(NOW, NOW));
    for last in 1..=6 {
        let labels = format!("destination_ip=\"10.0.2.{last}\",destination_port=\"22\"");
        samples.series(&format!("bastion_ssh_connections{{{labels}}}"), constant(4));
    }
}

#[tokio::test]
async fn a_machine_with_an_open_session_is_used_as_long_as_it_is_open() {
    let server = shared();
    let activity = seen(&client(&server.url(), ""), NOW - DAY).await;
    let last_sample = |end: i64| BEGIN + (end - 1 - BEGIN) / MINUTE * MINUTE;
    let middle = end_of_step(CHANGE) + MINUTE;
    let table = [
        ("10.0.2.1", Some((NOW, "open")), "it is open, and was opened before the window"),
        ("10.0.2.2", Some((end_of_step(last_sample(LATER)), "open")), "it was closed in the window"),
        ("10.0.2.3", Some((end_of_step(last_sample(middle + 2 * MINUTE)), "open")), "between two points"),
        ("10.0.2.4", None, "it was closed before the window"),
        ("10.0.2.5", None, "nothing is open"),
        ("10.0.2.6", None, "nothing was ever open"),
    ];
    for (address, expected, case) in table {
        assert_eq!(by_address(&activity, address), expected, "{address}: {case}");
    }
    assert_eq!(activity.problems(), [""; 0]);
    let off = client(&server.url(), "    queries: {openData: ''}\n");
    assert_eq!(by_address(&seen(&off, NOW - DAY).await, "10.0.2.1"), None, "the source is off");
    // Steps of 35 minutes.
    let long = seen(&client(&server.url(), ""), NOW - 90 * DAY).await;
    let step = 7 * STEP;
    let closed = (last_sample(LATER) + step - 1) / step * step;
    assert_eq!(by_address(&long, "10.0.2.1"), Some((NOW, "open")));
    assert_eq!(by_address(&long, "10.0.2.2"), Some((closed, "open")));
}

#[tokio::test]
async fn a_use_is_a_change_of_a_counter() {
    let server = shared();
    let activity = seen(&client(&server.url(), ""), NOW - DAY).await;
    assert_eq!(activity.problems(), [""; 0]);
    assert!(activity.is_complete());
    let change = end_of_step(first_sample(CHANGE));
    let later = end_of_step(first_sample(LATER));
    let after_gap = |length: i64| end_of_step(first_sample(CHANGE) + length);
    let table = [
        ("10.0.0.1", None, "a constant counter"),
        ("10.0.0.2", Some((change, "ssh")), "it has grown"),
        ("10.0.0.3", Some((change, "ssh")), "it was reset"),
        ("10.0.0.4", Some((change, "ssh")), "the first connection"),
        ("10.0.0.5", None, "it has appeared and counted nothing"),
        ("10.0.0.6", None, "scrapes have failed"),
        ("10.0.0.7", Some((after_gap(25 * MINUTE), "ssh")), "it has grown while scrapes failed"),
        ("10.0.0.8", Some((after_gap(3 * HOUR), "ssh")), "three hours without samples are unknown"),
        ("10.0.0.9", Some((later, "ssh")), "the later of two counters"),
        ("10.0.0.10", None, "before the window"),
        ("10.0.0.11", Some((NOW, "ssh")), "in the step that has not ended"),
        ("10.0.0.12", Some((later, "ssh")), "the later of two sources"),
        ("10.0.0.13", Some((change, "webSsh")), "in the browser"),
        ("10.0.0.14", Some((later, "webSsh")), "the later of two sources, in the browser"),
        ("10.0.0.99", None, "it has no counter"),
    ];
    for (address, expected, case) in table {
        assert_eq!(by_address(&activity, address), expected, "{address}: {case}");
    }
}

#[tokio::test]
async fn a_use_has_the_same_time_in_every_window() {
    let server = shared();
    let client = client(&server.url(), "");
    let expected = Some((end_of_step(first_sample(CHANGE)), "ssh"));
    for since in [NOW - 11 * HOUR, NOW - 25 * HOUR, CHANGE - 1, CHANGE - 200] {
        assert_eq!(by_address(&seen(&client, since).await, "10.0.0.2"), expected, "{since}");
    }
    assert_eq!(by_address(&seen(&client, CHANGE + 3 * STEP).await, "10.0.0.2"), None);
}

#[tokio::test]
async fn services_belong_to_the_instance_with_their_name() {
    let server = shared();
    let form = |query: &str| format!("    queries: {{nginxData: '{query}'}}\n");
    let (change, later) = (end_of_step(first_sample(CHANGE)), end_of_step(first_sample(LATER)));
    for query in [
        "nginx_ingress_controller_requests{exported_namespace=%q, exported_service=%q}",
        r#"nginx_ingress_controller_requests{exported_namespace="%s", exported_service=~"%s.*"}"#,
        r#"nginx_ingress_controller_requests{exported_namespace="%s", exported_service=~"%s(-.*)?"}"#,
        r#"envoy_cluster_upstream_rq_total{envoy_cluster_name=~"httproute/%s/%s/rule/.*"}"#,
        r#"envoy_cluster_upstream_rq_total{envoy_cluster_name="httproute/%s/%s/rule/0"}"#,
    ] {
        let activity = seen(&client(&server.url(), &form(query)), NOW - DAY).await;
        assert_eq!(activity.problems(), [""; 0], "{query}");
        let of = |instance, environments| by_name(&activity, "tenant-ada", instance, environments);
        assert_eq!(of("x-1", &[]), Some(change), "{query}");
        assert_eq!(of("x-12", &[]), Some(later), "{query}");
        assert_eq!(of("tea.6831", &[]), Some(later), "{query}");
        assert_eq!(of("y", &["web", "db"]), Some(change), "{query}");
        assert_eq!(of("y", &["web"]), None, "{query}");
        assert_eq!(of("x", &[]), None, "{query}");
        assert_eq!(by_name(&activity, "tenant-bob", "x-1", &[]), None, "{query}");
    }
}

#[tokio::test]
async fn long_windows_have_longer_steps() {
    let server = shared();
    let activity = seen(&client(&server.url(), ""), NOW - 90 * DAY).await;
    // 35 minutes.
    let step = 7 * STEP;
    let expected = (first_sample(CHANGE) + step - 1) / step * step;
    assert_eq!(by_address(&activity, "10.0.0.2"), Some((expected, "ssh")));
    assert_eq!(by_address(&activity, "10.0.0.1"), None, "it is there since the samples begin");
    assert!(!activity.is_complete(), "there are samples of two days");
}
