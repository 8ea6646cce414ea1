//! The retries of pods. The test provides the answers of the container runtime and of the kernel.

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

/// The started steps: "ask" queries the runtime, "try" works with a recalled process, and "work" with a located one.
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

/// The delays after each of this many failures in a row. `fail` makes the pod fail after each look at it.
fn waits(count: usize, mut fail: impl FnMut(&mut Pods, &(Desired, Plan), Instant)) -> Vec<u64> {
    let (world, mut now, mut pods) = (wanted(1), Instant::now(), Pods::default());
    pods.look(&world.0, &world.1);
    let mut waits = Vec::new();
    for _ in 0..count {
        fail(&mut pods, &world, now);
        let next = pods.next_retry().expect("it is retried");
        waits.push((next - now).as_secs());
        // The pod is not retried early, neither by a look at the pools nor at a moment before the time.
        pods.look(&world.0, &world.1);
        let before = next.checked_sub(Duration::from_millis(1)).expect("a time");
        pods.look_at_due(before);
        assert_eq!(begun(&mut pods, &world, before), []);
        pods.look_at_due(next);
        now = next;
    }
    waits
}

/// An answer of the container runtime.
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
fn success_ends_the_retries_and_verified_links_rest_until_they_change() {
    let (mut world, now, mut pods) = (wanted(1), Instant::now(), Pods::default());
    pods.look(&world.0, &world.1);
    for _ in 0..3 {
        begun(&mut pods, &world, now);
        pods.located("p01", Err(NotLocated::Unavailable("no".to_owned())), &world.0, now);
        pods.retry_all();
        assert_eq!(pods.next_retry(), None, "all are tried immediately");
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
    // At the next resync, the known process is tried without a query to the runtime.
    pods.verify_all();
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, now), one("try"));
    assert_eq!(pods.worked("p01", 4711, plugged(), now), (vec![], false));
    // Its bridge has changed: the link is worked on, and fails for the first time.
    world.1.bridges.insert("br0".to_owned(), 9);
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, now), one("try"));
    pods.worked("p01", 4711, refused(), now);
    assert_eq!(pods.next_retry(), Some(now + SECOND));
    // The process has ended: the runtime is queried.
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
    // An existing link is still verified.
    world.1.ends.insert(key("p01", "data"), end(6, &mark_of_first(), 5));
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, now), one("try"));
    pods.worked("p01", 4711, plugged(), now);
    pods.look(&world.0, &world.1);
    assert_eq!(pods.results.len(), 1);
    // The link is gone, and no result claims that it exists.
    world.1.ends.clear();
    pods.look(&world.0, &world.1);
    assert_eq!((begun(&mut pods, &world, now), pods.results.len()), (vec![], 0));
}

#[test]
fn the_number_of_concurrent_workers_and_queries_is_limited() {
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
    // A pod that is no longer wanted is forgotten when its work has ended, and its result immediately.
    let busy = pods.busy().into_iter().next().expect("one");
    pods.look(&Desired::default(), &world.1);
    assert!(pods.busy().contains(&busy));
    pods.worked(&busy, 4711, Done::Ask, now);
    pods.look(&Desired::default(), &world.1);
    assert!(!pods.busy().contains(&busy));
    assert_eq!((begun(&mut pods, &world, now), pods.next_retry()), (vec![], None));
}

/// The links of `p01` whose work is started, by attachment.
fn worked_on(pods: &mut Pods, (desired, settled): &(Desired, Plan), now: Instant) -> Vec<String> {
    let steps = pods.begin(desired, settled, now);
    let links = steps.into_iter().filter_map(|(_, step)| match step {
        Step::Work(links, _) => Some(links),
        Step::Ask => None,
    });
    links.flatten().map(|link| link.wanted.mark.key.attachment).collect()
}

