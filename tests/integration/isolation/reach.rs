//! The test tries connections between pods, their node and the outside, while kube-router enforces the policies of the
//! API server.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::network::{Connection, NODE, Network, PORTS};
use super::{environment, instance_of};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};
use cluster::Options as ClusterOptions;
use cluster::kube_router::KubeRouter;

const CONFIG: &str = "controllers:
  tenant:
    sandboxNetworkPolicies: true
    egress: {enabled: true, allow: [10.9.0.5/32], deny: [10.0.0.0/8]}
  instance: {examEgress: {enabled: true, allow: [192.0.2.10/32]}}
";

/// The node that runs all pods of the control plane.
const NODE_NAME: &str = "node-0";

/// The pods of Instances: their name in the table, the Tenant, the Instance, and its Template.
const MACHINES: [(&str, &str, &str, &str); 6] = [
    ("exam", "reach-a", "exam", "exam"),
    ("exam vm", "reach-a", "exam-vm", "exam-vm"),
    ("lab", "reach-a", "lab", "plain"),
    ("lab 2", "reach-a", "lab-2", "plain"),
    ("other exam", "reach-b", "exam", "exam"),
    ("other lab", "reach-b", "lab", "plain"),
];

/// The other pods: their name in the table, their namespace, and a label.
const OTHERS: [(&str, &str, (&str, &str)); 6] = [
    ("sandbox", "sandbox-reach-a", ("app", "mine")),
    ("sandbox as exam", "sandbox-reach-a", ("crownlabs.polito.it/exam", "true")),
    ("importer", "tenant-reach-a", ("app", "containerized-data-importer")),
    ("ingress controller", "reach-ingress", ("app", "ingress")),
    ("foreign pod", "default", ("app", "foreign")),
    ("dns", "kube-system", ("k8s-app", "kube-dns")),
];

/// Addresses outside of the cluster.
const OUTSIDE: [(&str, Ipv4Addr); 4] = [
    ("metadata", Ipv4Addr::new(169, 254, 169, 254)),
    ("exam server", Ipv4Addr::new(192, 0, 2, 10)),
    ("world", Ipv4Addr::new(203, 0, 113, 5)),
    ("registry", Ipv4Addr::new(10, 9, 0, 5)),
];

/// The exams whose connections are all tried.
const EXAMS: [&str; 2] = ["exam", "exam vm"];

/// A connection, and whether it is allowed.
type Row = (Connection, bool);

/// The connections of other machines.
const TABLE: &[Row] = &[
    // A machine reaches the world and the machines of the same person.
    (("lab", "dns", 53), true),
    (("lab", "dns of the node", 53), true),
    (("lab", "world", 443), true),
    (("lab", "registry", 443), true),
    (("lab", "lab 2", 22), true),
    (("lab", "metadata", 80), false),
    (("lab", "node", 443), false),
    (("lab", "other lab", 22), false),
    (("lab", "foreign pod", 80), false),
    (("lab", "sandbox", 80), false),
    (("other lab", "lab", 22), false),
    (("foreign pod", "lab", 22), false),
    (("foreign pod", "node", 443), true),
    (("ingress controller", "lab", 6080), true),
    // The pods of CDI are in the same namespace.
    (("importer", "registry", 443), true),
    (("importer", "node", 443), false),
    // A sandbox has the same policies.
    (("sandbox", "dns", 53), true),
    (("sandbox", "world", 443), true),
    (("sandbox", "metadata", 80), false),
    (("sandbox", "lab", 22), false),
    (("sandbox as exam", "metadata", 80), false),
    (("sandbox as exam", "node", 443), false),
    (("foreign pod", "sandbox", 80), false),
    (("other lab", "sandbox", 80), false),
    (("ingress controller", "sandbox", 80), true),
];

/// All connections from and to an exam. It reaches DNS and the exam server, and only the Ingress controller reaches it.
fn of_exam(exam: &'static str, network: &Network) -> Vec<Row> {
    let is_dns = |name: &str, port: u16| port == 53 && ["dns", "dns of the node"].contains(&name);
    let others = network.names().filter(|name| *name != exam);
    let from_exam = others.flat_map(|other| {
        PORTS.map(|port| ((exam, other, port), other == "exam server" || is_dns(other, port)))
    });
    let machines = MACHINES.iter().map(|(name, ..)| *name);
    let pods = machines.chain(OTHERS.iter().map(|(name, ..)| *name)).filter(|name| *name != exam);
    let to_exam = pods.flat_map(|pod| PORTS.map(|port| ((pod, exam, port), pod == "ingress controller")));
    from_exam.chain(to_exam).collect()
}

/// Creates the pods that do not belong to an Instance.
fn create_pods(lab: &Lab) {
    for (name, namespace, (key, value)) in OTHERS {
        wait_until(PATIENCE, || match lab.get("serviceaccounts", namespace, "default") {
            Some(_) => Ok(()),
            None => Err(format!("the service account of {namespace}")),
        });
        let resources = json!({"limits": {"cpu": "10m", "memory": "8Mi"}});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name.replace(' ', "-"), "namespace": namespace, "labels": {(key): value}},
            "spec": {"containers": [{"name": "main", "image": "r.example.org/app:1", "resources": resources}]},
        });
        lab.apply(&pod.to_string());
    }
}

