//! The daemon is killed after each of its writes for pod networks; records, status and the sample are the same.

use serde_json::{Value, json};

use super::{Scenario, crash_after_every_write};
use crate::pod_config::nodes::{PlayedNodes, pools};
use crate::pod_config::{CONFIG, NODES, lab, namespace, pod, pod_config};

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
                // Its pods have no attachments, because their names differ from run to run.
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
        ],
        list: Box::new(|lab| {
            let mut objects: Vec<Value> = lab.list("podconfigs,deployments", NAMESPACE);
            objects.extend(pools(lab));
            // Their uids are in the records.
            let own = lab
                .list("pods", NAMESPACE)
                .into_iter()
                .filter(|pod| pod["metadata"]["labels"]["podconfig"] == "net");
            objects.extend(own.map(|pod| json!({"kind": "Pod", "metadata": {"namespace": NAMESPACE, "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}})));
            objects
        }),
        is_complete: |object| object["kind"] != "PodConfig" || object["status"]["phase"].is_string(),
        configs: &[CONFIG],
    };
    let writes = crash_after_every_write(&lab, &scenario);
    assert!(writes >= 20, "only {writes} writes");
    println!("{writes} crashes");
}
