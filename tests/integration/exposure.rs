//! Ports of Instances on public addresses. A stand-in gives the addresses, as `MetalLB` does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Options as ClusterOptions;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// A pool and the annotation by which `MetalLB` lets Services share an address.
fn config(pool: &str) -> String {
    format!(
        "controllers: {{publicExposure: {{ipPool: [{pool}], commonAnnotations: {{metallb.universe.tf/allow-shared-ip: pe}}}}}}\n"
    )
}

/// An Instance with ports.
pub fn exposed(lab: &str, name: &str, ports: &str) -> String {
    let instance = instance(lab, name, "container");
    instance.replace("spec:\n", &format!("spec:\n  publicExposure: {{ports: [{ports}]}}\n"))
}

/// Lets the Templates of the test be exposed.
pub fn allow(lab: &Lab, name: &str) {
    lab.patch(
        "templates",
        &format!("workspace-{name}"),
        "container",
        r#"{"spec": {"allowPublicExposure": true}}"#,
    );
}

pub fn set_ports(lab: &Lab, namespace: &str, name: &str, ports: &Value) {
    let patch = json!({"spec": {"publicExposure": {"ports": ports}}});
    lab.patch("instances", namespace, name, &patch.to_string());
}

/// Waits for a phase of the exposure; its status.
fn await_exposure(lab: &Lab, namespace: &str, name: &str, phase: &str, message: &str) -> Value {
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, name).ok_or_else(|| format!("Instance {name}"))?;
        let exposure = &object["status"]["publicExposure"];
        let said = exposure["message"].as_str().unwrap_or_default();
        if exposure["phase"] == phase && said.contains(message) {
            return Ok(exposure.clone());
        }
        Err(format!("{name}: {phase} {message:?}, is {exposure}"))
    })
}

fn policy_of(name: &str) -> String {
    format!("crownlabs-allow-publicexposure-ingress-traffic-{name}")
}

const NAMESPACE: &str = "tenant-expose";

#[test]
fn ports_are_exposed_changed_healed_and_taken_away() {
    let lab = Lab::shared();
    lab.furnish("expose");
    allow(&lab, "expose");
    let kubeconfig = lab.service_account();
    let config = config("172.18.0.240/31");
    let options = Options { kubeconfig: &kubeconfig, selector: "expose", config: &config };
    let daemon = Daemon::start(&options);
    lab.apply(&exposed(
        "expose",
        "my.box",
        "{name: http, targetPort: 8080}, {name: ssh, port: 22, targetPort: 22}, {name: dns, targetPort: 53, protocol: UDP}",
    ));
    let status = await_exposure(&lab, NAMESPACE, "my.box", "Ready", "Public exposure assigned");
    assert_eq!(status["externalIP"], "172.18.0.240");
    assert_eq!(
        status["ports"],
        json!([
            {"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"},
            {"name": "http", "port": 49152, "targetPort": 8080, "protocol": "TCP"},
            {"name": "dns", "port": 49152, "targetPort": 53, "protocol": "UDP"},
        ])
    );
    objects(&lab);
    meddling(&lab);
    other_ports(&lab);
    drop(daemon);
    let _daemon = restart(&lab, &options);
    taken_away(&lab);
    lab.clear("expose");
}

/// The labels of the pods.
fn pods() -> Value {
    json!({
        "crownlabs.polito.it/instance": "my.box", "crownlabs.polito.it/template": "container",
        "crownlabs.polito.it/tenant": "expose",
    })
}

