//! Restarts on request, with pods and virtual machines that are simulated.

use std::time::Duration;

use serde_json::json;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crownlabs::testing::clock;

const NAMESPACE: &str = "tenant-restarted";
const ANNOTATION: &str = "crownlabs.polito.it/restarted-at";
const VM: &str = "virtualmachineinstances.kubevirt.io";
/// The Instances, each named after its Template, and the kind of the object that a restart replaces.
const INSTANCES: [(&str, &str); 3] = [("standalone", "replicasets"), ("vm-persistent", VM), ("vm", VM)];

/// The uids of the objects of this kind of an Instance that are not being deleted.
fn uids(lab: &Lab, name: &str, kind: &str) -> Vec<String> {
    let is_own = |object: &&serde_json::Value| {
        let metadata = &object["metadata"];
        metadata["labels"]["crownlabs.polito.it/instance"] == name && metadata["deletionTimestamp"].is_null()
    };
    let objects = lab.list(kind, NAMESPACE);
    objects.iter().filter(is_own).map(|object| object["metadata"]["uid"].to_string()).collect()
}

#[test]
fn each_type_of_machine_restarts_once_for_each_request() {
    let lab = Lab::shared();
    let _course = lab.course("restarted");
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "restarted", config: "" });
    for (name, _) in INSTANCES {
        lab.apply(&instance("restarted", name, name));
    }
    let former = INSTANCES.map(|(name, kind)| {
        lab.await_phase(NAMESPACE, name, "Ready");
        uids(&lab, name, kind)
    });
    // The API server gives creation times in whole seconds, so the request is later than each of them.
    let time = clock::rfc3339(clock::now() + Duration::from_secs(1));
    for (name, _) in INSTANCES {
        let request = json!({"metadata": {"annotations": {ANNOTATION: time}}});
        lab.patch("instances", NAMESPACE, name, &request.to_string());
    }
    for ((name, kind), former) in INSTANCES.into_iter().zip(&former) {
        assert_eq!(former.len(), 1, "{name}");
        wait_until(PATIENCE, || {
            let new = uids(&lab, name, kind).into_iter().find(|uid| !former.contains(uid));
            new.map(drop).ok_or_else(|| format!("a new object of {name}"))
        });
        lab.await_phase(NAMESPACE, name, "Ready");
    }
    let restarted = INSTANCES.map(|(name, kind)| uids(&lab, name, kind));
    // Another change shows that the daemon has seen all this, and restarts nothing.
    for (name, _) in INSTANCES {
        lab.patch("instances", NAMESPACE, name, r#"{"spec": {"prettyName": "Renamed"}}"#);
        lab.await_observed("instances", NAMESPACE, name, "Reconciled");
    }
    assert_eq!(INSTANCES.map(|(name, kind)| uids(&lab, name, kind)), restarted);
    let deployment = lab.get("deployments", NAMESPACE, "standalone").expect("the Deployment");
    assert_eq!(deployment["spec"]["template"]["metadata"]["annotations"][ANNOTATION], time.as_str());
}
