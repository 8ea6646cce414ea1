//! Leader election between replicas: one is the leader, and another takes over.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crownlabs::testing::clock;
use jiff::Timestamp;

use crate::course::Course;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use cluster::Options as ClusterOptions;
use cluster::audit::{AuditEntry, writes};
use cluster::config::only;
use cluster::proxy::{Fault, Proxy, matching};

/// The default of `leaderElection.leaseDuration`. A shorter lease would make the tests faster, and a busy machine end
/// leaders that no test stops.
const LEASE: Duration = Duration::from_secs(15);

fn config(name: &str) -> String {
    format!("leaderElection: {{name: {name}}}\n")
}

/// Whether the daemon is the leader.
fn leads(daemon: &Daemon, name: &str) -> bool {
    daemon.metrics().contains(&format!("leader_election_master_status{{name=\"{name}\"}} 1"))
}

/// Creates a course with this name, and starts two replicas; the first one is the leader.
fn pair(lab: &Arc<Lab>, name: &str) -> (Course, Daemon, Daemon) {
    pair_of(lab, name, &lab.admin())
}

/// The same, where the first one has this kubeconfig.
fn pair_of(lab: &Arc<Lab>, name: &str, kubeconfig: &Path) -> (Course, Daemon, Daemon) {
    let course = lab.course(name);
    let config = config(name);
    let options = Options { kubeconfig, selector: name, config: &config };
    let first = Daemon::start(&options);
    first.wait_for("leadership", |daemon| leads(daemon, name));
    let second = Daemon::start(&Options { kubeconfig: &lab.admin(), ..options });
    second.wait_for("standby", |daemon| daemon.ready().1.contains("standby"));
    (course, first, second)
}

#[test]
fn a_killed_leader_is_replaced_when_its_lease_ends() {
    let lab = Lab::shared();
    let (_course, leader, standby) = pair(&lab, "killed");
    lab.apply(&instance("killed", "one", "standalone"));
    lab.await_phase("tenant-killed", "one", "Ready");
    assert!(!leads(&standby, "killed"), "both lead");
    leader.signal("KILL");
    let killed = clock::now();
    lab.apply(&instance("killed", "two", "standalone"));
    standby.wait_for("leadership", |daemon| leads(daemon, "killed"));
    let lease = lab.get("lease", "crownlabs-system", "killed").expect("the lease");
    let acquired =
        lease["spec"]["acquireTime"].as_str().expect("a time").parse::<Timestamp>().expect("a time");
    let took = Duration::try_from(acquired.duration_since(killed)).unwrap_or_default();
    assert!(took <= 2 * LEASE, "{took:?}");
    assert!(
        took >= LEASE.checked_sub(Duration::from_secs(2)).unwrap_or_default(),
        "before the lease expired: {took:?}"
    );
    lab.await_phase("tenant-killed", "two", "Ready");
}