/// The objects, field by field (03 §1.8).
fn objects(lab: &Lab) {
    let instance = lab.get("instances", NAMESPACE, "my.box").expect("there");
    let owner = json!([{
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": "my.box",
        "uid": instance["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    let service = lab.get("services", NAMESPACE, "my-box-pe").expect("the Service");
    assert_eq!(service["metadata"]["labels"], json!({"crownlabs.polito.it/component": "pe"}));
    assert_eq!(
        service["metadata"]["annotations"],
        json!({"metallb.universe.tf/loadBalancerIPs": "172.18.0.240", "metallb.universe.tf/allow-shared-ip": "pe"})
    );
    assert_eq!(service["metadata"]["ownerReferences"], owner);
    assert_eq!(service["spec"]["type"], "LoadBalancer");
    let pods = pods();
    assert_eq!(service["spec"]["selector"], pods);
    let ports: Vec<Value> = service["spec"]["ports"]
        .as_array()
        .expect("ports")
        .iter()
        .map(|port| json!([port["name"], port["port"], port["targetPort"], port["protocol"]]))
        .collect();
    assert_eq!(
        json!(ports),
        json!([["ssh", 22, 22, "TCP"], ["http", 49152, 8080, "TCP"], ["dns", 49152, 53, "UDP"]])
    );
    let policy = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).expect("the NetworkPolicy");
    let mut labels = pods.clone();
    labels["crownlabs.polito.it/managed-by"] = "instance".into();
    assert_eq!(policy["metadata"]["labels"], labels);
    assert_eq!(policy["metadata"]["ownerReferences"], owner);
    assert_eq!(
        policy["spec"],
        json!({
            "podSelector": {"matchLabels": {"crownlabs.polito.it/instance": "my.box"}},
            "ingress": [{"ports": [
                {"port": 22, "protocol": "TCP"}, {"port": 8080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"},
            ]}],
            "policyTypes": ["Ingress"],
        })
    );
    let events = lab.events(NAMESPACE, "my.box");
    assert!(
        events
            .iter()
            .any(|event| event.starts_with("PublicExposureAssigned: Public exposure assigned: 172.18.0.240")),
        "{events:?}"
    );
}

/// Somebody meddles with both: repaired, and what is not ours is left.
fn meddling(lab: &Lab) {
    let policy = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).expect("the NetworkPolicy");
    lab.patch(
        "services",
        NAMESPACE,
        "my-box-pe",
        r#"{"metadata": {"annotations": {"metallb.universe.tf/loadBalancerIPs": "172.18.0.77", "theirs": "x"}},
            "spec": {"selector": {"evil": "yes"}}}"#,
    );
    lab.patch("networkpolicies", NAMESPACE, &policy_of("my.box"), r#"{"spec": {"ingress": [{}]}}"#);
    let healed = lab.await_value(
        "services",
        NAMESPACE,
        "my-box-pe",
        "/metadata/annotations/metallb.universe.tf~1loadBalancerIPs",
        "172.18.0.240",
    );
    assert_eq!(healed["metadata"]["annotations"]["theirs"], "x");
    assert_eq!(healed["spec"]["selector"], pods());
    wait_until(PATIENCE, || {
        let now = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).ok_or("the policy")?;
        (now["spec"] == policy["spec"]).then_some(()).ok_or_else(|| now["spec"].to_string())
    });
    lab.kubectl(&["delete", "service", "-n", NAMESPACE, "my-box-pe"]);
    wait_until(PATIENCE, || {
        lab.get("services", NAMESPACE, "my-box-pe").map(drop).ok_or("the Service".to_owned())
    });
    await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
}

/// Other ports: what stays keeps its number.
fn other_ports(lab: &Lab) {
    set_ports(
        lab,
        NAMESPACE,
        "my.box",
        &json!([{"name": "new", "targetPort": 9000}, {"name": "http", "targetPort": 8080}]),
    );
    wait_until(PATIENCE, || {
        let status = await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
        let ports = json!([
            {"name": "new", "port": 49153, "targetPort": 9000, "protocol": "TCP"},
            {"name": "http", "port": 49152, "targetPort": 8080, "protocol": "TCP"},
        ]);
        (status["ports"] == ports).then_some(()).ok_or_else(|| status.to_string())
    });
}

/// A restart changes nothing.
fn restart(lab: &Lab, options: &Options<'_>) -> Daemon {
    let versions = || {
        let service = lab.get("services", NAMESPACE, "my-box-pe").expect("there");
        let policy = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).expect("there");
        let instance = lab.get("instances", NAMESPACE, "my.box").expect("there");
        [service, policy, instance].map(|object| object["metadata"]["resourceVersion"].clone())
    };
    lab.await_phase(NAMESPACE, "my.box", "Ready");
    let before = versions();
    let daemon = Daemon::start(options);
    let passes =
        "controller_runtime_reconcile_total{controller=\"publicExposure\",result=\"requeue_after\"} ";
    daemon.wait_for("a pass", |daemon| {
        let metrics = daemon.metrics();
        let count = metrics.lines().find_map(|line| line.strip_prefix(passes));
        count.is_some_and(|count| count.parse::<f64>().is_ok_and(|count| count >= 1.0))
    });
    assert_eq!(versions(), before);
    daemon
}

/// Stopped, started, forbidden, allowed, emptied.
fn taken_away(lab: &Lab) {
    let gone = || {
        lab.await_gone("services", NAMESPACE, "my-box-pe");
        lab.await_gone("networkpolicies", NAMESPACE, &policy_of("my.box"));
    };
    lab.patch("instances", NAMESPACE, "my.box", r#"{"spec": {"running": false}}"#);
    gone();
    lab.await_value("instances", NAMESPACE, "my.box", "/status/publicExposure", "");
    lab.patch("instances", NAMESPACE, "my.box", r#"{"spec": {"running": true}}"#);
    await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
    let forbid = r#"{"spec": {"allowPublicExposure": false}}"#;
    lab.patch("templates", "workspace-expose", "container", forbid);
    gone();
    await_exposure(lab, NAMESPACE, "my.box", "Error", "does not allow public exposure");
    allow(lab, "expose");
    await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
    set_ports(lab, NAMESPACE, "my.box", &json!([]));
    gone();
    lab.await_value("instances", NAMESPACE, "my.box", "/status/publicExposure", "");
}

#[test]
fn bad_requests_are_told_with_what_to_do() {
    let lab = Lab::shared();
    lab.furnish("badports");
    let namespace = "tenant-badports";
    let kubeconfig = lab.service_account();
    let config = config("172.18.1.1");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "badports", config: &config });
    lab.apply(&exposed("badports", "one", "{name: a, port: 80, targetPort: 80}"));
    await_exposure(&lab, namespace, "one", "Error", "its owner can set spec.allowPublicExposure");
    allow(&lab, "badports");
    await_exposure(&lab, namespace, "one", "Ready", "");
    let port = |name: &str, port: u16, target: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": target, "protocol": protocol});
    for (ports, message) in [
        (
            json!([port("a", 80, 80, "TCP"), port("b", 81, 80, "TCP")]),
            "Invalid public exposure request: duplicate desired targetPort 80 found in public exposure request",
        ),
        (
            json!([port("a", 80, 80, "TCP"), port("b", 80, 81, "TCP")]),
            "Invalid public exposure request: duplicate requested port 80 found in public exposure request",
        ),
        (json!([port("a", 80, 80, "TCP"), port("a", 81, 81, "TCP")]), "two ports are named a"),
        (json!([port("a", 80, 80, "SCTP")]), "only TCP and UDP can be exposed"),
    ] {
        set_ports(&lab, namespace, "one", &ports);
        let status = await_exposure(&lab, namespace, "one", "Error", message);
        // What was there stays.
        assert_eq!((&status["externalIP"], &status["ports"][0]["port"]), (&json!("172.18.1.1"), &json!(80)));
    }
    // Two protocols of one port are no duplicate.
    set_ports(&lab, namespace, "one", &json!([port("a", 53, 53, "TCP"), port("b", 53, 53, "UDP")]));
    await_exposure(&lab, namespace, "one", "Ready", "");
    // Taken, until it is freed.
    lab.apply(&exposed("badports", "two", "{name: a, port: 53, targetPort: 53}"));
    await_exposure(&lab, namespace, "two", "Error", "ask for other ports, or for port 0");
    lab.patch("instances", namespace, "one", r#"{"spec": {"running": false}}"#);
    await_exposure(&lab, namespace, "two", "Ready", "");
    // Out of range: the schema refuses it.
    let refusal = lab.try_kubectl(
        &[
            "patch",
            "instance",
            "-n",
            namespace,
            "two",
            "--type=merge",
            "-p",
            r#"{"spec": {"publicExposure": {"ports": [{"name": "a", "port": 65536, "targetPort": 0}]}}}"#,
        ],
        "",
    );
    let refusal = refusal.expect_err("out of range");
    assert!(refusal.contains("less than or equal to 65535"), "{refusal}");
    // Without a pool.
    drop(daemon);
    let none = "controllers: {publicExposure: {ipPool: []}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "badports", config: none });
    lab.apply(&exposed("badports", "three", "{name: a, targetPort: 53}"));
    await_exposure(&lab, namespace, "three", "Error", "controllers.publicExposure.ipPool is empty");
    lab.clear("badports");
}

#[test]
fn services_move_off_addresses_that_are_withdrawn() {
    let lab = Lab::shared();
    lab.furnish("shrink");
    allow(&lab, "shrink");
    let namespace = "tenant-shrink";
    let kubeconfig = lab.service_account();
    let start = |pool: &str| {
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "shrink", config: &config(pool) })
    };
    let daemon = start("172.18.2.1-172.18.2.2");
    let names = ["a", "b", "c"];
    for name in names {
        lab.apply(&exposed("shrink", name, "{name: any, targetPort: 80}"));
        let status = await_exposure(&lab, namespace, name, "Ready", "");
        assert_eq!(status["externalIP"], "172.18.2.1");
    }
    drop(daemon);
    let _daemon = start("172.18.2.2-172.18.2.3");
    let mut ports = BTreeSet::new();
    for name in names {
        lab.await_value("instances", namespace, name, "/status/publicExposure/externalIP", "172.18.2.2");
        let status = await_exposure(&lab, namespace, name, "Ready", "");
        assert!(ports.insert(status["ports"][0]["port"].to_string()), "{status}");
    }
    lab.clear("shrink");
}

