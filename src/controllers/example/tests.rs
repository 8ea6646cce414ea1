//! The example on a real control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::{Observed, PodQuotaReconciler};
use crate::config::Config;
use crate::controllers::setup::Setup;
use crate::kinds::{Namespace, NamespaceKind, Unread};
use crate::loops::{Built, leader};
use crate::runtime::ObjectKey;
use crate::runtime::client::{self, USER_AGENT, Writer};
use crate::runtime::context::Connections;
use crate::runtime::controller::ReconcileKey;
use crate::runtime::driver::Driver;
use crate::runtime::gate::Gate;
use crate::runtime::plan::{KindInfo, Plan};
use crate::runtime::queue::Action;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::store::{StoreFactory, WrittenStores};
use cluster::audit::{Mark, by_agent, writes};
use cluster::{Cluster, Options};

/// A separate runtime, and the connections of a daemon in it.
fn connect(cluster: &Cluster) -> (tokio::runtime::Runtime, Connections) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let inside = runtime.enter();
    let kubeconfig = Kubeconfig::read_from(cluster.admin_kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    let config = runtime.block_on(config).expect("a configuration");
    let connections = Connections {
        client: client::build(config.clone(), Gate::open()).expect("a client"),
        writer: Writer::new(config, Gate::open()).expect("a writer"),
        identity: "example".to_owned(),
        resync: (Duration::from_hours(1), Duration::from_hours(2)),
    };
    drop(inside);
    (runtime, connections)
}

/// Starts the loop.
fn start(cluster: &Cluster) -> tokio::runtime::Runtime {
    let (runtime, connections) = connect(cluster);
    let (defaults, mut factory) = (Config::default(), StoreFactory::default());
    let mut setup = Setup::new(&defaults, Gate::open());
    let built = leader::<PodQuotaReconciler>(&mut setup, &mut factory).expect("built");
    let Built::Leader(built) = built else { panic!("a leader loop") };
    let control_loop = built.into_control_loop(&connections, 2);
    for (_, _, watch) in factory.watches(&connections.client) {
        runtime.spawn(watch);
    }
    runtime.spawn(async move { control_loop.run().await });
    runtime
}

/// Waits until the quota of a namespace allows this number of pods, and returns it.
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
    // Changes and deletions by others are repaired.
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

/// Returns a namespace on the first call and not on later ones, like a store whose object has been deleted in the
/// meantime. Its plan asks for confirmation of the object.
#[derive(Default)]
struct VanishingReconciler {
    looks: AtomicUsize,
    forgotten: Arc<AtomicUsize>,
}

impl Reconciler for VanishingReconciler {
    const NAME: &'static str = "vanishing";
    type Kind = NamespaceKind;
    type Observed = Observed;
    type Settings = ();
    type Effect = ();

    fn plan(Observed(namespace, _): &Observed, (): &(), _: Timestamp) -> Plan {
        let confirm = vec![(KindInfo::of::<NamespaceKind>(), ObjectKey::of(&**namespace))];
        Plan { confirm, ..Plan::default() }
    }

    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let is_first = self.looks.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then(|| Observed(Arc::new(Namespace::new(None, &key.name, Unread::default())), None))
    }

    fn forget(&self, _: &ObjectKey) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_object_that_is_missing_at_its_confirmation_is_forgotten() {
    let cluster = Cluster::start(Options { simulate: false, kubevirt: false, ..Options::default() });
    let cluster = cluster.expect("a control plane");
    let (runtime, connections) = connect(&cluster);
    let reconciler = VanishingReconciler::default();
    let forgotten = Arc::clone(&reconciler.forgotten);
    let driver =
        Driver::new(reconciler, (), connections.context("vanishing", "Vanishing", WrittenStores::default()));
    let action = runtime.block_on(driver.reconcile(&ObjectKey::new("", "absent")));
    assert_eq!(action.expect("no failure"), Action::Forget);
    assert_eq!(forgotten.load(Ordering::SeqCst), 1, "its state in the loop is dropped");
}
