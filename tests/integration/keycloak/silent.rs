//! A Keycloak that accepts connections and never answers: it delays accounts, and nothing else.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::realm::Realm;
use super::tenants::integration;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, wait_until};
use crate::tenants::tenant;
use cluster::Options as ClusterOptions;
use cluster::proxy::{Fault, everything};

/// The number of Tenants: `SILENT_TENANTS` in the environment, or more than can be handled one after the other in the
/// time of the test. With 8 workers and a timeout of 10 s for each response, that takes three minutes.
fn students() -> usize {
    static STUDENTS: LazyLock<usize> = LazyLock::new(|| {
        let number = std::env::var("SILENT_TENANTS").ok();
        number.map_or(150, |number| number.parse().expect("SILENT_TENANTS is a number"))
    });
    *STUDENTS
}

/// The account that the status of a Tenant names until Keycloak has answered.
const FORMER: &str = "former";

fn name(n: usize) -> String {
    format!("kcs.{n:04}")
}

/// Creates a Tenant whose account was up to date before the daemon starts; it logged in long ago.
fn create(lab: &Lab, name: &str, is_confirmed: bool) {
    lab.apply(&tenant("kcs", name, "").replace("2099-", "2020-"));
    let keycloak = json!({
        "userCreated": {"created": true, "name": FORMER}, "userConfirmed": is_confirmed, "userSynchronized": true,
    });
    let condition = json!({
        "type": "Reconciled", "status": "True", "reason": "Reconciled", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let none = json!({"created": false});
    let status = json!({"status": {
        "ready": true, "personalNamespace": none, "sandboxNamespace": none, "keycloak": keycloak, "conditions": [condition],
    }});
    lab.patch_status("tenants", "", name, &status.to_string());
}

/// Logs a Tenant in, and asserts that its namespace exists long before a worker gives up waiting for a response of
/// Keycloak, which takes 10 s.
fn log_in(lab: &Lab, name: &str) {
    lab.patch("tenants", "", name, r#"{"spec": {"lastLogin": "2099-01-01T00:00:00Z"}}"#);
    let begin = Instant::now();
    let namespace = format!("tenant-{}", name.replace('.', "-"));
    while lab.get("namespaces", "", &namespace).is_none() {
        let waited = begin.elapsed();
        assert!(waited <= Duration::from_secs(6), "no namespace of {name} after {waited:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_keycloak_that_never_answers_delays_only_accounts() {
    let realm = Realm::new("tenants-silent");
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    let kubeconfig = lab.service_account();
    for n in 0..students() {
        create(&lab, &name(n), false);
    }
    for name in ["kcs.a", "kcs.b"] {
        create(&lab, name, true);
    }
    realm.proxy.set(Fault::Delay { pause: Duration::from_hours(1), matching: everything() });
    let config = integration(&realm);
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "kcs", config: &config });
    // A login before the daemon knows that Keycloak does not answer.
    log_in(&lab, "kcs.a");
    // All the work in Kubernetes at the start: finalizers and labels.
    wait_until(Duration::from_secs(30), || {
        let tenants = lab.list("tenants", "");
        let done = tenants.iter().filter(|tenant| tenant["metadata"]["finalizers"].is_array()).count();
        (done == students() + 2).then_some(()).ok_or_else(|| format!("{done} Tenants with a finalizer"))
    });
    daemon
        .wait_for("the outage in the log", |daemon| daemon.log().contains("requests to this Keycloak fail"));
    daemon.wait_for("the outage in the metrics", |daemon| {
        daemon.metrics().lines().any(|line| line == "keycloak_up 0")
    });
    daemon.wait_for("the outage in the readiness", |daemon| {
        let (status, ready) = daemon.ready();
        status == 200 && ready.contains("[!] Keycloak http") && ready.contains("accounts and roles wait: ")
    });
    // Another login after the daemon knows.
    log_in(&lab, "kcs.b");
    // A Tenant with a changed spec waits for Keycloak, and says so. Nothing is written about the others.
    let message = lab.await_condition("tenants", "kcs.b", "Reconciled", "KeycloakUnreachable");
    assert!(message.contains("Keycloak cannot be reached"), "{message}");
    let quiet = lab.get("tenants", "", &name(7)).expect("there");
    assert_eq!(quiet["status"]["conditions"][0]["reason"], "Reconciled", "{quiet}");
    everything_is_right_soon_after_it_answers(&lab, &realm, &daemon);
}

fn everything_is_right_soon_after_it_answers(lab: &Lab, realm: &Realm, daemon: &Daemon) {
    realm.proxy.set(Fault::None);
    wait_until(Duration::from_mins(2), || {
        let tenants = lab.list("tenants", "");
        let is_right = |tenant: &&Value| {
            let keycloak = &tenant["status"]["keycloak"];
            keycloak["userCreated"]["name"] != FORMER && keycloak["userSynchronized"] == true
        };
        let right = tenants.iter().filter(is_right).count();
        (right == students() + 2).then_some(()).ok_or_else(|| format!("{right} accounts are right"))
    });
    daemon.wait_for("the end of the outage", |daemon| !daemon.ready().1.contains("Keycloak"));
    let log = daemon.log();
    for line in ["requests to this Keycloak fail", "requests to this Keycloak succeed again"] {
        assert_eq!(log.matches(line).count(), 1, "{line}: {log}");
    }
    let failures = log.lines().filter(|line| line.contains("the reconcile failed")).count();
    assert!(failures <= 5, "{failures} failed reconciles:\n{log}");
    assert!(daemon.metrics().lines().any(|line| line == "keycloak_up 1"), "{}", daemon.metrics());
}
