//! The daemon is killed after its n-th write, for every n, and started again; the resulting objects are the same each
//! time. The code in this file knows no loop; each loop has a file with scenarios.

mod expiration;
mod exposure;
mod inactivity;
mod instances;
mod shared_volumes;
mod snapshots;
mod submission;
mod tenants;
mod termination;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::cluster::proxy::Proxy;
use crate::daemon::{Daemon, Options, tail};
use crate::lab::{Lab, PATIENCE, wait_until};

/// Lists the objects that are compared.
pub type List<'a> = Box<dyn Fn(&Lab) -> Vec<Value> + 'a>;

/// An action of a user.
pub type Step<'a> = Box<dyn Fn(&Lab) + 'a>;

/// A sequence of user actions, and the objects that they lead to.
pub struct Scenario<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// The fixtures of the test, see [`Lab::create_fixtures`]; also the value of the daemon's selector label.
    pub fixtures: &'a str,
    /// The actions, in order. After each of them the test waits until the objects have settled.
    pub steps: Vec<Step<'a>>,
    /// Lists the objects that are compared.
    pub list: List<'a>,
    /// Whether the status of an object is final. While there is an object whose status is not, the objects have not
    /// settled, however long nothing changes.
    pub is_complete: fn(&Value) -> bool,
    /// More lines of the daemon's configuration, for each step; the last entry is for all further steps. Where two
    /// steps differ, the daemon is restarted between them.
    pub configs: &'a [&'a str],
}

/// The objects by `Kind/namespace/name`, without what differs from run to run.
type Objects = BTreeMap<String, Value>;

/// Members whose values differ from run to run: the API server or the time determines them.
const VOLATILE: [&str; 16] = [
    "nodePort",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "observedGeneration",
    "clusterIP",
    "clusterIPs",
    "ip",
    "crownlabs.polito.it/last-powered-off-timestamp",
    "initialReadyTime",
    "prettyName",
    "crownlabs.polito.it/mydrive-tenant-uid",
    "deletionTimestamp",
];

/// Replaces the values of [`VOLATILE`] members; that they exist is compared.
fn mask_volatile(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for key in VOLATILE {
                if let Some(member) = members.get_mut(key) {
                    *member = "set".into();
                }
            }
            members.values_mut().for_each(mask_volatile);
        }
        Value::Array(items) => items.iter_mut().for_each(mask_volatile),
        _ => {}
    }
}

/// The objects of a scenario as they are now, in a form that can be compared with another run.
fn objects(lab: &Lab, scenario: &Scenario<'_>) -> Objects {
    let listed = (scenario.list)(lab);
    let mut uids: Vec<(String, String)> = Vec::new();
    for object in &listed {
        if let (Some(uid), Some(name)) =
            (object["metadata"]["uid"].as_str(), object["metadata"]["name"].as_str())
        {
            uids.push((uid.to_owned(), format!("uid-of-{name}")));
        }
    }
    let mut objects = Objects::new();
    for mut object in listed {
        if object["kind"] == "Deployment" {
            // The Deployment controller writes it at any time.
            object.as_object_mut().expect("an object").remove("status");
        }
        mask_volatile(&mut object);
        let mut text = object.to_string();
        for (uid, name) in &uids {
            text = text.replace(uid, name);
        }
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let metadata = &object["metadata"];
        let name = format!("{}/{}/{}", object["kind"], metadata["namespace"], metadata["name"]);
        objects.insert(name, object);
    }
    objects
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

    /// Whether a step has another configuration than the one before it.
    fn has_new_config(&self, step: usize) -> bool {
        step > 0 && self.config(step) != self.config(step - 1)
    }
}

/// How often in a row the objects must be equal before they count as settled: the effect of an action may take a
/// moment to show, for example while Keycloak answers.
const EQUAL_LISTS: usize = 4;

