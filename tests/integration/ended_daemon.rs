//! A daemon that ends by itself fails the waits of its test at once, and no other test.

use std::panic::catch_unwind;
use std::path::Path;
use std::thread;
use std::time::Instant;

use crate::daemon::{Daemon, config};
use crate::lab::{PATIENCE, running, wait_until};

/// Starts a daemon that ends at once, because its configuration is invalid.
fn invalid() -> Daemon {
    let (command, nowhere) = ([env!("CARGO_BIN_EXE_crownlabs")], Path::new("/nonexistent/kubeconfig"));
    Daemon::launch(&command, &config("ended", "controlers: {}\n"), nowhere, "127.0.0.1".to_owned())
}

/// Waits for an event that never happens. Returns the message of the failure.
fn failure() -> String {
    let failed = catch_unwind(|| wait_until(PATIENCE, || Err::<(), _>("an event".to_owned())));
    *failed.expect_err("the event never happens").downcast::<String>().expect("a message")
}

/// Waits for the third call of a probe.
fn wait_for_the_third_call() {
    let mut calls = 0;
    wait_until(PATIENCE, || {
        calls += 1;
        if calls == 3 { Ok(()) } else { Err(format!("call {calls}")) }
    });
}

#[test]
fn a_daemon_that_has_ended_fails_only_its_own_test_at_once_with_its_log() {
    let mut daemon = invalid();
    let begin = Instant::now();
    let message = failure();
    assert!(begin.elapsed() < PATIENCE / 2, "{:?}", begin.elapsed());
    for part in ["the daemon has ended", "controlers", "still missing: an event"] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    let elsewhere = thread::spawn(wait_for_the_third_call).join();
    assert!(elsewhere.is_ok(), "the daemon belongs to this test");
    assert_eq!(daemon.wait(PATIENCE).and_then(|status| status.code()), Some(1));
}

#[test]
fn a_daemon_that_may_end_fails_no_wait() {
    let (allowed, signalled) = (invalid().that_may_end(), invalid());
    signalled.signal("TERM");
    wait_until(PATIENCE, || {
        let have_ended = [&allowed, &signalled].iter().all(|daemon| running::has_ended(daemon.id()));
        have_ended.then_some(()).ok_or_else(|| "the ends of both".to_owned())
    });
    wait_for_the_third_call();
}
