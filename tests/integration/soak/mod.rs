//! Two replicas run while users create, change and delete objects, while the replicas are killed, stopped and
//! continued, while the API server and etcd are killed, and while requests hang, fail, or are carried out twice. In the
//! end, the objects equal those that undisturbed replicas create for the same Tenants, Workspaces, Templates and
//! Instances.
//!
//! The test runs for a minute by default; `SOAK_SECONDS` sets another time. `SOAK_SEED` repeats the disturbances of
//! another run, as far as they do not depend on the time.

mod disturbances;
mod users;
mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::Lab;
use crate::numbers::Numbers;
use cluster::Options as ClusterOptions;
use disturbances::Replicas;

/// The selector of the daemons, and the name of the Workspace that has the Templates.
const COURSE: &str = "soak";

/// The configuration of the replicas: every loop that is on by default, and a short lease.
const CONFIG: &str = "leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s}
controllers: {publicExposure: {ipPool: [10.98.0.0/25]}, tenant: {myDrive: {onTenantDeletion: delete}}}\n";

/// The number in an environment variable.
fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

#[test]
fn disturbed_replicas_create_the_same_objects_as_undisturbed_ones() {
    let time = Duration::from_secs(number_from("SOAK_SECONDS").unwrap_or(60));
    let seed = number_from("SOAK_SEED").unwrap_or_default();
    println!("SOAK_SEED={seed} SOAK_SECONDS={}", time.as_secs());
    let lab = start();
    let mut replicas = Replicas::start(&lab, Numbers(seed));
    world::set_up(&lab);
    disturb(&lab, &mut replicas, time, seed);
    replicas.calm_down();
    world::finish(&lab, &mut replicas);
    replicas.look_at_logs();
    let disturbed = world::objects(&lab);
    println!("{}; {} objects at the end", replicas.summary(), disturbed.len());
    replicas.end();
    assert_nothing_is_written(&lab);
    crate::golden::assert_equal(&calm_world(&lab), &disturbed);
}

/// A separate control plane, because its programs are killed.
fn start() -> Lab {
    let lab = Lab::start(ClusterOptions::default());
    lab.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: mydrive-pvcs}\n");
    lab
}

/// Runs users and disturbances for `time`, and checks the ports all the while.
fn disturb(lab: &Lab, replicas: &mut Replicas<'_>, time: Duration, seed: u64) {
    let (end, over) = (Instant::now() + time, AtomicBool::new(false));
    thread::scope(|scope| {
        let users: Vec<_> = (1..=users::CLIENTS)
            .map(|client| {
                let over = &over;
                scope.spawn(move || users::act(lab, Numbers(seed.wrapping_add(client)), over))
            })
            .collect();
        let observer = scope.spawn(|| world::observe_ports(lab, &over));
        while Instant::now() < end {
            replicas.disturb();
        }
        over.store(true, Ordering::SeqCst);
        let done: usize = users.into_iter().map(|user| user.join().expect("a user")).sum();
        let looked = observer.join().expect("no port is held twice");
        println!("{done} actions of users were accepted; the ports were looked at {looked} times");
        assert!(done > 0 && looked > 0);
    });
}

/// Asserts that replicas that start now write only their lease.
fn assert_nothing_is_written(lab: &Lab) {
    let audit = lab.cluster.audit();
    let mark = audit.mark().expect("the audit log");
    let before = crate::golden::by_place(lab.list(world::KINDS, ""));
    let mut replicas = Replicas::start(lab, Numbers(0));
    world::await_reconciles(lab, &mut replicas);
    let entries = audit.since(mark).expect("the audit log");
    let ours = entries.iter().filter(|entry| entry.user_agent.starts_with("crownlabs/"));
    let written: Vec<_> = ours.filter(|entry| entry.is_write() && entry.resource != "leases").collect();
    let written: Vec<_> =
        written.iter().map(|entry| format!("{} {}", entry.verb, entry.request_uri)).collect();
    let changes =
        crate::golden::all_differences(&before, &crate::golden::by_place(lab.list(world::KINDS, "")));
    assert!(written.is_empty(), "written at rest: {written:#?}, with these changes:\n{}", changes.join("\n"));
    replicas.end();
}

/// The objects that undisturbed replicas create on another control plane from the users' objects on this one.
fn calm_world(lab: &Lab) -> world::Objects {
    let calm = start();
    let mut replicas = Replicas::start(&calm, Numbers(0));
    world::set_up(&calm);
    world::copy_users_objects(lab, &calm, &mut replicas);
    world::finish(&calm, &mut replicas);
    let objects = world::objects(&calm);
    replicas.end();
    objects
}
