//! Many Instances that request the same ports at the same time, while leader after leader is killed.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::recorder::{Recorder, assert_never_shared, places};
use super::{allow, exposed};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::numbers::Numbers;
use cluster::Options as ClusterOptions;
use cluster::config::only;
use cluster::proxy::{Fault, Proxy, matching};

const NAMESPACE: &str = "tenant-storm";

/// One to three ports, some of them with a fixed number. There are few numbers, so that many Instances request the same
/// one.
fn random_ports(numbers: &mut Numbers) -> String {
    let count = 1 + numbers.below(3);
    let ports = (0..count).map(|n| {
        let port = if numbers.below(2) == 0 { 0 } else { 80 + n };
        let protocol = if numbers.below(3) == 0 { "UDP" } else { "TCP" };
        format!("{{name: p{n}, port: {port}, targetPort: {}, protocol: {protocol}}}", 8000 + n)
    });
    ports.collect::<Vec<_>>().join(", ")
}

/// How many clients create Instances at the same time.
const CLIENTS: usize = 8;
/// How many leaders are killed.
const ROUNDS: usize = 4;
/// How many Instances each client creates while one of the leaders leads.
const INSTANCES: usize = 15;

/// The keys of the loop. There are more addresses than Instances that could request one port: every request can be
/// fulfilled.
const KEYS: &str = "ipPool: [10.99.0.0/23], waitForAddress: false, concurrency: 16";

#[test]
fn no_two_services_ever_share_a_port_while_leaders_are_killed_and_watches_are_late() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    lab.create_fixtures("storm");
    allow(&lab, "storm");
    let recorder = Recorder::start(&lab, NAMESPACE);
    let mut leader = Replica::start(&lab);
    leader.await_leadership();
    for round in 0..ROUNDS {
        let standby = Replica::start(&lab);
        standby.daemon.wait_for("standby", |daemon| daemon.ready().1.contains("standby"));
        // From now on the standby sees no Service until it reads them as the leader.
        standby.stall();
        create_until_killed(&lab, round, &mut leader);
        standby.await_leadership();
        leader = standby;
    }
    // Its watch is still stalled, so it cannot see the last writes of a killed leader: the next one can.
    leader.daemon.stop();
    let last = Replica::start(&lab);
    last.await_leadership();
    let instances = await_all_ready(&lab);
    wait_until(PATIENCE, || {
        let services = lab.list("services", NAMESPACE);
        let other = instances.iter().find(|instance| !has_its_ports(instance, &services));
        other.map_or(Ok(()), |other| Err(format!("the ports of {}", other["metadata"]["name"])))
    });
    assert_eq!(instances.len(), CLIENTS * INSTANCES * ROUNDS);
    let services = lab.list("services", NAMESPACE);
    assert_eq!(services.len(), instances.len());
    for instance in &instances {
        assert_as_requested(instance, &services);
    }
    let writes = recorder.writes(&lab);
    let count = assert_never_shared(&writes);
    let ports: usize = services.iter().map(|service| places(service).len()).sum();
    println!("{} Instances, {ports} ports, {count} writes, {ROUNDS} leaders killed", instances.len());
}

/// A replica of the daemon, and its proxy to the API server.
struct Replica {
    daemon: Daemon,
    proxy: Proxy,
}

impl Replica {
    fn start(lab: &Lab) -> Self {
        let proxy = Proxy::start(&lab.cluster).expect("the proxy");
        let kubeconfig = lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs");
        let kubeconfig = kubeconfig.expect("a kubeconfig");
        let election = "leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s}";
        let config = format!("{election}\n{}", only(&[("publicExposure", KEYS)]));
        let options = Options { kubeconfig: &kubeconfig, selector: "storm", config: &config };
        // On a busy machine, a leader may lose this short lease.
        Self { daemon: Daemon::start(&options).that_may_end(), proxy }
    }

    fn await_leadership(&self) {
        let leads = "leader_election_master_status{name=\"crownlabs-controller-manager\"} 1";
        self.daemon.wait_for("leadership", |daemon| daemon.metrics().contains(leads));
    }

    /// Silences its watch of Services.
    fn stall(&self) {
        let watches = matching(|_, path| path.contains("/services?") && path.contains("watch=true"));
        self.proxy.set(Fault::Delay { pause: Duration::from_hours(1), matching: watches });
        self.proxy.drop_watches();
    }
}

