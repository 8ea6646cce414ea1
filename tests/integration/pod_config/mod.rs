//! The leader side of pod networks, with nodes that the test simulates.

pub mod nodes;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;
use cluster::config::only;
use nodes::{PlayedNodes, pools, records};

/// The plural of the kind.
pub const KIND: &str = "podconfigs";
/// The namespace of the samples.
pub const NAMESPACE: &str = "cnf-test";
/// The nodes of the control planes.
pub const NODES: &[&str] = &["node-0", "node-1"];
/// The folder with the samples.
pub const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/samples/podconfig");

/// The configuration of a daemon with only this loop.
pub fn config() -> String {
    only(&[("podConfig", "reservedCidrs: [10.96.0.0/12]")])
}

/// A control plane with two nodes.
pub fn lab() -> Arc<Lab> {
    let options = ClusterOptions { nodes: NODES.len(), kubevirt: false, ..ClusterOptions::default() };
    Arc::new(Lab::start(options))
}

/// A `PodConfig` with attachments, each as `name bridge range`.
pub fn pod_config(namespace: &str, name: &str, attachments: &[&str], more: &Value) -> String {
    let attachments: Vec<Value> = attachments
        .iter()
        .map(|text| {
            let parts: Vec<&str> = text.split(' ').collect();
            json!({"name": parts[0], "linkType": "veth", "parent": parts[0], "master": parts[1], "cidr": parts[2]})
        })
        .collect();
    let mut object = json!({"apiVersion": "podconfig.opdev.io/v1alpha1", "kind": "PodConfig",
        "metadata": {"namespace": namespace, "name": name}, "spec": {"networkAttachments": attachments}});
    for (key, value) in more.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object.to_string()
}

/// A pod of a `PodConfig` on a node.
pub fn pod(namespace: &str, name: &str, config: &str, node: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"podconfig": config}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "busybox"}]}})
    .to_string()
}

/// A namespace.
pub fn namespace(name: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string()
}

/// Waits until a `PodConfig` has a phase and this many pods with interfaces. Returns it.
pub fn await_configured(lab: &Lab, namespace: &str, name: &str, phase: &str, pods: usize) -> Value {
    wait_until(PATIENCE, || {
        let object = lab.get(KIND, namespace, name).ok_or_else(|| format!("PodConfig {name}"))?;
        let status = &object["status"];
        let found = status["podConfigurations"].as_array().map_or(0, Vec::len);
        let is_so = status["phase"] == phase && found == pods;
        is_so.then(|| object.clone()).ok_or_else(|| format!("{phase} with {pods} pods, is {status}"))
    })
}

#[test]
fn the_sample_is_configured_listed_described_and_leaves_nothing() {
    let lab = lab();
    let kubeconfig = lab.service_account();
    let daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "podconfig", config: &config() });
    let _nodes = PlayedNodes::start(&lab, NODES);
    lab.kubectl(&["apply", "-f", SAMPLES]);
    for name in ["podconfig-sample-a", "podconfig-sample-b"] {
        await_configured(&lab, NAMESPACE, name, "configured", 2);
    }
    let object = await_configured(&lab, NAMESPACE, "podconfig-sample-a", "configured", 2);
    assert_eq!(object["metadata"]["finalizers"], json!(["podconfig.finalizers.opdev.io"]));
    let entries = object["status"]["podConfigurations"].as_array().expect("pods");
    let list = |number: u8| {
        let text = |name: &str, range: &str, bridge: &str| {
            format!(
                "{{podVethName:{name}4711 podIPAddr:{range}.{number}/24 peerVethName:h{name}4711 bridge:{bridge}}}"
            )
        };
        json!([text("pc0", "192.168.100", "pcbr0"), text("pc1", "192.168.99", "pcbr1")]).to_string()
    };
    // The pod that was created first has the first address, whatever its name.
    let mut lists: Vec<String> = entries.iter().map(|entry| entry["configList"].to_string()).collect();
    lists.sort();
    assert_eq!(lists, [list(2), list(3)]);
    let listed = lab.kubectl(&["get", "podcfg", "-n", NAMESPACE]);
    assert!(listed.contains("podconfig-sample-a") && listed.contains("configured"), "{listed}");
    let described = lab.kubectl(&["describe", "podconfig", "-n", NAMESPACE, "podconfig-sample-a"]);
    let first = entries[0]["podName"].as_str().expect("a name");
    for text in ["podconfig.finalizers.opdev.io", "configured", "bridge:pcbr1", first] {
        assert!(described.contains(text), "{text} is not in {described}");
    }
    lab.await_event(NAMESPACE, "podconfig-sample-a", &format!("Configured: pod {first} has its interfaces"));
    assert_eq!(pools(&lab).len(), 4);
    assert!(quiet(&lab, &daemon).is_empty(), "{:#?}", quiet(&lab, &daemon));
    lab.kubectl(&["delete", "podconfig", "-n", NAMESPACE, "--all", "--timeout=60s"]);
    assert!(pools(&lab).is_empty(), "{:#?}", pools(&lab));
    for name in ["cnf-example-a", "cnf-example-b"] {
        lab.await_gone("deployments", NAMESPACE, name);
    }
    // The reports belong to the nodes, and are empty now.
    wait_until(PATIENCE, || {
        let left = records(&lab);
        let is_empty =
            left.iter().all(|record| record["data"].as_object().is_some_and(|data| data.len() == 1));
        is_empty.then_some(()).ok_or_else(|| format!("{left:#?}"))
    });
}

