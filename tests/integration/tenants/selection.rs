//! Objects that leave the selection of a daemon: its configuration has another selector, or they have another label.

use std::time::Duration;

use serde_json::{Value, json};

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::shared_volumes::shared_volume;

/// The annotation that says which daemon holds an object.
const MARK: &str = "crownlabs.polito.it/finalized-by";
const SELECTOR: &str = "/metadata/labels/crownlabs.polito.it~1operator-selector";

/// Waits until an object has none of our finalizers, and no mark.
fn await_released(lab: &Lab, (kind, namespace, name): (&str, &str, &str)) -> Value {
    wait_until(PATIENCE, || {
        let object = lab.get(kind, namespace, name).expect("there");
        let metadata = &object["metadata"];
        let is_free = metadata["finalizers"].is_null() && metadata["annotations"][MARK].is_null();
        is_free.then(|| object.clone()).ok_or_else(|| format!("{kind} {name} without finalizer: {metadata}"))
    })
}

#[test]
fn after_a_change_of_the_selector_finalizers_go_from_what_was_selected_before() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let config = |lease: &str| format!("leaderElection: {{name: {lease}}}\n");
    let (ours, others) = (config("left-ours"), config("left-others"));
    // Another daemon of this cluster: its replicas have a Lease of their own.
    let _other = Daemon::start(&Options { kubeconfig: &admin, selector: "left-other", config: &others });
    let mut daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "left-before", config: &ours });
    lab.apply(&tenant("left-other", "left.other", ""));
    lab.apply(&tenant("left-before", "left.ada", ""));
    lab.apply(&workspace("left-before", "left-course", ""));
    lab.await_ready("workspaces", "left-course");
    lab.apply(&shared_volume("left-course", "data", "1Gi"));
    lab.await_value("sharedvolumes", "workspace-left-course", "data", "/status/phase", "Ready");
    lab.await_ready("tenants", "left.other");
    let before = lab.await_ready("tenants", "left.ada");
    assert_eq!(before["metadata"]["finalizers"], json!(["crownlabs.polito.it/tenant-operator"]));
    daemon.signal("TERM");
    daemon.wait(Duration::from_secs(30)).expect("it ends");

    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "left-after", config: &ours });
    let held = [
        ("tenants", "", "left.ada"),
        ("workspaces", "", "left-course"),
        ("sharedvolumes", "workspace-left-course", "data"),
    ];
    let released = held.map(|object| await_released(&lab, object));
    assert_eq!(released[0]["status"], before["status"], "nothing else is changed");
    let namespace = lab.get("namespaces", "", "tenant-left-ada").expect("nothing is deleted");
    assert!(namespace["metadata"]["deletionTimestamp"].is_null());
    let other = lab.get("tenants", "", "left.other").expect("there");
    assert_eq!(other["metadata"]["finalizers"], before["metadata"]["finalizers"], "that is another's");
    // No daemon is needed to delete them.
    lab.delete("sharedvolume", "workspace-left-course", &["data"]);
    lab.delete("tenant", "", &["left.ada", "left.other"]);
    lab.delete("workspace", "", &["left-course"]);
}

#[test]
fn a_tenant_that_another_daemon_takes_over_keeps_its_volume() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let options = |selector| Options { kubeconfig: &admin, selector, config: "" };
    let _first = Daemon::start(&options("moves-a"));
    lab.apply(&tenant("moves-a", "mover", ""));
    let claim = ("persistentvolumeclaims", "mydrive-pvcs", "mover-drive");
    let prepared = "/metadata/labels/crownlabs.polito.it~1volume-provisioning";
    lab.await_value(claim.0, claim.1, claim.2, prepared, "completed");
    lab.await_ready("tenants", "mover");
    lab.kubectl(&[
        "label",
        "tenant",
        "mover",
        "--overwrite",
        "crownlabs.polito.it/operator-selector=moves-b",
    ]);
    await_released(&lab, ("tenants", "", "mover"));
    let _second = Daemon::start(&options("moves-b"));
    lab.await_value(claim.0, claim.1, claim.2, SELECTOR, "moves-b");
    lab.await_value("namespaces", "", "tenant-mover", SELECTOR, "moves-b");
    let mark = "/metadata/annotations/crownlabs.polito.it~1finalized-by";
    lab.await_value("tenants", "", "mover", mark, "crownlabs.polito.it/operator-selector=moves-b");
    lab.await_condition("tenants", "mover", "Ready", "Ready");
    lab.delete("tenant", "", &["mover"]);
}
