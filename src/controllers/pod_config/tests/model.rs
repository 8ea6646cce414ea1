//! Random histories of users, nodes and crashes in any order. No address is ever on two links. In the end, the state is
//! as desired, and nothing is left over.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{SYSTEM, World};
use crate::controllers::pod_config::observe::LABEL;
use crate::controllers::pod_network::POOL;

/// A random event.
#[derive(Debug, Clone)]
enum Act {
    Pod(usize, usize, usize),
    NoPod(usize),
    Label(usize, usize),
    Config(usize, usize),
    NoConfig(usize),
    /// A reconcile whose process dies after this number of writes.
    Reconcile(usize, usize),
    Work(usize),
    Restart,
    /// A node is lost, or comes back with its former links.
    Node(usize),
    /// A pod is being deleted.
    End(usize),
    /// A finalizer is removed by hand.
    Force(usize),
    /// An administrator deletes a record, or writes nonsense into it.
    Lose(usize),
    Damage(usize),
}

const CONFIGS: [(&str, &str); 3] = [("lab", "a"), ("lab", "b"), ("other", "c")];
const NODES: [&str; 2] = ["n1", "n2"];

/// The specs of `PodConfig`s: equal, overlapping and small ranges of both families.
const SPECS: [&[&str]; 8] = [
    &["x br0 10.1.0.0/28", "y br1 10.2.0.0/29"],
    &["x br0 10.1.0.0/28"],
    &["x br0 10.1.0.0/29", "y br0 10.1.0.0/28"],
    &["y br1 10.2.0.0/30", "x br0 fd00::/126"],
    &["x br2 10.1.0.8/29", "y br3 10.1.0.0/29"],
    &["x br0 10.1.0.0/28", "y br0 10.1.0.0/28"],
    &["x br5 10.1.0.0/28"],
    &[],
];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..6usize, 0..3usize, 0..2usize).prop_map(|(pod, config, node)| Act::Pod(pod, config, node)),
        2 => (0..6usize).prop_map(Act::NoPod),
        1 => (0..6usize, 0..3usize).prop_map(|(pod, config)| Act::Label(pod, config)),
        3 => (0..3usize, 0..SPECS.len()).prop_map(|(config, spec)| Act::Config(config, spec)),
        1 => (0..3usize).prop_map(Act::NoConfig),
        8 => (0..3usize, 0..6usize).prop_map(|(config, writes)| Act::Reconcile(config, writes)),
        5 => (0..2usize).prop_map(Act::Work),
        2 => (0..2usize).prop_map(Act::Node),
        1 => (0..6usize).prop_map(Act::End),
        1 => (0..3usize).prop_map(Act::Force),
        1 => Just(Act::Restart),
        1 => (0..3usize).prop_map(Act::Lose),
        1 => (0..3usize).prop_map(Act::Damage),
    ]
}

/// The name of the n-th pool, if it exists.
fn pool(world: &World, number: usize) -> Option<String> {
    let is_pool = |(key, _): &(&(String, String, String), &Value)| {
        key.2.starts_with("podnet-") && !key.2.starts_with("podnet-node-")
    };
    world.objects.iter().filter(is_pool).nth(number).map(|(key, _)| key.2.clone())
}

fn perform(world: &mut World, act: &Act) {
    let find = |world: &World, number: usize| {
        let name = format!("p{number}");
        world.objects.keys().find(|key| key.0 == "Pod" && key.2 == name).map(|key| key.1.clone())
    };
    match *act {
        Act::Pod(pod, config, node) => {
            if find(world, pod).is_none() {
                world.pod(CONFIGS[config].0, &format!("p{pod}"), CONFIGS[config].1, NODES[node]);
            }
        }
        Act::NoPod(pod) => {
            if let Some(namespace) = find(world, pod) {
                world.remove("Pod", &namespace, &format!("p{pod}"));
            }
        }
        Act::Label(pod, config) => {
            if let Some(namespace) = find(world, pod) {
                let patch = json!({"metadata": {"labels": {LABEL: CONFIGS[config].1}}});
                world.patch("Pod", &namespace, &format!("p{pod}"), &patch);
            }
        }
        Act::Config(config, spec) => world.config(CONFIGS[config].0, CONFIGS[config].1, SPECS[spec]),
        Act::NoConfig(config) => {
            if world.get("PodConfig", CONFIGS[config].0, CONFIGS[config].1).is_some() {
                world.delete(CONFIGS[config].0, CONFIGS[config].1);
            }
        }
        Act::Reconcile(config, writes) => {
            world.reconcile(CONFIGS[config].0, CONFIGS[config].1, writes);
            world.reconcile(CONFIGS[config].0, "", writes);
        }
        Act::Work(node) if !world.is_ready(NODES[node]) => {}
        Act::Work(node) => world.work(NODES[node]),
        Act::Restart => world.restart(),
        Act::Node(node) if world.is_ready(NODES[node]) => world.lose(NODES[node]),
        Act::Node(node) => world.node(NODES[node], "True"),
        Act::End(pod) => {
            if let Some(namespace) = find(world, pod) {
                world.end(&namespace, &format!("p{pod}"));
            }
        }
        Act::Force(config) => {
            if world.get("PodConfig", CONFIGS[config].0, CONFIGS[config].1).is_some() {
                world.force(CONFIGS[config].0, CONFIGS[config].1);
            }
        }
        Act::Lose(number) => {
            if let Some(name) = pool(world, number) {
                world.remove("ConfigMap", SYSTEM, &name);
            }
        }
        Act::Damage(number) => {
            if let Some(name) = pool(world, number) {
                world.patch("ConfigMap", SYSTEM, &name, &json!({"data": {"pool": "{"}}));
            }
        }
    }
}

proptest! {
    #[test]
    fn no_address_is_used_twice_and_nothing_is_left(acts in proptest::collection::vec(act(), 1..60)) {
        let mut world = World::new();
        for act in &acts {
            perform(&mut world, act);
            world.check();
        }
        for node in NODES {
            if !world.is_ready(node) {
                world.node(node, "True");
            }
        }
        world.settle();
        let writes = world.writes;
        world.restart();
        world.settle();
        prop_assert_eq!(world.writes, writes, "at rest, and after a restart, nothing is written");
        let configs: Vec<_> = world.objects.keys().filter(|key| key.0 == "PodConfig").cloned().collect();
        for (_, namespace, name) in configs {
            if world.get("PodConfig", &namespace, &name).is_some() {
                world.delete(&namespace, &name);
            }
        }
        world.settle();
        let left: Vec<_> = world.objects.keys().filter(|key| key.0 == "PodConfig").collect();
        prop_assert!(left.is_empty() && world.links.is_empty(), "{:?} {:?}", left, world.links);
        // Unparseable records are gone as well.
        prop_assert!(world.records(POOL).is_empty(), "{:?}", world.records(POOL));
    }
}