/// The pod `p01` with these attachments, each with an address.
fn attached(attachments: &[(&str, &str)]) -> (Desired, Plan) {
    let allocations: Vec<_> =
        attachments.iter().map(|(name, address)| ("p01", *name, "br0", *address, false)).collect();
    let settled = Plan { bridges: BTreeMap::from([("br0".to_owned(), 5)]), ..Plan::default() };
    (desired(&[pool("lab", "10.77.0.0/24", &["br0"], &allocations)]), settled)
}

/// The process of `p01` is located. The work that starts then gives each link this result.
fn work(
    pods: &mut Pods,
    world: &(Desired, Plan),
    now: Instant,
    result: impl Fn(&str) -> bool,
) -> Vec<String> {
    assert_eq!(begun(pods, world, now), one("ask"));
    pods.located("p01", Ok(located()), &world.0, now);
    let links = worked_on(pods, world, now);
    let results = links.iter().map(|name| {
        let key = key("p01", name);
        let mark = world.0.wanted[&key].mark.clone();
        let plugged = Plugged {
            mark,
            bridge: ("br0".to_owned(), 5),
            host: (format!("h{name}4711"), 6),
            pod_link: format!("{name}4711"),
            problem: None,
        };
        let result = if result(name) { Ok(plugged) } else { Err(problem(LINK_FAILED, "refused")) };
        (key, result)
    });
    pods.worked("p01", 4711, Done::Links(results.collect()), now);
    links
}

#[test]
fn a_link_that_fails_does_not_delay_the_other_links_of_its_pod() {
    let (bad, good) = (("bad", "10.77.0.2"), ("good", "10.77.0.3"));
    let (mut world, now, mut pods) = (attached(&[bad]), Instant::now(), Pods::default());
    pods.look(&world.0, &world.1);
    for _ in 0..8 {
        let at = pods.next_retry().unwrap_or(now);
        assert_eq!(work(&mut pods, &world, at, |_| false), ["bad"]);
        pods.look_at_due(pods.next_retry().expect("a retry"));
    }
    let late = now + Duration::from_mins(10);
    assert_eq!(work(&mut pods, &world, late, |_| false), ["bad"]);
    assert_eq!(pods.next_retry(), Some(late + Duration::from_mins(1)));
    // Another attachment is created immediately, without the failed one.
    world.0 = attached(&[bad, good]).0;
    pods.look(&world.0, &world.1);
    assert_eq!(work(&mut pods, &world, late, |_| true), ["good"]);
    assert_eq!(pods.next_retry(), Some(late + Duration::from_mins(1)), "the other one still waits");
    world.1.ends.insert(key("p01", "good"), end(6, &mark("lab", "p01", "good", "10.77.0.3/24"), 5));
    pods.look(&world.0, &world.1);
    assert_eq!(begun(&mut pods, &world, late), []);
    pods.look_at_due(late + Duration::from_mins(1));
    assert_eq!(work(&mut pods, &world, late + Duration::from_mins(1), |_| true), ["bad"]);
    assert_eq!(pods.next_retry(), None);
}

#[test]
fn the_wait_of_a_link_ends_when_another_one_is_wanted_in_its_place() {
    let (mut world, mut now, mut pods) =
        (attached(&[("data", "10.77.0.2")]), Instant::now(), Pods::default());
    pods.look(&world.0, &world.1);
    for _ in 0..8 {
        work(&mut pods, &world, now, |_| false);
        now = pods.next_retry().expect("a retry");
        pods.look_at_due(now);
    }
    work(&mut pods, &world, now, |_| false);
    // The PodConfig is corrected: the attachment has another address.
    world.0 = attached(&[("data", "10.77.0.9")]).0;
    pods.look(&world.0, &world.1);
    assert_eq!(work(&mut pods, &world, now, |_| false), ["data"]);
    assert_eq!(pods.next_retry(), Some(now + SECOND), "it fails for the first time");
    // A change of the bridge also ends the delay.
    world.1.bridges.insert("br0".to_owned(), 9);
    pods.look(&world.0, &world.1);
    assert_eq!(work(&mut pods, &world, now, |_| true), ["data"]);
    assert_eq!(pods.next_retry(), None);
}
