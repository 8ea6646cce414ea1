//! Crash anywhere: the daemon is killed after its n-th write, for every n, and started again; the
//! world comes out the same each time. The harness knows no loop: later rooms give it scenarios.

mod exposure;
mod instances;
mod shared_volumes;
mod snapshots;
mod tenants;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::cluster::proxy::Proxy;
use crate::daemon::{Daemon, Options, tail};
use crate::lab::{Lab, PATIENCE, wait_until};

/// Finds the objects that make up a world.
pub type Look<'a> = Box<dyn Fn(&Lab) -> Vec<Value> + 'a>;

/// What a user does.
pub type Step<'a> = Box<dyn Fn(&Lab) + 'a>;

/// A sequence of user actions, and the objects that make up the world that they lead to.
pub struct Scenario<'a> {
    /// For messages.
    pub name: &'a str,
    /// The selector and namespaces, see [`Lab::furnish`].
    pub lab: &'a str,
    /// What users do, in order; after each the world must settle.
    pub steps: Vec<Step<'a>>,
    /// The objects that are looked at.
    pub look: Look<'a>,
    /// Whether an object of the world says all that it will say: a world with one that does not is not settled
    /// yet, however long nothing changes.
    pub is_complete: fn(&Value) -> bool,
    /// Further lines of the daemon's configuration, for each step; the last one holds for the rest. Where
    /// they differ, the daemon is started anew.
    pub configs: &'a [&'a str],
}

/// `Kind/namespace/name` → the object without what differs from run to run.
type World = BTreeMap<String, Value>;

/// Members that the API server or the time decides.
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

fn scrub(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for key in VOLATILE {
                // What matters of it is that it is there.
                if let Some(member) = members.get_mut(key) {
                    *member = "set".into();
                }
            }
            members.values_mut().for_each(scrub);
        }
        Value::Array(items) => items.iter_mut().for_each(scrub),
        _ => {}
    }
}

fn world(lab: &Lab, scenario: &Scenario<'_>) -> World {
    let objects = (scenario.look)(lab);
    let mut uids: Vec<(String, String)> = Vec::new();
    for object in &objects {
        if let (Some(uid), Some(name)) =
            (object["metadata"]["uid"].as_str(), object["metadata"]["name"].as_str())
        {
            uids.push((uid.to_owned(), format!("uid-of-{name}")));
        }
    }
    let mut world = World::new();
    for mut object in objects {
        if object["kind"] == "Deployment" {
            // The Deployment controller's, at its own pace.
            object.as_object_mut().expect("an object").remove("status");
        }
        scrub(&mut object);
        let mut text = object.to_string();
        for (uid, name) in &uids {
            text = text.replace(uid, name);
        }
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let metadata = &object["metadata"];
        let name = format!("{}/{}/{}", object["kind"], metadata["namespace"], metadata["name"]);
        world.insert(name, object);
    }
    world
}

impl Scenario<'_> {
    fn config(&self, step: usize) -> &str {
        self.configs.get(step).or(self.configs.last()).copied().unwrap_or_default()
    }

    /// Starts the daemon as it is configured for a step.
    fn start(&self, lab: &Lab, proxy: &Proxy, step: usize) -> Daemon {
        let kubeconfig =
            lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
        Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: self.lab, config: self.config(step) })
    }

    /// Whether a step asks for another configuration than the one before it.
    fn is_configured_anew(&self, step: usize) -> bool {
        step > 0 && self.config(step) != self.config(step - 1)
    }
}

/// How often the world must look the same before it counts as settled: what a user did may take a moment
/// to show, for example while Keycloak is asked.
const LOOKS: usize = 4;

/// Waits until neither the world nor the number of writes changes any more.
fn settle(lab: &Lab, proxy: &Proxy, scenario: &Scenario<'_>) -> World {
    let look = || (world(lab, scenario), proxy.writes());
    let (mut last, mut equal) = (look(), 1);
    wait_until(PATIENCE, || {
        std::thread::sleep(Duration::from_millis(700));
        let now = look();
        let complete = now.0.values().all(scenario.is_complete);
        equal = if now == last && complete { equal + 1 } else { 1 };
        last = now;
        (equal >= LOOKS).then_some(()).ok_or_else(|| "a settled world".to_owned())
    });
    last.0
}

/// Runs a scenario once without a crash, then once for each of its writes with a crash after it.
/// Returns the number of writes.
pub fn crash_after_every_write(lab: &Lab, scenario: &Scenario<'_>) -> u64 {
    crash_after(lab, scenario, |_| true)
}

/// The same for some of the writes only, which are counted from 1.
pub fn crash_after(lab: &Lab, scenario: &Scenario<'_>, chosen: impl Fn(u64) -> bool) -> u64 {
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let mut daemon = scenario.start(lab, &proxy, 0);
    daemon.await_ready();
    proxy.reset();
    let mut expected = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        if scenario.is_configured_anew(number) {
            daemon.stop();
            daemon = scenario.start(lab, &proxy, number);
            daemon.await_ready();
        }
        step(lab);
        expected.push(settle(lab, &proxy, scenario));
    }
    let writes = proxy.writes();
    drop(daemon);
    for n in (1..=writes).filter(|n| chosen(*n)) {
        let mut daemon = scenario.start(lab, &proxy, 0);
        daemon.await_ready();
        let (killed, crash) = mpsc::channel();
        let id = Arc::new(AtomicU32::new(daemon.id()));
        let victim = Arc::clone(&id);
        proxy.on_nth_write(n, move || {
            let id = victim.load(Ordering::SeqCst);
            // One that has been stopped meanwhile is as dead.
            Command::new("kill").args(["-s", "KILL", &id.to_string()]).status().expect("kill runs");
            let _ = killed.send(());
        });
        let mut crashes = 0;
        for (number, (step, expected)) in scenario.steps.iter().zip(&expected).enumerate() {
            if scenario.is_configured_anew(number) {
                daemon.stop();
                daemon = scenario.start(lab, &proxy, number);
                // Before it is ready: it may write, and die, at once.
                id.store(daemon.id(), Ordering::SeqCst);
            }
            step(lab);
            let mut log = String::new();
            wait_until(PATIENCE, || {
                if crash.try_recv().is_ok() {
                    crashes += 1;
                    log = daemon.log();
                    daemon = scenario.start(lab, &proxy, number);
                    id.store(daemon.id(), Ordering::SeqCst);
                }
                let now = world(lab, scenario);
                if now == *expected {
                    return Ok(());
                }
                let differing: Vec<_> = now
                    .keys()
                    .chain(expected.keys())
                    .filter(|name| now.get(*name) != expected.get(*name))
                    .map(|name| format!("{name}: {:?} instead of {:?}", now.get(name), expected.get(name)))
                    .collect();
                Err(format!(
                    "{}, crash after write {n} of {writes}, step {number}: {}\nbefore:\n{}\nafter:\n{}",
                    scenario.name,
                    differing.join("\n"),
                    tail(&log),
                    tail(&daemon.log())
                ))
            });
        }
        // The last writes of the last step may fall together with the end of the scenario.
        if crashes == 0 {
            assert!(
                crash.try_recv().is_ok() || proxy.clear_hook(),
                "{}: write {n} was never made",
                scenario.name
            );
        }
    }
    writes
}
