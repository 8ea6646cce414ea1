//! Many Instances that ask for the same ports at the same time, while the daemon is killed again and again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{allow, exposed};
use crate::cluster::Options as ClusterOptions;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

const NAMESPACE: &str = "tenant-storm";

/// Pseudo-random numbers that are the same in every run (`SplitMix64`, of Steele, Lea and Flood).
struct Numbers(u64);

impl Numbers {
    /// The next number, below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// One to three ports, some of them with a fixed number. There are few numbers, so that many Instances ask for the same
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
/// How many Instances each of them creates.
const INSTANCES: usize = 63;

#[test]
fn no_two_services_share_a_port_when_the_daemon_is_killed_repeatedly() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    lab.create_fixtures("storm");
    allow(&lab, "storm");
    let kubeconfig = lab.service_account();
    // More addresses than there are Instances that could ask for one port: every request can be fulfilled.
    let config = "controllers: {instance: {enabled: false}, tenant: {enabled: false}, workspace: {enabled: false}, \
                  publicExposure: {ipPool: [10.99.0.0/23], waitForAddress: false, concurrency: 16}}\n";
    let options = Options { kubeconfig: &kubeconfig, selector: "storm", config };
    let deaths = create_while_killing(&lab, &options);
    let _daemon = Daemon::start(&options);
    let instances = await_all_ready(&lab);
    assert_eq!(instances.len(), CLIENTS * INSTANCES);
    let services = lab.list("services", NAMESPACE);
    assert_eq!(services.len(), CLIENTS * INSTANCES);
    let ports = assert_no_port_is_shared(&services);
    for instance in &instances {
        assert_as_requested(instance, &services);
    }
    println!("{} Instances, {ports} ports, {deaths} deaths", instances.len());
    assert!(deaths >= 3, "only {deaths} deaths");
}

/// Creates the Instances from several clients while the daemon is killed and started again. Returns how often it was
/// killed.
fn create_while_killing(lab: &Lab, options: &Options<'_>) -> usize {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let mut numbers = Numbers(client as u64);
                    for n in 0..INSTANCES {
                        let ports = random_ports(&mut numbers);
                        lab.apply(&exposed("storm", &format!("i-{client}-{n}"), &ports));
                    }
                })
            })
            .collect();
        let killer = scope.spawn(|| {
            let (mut numbers, mut deaths) = (Numbers(99), 0);
            while !done.load(Ordering::SeqCst) {
                let mut daemon = Daemon::start(options);
                // The moment of the kill is arbitrary on purpose, so there is no condition to wait for.
                let end = Instant::now() + Duration::from_millis(200 + numbers.below(1500));
                while Instant::now() < end && !done.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(10));
                }
                daemon.stop();
                deaths += 1;
            }
            deaths
        });
        for client in clients {
            client.join().expect("a client");
        }
        done.store(true, Ordering::SeqCst);
        killer.join().expect("the killer")
    })
}

/// Waits until the exposure of every Instance is ready, as long as there are fewer and fewer that are not. Returns the
/// Instances.
fn await_all_ready(lab: &Lab) -> Vec<Value> {
    let mut left = usize::MAX;
    while left > 0 {
        left = wait_until(PATIENCE, || {
            let instances = lab.list("instances.crownlabs.polito.it", NAMESPACE);
            let is_waiting = |instance: &&Value| instance["status"]["publicExposure"]["phase"] != "Ready";
            let waiting: Vec<&Value> = instances.iter().filter(is_waiting).collect();
            let example = waiting.first().map(|first| (&first["metadata"]["name"], &first["status"]));
            let is_news = waiting.len() < left;
            is_news.then_some(waiting.len()).ok_or_else(|| format!("{left} are not ready: {example:?}"))
        });
    }
    lab.list("instances.crownlabs.polito.it", NAMESPACE)
}

/// Asserts that no two Services have the same address, port and protocol. Returns the number of ports.
fn assert_no_port_is_shared(services: &[Value]) -> usize {
    let mut holders: BTreeMap<String, String> = BTreeMap::new();
    for service in services {
        let name = service["metadata"]["name"].to_string();
        let address = &service["metadata"]["annotations"]["metallb.universe.tf/loadBalancerIPs"];
        for port in service["spec"]["ports"].as_array().expect("ports") {
            let place = format!("{address} {} {}", port["port"], port["protocol"]);
            if let Some(other) = holders.insert(place.clone(), name.clone()) {
                panic!("{place} is held by {other} and {name}");
            }
        }
    }
    holders.len()
}

/// Asserts that the Service of an Instance has the ports that were asked for, and that the status says the same.
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
