//! Who reaches whom: the table of connections, by a model of the rules of the policies that the API server stores.

use serde_json::{Value, json};

use super::model::{End, Network};
use super::{environment, instance_of};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};

const CONFIG: &str = "controllers:
  tenant:
    sandboxNetworkPolicies: true
    egress: {enabled: true, allow: [10.9.0.5/32], deny: [10.0.0.0/8]}
  instance: {examEgress: {enabled: true, allow: [192.0.2.10/32]}}
";

/// The labels of the pods of a workload.
fn pod_labels(lab: &Lab, kind: &str, namespace: &str, name: &str) -> Value {
    wait_until(PATIENCE, || {
        let workload = lab.get(kind, namespace, name).ok_or_else(|| format!("{kind} {name}"))?;
        Ok(workload["spec"]["template"]["metadata"]["labels"].clone())
    })
}

/// The pods of the table: their name in it, and their end.
fn pods(lab: &Lab) -> Vec<(&'static str, End)> {
    let pod = |kind: &str, namespace: &str, name: &str| {
        End::pod(namespace, &pod_labels(lab, kind, namespace, name))
    };
    let labelled = |namespace: &str, labels: Value| End::pod(namespace, &labels);
    vec![
        ("exam", pod("deployments", "tenant-reach-a", "exam")),
        ("exam vm", pod("virtualmachines", "tenant-reach-a", "exam-vm")),
        ("lab", pod("deployments", "tenant-reach-a", "lab")),
        ("lab 2", pod("deployments", "tenant-reach-a", "lab-2")),
        ("other exam", pod("deployments", "tenant-reach-b", "exam")),
        ("other lab", pod("deployments", "tenant-reach-b", "lab")),
        ("sandbox", labelled("sandbox-reach-a", json!({"app": "mine"}))),
        ("sandbox as exam", labelled("sandbox-reach-a", json!({"crownlabs.polito.it/exam": "true"}))),
        ("importer", labelled("tenant-reach-a", json!({"app": "containerized-data-importer"}))),
        ("ingress controller", labelled("reach-ingress", json!({}))),
        ("foreign pod", labelled("default", json!({}))),
        ("dns", labelled("kube-system", json!({"k8s-app": "kube-dns"}))),
        ("dns of the node", End::outside("169.254.20.10")),
        ("metadata", End::outside("169.254.169.254")),
        ("exam server", End::outside("192.0.2.10")),
        ("world", End::outside("203.0.113.5")),
        ("registry", End::outside("10.9.0.5")),
        ("node", End::outside("10.1.0.1")),
    ]
}

/// Source, destination, port, and whether it connects.
const TABLE: &[(&str, &str, u16, bool)] = &[
    // An exam reaches DNS and the exam server, and no machine.
    ("exam", "dns", 53, true),
    ("exam", "dns of the node", 53, true),
    ("exam", "exam server", 443, true),
    ("exam", "dns", 443, false),
    ("exam", "dns of the node", 80, false),
    ("exam", "world", 443, false),
    ("exam", "metadata", 80, false),
    ("exam", "node", 443, false),
    ("exam", "registry", 443, false),
    ("exam", "lab", 22, false),
    ("exam", "exam vm", 22, false),
    ("exam", "other exam", 22, false),
    ("exam", "sandbox", 80, false),
    ("exam vm", "exam server", 443, true),
    ("exam vm", "world", 443, false),
    ("exam vm", "lab", 22, false),
    // No machine reaches it, and the Ingress controller does.
    ("lab", "exam", 22, false),
    ("lab", "exam vm", 22, false),
    ("other lab", "exam", 22, false),
    ("sandbox", "exam", 22, false),
    ("foreign pod", "exam", 22, false),
    ("ingress controller", "exam", 6080, true),
    ("ingress controller", "exam vm", 6080, true),
    // A machine reaches the world and the machines of the same person.
    ("lab", "dns", 53, true),
    ("lab", "world", 443, true),
    ("lab", "registry", 443, true),
    ("lab", "lab 2", 22, true),
    ("lab", "metadata", 80, false),
    ("lab", "node", 443, false),
    ("lab", "other lab", 22, false),
    ("lab", "foreign pod", 80, false),
    ("lab", "sandbox", 80, false),
    ("other lab", "lab", 22, false),
    ("foreign pod", "lab", 22, false),
    ("ingress controller", "lab", 6080, true),
    // The pods of CDI are in the same namespace.
    ("importer", "registry", 443, true),
    ("importer", "node", 443, false),
    // A sandbox has the same policies.
    ("sandbox", "dns", 53, true),
    ("sandbox", "world", 443, true),
    ("sandbox", "metadata", 80, false),
    ("sandbox", "lab", 22, false),
    ("sandbox as exam", "metadata", 80, false),
    ("sandbox as exam", "node", 443, false),
    ("sandbox as exam", "exam", 22, false),
    ("foreign pod", "sandbox", 80, false),
    ("other lab", "sandbox", 80, false),
    ("ingress controller", "sandbox", 80, true),
];

#[test]
fn every_connection_of_the_table_is_allowed_or_denied() {
    let lab = Lab::shared();
    let course = lab.course("reach");
    lab.create_template("reach", "exam", "container", &json!([environment("Container", "Exam", false)]));
    lab.create_template("reach", "exam-vm", "container", &json!([environment("CloudVM", "Exam", true)]));
    lab.create_template("reach", "plain", "container", &json!([environment("Container", "Standard", false)]));
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: reach-ingress, labels: {crownlabs.polito.it/allow-instance-access: 'true'}}}");
    let options = Options { kubeconfig: course.kubeconfig(), selector: "reach", config: CONFIG };
    let _daemon = Daemon::start(&options);
    for name in ["reach-w1", "reach-w2"] {
        lab.apply(&workspace("reach", name, ""));
        lab.await_ready("workspaces", name);
    }
    let roles = "workspaces: [{name: reach-w1, role: user}, {name: reach-w2, role: user}]";
    lab.apply(&tenant("reach", "reach-a", &format!(", createSandbox: true, {roles}")));
    lab.apply(&tenant("reach", "reach-b", &format!(", {roles}")));
    for name in ["reach-a", "reach-b"] {
        lab.await_ready("tenants", name);
        let quota = "/status/hard/count~1instances.crownlabs.polito.it";
        lab.await_value("resourcequotas", &format!("tenant-{name}"), "crownlabs-resource-quota", quota, "4");
    }
    for (tenant, name, template) in [
        ("reach-a", "exam", "exam"),
        ("reach-a", "exam-vm", "exam-vm"),
        ("reach-a", "lab", "plain"),
        ("reach-a", "lab-2", "plain"),
        ("reach-b", "exam", "exam"),
        ("reach-b", "lab", "plain"),
    ] {
        lab.apply(&instance_of("reach", tenant, name, template));
    }
    let pods = pods(&lab);
    let network =
        Network { namespaces: lab.list("namespaces", ""), policies: lab.list("networkpolicies", "") };
    let end = |name: &str| &pods.iter().find(|(found, _)| *found == name).expect(name).1;
    let wrong = TABLE.iter().filter(|(from, to, port, expected)| {
        let protocol = if *port == 53 { "UDP" } else { "TCP" };
        network.connects(end(from), end(to), protocol, *port) != *expected
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{:#?}", network.policies);
    lab.delete("tenant", "", &["reach-a", "reach-b"]);
    lab.delete("workspace", "", &["reach-w1", "reach-w2"]);
    lab.begin_delete("namespace", "", &["reach-ingress"]);
}
