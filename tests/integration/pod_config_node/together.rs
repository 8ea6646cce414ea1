//! Both sides together, with the sample and pods of a real containerd on each node.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::containerd;
use super::kubelet::Kubelets;
use super::monitor::Monitor;
use super::node::{Node, assert_echo};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::pod_config::nodes::{SYSTEM, pools, records};
use crate::pod_config::{self, KIND, NAMESPACE, SAMPLES, await_configured};
use cluster::Options as ClusterOptions;
use cluster::audit::Mark;
use cluster::containerd::Containerd;
use cluster::network::Namespace;

const SAMPLE: &str = "podconfig-sample-a";
/// The attachments of the sample: name, range without its last number, bridge.
const ATTACHMENTS: [(&str, &str, &str); 2] =
    [("pc0", "192.168.100", "pcbr0"), ("pc1", "192.168.99", "pcbr1")];

/// A cluster whose nodes are network namespaces with a containerd each.
struct World {
    kubelets: Kubelets,
    engines: Vec<Arc<Containerd>>,
    nodes: Vec<Node>,
    lab: Arc<Lab>,
}

impl World {
    fn new(names: &[&str]) -> Self {
        let options = ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() };
        let lab = Arc::new(Lab::start(options));
        let nodes: Vec<Node> = names.iter().map(|name| Node::of_leader(&lab, name)).collect();
        let engines: Vec<Arc<Containerd>> = (1..)
            .zip(&nodes)
            .map(|(index, node)| Arc::new(Containerd::start(&node.namespace, index).expect("containerd")))
            .collect();
        let of_kubelets = names.iter().map(|name| (*name).to_owned()).zip(engines.iter().cloned()).collect();
        let kubelets = Kubelets::start(&lab, NAMESPACE, of_kubelets);
        Self { kubelets, engines, nodes, lab }
    }

    fn leader(&self) -> Daemon {
        let kubeconfig = self.lab.service_account();
        Daemon::start(&Options {
            kubeconfig: &kubeconfig,
            selector: "podconfig",
            config: &pod_config::config(),
        })
    }

    /// The daemon of a node, which is ready.
    fn node_daemon(&self, place: usize) -> Daemon {
        let daemon = containerd::start(&self.nodes[place], &self.engines[place], "resync: 1s");
        daemon.await_ready();
        daemon
    }

    fn apply_sample(&self) {
        for file in ["00-namespace.yaml", "podconfig-a.yaml"] {
            self.lab.kubectl(&["apply", "-f", &Path::new(SAMPLES).join(file).display().to_string()]);
        }
    }

    /// Waits until the sample has this many pods with all links. Returns them in the order of the status.
    fn await_plugged(&self, count: usize) -> Vec<Plugged> {
        let object = await_configured(&self.lab, NAMESPACE, SAMPLE, "configured", count);
        let entries = object["status"]["podConfigurations"].as_array().expect("pods").clone();
        entries.iter().map(|entry| self.plugged(entry)).collect()
    }

    /// A pod, from its entry in the status.
    fn plugged(&self, entry: &Value) -> Plugged {
        let name = entry["podName"].as_str().expect("a name").to_owned();
        let texts: Vec<String> = serde_json::from_value(entry["configList"].clone()).expect("texts");
        // The links are created as soon as there is a sandbox, which may be before the kubelet reports that the pod
        // runs.
        let pod = self.lab.await_value("pods", NAMESPACE, &name, "/status/phase", "Running");
        let place = self.nodes.iter().position(|node| pod["spec"]["nodeName"] == *node.name);
        let place = place.expect("it is on a node");
        let number = texts[0].split_once("podVethName:pc0").and_then(|(_, rest)| rest.split(' ').next());
        let process = number.expect("a number").parse().expect("a number");
        let outside = self.engines[place].process_outside(process).expect("it runs");
        let hostname = Command::new("nsenter")
            .args(["--target", &outside.to_string(), "--uts", "hostname"])
            .output()
            .expect("it runs");
        assert_eq!(String::from_utf8_lossy(&hostname.stdout).trim(), name, "the process is the pod's");
        let uid = pod["metadata"]["uid"].as_str().expect("a uid").to_owned();
        Plugged { name, uid, texts, place, process, namespace: Namespace::of(outside) }
    }
}