#[test]
fn a_clean_stop_releases_the_lease() {
    let lab = Lab::shared();
    let (_course, mut leader, standby) = pair(&lab, "stopped");
    // No other replica takes the lease in the meantime.
    standby.signal("STOP");
    leader.signal("TERM");
    let status = leader.wait(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
    assert_eq!(holder(&lab, "stopped").as_deref(), Some(""));
    standby.signal("CONT");
    standby.wait_for("leadership", |daemon| leads(daemon, "stopped"));
}

#[test]
fn a_leader_frozen_past_its_lease_stops_writing() {
    let lab = Lab::shared();
    let other = lab.cluster.administrator("the-leader-that-is-frozen").expect("a kubeconfig");
    let (_course, mut leader, standby) = pair_of(&lab, "frozen", &other);
    lab.apply(&instance("frozen", "one", "standalone"));
    lab.await_phase("tenant-frozen", "one", "Ready");
    leader.signal("STOP");
    // Work for the stopped leader when it continues.
    for n in 0..10 {
        lab.apply(&instance("frozen", &format!("late-{n}"), "standalone"));
    }
    standby.wait_for("leadership", |daemon| leads(daemon, "frozen"));
    for n in 0..10 {
        lab.await_phase("tenant-frozen", &format!("late-{n}"), "Ready");
        lab.patch("instances", "tenant-frozen", &format!("late-{n}"), r#"{"spec": {"running": false}}"#);
    }
    for n in 0..10 {
        lab.await_phase("tenant-frozen", &format!("late-{n}"), "Off");
    }
    let audit = lab.cluster.audit();
    let mark = audit.mark().expect("the audit log");
    leader.signal("CONT");
    let status = leader.wait(PATIENCE).expect("the old leader ends");
    assert!(!status.success(), "{status}");
    let entries = audit.since(mark).expect("the audit log");
    // It may try to take the lease: it must check whether it still holds it.
    let is_old = |e: &AuditEntry| e.user == "the-leader-that-is-frozen" && e.resource != "leases";
    let late: Vec<_> = writes(&entries).filter(|e| is_old(e)).collect();
    assert!(late.is_empty(), "{late:#?}");
    // No object was created twice.
    let all = audit.since(cluster::audit::Mark::default()).expect("the audit log");
    assert!(writes(&all).any(is_old), "it has led");
    let mut created: Vec<String> = writes(&all)
        .filter(|e| e.namespace == "tenant-frozen" && e.verb == "create" && e.code == 201)
        .filter(|e| e.user_agent.starts_with("crownlabs/") && e.resource != "events")
        .map(|e| format!("{}/{}", e.resource, e.name))
        .collect();
    created.sort();
    let count = created.len();
    created.dedup();
    assert_eq!(created.len(), count, "{created:?}");
}

#[test]
fn both_start_at_once_and_one_leads() {
    let lab = Lab::shared();
    let _course = lab.course("simultaneous");
    let admin = lab.admin();
    let config = config("simultaneous");
    let options = Options { kubeconfig: &admin, selector: "simultaneous", config: &config };
    let daemons: Vec<Daemon> = (0..3).map(|_| Daemon::spawn(&options)).collect();
    wait_until(PATIENCE, || {
        let leading = daemons.iter().filter(|daemon| leads(daemon, "simultaneous")).count();
        let standing = daemons.iter().filter(|daemon| daemon.ready().1.contains("standby")).count();
        ((leading, standing) == (1, 2))
            .then_some(())
            .ok_or_else(|| format!("one leader, {leading} lead, {standing} stand by"))
    });
}

/// The holder of a lease; `None` if the lease does not exist.
fn holder(lab: &Lab, name: &str) -> Option<String> {
    let lease = lab.get("lease", "crownlabs-system", name)?;
    Some(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_deleted_lease_is_recreated_by_its_holder() {
    let lab = Lab::shared();
    let (_course, leader, standby) = pair(&lab, "deleted");
    let before = holder(&lab, "deleted").expect("a lease");
    lab.delete("lease", "crownlabs-system", &["deleted"]);
    wait_until(PATIENCE, || {
        let now = holder(&lab, "deleted");
        (now.as_ref() == Some(&before)).then_some(()).ok_or_else(|| format!("{before} holds it: {now:?}"))
    });
    assert!(leads(&leader, "deleted") && !leads(&standby, "deleted"));
    // A holder that cannot create it again leads until its deadline. Before that, no other replica leads.
    leader.signal("STOP");
    lab.delete("lease", "crownlabs-system", &["deleted"]);
    let begin = Instant::now();
    standby.wait_for("leadership", |daemon| leads(daemon, "deleted"));
    let took = begin.elapsed();
    assert!(took >= LEASE.checked_sub(Duration::from_secs(1)).unwrap_or_default(), "too early: {took:?}");
    assert!(took <= 2 * LEASE, "{took:?}");
    leader.signal("KILL");
}

#[test]
fn a_leader_is_replaced_in_time_although_the_watch_of_the_standby_is_stalled() {
    // The service account of the daemon may read only the lease with this name.
    let name = "crownlabs-controller-manager";
    let lab = Lab::start(ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() });
    let config = config(name);
    let account = lab.service_account();
    let leader = Daemon::start(&Options { kubeconfig: &account, selector: "stalled", config: &config });
    leader.wait_for("leadership", |daemon| leads(daemon, name));
    // The standby can list leases, but its watch of them never begins.
    let proxy = Proxy::start(&lab.cluster).expect("a proxy");
    let watches = matching(|_, path| path.contains("/leases?") && path.contains("watch=true"));
    proxy.set(Fault::Delay { pause: Duration::from_hours(1), matching: watches });
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a token");
    let standby = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "stalled", config: &config });
    standby.wait_for("standby", |daemon| daemon.ready().1.contains("standby"));
    let attempts = |daemon: &Daemon| daemon.log().matches("the lease could not be taken").count();
    // It stands by while the leader renews, for longer than the duration of a lease.
    let renewed = lab.cluster.audit().mark().expect("the audit log");
    wait_until(PATIENCE, || {
        let entries = lab.cluster.audit().since(renewed).expect("the audit log");
        let renewals = writes(&entries).filter(|entry| entry.resource == "leases" && entry.name == name);
        (renewals.count() >= 8).then_some(()).ok_or_else(|| "eight renewals".to_owned())
    });
    assert_eq!(attempts(&standby), 0, "it knows of the renewals: {}", standby.log());
    assert_eq!(standby.log().matches("standing by").count(), 1, "said once: {}", standby.log());
    leader.signal("KILL");
    let begin = Instant::now();
    standby.wait_for("leadership", |daemon| leads(daemon, name));
    let took = begin.elapsed();
    assert!(took <= 2 * LEASE, "{took:?}");
}

#[test]
fn a_replica_without_leader_loops_does_not_take_the_lease() {
    let lab = Lab::shared();
    let config = |name: &str, keys: &str| format!("{}{}", config("idle"), only(&[(name, keys)]));
    let admin = lab.admin();
    let keys = tempfile::tempdir().expect("a folder");
    let keys = keys.path().join("authorized_keys");
    let bastion = config("bastion", &format!("authorizedKeysFile: {}", keys.display()));
    // It starts first, and would be the leader.
    let idle = Daemon::start(&Options { kubeconfig: &admin, selector: "idle", config: &bastion });
    let said = "no enabled component needs the lease, so this process does not take part in the election";
    assert_eq!(idle.log().matches(said).count(), 1, "{}", idle.log());
    let leader = config("podConfig", "reservedCidrs: [10.96.0.0/12]");
    let leader = Daemon::start(&Options { kubeconfig: &admin, selector: "idle", config: &leader });
    leader.wait_for("leadership", |daemon| leads(daemon, "idle"));
    assert!(!idle.metrics().contains("leader_election_master_status"), "{}", idle.metrics());
    assert!(!leader.log().contains(said), "{}", leader.log());
}
