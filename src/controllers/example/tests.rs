//! The example on a real control plane.

#[path = "../../../tests/cluster/mod.rs"]
mod cluster;

use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use self::cluster::audit::{Mark, by_agent, writes};
use self::cluster::{Cluster, Options};
use super::PodQuotaReconciler;
use crate::config::Config;
use crate::controllers::Setup;
use crate::controllers::table::build;
use crate::runtime::client::{self, USER_AGENT, Writer};
use crate::runtime::context::Connections;
use crate::runtime::gate::Gate;
use crate::runtime::store::StoreFactory;

/// Starts the loop in a runtime of its own.
fn start(cluster: &Cluster) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let kubeconfig = Kubeconfig::read_from(cluster.admin_kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    let config = runtime.block_on(config).expect("a configuration");
    let gate = Gate::open();
    let connections = Connections {
        client: client::build(config.clone(), gate.clone()).expect("a client"),
        writer: Writer::new(config, gate.clone()).expect("a writer"),
        identity: "example".to_owned(),
        resync: (Duration::from_hours(1), Duration::from_hours(2)),
    };
    let (defaults, mut factory) = (Config::default(), StoreFactory::default());
    let mut setup =
        Setup { config: &defaults, gate, accounts: None, files: Vec::new(), endpoints: Vec::new() };
    let built = build::<PodQuotaReconciler>(&mut setup, &mut factory).expect("built");
    let control_loop = built.into_control_loop(&connections, 2);
    for (_, watch) in factory.watches(&connections.client) {
        runtime.spawn(watch);
    }
    runtime.spawn(async move { control_loop.run().await });
    runtime
}

/// Waits until the quota of a namespace allows so many pods; returns it.
fn await_quota(cluster: &Cluster, namespace: &str, pods: &str, not: &Value) -> Value {
    let begin = Instant::now();
    loop {
        let quota = cluster.get("resourcequotas", namespace, "pods").expect("an answer").unwrap_or_default();
        if quota["spec"]["hard"]["pods"] == pods && quota["metadata"]["uid"] != *not {
            return quota;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "{pods} pods in {namespace}, is {quota}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_loop_is_a_reconciler_and_a_declaration_of_stores() {
    let cluster = Cluster::start(Options { simulate: false, kubevirt: false, ..Options::default() });
    let cluster = cluster.expect("a control plane");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"example/pods": "3"}}});
    cluster.apply(&namespace.to_string()).expect("applied");
    let runtime = start(&cluster);
    let quota = await_quota(&cluster, "a", "3", &Value::Null);
    assert_eq!(quota["metadata"]["ownerReferences"][0]["kind"], "Namespace");
    let patch = |pods: &str| json!({"metadata": {"labels": {"example/pods": pods}}}).to_string();
    cluster.patch("namespaces", "", "a", None, &patch("5")).expect("patched");
    let quota = await_quota(&cluster, "a", "5", &Value::Null);
    // What somebody changes or deletes is repaired.
    cluster
        .patch("resourcequotas", "a", "pods", None, r#"{"spec": {"hard": {"pods": "9"}}}"#)
        .expect("patched");
    await_quota(&cluster, "a", "5", &Value::Null);
    let mut delete = cluster.kubectl();
    assert!(delete.args(["delete", "resourcequota", "-n", "a", "pods"]).status().expect("kubectl").success());
    await_quota(&cluster, "a", "5", &quota["metadata"]["uid"]);
    drop(runtime);
    let entries = cluster.audit().since(Mark::default()).expect("the audit log");
    let ours: Vec<_> = by_agent(&entries, USER_AGENT).cloned().collect();
    let verbs: Vec<&str> = writes(&ours).map(|entry| entry.verb.as_str()).collect();
    assert_eq!(verbs, ["create", "patch", "patch", "create"], "one write for each change");
}
