//! The rounds of queries of new daemons: the first ones, with Instances in each state, and rounds with a Prometheus
//! that answers more slowly than the interval.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::expiration::mails;
use crate::inactivity::{allow_idle, config, prometheus};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The Warning events of a namespace, as reason and name of the Instance, in order.
fn complaints(lab: &Lab, namespace: &str) -> Vec<(String, String)> {
    let events = lab.list("events", namespace).into_iter().filter(|event| event["type"] == "Warning");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found: Vec<_> =
        events.map(|event| (text(&event["reason"]), text(&event["involvedObject"]["name"]))).collect();
    found.sort();
    found
}

/// An Instance with these annotations.
fn annotated(fixtures: &str, name: &str, template: &str, annotations: &[(&str, &str)]) -> String {
    let all = annotations.iter().map(|(key, value)| format!("crownlabs.polito.it/{key}: \"{value}\""));
    let all = all.collect::<Vec<_>>().join(", ");
    instance(fixtures, name, template)
        .replace("metadata: {", &format!("metadata: {{annotations: {{{all}}}, "))
}

fn stopped(instance: &str) -> String {
    instance.replace("spec:\n", "spec:\n  running: false\n")
}

/// The number of running Instances whose usage is watched.
fn watched(daemon: &Daemon) -> u64 {
    let metrics = daemon.metrics();
    let lines = metrics.lines().filter(|line| line.starts_with("automation_instances{"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[test]
fn the_first_round_reports_no_healthy_source() {
    const PAST: &str = "2020-01-01T00:00:00Z";
    let lab = Lab::shared();
    let (fixtures, namespace) = ("firstround", "tenant-firstround");
    let course = lab.course(fixtures);
    allow_idle(&lab, fixtures, "container", "1s");
    let idle = r#"{"spec": {"cleanup": {"stopAfterInactivity": "50m", "deleteAfterInactivity": "50m"}}}"#;
    lab.patch("templates", "workspace-firstround", "container-persistent", idle);
    let prometheus = prometheus(namespace);
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), &prometheus, Duration::from_hours(1));
    let old = [("last-activity", PAST), ("last-running", "true"), ("number-alerts-sent", "0")];
    let broken = [("last-activity", "yesterday"), ("number-alerts-sent", "x"), ("last-running", "true")];
    let off = |time: &str| [("last-powered-off-timestamp", time.to_owned())];
    lab.apply(&annotated(fixtures, "busybee", "container-persistent", &old));
    let mut expected = Vec::new();
    for round in 0..4_u64 {
        let name = |state: &str| format!("{state}-{round}");
        let persistent = |state: &str, annotations: &[(&str, &str)]| {
            annotated(fixtures, &name(state), "container-persistent", annotations)
        };
        lab.apply(&instance(fixtures, &name("late"), "container"));
        lab.apply(&persistent("old", &old));
        lab.apply(&persistent("broken", &broken));
        lab.apply(&persistent("runs", &[]));
        let now = crownlabs::testing::clock::now().to_string();
        for (state, time) in [("rests", now.as_str()), ("left", PAST)] {
            let off = off(time);
            let off: Vec<(&str, &str)> = off.iter().map(|(key, value)| (*key, value.as_str())).collect();
            lab.apply(&stopped(&persistent(state, &off)));
        }
        let overdue =
            [("DestructionWarning", "left"), ("InactivityWarning", "late"), ("InactivityWarning", "old")];
        expected.extend(overdue.map(|(reason, state)| (reason.to_owned(), name(state))));
        expected.sort();
        let daemon = course.daemon(&config);
        // Every running one was checked, every overdue one was warned about, and every error is fixed.
        wait_until(PATIENCE, || {
            let (seen, sent) = (watched(&daemon), mails(folder.path()).len());
            let found = complaints(&lab, namespace);
            let is_done =
                seen == 4 * (round + 1) + 1 && sent == expected.len() && found.len() >= expected.len();
            is_done
                .then_some(())
                .ok_or_else(|| format!("{seen} seen, {sent} mails, {found:?}: {}", daemon.log()))
        });
        let annotation = "/metadata/annotations/crownlabs.polito.it~1number-alerts-sent";
        let mended = lab.await_value("instances", namespace, &name("broken"), annotation, "0");
        let time = mended["metadata"]["annotations"]["crownlabs.polito.it/last-activity"].as_str();
        assert!(time.is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok()), "{mended}");
        assert_eq!(complaints(&lab, namespace), expected, "{}", daemon.log());
    }
}

