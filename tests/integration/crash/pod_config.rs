//! The daemon is killed after each of its writes for pod networks; records, status and the sample are the same.

use serde_json::{Value, json};

use super::{Scenario, crash_after_every_write};
use crate::pod_config::nodes::{PlayedNodes, SYSTEM, pools, report_name};
use crate::pod_config::{NODES, config, lab, namespace, pod, pod_config};

const NAMESPACE: &str = "crash";

#[test]
fn pod_networks_survive_a_crash_after_every_write() {
    let lab = lab();
    lab.apply(&namespace(NAMESPACE));
    let _nodes = PlayedNodes::start(&lab, NODES);
    let sample = json!({"sampleDeployment": {"create": true, "name": "sample"}});
    let scenario = Scenario {
        name: "pod networks",
        fixtures: "podconfig",
        steps: vec![
            Box::new(move |lab| {
                lab.apply(&pod(NAMESPACE, "a", "net", NODES[0]));
                lab.apply(&pod(NAMESPACE, "b", "net", NODES[1]));
                let attachments = ["x br0 10.1.0.0/29", "y br1 10.2.0.0/24", "z br2 10.97.0.0/24"];
                lab.apply(&pod_config(NAMESPACE, "net", &attachments, &json!({})));
                // Its pods have no attachments, because the names of attachments differ from run to run.
                lab.apply(&pod_config(NAMESPACE, "sample", &[], &sample));
            }),
            Box::new(|lab| {
                lab.delete("pods", NAMESPACE, &["a"]);
                let attachments = ["x br0 10.1.0.0/29", "y br1 10.2.0.0/25"];
                lab.apply(&pod_config(NAMESPACE, "net", &attachments, &json!({})));
            }),
            Box::new(|lab| {
                lab.begin_delete("podconfigs", NAMESPACE, &["net", "sample"]);
                lab.delete("pods", NAMESPACE, &["b"]);
            }),
            // A node has returned with a link of a `PodConfig` that no longer exists.
            Box::new(|lab| {
                let link = json!([{"namespace": "former", "podConfig": "gone", "podConfigUid": "uid-gone", "pod": "c",
                    "attachment": "x", "state": "plugged", "podLink": "x4711", "hostLink": "hx4711",
                    "address": "10.3.0.2/24", "bridge": "br3"}]);
                let data = json!({"data": {"uid-c": link.to_string()}});
                lab.patch("configmaps", SYSTEM, &report_name(NODES[1]), &data.to_string());
            }),
        ],
        list: Box::new(|lab| {
            let mut objects: Vec<Value> = lab.list("podconfigs,deployments", NAMESPACE);
            objects.extend(pools(lab));
            let report = lab.get("configmaps", SYSTEM, &report_name(NODES[1])).unwrap_or_default();
            let has_left = !report["data"]["uid-c"].is_null();
            objects.push(json!({"kind": "Left", "metadata": {"name": "c"}, "is": has_left}));
            // Their uids are in the records.
            let own = lab
                .list("pods", NAMESPACE)
                .into_iter()
                .filter(|pod| pod["metadata"]["labels"]["podconfig"] == "net");
            objects.extend(own.map(|pod| json!({"kind": "Pod", "metadata": {"namespace": NAMESPACE, "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}})));
            objects
        }),
        is_complete: |object| object["kind"] != "PodConfig" || object["status"]["phase"].is_string(),
        configs: &[&config()],
    };
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 20, "only {writes} writes");
    println!("{writes} crashes");
}