/// A pod with all its links.
struct Plugged {
    name: String,
    uid: String,
    /// The texts of the status about the links.
    texts: Vec<String>,
    /// The number of its node.
    place: usize,
    /// The process in the names of its links.
    process: u32,
    namespace: Namespace,
}

impl Plugged {
    /// The output of `ip` about all links and addresses of the pod.
    fn links(&self) -> Vec<Value> {
        serde_json::from_str(&self.namespace.ip("-d -j addr show")).expect("JSON")
    }

    /// The links that the cluster's own network has not created, each with its name, MTU, state and IPv4 addresses.
    fn additional(&self) -> BTreeMap<String, Value> {
        let links = self.links().into_iter();
        let others = links.filter(|link| link["ifname"] != "lo" && link["ifname"] != "eth0");
        let described = others.map(|link| {
            let addresses = link["addr_info"].as_array().cloned().unwrap_or_default();
            let ipv4 = addresses.iter().filter(|address| address["family"] == "inet");
            let texts: Vec<String> = ipv4
                .map(|address| {
                    format!("{}/{}", address["local"].as_str().unwrap_or_default(), address["prefixlen"])
                })
                .collect();
            let name = link["ifname"].as_str().unwrap_or_default().to_owned();
            (name, json!([link["mtu"], link["operstate"], texts]))
        });
        described.collect()
    }

    /// Asserts that pod and status have these addresses, and nothing else.
    fn assert_has(&self, last: u8) {
        let Self { process, .. } = self;
        let links = ATTACHMENTS.map(|(name, range, _)| {
            (format!("{name}{process}"), json!([1500, "UP", [format!("{range}.{last}/24")]]))
        });
        assert_eq!(self.additional(), BTreeMap::from(links));
        let texts = ATTACHMENTS.map(|(name, range, bridge)| {
            let link = format!("{name}{process}");
            format!("{{podVethName:{link} podIPAddr:{range}.{last}/24 peerVethName:h{link} bridge:{bridge}}}")
        });
        assert_eq!(self.texts, texts);
    }

    /// The last number of its address in the first range; it is the same in the other range.
    fn last(&self) -> u8 {
        let address = self.texts[0].split_once("192.168.100.").map(|(_, rest)| rest);
        let last = address.and_then(|rest| rest.split('/').next()).expect("an address").parse();
        let last = last.expect("a number");
        self.assert_has(last);
        last
    }
}

#[test]
fn the_sample_works_as_documented_for_administrators() {
    let mut world = World::new(&["podnet-sample"]);
    let leader = world.leader();
    let daemon = world.node_daemon(0);
    world.apply_sample();
    let pods = world.await_plugged(2);
    assert_eq!(pods.iter().map(Plugged::last).collect::<BTreeSet<_>>(), BTreeSet::from([2, 3]));
    assert_node(&world.nodes[0], &pods);
    for (_, range, _) in ATTACHMENTS {
        for (one, other) in [(&pods[0], &pods[1]), (&pods[1], &pods[0])] {
            assert_echo(&one.namespace, &world.nodes[0].namespace, &format!("{range}.1"));
            assert_echo(&one.namespace, &other.namespace, &format!("{range}.{}", other.last()));
        }
    }
    let listed = world.lab.kubectl(&["get", "podconfig", "-n", NAMESPACE]);
    assert!(listed.contains(SAMPLE) && listed.contains("configured"), "{listed}");
    let described = world.lab.kubectl(&["describe", "podconfig", "-n", NAMESPACE, SAMPLE]);
    let texts = pods.iter().flat_map(|pod| pod.texts.iter().chain([&pod.name]));
    let finalizer = "podconfig.finalizers.opdev.io".to_owned();
    for text in texts.chain([&finalizer, &"configured".to_owned()]) {
        assert!(described.contains(text), "{text} is not in {described}");
    }
    world.nodes[0].look_again();
    leaves_nothing(&world, daemon, &pods);
    drop(leader);
}

/// Asserts that a node has both bridges, with the ends of the links of these pods.
fn assert_node(node: &Node, pods: &[Plugged]) {
    let mut own = vec![];
    for (name, range, bridge) in ATTACHMENTS {
        assert_eq!(node.addresses(bridge), [format!("{range}.1/24")]);
        own.push(bridge.to_owned());
        for pod in pods {
            let host = format!("h{name}{}", pod.process);
            let link = node.link(&host);
            let seen = json!([link["master"], link["operstate"], link["mtu"]]);
            assert_eq!(seen, json!([bridge, "UP", 1500]), "{host}");
            own.push(host);
        }
    }
    assert_eq!(node.own().into_iter().collect::<BTreeSet<_>>(), own.into_iter().collect());
}

