//! The daemon is killed after its n-th write, for every n, and restarted; the resulting objects are the same each time.
//! It is also killed after the n-th of its effects outside of the cluster, if a scenario counts them. The code in this
//! file knows no loop; each loop has a file with scenarios.

mod expiration;
mod exposure;
mod inactivity;
mod instances;
mod pod_config;
mod shared_volumes;
mod snapshots;
mod submission;
mod tenants;
mod termination;

use std::fmt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::comparable::{Objects, comparable};
use crate::daemon::{Daemon, Options, tail};
use crate::golden;
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::audit::Mark;
use cluster::proxy::Proxy;

/// Lists the objects that are compared.
pub type List<'a> = Box<dyn Fn(&Lab) -> Vec<Value> + 'a>;

/// An action of a user.
pub type Step<'a> = Box<dyn Fn(&Lab) + 'a>;

/// A sequence of user actions, and the resulting objects.
pub struct Scenario<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// The fixtures of the test, see [`Lab::create_fixtures`]; also the value of the daemon's selector label.
    pub fixtures: &'a str,
    /// The actions, in order. After each of them the test waits until the objects have settled.
    pub steps: Vec<Step<'a>>,
    /// Lists the objects that are compared.
    pub list: List<'a>,
    /// Whether the status of an object is final. While the status of an object is not final, the objects have not
    /// settled, however long nothing changes.
    pub is_complete: fn(&Value) -> bool,
    /// More lines of the daemon's configuration, for each step; the last entry is for all further steps. If two
    /// steps differ, the daemon is restarted between them.
    pub configs: &'a [&'a str],
}

/// Effects outside of the cluster, such as an accepted mail or an answered request to an exam server.
pub struct Effects {
    name: &'static str,
    count: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Effects {
    /// Effects of one kind, with this name in messages. `count` returns how many there have been so far, including all
    /// that the daemon knows of.
    pub fn new(name: &'static str, count: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { name, count: Arc::new(count) }
    }
}

/// When the daemon is killed; numbers are counted from 1.
#[derive(Clone, Copy)]
enum Moment<'a> {
    /// After the API server has carried out a write, before its answer.
    Write(u64),
    /// After an effect, before the next write. The daemon's knowledge of the effect is then only in memory.
    Effect(u64, &'a Effects),
}

impl fmt::Display for Moment<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(n) => write!(formatter, "write {n}"),
            Self::Effect(n, effects) => write!(formatter, "{} {n}", effects.name),
        }
    }
}

/// The current objects of a scenario, in a form that can be compared with another run.
fn objects(lab: &Lab, scenario: &Scenario<'_>) -> Objects {
    comparable((scenario.list)(lab))
}

impl Scenario<'_> {
    fn config(&self, step: usize) -> &str {
        self.configs.get(step).or(self.configs.last()).copied().unwrap_or_default()
    }

    /// Starts the daemon with the configuration of a step.
    fn start(&self, lab: &Lab, proxy: &Proxy, step: usize) -> Daemon {
        let kubeconfig =
            lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
        Daemon::spawn(&Options {
            kubeconfig: &kubeconfig,
            selector: self.fixtures,
            config: self.config(step),
        })
    }

    /// Whether a step has another configuration than the previous one.
    fn has_new_config(&self, step: usize) -> bool {
        step > 0 && self.config(step) != self.config(step - 1)
    }
}

/// How often in a row the objects must be equal before they count as settled: the effect of an action may be
/// delayed, for example while Keycloak answers.
const EQUAL_LISTS: usize = 6;

/// Waits until neither the objects nor the number of writes change any more. Returns the objects.
fn settle(lab: &Lab, proxy: &Proxy, scenario: &Scenario<'_>) -> Objects {
    let state = || (objects(lab, scenario), proxy.writes());
    let (mut last, mut equal) = (state(), 1);
    wait_until(PATIENCE, || {
        std::thread::sleep(Duration::from_millis(700));
        let now = state();
        let complete = now.0.values().all(scenario.is_complete);
        let changes = golden::all_differences(&last.0, &now.0);
        equal = if now == last && complete { equal + 1 } else { 1 };
        last = now;
        let unrest = || {
            let changes = changes.join("\n");
            format!("objects that do not change any more; {} writes, the last changes:\n{changes}", last.1)
        };
        (equal >= EQUAL_LISTS).then_some(()).ok_or_else(unrest)
    });
    last.0
}