/// Creates Instances from several clients, which also change the ports of some. Kills the leader once it has exposed
/// some of them.
fn create_until_killed(lab: &Lab, round: usize, leader: &mut Replica) {
    let before = lab.list("services", NAMESPACE).len();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut numbers = Numbers((round * CLIENTS + client) as u64);
                for n in 0..INSTANCES {
                    let ports = random_ports(&mut numbers);
                    lab.apply(&exposed("storm", &format!("i-{round}-{client}-{n}"), &ports));
                    if numbers.below(3) == 0 {
                        let changed = numbers.below(n as u64 + 1);
                        let ports = random_ports(&mut numbers);
                        lab.apply(&exposed("storm", &format!("i-{round}-{client}-{changed}"), &ports));
                    }
                }
            });
        }
        wait_until(PATIENCE, || {
            let made = lab.list("services", NAMESPACE).len() - before;
            (made >= CLIENTS).then_some(()).ok_or_else(|| format!("{made} new Services"))
        });
        // The time of the kill is arbitrary on purpose, so there is no condition to wait for.
        let end = Instant::now() + Duration::from_millis(Numbers(round as u64).below(300));
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
        leader.daemon.stop();
    });
}

/// Waits until the exposure of every Instance is ready, as long as the number of other Instances keeps falling.
/// Returns the Instances.
fn await_all_ready(lab: &Lab) -> Vec<Value> {
    let mut left = usize::MAX;
    while left > 0 {
        left = wait_until(PATIENCE, || {
            let instances = lab.list("instances.crownlabs.polito.it", NAMESPACE);
            let is_waiting = |instance: &&Value| !is_ready(instance);
            let waiting: Vec<&Value> = instances.iter().filter(is_waiting).collect();
            let example = waiting.first().map(|first| (&first["metadata"]["name"], &first["status"]));
            let is_news = waiting.len() < left;
            is_news.then_some(waiting.len()).ok_or_else(|| format!("{left} are not ready: {example:?}"))
        });
    }
    lab.list("instances.crownlabs.polito.it", NAMESPACE)
}

/// Asserts that no two Services have the same address, port and protocol. Returns the number of ports.
pub fn assert_no_port_is_shared(services: &[Value]) -> usize {
    let mut holders: BTreeMap<String, String> = BTreeMap::new();
    for service in services {
        let name = service["metadata"]["name"].to_string();
        let address = &service["metadata"]["annotations"]["metallb.io/loadBalancerIPs"];
        for port in service["spec"]["ports"].as_array().expect("ports") {
            let place = format!("{address} {} {}", port["port"], port["protocol"]);
            if let Some(other) = holders.insert(place.clone(), name.clone()) {
                panic!("{place} is held by {other} and {name}");
            }
        }
    }
    holders.len()
}

/// Whether the Service of an Instance has the requested port numbers.
fn has_its_ports(instance: &Value, services: &[Value]) -> bool {
    let name = format!("{}-pe", instance["metadata"]["name"].as_str().expect("a name"));
    let service = services.iter().find(|service| service["metadata"]["name"] == name);
    let found = service.and_then(|service| service["spec"]["ports"].as_array());
    let is_there = |port: &Value| {
        found.into_iter().flatten().any(|found| {
            found["name"] == port["name"]
                && found["protocol"] == port["protocol"]
                && (port["port"] == 0 || found["port"] == port["port"])
        })
    };
    instance["spec"]["publicExposure"]["ports"].as_array().into_iter().flatten().all(is_there)
}

/// Asserts that the Service of an Instance has the requested ports, and that the status says the same.
fn assert_as_requested(instance: &Value, services: &[Value]) {
    let name = instance["metadata"]["name"].as_str().expect("a name");
    let mut services = services.iter();
    let service = services.find(|service| service["metadata"]["name"] == format!("{name}-pe"));
    let service = service.expect("a Service");
    for port in instance["spec"]["publicExposure"]["ports"].as_array().expect("ports") {
        let is_it =
            |found: &&Value| found["name"] == port["name"] && found["targetPort"] == port["targetPort"];
        let found = service["spec"]["ports"].as_array().expect("ports").iter().find(is_it).expect("the port");
        assert!(port["port"] == 0 || found["port"] == port["port"], "{name}: {port} is {found}");
        let reported = instance["status"]["publicExposure"]["ports"].as_array().expect("ports");
        let reported = reported.iter().find(|reported| reported["name"] == port["name"]).expect("reported");
        assert_eq!(reported["port"], found["port"], "{name}");
    }
}

/// Whether the exposure of an Instance is ready for its current spec. The ports are compared, too: if they change
/// during a write, the condition can be about the new ones slightly before the Service is.
fn is_ready(instance: &Value) -> bool {
    let conditions = instance["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let exposed = conditions.iter().find(|condition| condition["type"] == "PublicExposureReady");
    let generation = &instance["metadata"]["generation"];
    let is_reported = |port: &Value| {
        let reported = instance["status"]["publicExposure"]["ports"].as_array();
        let mut reported = reported.into_iter().flatten();
        reported.any(|reported| {
            reported["name"] == port["name"]
                && reported["protocol"] == port["protocol"]
                && (port["port"] == 0 || reported["port"] == port["port"])
        })
    };
    exposed.is_some_and(|exposed| exposed["status"] == "True" && exposed["observedGeneration"] == *generation)
        && instance["spec"]["publicExposure"]["ports"].as_array().into_iter().flatten().all(is_reported)
}
