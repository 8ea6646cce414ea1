//! Tests of the counter: the rendered text, and its limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};

use crate::capture::ConnectionCounter;
use crate::capture::series::{KNOWN_LIMIT, Series, UNKNOWN_LIMIT};
use crate::runtime::ObjectKey;

fn counter() -> ConnectionCounter {
    ConnectionCounter::new("bastion_ssh_connections", "SSH connections")
}

fn text(counter: &ConnectionCounter) -> String {
    let mut text = String::new();
    counter.render(&mut text);
    text
}

/// The lines of the text except comments.
fn samples(counter: &ConnectionCounter) -> Vec<String> {
    text(counter).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn series(ip: &str, count: u64) -> String {
    format!(r#"bastion_ssh_connections_total{{destination_ip="{ip}",destination_port="22"}} {count}"#)
}

const NONE_EVICTED: &str = "bastion_ssh_connections_evicted_total 0";

#[test]
fn a_series_starts_at_zero() {
    let counter = counter();
    counter.count(address("10.0.0.5:22"));
    counter.count(address("10.0.0.5:22"));
    let head = "# HELP bastion_ssh_connections_total SSH connections\n# TYPE bastion_ssh_connections_total counter\n";
    assert!(text(&counter).starts_with(&format!("{head}{}\n", series("10.0.0.5", 0))), "the first text");
    assert_eq!(samples(&counter), [series("10.0.0.5", 2), NONE_EVICTED.to_owned()]);
    counter.count(address("[2001:db8::1]:22"));
    counter.count(address("[::ffff:10.0.0.5]:22"));
    let expected = [series("10.0.0.5", 3), series("2001:db8::1", 0), NONE_EVICTED.to_owned()];
    assert_eq!(samples(&counter), expected);
}

#[test]
fn a_known_destination_has_a_series_before_its_first_connection() {
    let counter = counter();
    counter.expose(address("10.0.0.5:22"));
    assert_eq!(samples(&counter), [series("10.0.0.5", 0), NONE_EVICTED.to_owned()]);
    counter.count(address("10.0.0.5:22"));
    assert_eq!(samples(&counter), [series("10.0.0.5", 1), NONE_EVICTED.to_owned()]);
    counter.withdraw(address("10.0.0.5:22"));
    assert_eq!(
        samples(&counter),
        [series("10.0.0.5", 1), NONE_EVICTED.to_owned()],
        "a series with counts stays"
    );
    counter.expose(address("10.0.0.6:22"));
    counter.withdraw(address("10.0.0.6:22"));
    assert_eq!(
        samples(&counter),
        [series("10.0.0.5", 1), NONE_EVICTED.to_owned()],
        "a series without counts is removed"
    );
}

#[test]
fn the_last_connection_to_an_address_is_found_on_any_port() {
    let counter = counter();
    let at = |second| Timestamp::from_second(second).expect("a time");
    counter.count_at(address("10.0.0.5:22"), at(100));
    counter.count_at(address("10.0.0.5:2222"), at(50));
    counter.count_at(address("10.0.0.6:22"), at(200));
    assert_eq!(counter.last_seen(address("10.0.0.5:1").ip()), Some(at(100)));
    assert_eq!(counter.last_seen(address("[::ffff:10.0.0.6]:1").ip()), Some(at(200)));
    assert_eq!(counter.last_seen(address("10.0.0.7:1").ip()), None);
}

#[test]
fn a_connection_is_counted_for_the_instance_that_has_the_address_at_that_time() {
    let counter = counter();
    let instance = |name: &str| ObjectKey::new("tenant-ada", name);
    let present = Arc::new(Mutex::new(Some(instance("one"))));
    let resolver = Arc::clone(&present);
    counter.set_resolver(Arc::new(move |_| resolver.lock().expect("no panic").clone()));
    let samples = || {
        let line =
            |line: String| line.strip_prefix("bastion_instance_ssh_connections_total").map(str::to_owned);
        samples(&counter).into_iter().filter_map(line).collect::<Vec<_>>()
    };
    let series = |name: &str, count: u64| format!(r#"{{namespace="tenant-ada",instance="{name}"}} {count}"#);
    counter.expose(address("10.0.0.5:22"));
    assert_eq!(samples(), [series("one", 0)]);
    counter.count(address("10.0.0.5:22"));
    counter.count(address("10.0.0.9:22"));
    assert_eq!(samples(), [series("one", 2)], "both addresses count");
    *present.lock().expect("no panic") = Some(instance("two"));
    counter.count(address("10.0.0.5:22"));
    assert_eq!(samples(), [series("one", 2), series("two", 0)]);
    assert_eq!(samples(), [series("one", 2), series("two", 1)]);
    *present.lock().expect("no panic") = None;
    counter.count(address("10.0.0.5:22"));
    assert_eq!(samples(), [series("one", 2), series("two", 1)], "no Instance has the address");
    *present.lock().expect("no panic") = Some(instance("a\"b\\\n"));
    let escaped = r#"{namespace="tenant-ada",instance="a\"b\\\n"} 0"#;
    assert!(samples().contains(&escaped.to_owned()));
}

#[test]
fn the_unknown_series_increased_last_are_kept() {
    let at = |second: usize| Timestamp::from_second(i64::try_from(second).expect("small")).expect("a time");
    let mut series = Series::new();
    series.expose(&0);
    for key in 1..=UNKNOWN_LIMIT {
        series.count(&key, at(key));
    }
    // The first key was counted again, so the second is evicted; known keys are not.
    series.count(&1, at(UNKNOWN_LIMIT + 1));
    series.count(&(UNKNOWN_LIMIT + 1), at(UNKNOWN_LIMIT + 2));
    assert_eq!(series.evicted, 1);
    let last = |series: &Series<usize>, key: usize| series.last(key..=key);
    assert_eq!(last(&series, 2), None);
    assert!(last(&series, 1).is_some() && last(&series, 3).is_some());
    let mut keys = Vec::new();
    series.render(|key, _| keys.push(*key));
    assert_eq!(keys.len(), UNKNOWN_LIMIT + 1);
    assert_eq!(keys[..3], [0, 1, 3]);
    // A withdrawn key counts as unknown.
    series.count(&0, at(UNKNOWN_LIMIT + 3));
    series.withdraw(&0);
    assert_eq!((series.evicted, last(&series, 3)), (2, None));
}

#[test]
fn unknown_series_are_removed_after_a_day() {
    let at = |hour: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour);
    let keys = |series: &mut Series<u8>| {
        let mut keys = Vec::new();
        series.render(|key, count| keys.push((*key, count)));
        keys
    };
    let mut series = Series::new();
    series.expose(&1);
    series.count(&1, at(0));
    series.count(&2, at(0));
    series.count(&3, at(1));
    series.count(&4, at(2));
    series.withdraw(&4);
    assert_eq!(keys(&mut series).len(), 4);
    series.expire(at(24));
    assert_eq!(keys(&mut series), [(1, 1), (2, 1), (3, 1), (4, 1)]);
    series.expire(at(25));
    assert_eq!(keys(&mut series), [(1, 1), (3, 1), (4, 1)], "2 was unknown and is removed");
    series.withdraw(&1);
    series.expire(at(26));
    assert_eq!(keys(&mut series), [(4, 1)], "1 is unknown now, and 3 is too old");
    series.count(&3, at(26));
    assert_eq!(keys(&mut series), [(3, 0), (4, 1)], "a new series");
}

#[test]
fn a_flood_of_destinations_is_bounded() {
    let counter = counter();
    let known = address("192.168.0.1:22");
    counter.expose(known);
    let now = crate::runtime::clock::now();
    counter.count_at(known, now);
    let flood = 200_000;
    for n in 0..flood {
        counter.count_at((Ipv4Addr::from(0x0a00_0000 + n), 22).into(), now);
    }
    let _ = text(&counter);
    let samples = samples(&counter);
    assert_eq!(samples.len(), UNKNOWN_LIMIT + 2);
    assert!(samples.contains(&series("192.168.0.1", 1)));
    let evicted = flood as usize - UNKNOWN_LIMIT;
    assert!(samples.contains(&format!("bastion_ssh_connections_evicted_total {evicted}")));
}

#[test]
fn known_series_are_bounded_and_further_ones_count_as_unknown() {
    let at = |second: usize| Timestamp::from_second(i64::try_from(second).expect("small")).expect("a time");
    let number = |series: &mut Series<usize>| {
        let mut number = 0;
        series.render(|_, _| number += 1);
        number
    };
    let mut series = Series::new();
    for key in 0..3 * KNOWN_LIMIT {
        series.expose(&key);
    }
    assert_eq!((series.known().count(), number(&mut series)), (KNOWN_LIMIT, KNOWN_LIMIT));
    // The other keys are counted as unknown, and evict only each other.
    for key in 0..3 * KNOWN_LIMIT {
        series.count(&key, at(key));
        series.expose(&key);
    }
    assert_eq!((series.known().count(), number(&mut series)), (KNOWN_LIMIT, KNOWN_LIMIT + UNKNOWN_LIMIT));
    assert_eq!(series.evicted, (2 * KNOWN_LIMIT - UNKNOWN_LIMIT) as u64);
    // A free slot is used by the next key.
    series.withdraw(&0);
    series.withdraw(&0);
    series.expose(&(3 * KNOWN_LIMIT));
    series.expose(&(3 * KNOWN_LIMIT + 1));
    assert_eq!(series.known().count(), KNOWN_LIMIT);
    assert!(series.known().any(|key| *key == 3 * KNOWN_LIMIT));
}