/// Runs a scenario once without a crash, then once for each of its writes with a crash after it.
/// Returns the number of writes.
pub fn crash_after_every_write(lab: &Lab, scenario: &Scenario<'_>) -> u64 {
    crash_after(lab, scenario, |_| true)
}

/// The same with a crash only after the writes that are `chosen` by their number, counted from 1.
pub fn crash_after(lab: &Lab, scenario: &Scenario<'_>, chosen: impl Fn(u64) -> bool) -> u64 {
    crash_at(lab, scenario, None, chosen).0
}

/// The same with a crash after every write and, in further runs, after every effect. Returns the numbers of both.
pub fn crash_after_every_write_and_effect(
    lab: &Lab,
    scenario: &Scenario<'_>,
    effects: &Effects,
) -> (u64, u64) {
    crash_at(lab, scenario, Some(effects), |_| true)
}

fn crash_at(
    lab: &Lab,
    scenario: &Scenario<'_>,
    effects: Option<&Effects>,
    chosen: impl Fn(u64) -> bool,
) -> (u64, u64) {
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let count = || effects.map_or(0, |effects| (effects.count)());
    let before = count();
    let expected = run_without_crash(lab, &proxy, scenario);
    let (writes, done, deletions) = (proxy.writes(), count() - before, deletions(&proxy));
    let after_writes = (1..=writes).filter(|n| chosen(*n)).map(Moment::Write);
    let after_effects =
        effects.into_iter().flat_map(|effects| (1..=done).map(move |n| Moment::Effect(n, effects)));
    for moment in after_writes.chain(after_effects) {
        proxy.reset();
        run_with_crash(lab, &proxy, scenario, &expected, moment);
        // A daemon that deletes an object and creates it again has the same objects in the end, but one more deletion.
        let mut more = self::deletions(&proxy);
        for deleted in &deletions {
            if let Some(place) = more.iter().position(|other| other == deleted) {
                more.swap_remove(place);
            }
        }
        assert_eq!(more, Vec::<String>::new(), "{}, crash after {moment}: deleted", scenario.name);
    }
    (writes, done)
}

/// The paths of the objects that the daemon has deleted. A deletion whose response was lost counts too.
fn deletions(proxy: &Proxy) -> Vec<String> {
    let log = proxy.request_log();
    let carried_out = log.into_iter().filter(|request| {
        request.method == Method::DELETE && request.status.is_none_or(|status| status.is_success())
    });
    // After the question mark come options, such as a uid, which differ from run to run.
    carried_out.map(|request| request.path.split('?').next().unwrap_or_default().to_owned()).collect()
}

/// Asserts that since `mark` this many Jobs were created in a namespace.
fn assert_jobs_made(lab: &Lab, mark: Mark, namespace: &str, wanted: u64) {
    let entries = lab.cluster.audit().since(mark).expect("the audit log");
    let creations = entries
        .iter()
        .filter(|entry| entry.verb == "create" && entry.resource == "jobs" && entry.namespace == namespace);
    let codes: Vec<_> = creations.map(|entry| entry.code).collect();
    let made = codes.iter().filter(|code| **code == 201).count();
    // The daemon may be killed during another request: the API server then creates the Job, and records that the client
    // has disconnected. The objects of each run show that the Job exists.
    let cut_off = codes.iter().filter(|code| **code != 201 && **code != 409).count();
    let wanted = usize::try_from(wanted).expect("few");
    assert!(made <= wanted, "{made} Jobs instead of {wanted}: {codes:?}");
    assert!(made + cut_off >= wanted, "{made} Jobs instead of {wanted}: {codes:?}");
}