/// Deletes the sample while its pods keep running, and the daemon of the node is stopped at first.
fn leaves_nothing(world: &World, daemon: Daemon, pods: &[Plugged]) {
    let (lab, node) = (&world.lab, &world.nodes[0]);
    let running = world.kubelets.paused();
    assert!(pods.iter().all(|pod| running.contains_key(&pod.uid)), "{running:?}");
    drop(daemon);
    lab.begin_delete(KIND, NAMESPACE, &[SAMPLE]);
    lab.await_event(NAMESPACE, SAMPLE, "LinksLeft: ");
    let object = lab.get(KIND, NAMESPACE, SAMPLE).expect("it waits for the links");
    assert_eq!(object["metadata"]["finalizers"], json!(["podconfig.finalizers.opdev.io"]));
    assert_node(node, pods);
    let _daemon = world.node_daemon(0);
    wait_until(PATIENCE, || match lab.get(KIND, NAMESPACE, SAMPLE) {
        Some(object) => Err(format!("the end of {}", object["status"])),
        // Once the `PodConfig` is gone, everything is gone.
        None => Ok(()),
    });
    assert_eq!(node.own(), Vec::<String>::new());
    for pod in pods {
        assert_eq!(pod.additional(), BTreeMap::new());
    }
    node.assert_others_untouched();
    assert!(pools(lab).is_empty(), "{:#?}", pools(lab));
    await_empty_reports(lab);
    drop(running);
    wait_until(PATIENCE, || match lab.list("pods,replicasets,deployments", NAMESPACE) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("nothing, is {left:#?}")),
    });
}

/// Waits until the reports contain no links.
fn await_empty_reports(lab: &Lab) {
    wait_until(PATIENCE, || {
        let left = records(lab);
        let keys = left.iter().map(|record| record["data"].as_object().map(|data| data.keys().collect()));
        let is_empty = keys.into_iter().all(|keys: Option<Vec<_>>| keys.is_some_and(|keys| keys == ["node"]));
        is_empty.then_some(()).ok_or_else(|| format!("{left:#?}"))
    });
}

#[test]
fn addresses_of_two_nodes_are_unique_and_restarts_change_nothing() {
    let world = World::new(&["podnet-both-one", "podnet-both-two"]);
    let mut leader = world.leader();
    let mut daemons = [world.node_daemon(0), world.node_daemon(1)];
    world.apply_sample();
    world.await_plugged(2);
    let more = more(&world.lab);
    world.lab.apply(&more.to_string());
    let pods = world.await_plugged(4);
    let addresses = |pods: &[Plugged]| -> BTreeMap<String, u8> {
        pods.iter().map(|pod| (pod.uid.clone(), pod.last())).collect()
    };
    let first = addresses(&pods);
    assert_eq!(first.values().copied().collect::<BTreeSet<_>>(), BTreeSet::from([2, 3, 4, 5]));
    for (place, node) in world.nodes.iter().enumerate() {
        let of_node: Vec<Plugged> =
            world.await_plugged(4).into_iter().filter(|pod| pod.place == place).collect();
        assert_eq!(of_node.len(), 2, "{}", node.name);
        assert_node(node, &of_node);
    }

    unchanged_by_restarts(&world, &mut leader, &mut daemons, &pods);
    assert_eq!(addresses(&world.await_plugged(4)), first);

    // Scales down and up: the addresses are free once the links are gone, and go to the next pods.
    scale(&world.lab, 0);
    let kept = addresses(&world.await_plugged(2));
    assert!(kept.iter().all(|(uid, last)| first.get(uid) == Some(last)), "{first:?} {kept:?}");
    wait_until(PATIENCE, || {
        let allocated: usize = pools(&world.lab)
            .iter()
            .map(|pool| pool["data"].as_object().map_or(0, |data| data.len() - 1))
            .sum();
        (allocated == 4).then_some(()).ok_or_else(|| format!("4 allocations, are {allocated}"))
    });
    scale(&world.lab, 2);
    let last = addresses(&world.await_plugged(4));
    assert_eq!(last.values().copied().collect::<BTreeSet<_>>(), BTreeSet::from([2, 3, 4, 5]));
    assert!(kept.iter().all(|(uid, kept)| last.get(uid) == Some(kept)), "{kept:?} {last:?}");
    assert!(last.keys().filter(|uid| !kept.contains_key(*uid)).all(|uid| !first.contains_key(uid)));
}

