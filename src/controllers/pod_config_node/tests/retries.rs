//! When pods are tried again, with answers of a container runtime and of the kernel that the test gives.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::kernel::*;
use crate::api::reason::{LINK_FAILED, RUNTIME_UNAVAILABLE, Reason};
use crate::controllers::pod_config_node::locate::{Located, NotLocated};
use crate::controllers::pod_config_node::mark::Mark;
use crate::controllers::pod_config_node::plan::{Plan, problem};
use crate::controllers::pod_config_node::pods::{ASKED, AT_WORK, Pods, Step};
use crate::controllers::pod_config_node::records::Desired;
use crate::controllers::pod_config_node::work::{Done, Plugged, PodProcess};
use crate::netlink::Namespace;

const SECOND: Duration = Duration::from_secs(1);

/// The pods p1, p2, …, each with a link, and a node with the bridge.
fn wanted(count: usize) -> (Desired, Plan) {
    let pods: Vec<(String, String)> =
        (1..=count).map(|number| (format!("p{number:02}"), format!("10.77.0.{}", number + 1))).collect();
    let allocations: Vec<_> =
        pods.iter().map(|(pod, address)| (pod.as_str(), "data", "br0", address.as_str(), false)).collect();
    let settled = Plan { bridges: BTreeMap::from([("br0".to_owned(), 5)]), ..Plan::default() };
    (desired(&[pool("lab", "10.77.0.0/24", &["br0"], &allocations)]), settled)
}

fn mark_of_first() -> Mark {
    mark("lab", "p01", "data", "10.77.0.2/24")
}

fn located() -> Located {
    Located { process: 4711, namespace: Namespace::open("/proc/self/ns/net".as_ref()).expect("a namespace") }
}

fn plugged() -> Done {
    let plugged = Plugged {
        mark: mark_of_first(),
        bridge: ("br0".to_owned(), 5),
        host: ("hdata4711".to_owned(), 6),
        pod_link: "data4711".to_owned(),
        problem: None,
    };
    Done::Links(vec![(key("p01", "data"), Ok(plugged))])
}

fn refused() -> Done {
    Done::Links(vec![(key("p01", "data"), Err(problem(LINK_FAILED, "the kernel refuses it")))])
}

/// What is begun for which pod, where it is one that asks, works on what may be there, or on what is known.
fn begun(pods: &mut Pods, (desired, settled): &(Desired, Plan), now: Instant) -> Vec<(String, &'static str)> {
    let steps = pods.begin(desired, settled, now).into_iter();
    let named = steps.map(|(uid, step)| {
        let name = match step {
            Step::Ask => "ask",
            Step::Work(_, PodProcess::Recalled(4711)) => "try",
            Step::Work(_, PodProcess::Recalled(_)) => "try another",
            Step::Work(_, PodProcess::Located(_)) => "work",
        };
        (uid, name)
    });
    named.collect()
}

fn one(name: &'static str) -> Vec<(String, &'static str)> {
    vec![("p01".to_owned(), name)]
}

/// The waits after each of these many failures in a row, each made by `fail` once the pod is looked at again.
fn waits(count: usize, mut fail: impl FnMut(&mut Pods, &(Desired, Plan), Instant)) -> Vec<u64> {
    let (world, mut now, mut pods) = (wanted(1), Instant::now(), Pods::default());
    pods.look(&world.0, &world.1);
    let mut waits = Vec::new();
    for _ in 0..count {
        fail(&mut pods, &world, now);
        let next = pods.next_retry().expect("it is tried again");
        waits.push((next - now).as_secs());
        // Neither the pools nor a moment before it are a reason to try earlier.
        pods.look(&world.0, &world.1);
        let before = next.checked_sub(Duration::from_millis(1)).expect("a time");
        pods.look_at_due(before);
        assert_eq!(begun(&mut pods, &world, before), []);
        pods.look_at_due(next);
        now = next;
    }
    waits
}

/// What the container runtime says.
type Answer = fn() -> NotLocated;

