//! Interfaces that appear and disappear, and the end of the thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crownlabs::testing::{ConnectionCounter, Readiness, Replica, Replicas, SshTrackerLoop, State};

use super::{PATIENCE, Tracker, counts, settings};
use crate::lab::wait_until;
use cluster::network::{Namespace, Sender, syn};

#[test]
fn the_tracker_waits_for_a_missing_interface_which_may_return() {
    let (here, there) = (Namespace::new(), Namespace::new());
    let tracker = Tracker::spawn(&here, Some("cap0"), true);
    tracker.await_failure("interface cap0 not found");
    for round in 1..=2 {
        here.connect("cap0", &there);
        tracker.await_state("capturing", |state| *state == State::Capturing);
        here.run(|| Sender::new("cap0").send(&syn("10.1.0.2", 22, round)));
        let expected = counts(&[("10.1.0.2", u64::from(round))]);
        assert_eq!(tracker.settled(&here, "cap0"), expected);
        here.ip("link del cap0");
        tracker.await_failure("interface cap0 not found");
    }
}

#[test]
fn an_interface_may_be_down_for_a_time() {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    here.ip("link set cap0 down");
    let tracker = Tracker::spawn(&here, Some("cap0"), true);
    tracker.await_failure("interface cap0 is down");
    here.ip("link set cap0 up");
    tracker.await_state("capturing", |state| *state == State::Capturing);
    here.ip("link set cap0 down");
    tracker.await_failure("interface cap0 is down");
    here.ip("link set cap0 up");
    tracker.await_state("capturing", |state| *state == State::Capturing);
    here.run(|| Sender::new("cap0").send(&syn("10.1.0.2", 22, 1)));
    assert_eq!(tracker.settled(&here, "cap0"), counts(&[("10.1.0.2", 1)]));
}

#[test]
fn with_any_interface_devices_may_be_added_later() {
    let (here, there) = (Namespace::new(), Namespace::new());
    let tracker = Tracker::start(&here, None, true);
    here.connect("cap0", &there);
    here.run(|| Sender::new("cap0").send(&syn("10.1.0.2", 22, 1)));
    assert_eq!(tracker.settled(&here, "cap0"), counts(&[("10.1.0.2", 1)]));
    here.ip("link del cap0");
    here.connect("cap1", &there);
    here.run(|| Sender::new("cap1").send(&syn("10.1.0.2", 22, 3)));
    assert_eq!(tracker.settled(&here, "cap1"), counts(&[("10.1.0.2", 2)]));
}

#[test]
fn the_thread_ends_when_it_is_asked_to() {
    let here = Namespace::new();
    for interface in [None, Some("cap0")] {
        let tracker = Tracker::spawn(&here, interface, true);
        tracker.await_state("started", |state| *state != State::Starting);
        assert!(tracker.capture.stop(), "{interface:?}");
    }
}

#[test]
fn a_dead_thread_is_detected() {
    let here = Namespace::new();
    let tracker = Tracker::start(&here, None, true);
    tracker.counter.set_resolver(Arc::new(|_| panic!("a defect, for this test")));
    here.run(|| Sender::new("lo").send(&syn("10.1.0.2", 22, 1)));
    let states = tracker.capture.state();
    wait_until(PATIENCE, || states.has_changed().map_or(Ok(()), |_| Err("the end of the thread".to_owned())));
    assert!(!tracker.capture.stop());
}

/// Waits until readiness reports this sentence about the loop.
async fn await_sentence(readiness: &Readiness, sentence: &str) {
    let said = async {
        while !readiness.report_of("sshTracker").is_some_and(|(_, said)| said.contains(sentence)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let last = || readiness.report_of("sshTracker");
    tokio::time::timeout(PATIENCE, said).await.unwrap_or_else(|_| panic!("{sentence}: {:?}", last()));
}

#[test]
fn a_dead_thread_is_reported_and_restarted() {
    let here = Namespace::new();
    let counter = Arc::new(ConnectionCounter::new("connections", "Connections"));
    let has_died = AtomicBool::new(false);
    counter.set_resolver(Arc::new(move |_| {
        assert!(has_died.swap(true, Ordering::Relaxed), "a defect, for this test");
        None
    }));
    let tracker = SshTrackerLoop::new(settings(None, true), Arc::clone(&counter), Arc::default());
    here.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let readiness = Readiness::default();
            let replicas = Replicas::start(vec![Replica::new(tracker, Vec::new())], &readiness);
            await_sentence(&readiness, "[+] sshTracker: ready").await;
            let sender = Sender::new("lo");
            sender.send(&syn("10.1.0.2", 22, 1));
            await_sentence(&readiness, "[!] sshTracker: the capture thread panicked").await;
            await_sentence(&readiness, "[+] sshTracker: ready").await;
            sender.send(&syn("10.1.0.3", 22, 2));
            let address = "10.1.0.3".parse().expect("an address");
            let seen = async {
                while counter.last_seen(address).is_none() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(PATIENCE, seen).await.expect("the new thread counts");
            replicas.finish().await;
        });
    });
}