/// Waits until neither the objects nor the number of writes change any more. Returns the objects.
fn settle(lab: &Lab, proxy: &Proxy, scenario: &Scenario<'_>) -> Objects {
    let state = || (objects(lab, scenario), proxy.writes());
    let (mut last, mut equal) = (state(), 1);
    wait_until(PATIENCE, || {
        std::thread::sleep(Duration::from_millis(700));
        let now = state();
        let complete = now.0.values().all(scenario.is_complete);
        equal = if now == last && complete { equal + 1 } else { 1 };
        last = now;
        (equal >= EQUAL_LISTS).then_some(()).ok_or_else(|| "objects that do not change any more".to_owned())
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
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let expected = run_without_crash(lab, &proxy, scenario);
    let writes = proxy.writes();
    for n in (1..=writes).filter(|n| chosen(*n)) {
        run_with_crash(lab, &proxy, scenario, &expected, n);
    }
    writes
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

/// A daemon that the proxy kills after its n-th write.
struct Victim {
    daemon: Daemon,
    /// The process id of the daemon that runs now.
    id: Arc<AtomicU32>,
    /// Receives a message when the daemon is killed.
    killed: mpsc::Receiver<()>,
    /// The log of the daemon that was killed; `None` before.
    log: Option<String>,
}

impl Victim {
    fn start(lab: &Lab, proxy: &Proxy, scenario: &Scenario<'_>, n: u64) -> Self {
        let daemon = scenario.start(lab, proxy, 0);
        daemon.await_ready();
        let (sender, killed) = mpsc::channel();
        let id = Arc::new(AtomicU32::new(daemon.id()));
        let current = Arc::clone(&id);
        proxy.on_nth_write(n, move || {
            let id = current.load(Ordering::SeqCst);
            // A daemon that the test has stopped meanwhile cannot be killed any more, which does not matter.
            Command::new("kill").args(["-s", "KILL", &id.to_string()]).status().expect("kill runs");
            let _ = sender.send(());
        });
        Self { daemon, id, killed, log: None }
    }

    /// Goes on with another daemon. It is not awaited: it may write, and be killed, before it is ready.
    fn replace(&mut self, daemon: Daemon) {
        self.daemon = daemon;
        self.id.store(self.daemon.id(), Ordering::SeqCst);
    }
}

/// Runs the steps with a crash after the n-th write, and waits after each step for the expected objects.
fn run_with_crash(lab: &Lab, proxy: &Proxy, scenario: &Scenario<'_>, expected: &[Objects], n: u64) {
    let mut victim = Victim::start(lab, proxy, scenario, n);
    for (number, (step, expected)) in scenario.steps.iter().zip(expected).enumerate() {
        if scenario.has_new_config(number) {
            victim.daemon.stop();
            victim.replace(scenario.start(lab, proxy, number));
        }
        step(lab);
        wait_until(PATIENCE, || {
            if victim.killed.try_recv().is_ok() {
                victim.log = Some(victim.daemon.log());
                victim.replace(scenario.start(lab, proxy, number));
            }
            let now = objects(lab, scenario);
            if now == *expected {
                return Ok(());
            }
            Err(format!(
                "{}, crash after write {n}, step {number}: {}\nbefore:\n{}\nafter:\n{}",
                scenario.name,
                differences(&now, expected),
                tail(victim.log.as_deref().unwrap_or_default()),
                tail(&victim.daemon.log())
            ))
        });
    }
    // A run may do with fewer writes than the one without a crash: then this one is never made.
    if victim.log.is_none() && !proxy.clear_hook() {
        victim.killed.recv_timeout(PATIENCE).expect("the daemon is killed at its write");
    }
}

/// The objects that differ, a line each.
fn differences(now: &Objects, expected: &Objects) -> String {
    let names = now.keys().chain(expected.keys()).filter(|name| now.get(*name) != expected.get(*name));
    let lines = names.map(|name| format!("{name}: {:?} instead of {:?}", now.get(name), expected.get(name)));
    lines.collect::<Vec<_>>().join("\n")
}