/// The daemon's requests to the API server while nothing changes. There is nothing to wait for.
pub fn quiet(lab: &Lab, _: &Daemon) -> Vec<String> {
    let audit = lab.cluster.audit();
    // The last events may still be in progress.
    std::thread::sleep(Duration::from_secs(2));
    let mark = audit.mark().expect("the audit log");
    std::thread::sleep(Duration::from_secs(15));
    let entries = audit.since(mark).expect("the audit log");
    let ours =
        entries.iter().filter(|entry| entry.user_agent.starts_with("crownlabs/") && entry.verb != "watch");
    ours.map(|entry| format!("{} {}", entry.verb, entry.request_uri)).collect()
}

#[test]
fn a_node_that_does_not_exist_is_not_waited_for() {
    let lab = lab();
    let kubeconfig = lab.service_account();
    let daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "podconfig", config: &config() });
    lab.apply(&namespace("lost"));
    let config = |range: &str| pod_config("lost", "net", &[&format!("x br0 {range}")], &json!({}));
    lab.apply(&config("10.1.0.0/24"));
    lab.apply(&pod("lost", "a", "net", "nowhere"));
    let await_pool = |range: &str| {
        wait_until(PATIENCE, || {
            let pools = pools(&lab);
            let is_it = pools.len() == 1 && pools[0]["data"].to_string().contains(range);
            is_it.then_some(()).ok_or_else(|| format!("{range}, there are {pools:#?}"))
        });
    };
    await_pool("10.1.0.0/24");
    lab.apply(&config("10.2.0.0/24"));
    await_pool("10.2.0.0/24");
    lab.begin_delete(KIND, "lost", &["net"]);
    wait_until(Duration::from_secs(20), || match lab.get(KIND, "lost", "net") {
        None => Ok(()),
        Some(object) => Err(format!("{object:#}\n{:#?}\n{}", pools(&lab), daemon.log())),
    });
    assert!(pools(&lab).is_empty());
}

#[test]
fn errors_are_reported_and_the_rest_works() {
    let lab = lab();
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "podconfig", config: &config() };
    let daemon = Daemon::start(&options);
    let _nodes = PlayedNodes::start(&lab, NODES);
    // If two were created in the same second, the name decides.
    lab.apply(&["faulty", "later"].map(namespace).join("\n---\n"));
    let attachments = ["x br0 10.1.0.0/29", "y br1 10.97.0.0/24", "z br2 nonsense", "x br3 10.3.0.0/24"];
    let sample = json!({"sampleDeployment": {"create": true, "name": "taken"}, "vlans": [{"vlanID": 5}]});
    lab.kubectl(&["create", "deployment", "taken", "-n", "faulty", "--image=busybox", "--replicas=0"]);
    lab.apply(&pod_config("faulty", "net", &attachments, &sample));
    lab.apply(&pod_config(
        "later",
        "late",
        &["x br0 10.9.0.0/24", "y br9 10.1.0.4/30", "z br9 fd00::/64"],
        &json!({}),
    ));
    lab.apply(&pod("faulty", "a", "net", NODES[0]));
    lab.apply(&pod("later", "b", "late", NODES[1]));
    let host =
        pod("faulty", "host", "net", NODES[0]).replace("\"nodeName\"", "\"hostNetwork\":true,\"nodeName\"");
    lab.apply(&host);
    await_configured(&lab, "faulty", "net", "configuring", 1);
    let late = await_configured(&lab, "later", "late", "configuring", 1);
    assert_eq!(
        late["status"]["podConfigurations"][0]["configList"],
        json!(["{podVethName:z4711 podIPAddr:fd00::2/64 peerVethName:hz4711 bridge:br9}"])
    );
    let reasons = [
        "NetworkOverlap",
        "InvalidCIDR",
        "InvalidAttachment",
        "VlansNotImplemented",
        "SampleDeploymentConflict",
    ];
    for reason in reasons {
        lab.await_event("faulty", "net", &format!("{reason}: "));
    }
    for reason in ["BridgeConflict", "NetworkOverlap"] {
        lab.await_event("later", "late", &format!("{reason}: "));
    }
    lab.await_event("faulty", "host", "HostNetworkPod: PodConfig net gives this pod no interface");
    let taken = lab.get("deployments", "faulty", "taken").expect("it is left alone");
    assert!(taken["metadata"]["ownerReferences"].is_null(), "{taken}");
    // A lost record is created again with the same addresses, also by the next process.
    let before: Vec<Value> = pools(&lab).iter().map(|pool| pool["data"].clone()).collect();
    drop(daemon);
    for pool in pools(&lab) {
        lab.delete("configmaps", nodes::SYSTEM, &[pool["metadata"]["name"].as_str().expect("a name")]);
    }
    let _daemon = Daemon::start(&options);
    wait_until(PATIENCE, || {
        let now: Vec<Value> = pools(&lab).iter().map(|pool| pool["data"].clone()).collect();
        (now == before).then_some(()).ok_or_else(|| format!("{before:#?}, is {now:#?}"))
    });
    // The older one is deleted, and the younger one gets its request.
    lab.delete(KIND, "faulty", &["net"]);
    await_configured(&lab, "later", "late", "configured", 1);
}
