//! The rights of both sides of pod networks. The chart grants the rights of the nodes to the account of their
//! `DaemonSet`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::rights::{Shown, rules};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::pod_config;
use crate::pod_config::nodes::SYSTEM;
use crate::pod_config_node::allocations::{allocation, released};
use crate::pod_config_node::node::Node;
use crate::pod_config_node::pools::pool;
use cluster::Options as ClusterOptions;
use cluster::audit::Mark;

/// The name of the account of the nodes, and of its namespace.
const ACCOUNT: &str = "crownlabs-pod-networks";

/// Makes the loop of pod networks do everything that it does, once. The nodes do nothing: one pod is on a node that
/// does not exist, the others are on a node that has never reported.
pub fn exercise_pod_networks(lab: &Lab, shown: &mut Shown) {
    lab.apply(&pod_config::namespace("rbac-networks"));
    let sample = serde_json::json!({"sampleDeployment": {"create": true, "name": "sample"}});
    let config =
        |range: &str| pod_config::pod_config("rbac-networks", "net", &[&format!("x br0 {range}")], &sample);
    lab.apply(&config("10.1.0.0/24"));
    lab.apply(&pod_config::pod("rbac-networks", "lost", "net", "nowhere"));
    let pools = || pod_config::nodes::pools(lab);
    let await_pool = |range: &str| {
        wait_until(PATIENCE, || {
            let pools = pools();
            let is_there = pools.iter().any(|pool| pool["data"].to_string().contains(range));
            is_there.then_some(()).ok_or_else(|| format!("{range}, there are {pools:#?}"))
        });
    };
    await_pool("10.1.0.0/24");
    lab.await_value("deployments", "rbac-networks", "sample", "/kind", "Deployment");
    shown.look(lab);
    // An object without its label is not in the stores, so it is found by its name.
    let pool = pools()[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    let unlabelled = r#"{"metadata": {"labels": null}}"#;
    lab.patch("configmaps", pod_config::nodes::SYSTEM, &pool, unlabelled);
    let label = "/metadata/labels/crownlabs.polito.it~1pod-network";
    lab.await_value("configmaps", pod_config::nodes::SYSTEM, &pool, label, "pool");
    lab.patch("deployments", "rbac-networks", "sample", unlabelled);
    lab.await_value("deployments", "rbac-networks", "sample", "/metadata/labels/podconfig", "net");
    lab.apply(&config("10.2.0.0/24"));
    await_pool("10.2.0.0/24");
    let none = r#"{"spec": {"sampleDeployment": null}}"#;
    lab.patch("podconfigs", "rbac-networks", "net", none);
    lab.await_gone("deployments", "rbac-networks", "sample");
    lab.delete("podconfigs", "rbac-networks", &["net"]);
    assert!(pools().is_empty(), "{:#?}", pools());
}

/// The rights that the chart grants to the nodes: a `ClusterRole`, a Role and their bindings.
fn granted_to_nodes() -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/chart/templates/pod-networks.yaml");
    let text = std::fs::read_to_string(file).expect("the template");
    let text = text
        .replace("{{ $name }}", ACCOUNT)
        .replace("{{ $values.namespace }}", ACCOUNT)
        .replace("{{ .Release.Namespace }}", SYSTEM);
    // Text between the objects, such as a condition, does not belong to them.
    let documents = text.split("\n---\n").filter(|part| part.contains("rbac.authorization.k8s.io/v1\n"));
    documents
        .map(|part| {
            let is_object = |line: &&str| !line.starts_with("  labels:") && !line.starts_with("{{-");
            let lines: Vec<&str> = part.lines().filter(is_object).collect();
            serde_saphyr::from_str(&lines.join("\n")).expect("an object once names and labels are known")
        })
        .collect()
}

/// The account of the nodes, with the rights in `granted`. Returns its kubeconfig.
fn node_account(lab: &Lab, granted: &[Value]) -> std::path::PathBuf {
    lab.apply(&pod_config::namespace(ACCOUNT));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": ACCOUNT}});
    for object in [&account].into_iter().chain(granted) {
        lab.apply(&object.to_string());
    }
    lab.cluster.service_account_kubeconfig(ACCOUNT, ACCOUNT).expect("a token")
}

#[test]
fn a_node_has_the_rights_that_it_uses_and_no_others() {
    let options = ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() };
    let lab = std::sync::Arc::new(Lab::start(options));
    let granted = granted_to_nodes();
    let kinds: Vec<&str> = granted.iter().filter_map(|object| object["kind"].as_str()).collect();
    assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
    let kubeconfig = node_account(&lab, &granted);
    let node = Node::of_leader(&lab, "podnet-rights");
    let config = node.config("resync: 1s");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "rbac", config: &config });

    // Its first report, a link, and its end.
    let (range, pod) = (pool("lab", "10.77.0.0/24", "10.77.0.1", &["labbr0"]), node.pod("uid-one"));
    let link = || allocation(&node, "one", "data", "labbr0", "10.77.0.2");
    node.write(&range, &[("uid-one", json!([link()]))]);
    node.await_state("uid-one", "plugged", 1);
    node.write(&range, &[("uid-one", json!([released(link())]))]);
    node.await_state("uid-one", "released", 1);
    node.delete(&range);
    node.await_nothing();
    drop((daemon, pod));

    let user = format!("system:serviceaccount:{ACCOUNT}:{ACCOUNT}");
    wait_until(PATIENCE, || {
        let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
        let ours: Vec<_> = entries.iter().filter(|entry| entry.user == user).collect();
        let refused: Vec<_> = ours.iter().filter(|entry| entry.code == 403).collect();
        assert!(refused.is_empty(), "{refused:#?}");
        let exercised = ours.iter().map(|entry| format!("{} {}/{}", entry.verb, entry.group, entry.resource));
        let exercised: BTreeSet<String> = exercised.collect();
        let unused: Vec<String> =
            granted.iter().flat_map(rules).filter(|right| !exercised.contains(right)).collect();
        unused.is_empty().then_some(()).ok_or_else(|| format!("granted but not used: {unused:?}"))
    });
}