#[test]
fn the_wait_doubles_up_to_its_limit() {
    let answers: [(Answer, Option<Reason>, [u64; 8]); 3] = [
        (|| NotLocated::NotRunning, None, [1, 2, 4, 4, 4, 4, 4, 4]),
        (
            || NotLocated::Unavailable("no".to_owned()),
            Some(RUNTIME_UNAVAILABLE),
            [1, 2, 4, 8, 16, 32, 60, 60],
        ),
        (|| NotLocated::Failed("no".to_owned()), Some(LINK_FAILED), [1, 2, 4, 8, 16, 32, 60, 60]),
    ];
    for (answer, reason, expected) in answers {
        let asked = waits(8, |pods, world, now| {
            assert_eq!(begun(pods, world, now), one("ask"));
            pods.located("p01", Err(answer()), &world.0, now);
            let told =
                pods.results.get(&key("p01", "data")).map(|result| result.clone().map_err(|p| p.reason));
            assert_eq!(told, reason.map(|reason| Err(reason.as_str().to_owned())));
        });
        assert_eq!(asked, expected, "{reason:?}");
    }
    let refusals = waits(8, |pods, world, now| {
        assert_eq!(begun(pods, world, now), one("ask"));
        pods.located("p01", Ok(located()), &world.0, now);
        assert_eq!(begun(pods, world, now), one("work"));
        let (reasons, is_other) = pods.worked("p01", 4711, refused(), now);
        assert!(reasons == [LINK_FAILED.as_str()] || !is_other);
    });
    assert_eq!(refusals, [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn success_ends_the_retries_and_what_is_verified_rests_until_it_changes() {
    let (mut world, now, mut pods) = (wanted(1), Instant::now(), Pods::default());
    pods.look(&world.0, &world.1);
    for _ in 0..3 {
        begun(&mut pods, &world, now);
        pods.located("p01", Err(NotLocated::Unavailable("no".to_owned())), &world.0, now);
        pods.retry_all();
        assert_eq!(pods.next_retry(), None, "all are tried at once");
        pods.look(&world.0, &world.1);
    }
    assert_eq!(begun(&mut pods, &world, now), one("ask"));
    assert!(pods.busy().is_empty());
    pods.located("p01", Ok(located()), &world.0, now);
    assert_eq!(begun(&mut pods, &world, now), one("work"));
    assert_eq!(pods.busy().len(), 1);
    assert_eq!(pods.worked("p01", 4711, plugged(), now), (vec![], true));
    world.1.ends.insert(key("p01", "data"), end(6, &mark_of_first(), 5));
    pods.look(&world.0, &world.1);
    assert_eq!((begun(&mut pods, &world, now), pods.next_retry()), (vec![], None));
    // At the next resync the process that is known is tried, without the runtime.
    pods.verify_all();
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, now), one("try"));
    assert_eq!(pods.worked("p01", 4711, plugged(), now), (vec![], false));
    // Its bridge is another one now: it is worked on, and fails for the first time.
    world.1.bridges.insert("br0".to_owned(), 9);
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, now), one("try"));
    pods.worked("p01", 4711, refused(), now);
    assert_eq!(pods.next_retry(), Some(now + SECOND));
    // The process has ended: the runtime is asked.
    pods.look_at_due(now + SECOND);
    assert_eq!(begun(&mut pods, &world, now + SECOND), one("try"));
    pods.worked("p01", 4711, Done::Ask, now + SECOND);
    assert_eq!(begun(&mut pods, &world, now + SECOND), one("ask"));
}

#[test]
fn nothing_is_begun_for_a_pod_that_is_being_deleted_and_has_no_link() {
    let (mut world, now, mut pods) = (wanted(1), Instant::now(), Pods::default());
    world.0.wanted.values_mut().for_each(|wanted| wanted.is_ending = true);
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, now), []);
    // One that is there is looked after.
    world.1.ends.insert(key("p01", "data"), end(6, &mark_of_first(), 5));
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, now), one("try"));
    pods.worked("p01", 4711, plugged(), now);
    pods.look(&world.0, &world.1);
    assert_eq!(pods.results.len(), 1);
    // It is gone, and nobody says that it is there.
    world.1.ends.clear();
    pods.look(&world.0, &world.1);
    assert_eq!((begun(&mut pods, &world, now), pods.results.len()), (vec![], 0));
}

#[test]
fn only_so_many_pods_are_worked_on_and_asked_for_at_once() {
    let (world, now, mut pods) = (wanted(20), Instant::now(), Pods::default());
    pods.look(&world.0, &world.1);
    let first = begun(&mut pods, &world, now);
    assert_eq!(first.len(), ASKED);
    for (uid, _) in &first {
        pods.located(uid, Ok(located()), &world.0, now);
    }
    let second = begun(&mut pods, &world, now);
    let count = |name: &str| second.iter().filter(|(_, step)| *step == name).count();
    assert_eq!((count("ask"), count("work")), (ASKED, AT_WORK));
    assert_eq!(pods.busy().len(), AT_WORK);
    // One that is not wanted any more is forgotten once its work has ended, and its result at once.
    let busy = pods.busy().into_iter().next().expect("one");
    pods.look(&Desired::default(), &world.1);
    assert!(pods.busy().contains(&busy));
    pods.worked(&busy, 4711, Done::Ask, now);
    pods.look(&Desired::default(), &world.1);
    assert!(!pods.busy().contains(&busy));
    assert_eq!((begun(&mut pods, &world, now), pods.next_retry()), (vec![], None));
}