/// Another Deployment with the same pods as the sample, with its label.
fn more(lab: &Lab) -> Value {
    let sample = lab.get("deployments", NAMESPACE, "cnf-example-a").expect("the sample");
    let mut template = json!({"spec": sample["spec"]["template"]["spec"]});
    template["metadata"] = json!({"labels": {"podconfig": SAMPLE, "app": "more"}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "more", "namespace": NAMESPACE},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "more"}}, "template": template}})
}

fn scale(lab: &Lab, replicas: u8) {
    lab.patch("deployments", NAMESPACE, "more", &json!({"spec": {"replicas": replicas}}).to_string());
}

/// The kernel counts as silent after this time without a message.
const SILENCE: Duration = Duration::from_secs(3);

/// The messages about the links and bridges of the sample, whose names begin with its prefix.
fn of_the_sample(monitors: Vec<Monitor<'_>>) -> Vec<String> {
    monitors.into_iter().flat_map(|monitor| monitor.messages("pc")).collect()
}

/// Restarts leader and nodes one after the other: none of them writes anything, and no link, address or route is
/// touched.
fn unchanged_by_restarts(world: &World, leader: &mut Daemon, daemons: &mut [Daemon; 2], pods: &[Plugged]) {
    let spaces = world.nodes.iter().map(|node| &node.namespace).chain(pods.iter().map(|pod| &pod.namespace));
    let spaces: Vec<&Namespace> = spaces.collect();
    // The kernel reports a link once its IPv6 address is known to be unique, and its carrier at least a second later.
    wait_until(PATIENCE, || {
        let tentative: String = spaces.iter().map(|space| space.ip("-6 addr show tentative")).collect();
        if tentative.trim().is_empty() { Ok(()) } else { Err(tentative) }
    });
    wait_until(PATIENCE, || {
        let monitors: Vec<Monitor<'_>> = spaces.iter().copied().map(Monitor::start).collect();
        std::thread::sleep(SILENCE);
        let messages = of_the_sample(monitors);
        if messages.is_empty() { Ok(()) } else { Err(format!("{messages:#?}")) }
    });
    let audit = world.lab.cluster.audit();
    let mark = await_rest(&world.lab);
    let monitors: Vec<Monitor<'_>> = spaces.into_iter().map(Monitor::start).collect();
    leader.stop();
    *leader = world.leader();
    leader.wait_for("a pass", |leader| leader.reconciles("podConfig") > 0);
    for (place, daemon) in daemons.iter_mut().enumerate() {
        daemon.stop();
        *daemon = world.node_daemon(place);
        daemon.wait_for("its links", |daemon| daemon.metrics().contains("pod_network_links 4"));
    }
    let messages = of_the_sample(monitors);
    assert!(messages.is_empty(), "{messages:#?}");
    let entries = audit.since(mark).expect("the audit log");
    let ours = entries.iter().filter(|entry| entry.user_agent.starts_with("crownlabs/"));
    assert!(ours.clone().any(|entry| entry.resource == "podconfigs"), "the leader has read them");
    let writes: Vec<_> = ours.filter(|entry| entry.is_write() && entry.resource != "leases").collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

/// Waits until the objects of the daemons stay the same over two rounds of the nodes. Returns the end of the audit log
/// then.
fn await_rest(lab: &Lab) -> Mark {
    let versions = || -> Vec<Value> {
        let objects = records(lab).into_iter().chain(lab.get(KIND, NAMESPACE, SAMPLE));
        objects.map(|object| object["metadata"]["resourceVersion"].clone()).collect()
    };
    let mut seen = versions();
    wait_until(PATIENCE, || {
        let now = versions();
        let events = lab.events(NAMESPACE, SAMPLE);
        let told = events.iter().filter(|event| event.starts_with("Configured: ")).count();
        let is_same = now == seen && told == 4;
        seen = now;
        is_same.then_some(()).ok_or_else(|| format!("{SYSTEM} at rest"))
    });
    lab.cluster.audit().mark().expect("the audit log")
}
