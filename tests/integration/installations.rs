//! Two installations with the same selector: one leads.

use std::path::Path;
use std::time::Duration;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::tenant;

/// An installation with a Lease of this name in this namespace.
fn config(namespace: &str, name: &str, more: &str) -> String {
    format!("leaderElection: {{namespace: {namespace}, name: {name}{more}}}\n")
}

fn leads(daemon: &Daemon, name: &str) -> bool {
    daemon.metrics().contains(&format!("leader_election_master_status{{name=\"{name}\"}} 1"))
}

fn await_leading(daemon: &Daemon, name: &str) {
    daemon.wait_for("leadership", |daemon| leads(daemon, name));
}

/// Waits until a daemon says that it waits for the holder of this Lease.
fn await_waiting(daemon: &Daemon, lease: &str) {
    let said = format!(
        "[!] leader election: this installation does not lead: another installation holds Lease {lease} and manages"
    );
    daemon.wait_for("the line about the other installation", |daemon| daemon.ready().1.contains(&said));
}

/// Waits until the mark of a Tenant names this Lease.
fn await_mark(lab: &Lab, name: &str, selector: &str, lease: &str) {
    let mark = "/metadata/annotations/crownlabs.polito.it~1finalized-by";
    let wanted = format!("crownlabs.polito.it/operator-selector={selector} (lease {lease})");
    lab.await_value("tenants", "", name, mark, &wanted);
}

fn start(kubeconfig: &Path, selector: &str, config: &str) -> Daemon {
    Daemon::start(&Options { kubeconfig, selector, config })
}

fn end(mut daemon: Daemon) {
    daemon.signal("TERM");
    daemon.wait(Duration::from_secs(30)).expect("it ends");
}

#[test]
fn a_second_installation_waits_until_the_first_one_ends_and_then_takes_its_objects() {
    let lab = Lab::shared();
    let (one, two) = (config("crownlabs-system", "two-a", ""), config("default", "two-b", ""));
    let first = start(&lab.admin(), "two", &one);
    lab.apply(&tenant("two", "two.ada", ""));
    let before = lab.await_ready("tenants", "two.ada");
    let second = start(&lab.admin(), "two", &two);
    await_waiting(&second, "crownlabs-system/two-a");
    assert_eq!(second.log().matches("this installation does not lead").count(), 1, "one warning");
    let replica = start(&lab.admin(), "two", &two);
    await_waiting(&replica, "crownlabs-system/two-a");
    assert!(lab.get("leases", "default", "two-b").is_none(), "it takes no part in its election");
    let standby = start(&lab.admin(), "two", &one);
    // A failover of the first gives the second no gap.
    end(first);
    await_leading(&standby, "two-a");
    let now = lab.get("tenants", "", "two.ada").expect("there");
    assert_eq!(now["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    assert!(!leads(&second, "two-b") && !leads(&replica, "two-b"));
    end(standby);
    wait_until(PATIENCE, || {
        let is_led = leads(&second, "two-b") != leads(&replica, "two-b");
        is_led.then_some(()).ok_or_else(|| "one of the second installation leads".to_owned())
    });
    await_mark(&lab, "two.ada", "two", "default/two-b");
    // The reverse direction is the same.
    let first = start(&lab.admin(), "two", &one);
    await_waiting(&first, "default/two-b");
    lab.delete("tenant", "", &["two.ada"]);
}

#[test]
fn a_lease_that_expires_or_is_ignored_or_of_another_selector_does_not_block() {
    let lab = Lab::shared();
    let (one, two) = (config("crownlabs-system", "gone-a", ""), config("default", "gone-b", ""));
    let mut first = start(&lab.admin(), "gone", &one);
    lab.apply(&tenant("gone", "gone.ada", ""));
    lab.await_ready("tenants", "gone.ada");
    let ignoring = config("default", "gone-c", ", ignoredLeases: [crownlabs-system/gone-a]");
    let beside = start(&lab.admin(), "gone", &ignoring);
    await_leading(&beside, "gone-c");
    await_mark(&lab, "gone.ada", "gone", "crownlabs-system/gone-a");
    end(beside);
    let second = start(&lab.admin(), "gone", &two);
    await_waiting(&second, "crownlabs-system/gone-a");
    first.signal("KILL");
    first.wait(Duration::from_secs(30)).expect("it ends");
    await_leading(&second, "gone-b");
    await_mark(&lab, "gone.ada", "gone", "default/gone-b");
    end(second);
    // The holder manages other objects now.
    let elsewhere = start(&lab.admin(), "gone-elsewhere", &two);
    await_leading(&elsewhere, "gone-b");
    let third = start(&lab.admin(), "gone", &one);
    await_leading(&third, "gone-a");
    await_mark(&lab, "gone.ada", "gone", "crownlabs-system/gone-a");
    lab.kubectl(&["delete", "lease", "-n", "default", "gone-b", "--ignore-not-found"]);
    lab.delete("tenant", "", &["gone.ada"]);
}

#[test]
fn of_two_that_start_in_an_empty_cluster_the_one_with_the_younger_lease_ends() {
    let lab = Lab::shared();
    // If two Leases have the same second, the one with the first namespace and name counts as older.
    let (one, two) = (config("crownlabs-system", "race-a", ""), config("default", "race-b", ""));
    let first = start(&lab.admin(), "race", &one);
    await_leading(&first, "race-a");
    let mut second = start(&lab.admin(), "race", &two);
    await_leading(&second, "race-b");
    lab.apply(&tenant("race", "race.ada", ""));
    let status = second.wait(PATIENCE).unwrap_or_else(|| panic!("it does not end: {}", second.log()));
    assert!(!status.success(), "{}", second.log());
    assert!(
        second.log().contains("another installation holds Lease crownlabs-system/race-a"),
        "{}",
        second.log()
    );
    lab.await_ready("tenants", "race.ada");
    await_mark(&lab, "race.ada", "race", "crownlabs-system/race-a");
    assert!(leads(&first, "race-a"));
    let second = start(&lab.admin(), "race", &two);
    await_waiting(&second, "crownlabs-system/race-a");
    lab.delete("tenant", "", &["race.ada"]);
}
