//! The rounds of queries of fresh daemons: the first ones, about Instances in each state, and those of a Prometheus that
//! answers more slowly than it is asked.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::daemon::{Daemon, Options};
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

/// The number of running Instances whose use is watched.
fn watched(daemon: &Daemon) -> u64 {
    let metrics = daemon.metrics();
    let lines = metrics.lines().filter(|line| line.starts_with("automation_instances{"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[test]
fn no_first_round_complains_about_a_healthy_source() {
    const PAST: &str = "2020-01-01T00:00:00Z";
    let lab = Lab::shared();
    let (fixtures, namespace) = ("firstround", "tenant-firstround");
    lab.create_fixtures(fixtures);
    allow_idle(&lab, fixtures, "container", "1s");
    let idle = r#"{"spec": {"cleanup": {"stopAfterInactivity": "50m", "deleteAfterInactivity": "50m"}}}"#;
    lab.patch("templates", "workspace-firstround", "container-persistent", idle);
    let prometheus = prometheus(namespace);
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), &prometheus, Duration::from_hours(1));
    let kubeconfig = lab.service_account();
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
        let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: fixtures, config: &config });
        // Every running one was looked at, every overdue one was warned about, and what was broken is mended.
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
    lab.delete_fixtures(fixtures);
}

/// What a slow line has seen.
#[derive(Default)]
struct Seen {
    /// The connections with a request that is not answered.
    waiting: Vec<usize>,
    /// When the last answer came.
    answered: Option<Instant>,
    /// The pauses before the rounds, but for the first.
    pauses: Vec<Duration>,
    /// How often a request came while another one was not answered.
    overlaps: usize,
}

/// A line to a server that holds back each request.
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

/// Carries the requests and answers of a connection, on threads of its own.
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
        });
    });
}

/// Passes on what comes, and tells it before.
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
fn a_source_that_is_too_slow_for_its_interval_is_said_and_decided_by() {
    let lab = Lab::shared();
    let (fixtures, namespace) = ("slowround", "tenant-slowround");
    lab.create_fixtures(fixtures);
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
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: fixtures, config: &config });
    let warned = |names: &[&str]| {
        let expected: Vec<_> =
            names.iter().map(|name| ("InactivityWarning".to_owned(), (*name).to_owned())).collect();
        wait_until(PATIENCE, || match (complaints(&lab, namespace), mails(folder.path()).len()) {
            (found, sent) if found == expected && sent == names.len() => Ok(()),
            other => Err(format!("warnings about {names:?}, not {other:?}: {}", daemon.log())),
        });
    };
    lab.apply(&instance(fixtures, "at-once", "container"));
    warned(&["at-once"]);
    // Overdue after the interval, the last one while a round is under way.
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
    // The interval, by a clock that may be corrected by a second or two meanwhile.
    assert!(seen.pauses.iter().all(|pause| *pause >= Duration::from_secs(1)), "{:?}", seen.pauses);
    drop(seen);
    drop(daemon);
    lab.delete_fixtures(fixtures);
}