/// Numbers that look random and are the same in every run (`SplitMix64`, of Steele, Lea and Flood).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// One to three ports, some of them fixed, of few numbers: many ask for the same.
fn random_ports(numbers: &mut Numbers) -> String {
    let count = 1 + numbers.below(3);
    let ports = (0..count).map(|n| {
        let port = if numbers.below(2) == 0 { 0 } else { 80 + n };
        let protocol = if numbers.below(3) == 0 { "UDP" } else { "TCP" };
        format!("{{name: p{n}, port: {port}, targetPort: {}, protocol: {protocol}}}", 8000 + n)
    });
    ports.collect::<Vec<_>>().join(", ")
}

/// Clients at once, and Instances of each.
const CLIENTS: usize = 8;
const INSTANCES: usize = 63;

#[test]
fn nobody_shares_a_port_whatever_happens_to_the_daemon() {
    let lab = Lab::start(ClusterOptions { play: false, ..ClusterOptions::default() });
    lab.furnish("storm");
    allow(&lab, "storm");
    let namespace = "tenant-storm";
    let kubeconfig = lab.service_account();
    // More addresses than there are Instances that could ask for one port: all can be satisfied.
    let config = "controllers: {instance: {enabled: false}, tenant: {enabled: false}, workspace: {enabled: false}, \
                  publicExposure: {ipPool: [10.99.0.0/23], waitForAddress: false, concurrency: 16}}\n";
    let options = Options { kubeconfig: &kubeconfig, selector: "storm", config };
    let done = AtomicBool::new(false);
    let mut deaths = 0;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let lab = &lab;
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
                let mut daemon = Daemon::start(&options);
                // Time is what is tested here: it may die at any moment.
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
        deaths = killer.join().expect("the killer");
    });
    let _daemon = Daemon::start(&options);
    let instances = wait_until(PATIENCE, || {
        let instances = lab.list("instances.crownlabs.polito.it", namespace);
        let waiting: Vec<_> = instances
            .iter()
            .filter(|instance| instance["status"]["publicExposure"]["phase"] != "Ready")
            .map(|instance| (&instance["metadata"]["name"], &instance["status"]["publicExposure"]))
            .collect();
        if waiting.is_empty() { Ok(instances) } else { Err(format!("{}: {:?}", waiting.len(), waiting[0])) }
    });
    assert_eq!(instances.len(), CLIENTS * INSTANCES);
    let services = lab.list("services", namespace);
    let mut holders: BTreeMap<String, String> = BTreeMap::new();
    for service in &services {
        let name = service["metadata"]["name"].to_string();
        let address = &service["metadata"]["annotations"]["metallb.universe.tf/loadBalancerIPs"];
        for port in service["spec"]["ports"].as_array().expect("ports") {
            let place = format!("{address} {} {}", port["port"], port["protocol"]);
            if let Some(other) = holders.insert(place.clone(), name.clone()) {
                panic!("{place} is held by {other} and {name}");
            }
        }
    }
    assert_eq!(services.len(), CLIENTS * INSTANCES);
    // What was asked for is what is there, and what is told.
    let named =
        |name: &str| services.iter().find(|service| service["metadata"]["name"] == format!("{name}-pe"));
    for instance in &instances {
        let name = instance["metadata"]["name"].as_str().expect("a name");
        let service = named(name).expect("a Service");
        for port in instance["spec"]["publicExposure"]["ports"].as_array().expect("ports") {
            let is_it =
                |found: &&Value| found["name"] == port["name"] && found["targetPort"] == port["targetPort"];
            let found =
                service["spec"]["ports"].as_array().expect("ports").iter().find(is_it).expect("the port");
            assert!(port["port"] == 0 || found["port"] == port["port"], "{name}: {port} is {found}");
            let told = instance["status"]["publicExposure"]["ports"].as_array().expect("ports");
            let told = told.iter().find(|told| told["name"] == port["name"]).expect("told");
            assert_eq!(told["port"], found["port"], "{name}");
        }
    }
    println!("{} Instances, {} ports, {deaths} deaths", instances.len(), holders.len());
    assert!(deaths >= 3, "only {deaths} deaths");
}
