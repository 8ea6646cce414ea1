//! Tenants with far more SSH keys than usual, stored before the webhooks existed.

use serde_json::{Value, json};

use super::tenant;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

/// The most keys that fit into an object.
const KEYS: usize = 250_000;
/// The memory limit of the Deployment, in MiB.
const LIMIT: usize = 256;

/// The events about the keys of a Tenant.
fn events(lab: &Lab, name: &str) -> Vec<Value> {
    let mut events = lab.list("events", "");
    events.retain(|event| event["involvedObject"]["name"] == name && event["reason"] == "InvalidPublicKey");
    events
}

/// Waits until the tenant loop has finished this number of reconciles.
fn await_reconciles(daemon: &Daemon, number: u64) {
    daemon.wait_for("reconciles of the Tenant", |daemon| {
        let ended = daemon.metrics().lines().fold(0, |sum, line| {
            let count = line.strip_prefix("controller_runtime_reconcile_total{controller=\"tenant\",");
            let count = count.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
            sum + count.unwrap_or(0)
        });
        ended >= number
    });
}

#[test]
fn hundreds_of_thousands_of_keys_cost_little_and_are_reported_once() {
    let lab = Lab::shared();
    lab.apply(&tenant("manykeys", "many.keys", ""));
    let keys = json!({"spec": {"publicKeys": vec!["k"; KEYS]}});
    lab.patch("tenants", "", "many.keys", &keys.to_string());
    let kubeconfig = lab.service_account();
    for _ in 0..3 {
        let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "manykeys", config: "" });
        let message = lab.await_condition("tenants", "many.keys", "InvalidPublicKeys", "InvalidPublicKey");
        assert!(message.contains("only the first 100 of 250000 keys are used"), "{message}");
        lab.await_ready("tenants", "many.keys");
        // One more reconcile, so that the first one after the restart has ended with its events.
        await_reconciles(&daemon, 1);
        let probe = json!({"metadata": {"labels": {"probe": daemon.id().to_string()}}});
        lab.patch("tenants", "", "many.keys", &probe.to_string());
        await_reconciles(&daemon, 2);
        let peak = daemon.size("VmHWM");
        assert!(peak < LIMIT, "{peak} MiB");
    }
    wait_until(PATIENCE, || {
        let events = events(&lab, "many.keys");
        (events.len() == 1).then_some(()).ok_or_else(|| format!("one event: {events:?}"))
    });
    let event = events(&lab, "many.keys").remove(0);
    assert!(event["series"].is_null(), "it was published once: {event}");
    // Its finalizer needs a daemon.
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "manykeys", config: "" });
    lab.delete("tenant", "", &["many.keys"]);
}