/// Runs the steps without a crash, counting the writes in the proxy. Returns the objects after each step.
fn run_without_crash(lab: &Lab, proxy: &Proxy, scenario: &Scenario<'_>) -> Vec<Objects> {
    let mut daemon = scenario.start(lab, proxy, 0);
    daemon.await_ready();
    proxy.reset();
    let mut expected = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        if scenario.has_new_config(number) {
            daemon.stop();
            daemon = scenario.start(lab, proxy, number);
            daemon.await_ready();
        }
        step(lab);
        expected.push(settle(lab, proxy, scenario));
    }
    expected
}

/// A daemon that the proxy kills once.
struct Victim {
    daemon: Daemon,
    /// The process id of the current daemon.
    id: Arc<AtomicU32>,
    /// Receives a message when the daemon is killed.
    killed: mpsc::Receiver<()>,
    /// The log of the daemon that was killed; `None` before.
    log: Option<String>,
}

impl Victim {
    fn start(lab: &Lab, proxy: &Proxy, scenario: &Scenario<'_>, moment: Moment<'_>) -> Self {
        let daemon = scenario.start(lab, proxy, 0).that_may_end();
        daemon.await_ready();
        let (sender, killed) = mpsc::channel();
        let id = Arc::new(AtomicU32::new(daemon.id()));
        let current = Arc::clone(&id);
        let kill = move || {
            let id = current.load(Ordering::SeqCst);
            // A daemon that the test has stopped in the meantime cannot be killed any more, which does not matter.
            Command::new("kill").args(["-s", "KILL", &id.to_string()]).status().expect("kill runs");
            let _ = sender.send(());
        };
        match moment {
            Moment::Write(n) => proxy.on_nth_write(n, kill),
            Moment::Effect(n, effects) => {
                let count = Arc::clone(&effects.count);
                let last = count() + n;
                proxy.before_write_when(move || count() >= last, kill);
            }
        }
        Self { daemon, id, killed, log: None }
    }

    /// Continues with another daemon, without waiting for it: it may write, and be killed, before it is ready.
    fn replace(&mut self, daemon: Daemon) {
        self.daemon = daemon;
        self.id.store(self.daemon.id(), Ordering::SeqCst);
    }
}

/// Runs the steps with a crash at that moment, and waits after each step for the expected objects.
fn run_with_crash(
    lab: &Lab,
    proxy: &Proxy,
    scenario: &Scenario<'_>,
    expected: &[Objects],
    moment: Moment<'_>,
) {
    let mut victim = Victim::start(lab, proxy, scenario, moment);
    for (number, (step, expected)) in scenario.steps.iter().zip(expected).enumerate() {
        if scenario.has_new_config(number) {
            victim.daemon.stop();
            victim.replace(scenario.start(lab, proxy, number).that_may_end());
        }
        step(lab);
        let mut writes = None;
        wait_until(PATIENCE, || {
            if victim.killed.try_recv().is_ok() {
                victim.log = Some(victim.daemon.log());
                victim.replace(scenario.start(lab, proxy, number));
            }
            // No need to list everything while the daemon still writes.
            if writes.replace(proxy.writes()) != Some(proxy.writes()) {
                return Err("writes are going on".to_owned());
            }
            let now = objects(lab, scenario);
            if now == *expected {
                return Ok(());
            }
            Err(format!(
                "the objects of {}, crash after {moment}, step {number}\nbefore:\n{}\nafter:\n{}\n{}",
                scenario.name,
                tail(victim.log.as_deref().unwrap_or_default()),
                tail(&victim.daemon.log()),
                // Last, so that it is not lost among the lines of the logs.
                golden::all_differences(expected, &now).join("\n")
            ))
        });
    }
    let is_killed = victim.log.is_some();
    if !is_killed && proxy.clear_hook() {
        // A run may need fewer writes than the run without a crash: then this write never happens.
        assert!(matches!(moment, Moment::Write(_)), "{}: there was no {moment}", scenario.name);
    } else if !is_killed {
        victim.killed.recv_timeout(PATIENCE).expect("the daemon is killed at its write");
    }
}
