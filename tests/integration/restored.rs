//! A cluster whose etcd is restored from a backup while the daemon runs.

use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};
use cluster::Options as ClusterOptions;
use cluster::proxy::{Fault, Proxy, matching};

const BINDING: &str = "crownlabs-manage-instances";

/// Waits until the binding in a personal namespace names its user.
fn await_binding(lab: &Lab, name: &str) {
    let namespace = format!("tenant-{name}");
    wait_until(PATIENCE, || {
        let binding = lab.get("rolebindings", &namespace, BINDING).unwrap_or_default();
        let is_right = binding["subjects"][0]["name"] == name;
        is_right.then_some(()).ok_or_else(|| format!("the binding of {name}, is {binding}"))
    });
}

/// Changes an object this many times. Returns its version then.
fn work(lab: &Lab, changes: u32) -> u64 {
    lab.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: counter, namespace: default}}");
    for _ in 0..changes {
        let patch = json!({"data": {"at": format!("{:?}", std::time::Instant::now())}});
        lab.patch("configmaps", "default", "counter", &patch.to_string());
    }
    let counter = lab.get("configmaps", "default", "counter").expect("there");
    counter["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|version| version.parse().ok())
        .expect("a version")
}

/// Objects of a deleted owner block a new owner with the same name. The garbage collector deletes them, unless it has
/// missed the deletion of the owner.
fn former_children_do_not_stay(lab: &Lab) {
    let uid = |name: &str| lab.get("tenants", "", name).expect("there")["metadata"]["uid"].clone();
    let former = |name: &str| {
        let mut owner =
            lab.get("rolebindings", "tenant-early", BINDING).expect("there")["metadata"]["ownerReferences"]
                [0]
            .clone();
        assert_eq!(owner["uid"], uid(name));
        owner["uid"] = "00000000-0000-4000-8000-000000000000".into();
        json!({"metadata": {"ownerReferences": [owner]}}).to_string()
    };
    lab.cluster.stop_controller_manager();
    lab.patch("rolebindings", "tenant-early", BINDING, &former("early"));
    wait_until(PATIENCE, || {
        let binding = lab.get("rolebindings", "tenant-early", BINDING).unwrap_or_default();
        let owner = &binding["metadata"]["ownerReferences"][0]["uid"];
        (*owner == uid("early")).then_some(()).ok_or_else(|| format!("a binding of the Tenant, is {binding}"))
    });
    lab.cluster.start_controller_manager().expect("it starts");
}

#[test]
fn after_a_restore_the_daemon_converges_without_a_restart() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let kubeconfig =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let options = Options { kubeconfig: &kubeconfig, selector: "restored", config: "" };
    let before = Daemon::start(&options);
    lab.apply(&workspace("restored", "course", ""));
    for name in ["early", "gone"] {
        lab.apply(&tenant("restored", name, ""));
        lab.await_ready("tenants", name);
    }
    drop(before);
    // The backup contains an object to repair.
    let damage =
        r#"{"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]}"#;
    lab.patch("rolebindings", "tenant-early", BINDING, damage);
    let backup = lab.cluster.back_up("yesterday").expect("a backup");
    let mut daemon = Daemon::start(&options);
    await_binding(&lab, "early");
    // A day of work that is missing in the restored cluster.
    lab.delete("tenant", "", &["gone"]);
    lab.await_gone("namespaces", "", "tenant-gone");
    lab.apply(&tenant("restored", "late", ""));
    lab.await_ready("tenants", "late");
    let seen = work(&lab, 500);
    // The watch of Namespaces resumes when the restored cluster has reached all versions that it has seen.
    let namespaces =
        matching(|method, path| *method == Method::GET && path.starts_with("/api/v1/namespaces?"));
    proxy.set(Fault::Status { code: 503, retry_after: None, matching: namespaces });
    lab.cluster.restore(&backup).expect("restored");
    daemon.wait_for("the discovery", |daemon| daemon.log().contains("etcd was restored from a backup"));
    while work(&lab, 100) <= seen {}
    proxy.set(Fault::None);
    // A repaired object is repaired once more, although its version is older than the one that the daemon remembers.
    await_binding(&lab, "early");
    // A Tenant that was deleted since the backup exists again, and is reconciled.
    lab.delete("rolebinding", "tenant-gone", &[BINDING]);
    await_binding(&lab, "gone");
    lab.patch("tenants", "", "gone", r#"{"spec": {"workspaces": [{"name": "course", "role": "user"}]}}"#);
    lab.await_value("tenants", "", "gone", "/status/quota/cpu", "2");
    // A Tenant that was created since the backup does not exist, and may be created again.
    assert!(lab.get("tenants", "", "late").is_none());
    lab.apply(&tenant("restored", "late", ""));
    lab.await_ready("tenants", "late");
    await_binding(&lab, "late");
    former_children_do_not_stay(&lab);
    assert!(daemon.wait(Duration::ZERO).is_none(), "it still runs");
}