/// Waits until a pod with these labels has an address, and writes the address of the node into its status. Returns the
/// address.
fn address(lab: &Lab, namespace: &str, (key, value): (&str, &str)) -> Ipv4Addr {
    let is_wanted = |pod: &Value| pod["metadata"]["labels"][key] == value;
    let (name, address) = wait_until(PATIENCE, || {
        let pod = lab.list("pods", namespace).into_iter().find(is_wanted);
        let pod = pod.ok_or_else(|| format!("a pod with {key}={value} in {namespace}"))?;
        let address = pod["status"]["podIP"].as_str().and_then(|text| text.parse::<Ipv4Addr>().ok());
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        let address = address.ok_or_else(|| format!("the address of {name} in {namespace}"))?;
        Ok((name, address))
    });
    let node = json!({"status": {"hostIP": NODE, "hostIPs": [{"ip": NODE}]}});
    lab.patch_status("pods", namespace, &name, &node.to_string());
    address
}

/// Creates the network of the node, with all pods of the control plane.
fn network(lab: &Lab) -> Network {
    let node = json!({"status": {"addresses": [{"type": "InternalIP", "address": NODE}]}});
    lab.patch_status("nodes", "", NODE_NAME, &node.to_string());
    let mut network = Network::create();
    network.add_node("dns of the node", Ipv4Addr::new(169, 254, 20, 10));
    for (name, outside) in OUTSIDE {
        network.add_outside(name, outside);
    }
    for (name, tenant, instance, _) in MACHINES {
        let label = ("crownlabs.polito.it/instance", instance);
        network.add_pod(name, address(lab, &format!("tenant-{tenant}"), label));
    }
    for (name, namespace, label) in OTHERS {
        network.add_pod(name, address(lab, namespace, label));
    }
    network
}

/// Creates the Tenants and their Instances.
fn create_machines(lab: &Lab) {
    lab.create_template("reach", "exam", "container", &json!([environment("Container", "Exam", false)]));
    lab.create_template("reach", "exam-vm", "container", &json!([environment("CloudVM", "Exam", true)]));
    lab.create_template("reach", "plain", "container", &json!([environment("Container", "Standard", false)]));
    // Their quota suffices for the pods of four Instances.
    let courses = ["reach-w1", "reach-w2", "reach-w3"];
    for name in courses {
        lab.apply(&workspace("reach", name, ""));
        lab.await_ready("workspaces", name);
    }
    let roles = courses.map(|name| json!({"name": name, "role": "user"}));
    let roles = format!("workspaces: {}", json!(roles));
    lab.apply(&tenant("reach", "reach-a", &format!(", createSandbox: true, {roles}")));
    lab.apply(&tenant("reach", "reach-b", &format!(", {roles}")));
    for name in ["reach-a", "reach-b"] {
        lab.await_ready("tenants", name);
        let quota = "/status/hard/count~1instances.crownlabs.polito.it";
        lab.await_value("resourcequotas", &format!("tenant-{name}"), "crownlabs-resource-quota", quota, "6");
    }
    for (_, tenant, name, template) in MACHINES {
        lab.apply(&instance_of("reach", tenant, name, template));
    }
}

/// Tries the connections of all rows. Fails with the rows whose result is not the expected one.
fn try_all(network: &Network, rows: &[Row], expected: fn(&Row) -> bool) -> Result<(), String> {
    let results = network.connect(rows.iter().map(|(connection, _)| *connection));
    let wrong = rows.iter().zip(results).filter(|(row, connects)| expected(row) != *connects);
    let wrong: Vec<_> = wrong.map(|((connection, _), connects)| (*connection, connects)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("the opposite results of {wrong:?}")) }
}

#[test]
fn every_connection_of_the_table_is_allowed_or_denied() {
    // Its own control plane: kube-router enforces the policies of all namespaces.
    let lab = Arc::new(Lab::start(ClusterOptions::default()));
    let course = lab.course("reach");
    let _daemon = course.daemon(CONFIG);
    let labels = json!({"crownlabs.polito.it/allow-instance-access": "true"});
    let metadata = json!({"name": "reach-ingress", "labels": labels});
    lab.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string());
    create_machines(&lab);
    create_pods(&lab);
    let network = network(&lab);
    let mut rows = TABLE.to_vec();
    rows.extend(EXAMS.into_iter().flat_map(|exam| of_exam(exam, &network)));
    // Servers and routes work: without kube-router, every connection is established.
    wait_until(PATIENCE, || try_all(&network, &rows, |_| true));
    let mut kube_router = KubeRouter::start(&lab.cluster, &network.node, NODE_NAME).expect("it starts");
    wait_until(PATIENCE, || {
        kube_router.check().expect("it runs");
        try_all(&network, &rows, |(_, is_allowed)| *is_allowed)
    });
}