/// The observations of a slow line.
#[derive(Default)]
struct Seen {
    /// The connections with an unanswered request.
    waiting: Vec<usize>,
    /// When the last answer came.
    answered: Option<Instant>,
    /// The number of answers.
    answers: usize,
    /// The pauses before the rounds, except for the first.
    pauses: Vec<Duration>,
    /// How often a request arrived while another one was unanswered.
    overlaps: usize,
}

/// A line to a server that delays each request.
struct SlowLine {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl SlowLine {
    fn start(server: String, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let Ok(server) = TcpStream::connect(&server) else { continue };
                carry(number, &client, &server, delay, &shared);
            }
        });
        Self { address, seen }
    }
}

/// Forwards the requests and responses of a connection, on its own threads.
fn carry(number: usize, client: &TcpStream, server: &TcpStream, delay: Duration, seen: &Arc<Mutex<Seen>>) {
    let ends = || (client.try_clone().expect("a copy"), server.try_clone().expect("a copy"));
    let ((from, to), log) = (ends(), Arc::clone(seen));
    thread::spawn(move || {
        pass(&from, &to, |bytes| {
            let mut seen = log.lock();
            seen.overlaps += usize::from(seen.waiting.iter().any(|other| *other != number));
            if bytes.starts_with(b"GET /-/healthy")
                && let Some(answered) = seen.answered
            {
                seen.pauses.push(answered.elapsed());
            }
            seen.waiting.push(number);
            drop(seen);
            thread::sleep(delay);
        });
    });
    let ((to, from), log) = (ends(), Arc::clone(seen));
    thread::spawn(move || {
        pass(&from, &to, |_| {
            let mut seen = log.lock();
            seen.waiting.retain(|other| *other != number);
            seen.answered = Some(Instant::now());
            seen.answers += 1;
        });
    });
}

/// Forwards the data, after a call of `tell` with it.
fn pass(mut from: &TcpStream, mut to: &TcpStream, mut tell: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        tell(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn a_source_that_is_slower_than_its_interval_is_reported_and_used() {
    let lab = Lab::shared();
    let (fixtures, namespace) = ("slowround", "tenant-slowround");
    let course = lab.course(fixtures);
    for (template, idle) in [("container", "1s"), ("container-persistent", "5s"), ("standalone", "7s")] {
        allow_idle(&lab, fixtures, template, idle);
    }
    let prometheus = prometheus(namespace);
    let server = prometheus.url().replace("http://", "");
    let line = SlowLine::start(server, Duration::from_millis(300));
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), &prometheus, Duration::from_hours(1))
        .replace("checkInterval: 2s", "checkInterval: 3s")
        .replace(&prometheus.url(), &format!("http://{}", line.address));
    let daemon = course.daemon(&config);
    let warned = |names: &[&str]| {
        let expected: Vec<_> =
            names.iter().map(|name| ("InactivityWarning".to_owned(), (*name).to_owned())).collect();
        wait_until(PATIENCE, || match (complaints(&lab, namespace), mails(folder.path()).len()) {
            (found, sent) if found == expected && sent == names.len() => Ok(()),
            other => Err(format!("warnings about {names:?}, not {other:?}: {}", daemon.log())),
        });
    };
    // The request at the start only checks whether Prometheus answers. It does not belong to a round.
    daemon.wait_for("the end of the first requests", |_| {
        let seen = line.seen.lock();
        seen.answers >= 2 && seen.waiting.is_empty()
    });
    *line.seen.lock() = Seen::default();
    lab.apply(&instance(fixtures, "at-once", "container"));
    warned(&["at-once"]);
    // Overdue after the interval, the last one while a round is in progress.
    for (name, template) in [("later", "container-persistent"), ("last", "standalone")] {
        lab.apply(&instance(fixtures, name, template));
    }
    warned(&["at-once", "last", "later"]);
    let log = daemon.log();
    let told = "a round of queries to Prometheus takes longer than controllers.inactivity.checkInterval";
    let said: Vec<&str> = log.lines().filter(|line| line.contains(told)).collect();
    assert_eq!(said.len(), 1, "until a round is fast: {log}");
    assert!(said[0].contains("interval=3s"), "{log}");
    let took = said[0].split_once("took=").and_then(|(_, rest)| rest.split_once('s')?.0.parse::<f64>().ok());
    assert!(took.is_some_and(|took| took > 3.0), "{log}");
    let seen = line.seen.lock();
    assert_eq!(seen.overlaps, 0, "one request after the other");
    assert!(!seen.pauses.is_empty(), "several rounds");
    // The interval, with a tolerance because the clock may be corrected by a second or two.
    assert!(seen.pauses.iter().all(|pause| *pause >= Duration::from_secs(1)), "{:?}", seen.pauses);
    drop(seen);
}
