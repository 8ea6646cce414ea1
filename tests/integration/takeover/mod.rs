//! Instances that a Go operator has made, and that the daemon takes over.

pub mod check;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The kinds of the objects that the newest Go operator makes. It makes one cloud-init Secret for all machines of an
/// Instance, the daemon one for each: Secrets are left out.
const KINDS: &str = "services,ingresses,httproutes,persistentvolumeclaims,deployments,\
                     virtualmachines.kubevirt.io,datavolumes.cdi.kubevirt.io";

/// The uids of the objects in a namespace, by `Kind/name`.
fn uids(lab: &Lab, namespace: &str) -> BTreeMap<String, Value> {
    let of_instances = |object: &Value| object["metadata"]["ownerReferences"][0]["kind"] == "Instance";
    let objects = lab.list(KINDS, namespace).into_iter().filter(of_instances);
    objects
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
            (name, object["metadata"]["uid"].clone())
        })
        .collect()
}

/// Creates an object in the names and with the labels that the newest Go operator gives it.
fn make(lab: &Lab, instance: &Value, environment: &str, api_version: &str, kind: &str, body: &Value) {
    let name = instance["metadata"]["name"].as_str().expect("a name");
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": format!("{name}-{environment}"),
            "namespace": instance["metadata"]["namespace"],
            "labels": {
                "crownlabs.polito.it/managed-by": "instance",
                "crownlabs.polito.it/instance": name,
                "crownlabs.polito.it/template": "pair",
                "crownlabs.polito.it/tenant": "newest",
                "crownlabs.polito.it/environment": environment,
            },
            "ownerReferences": [{
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": name,
                "uid": instance["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
            }],
        },
    });
    object.as_object_mut().expect("an object").extend(body.as_object().expect("members").clone());
    lab.apply(&object.to_string());
}

/// Creates what makes an environment reachable.
fn expose(lab: &Lab, instance: &Value, environment: &str) {
    let selector = json!({"crownlabs.polito.it/environment": environment});
    let ports = json!([{"name": "gui", "port": 6080}]);
    let service = json!({"spec": {"clusterIP": "None", "selector": selector, "ports": ports}});
    make(lab, instance, environment, "v1", "Service", &service);
    let name = format!("{}-{environment}", instance["metadata"]["name"].as_str().expect("a name"));
    let path = format!("/instance/{}/{environment}", instance["metadata"]["uid"].as_str().expect("a uid"));
    let backend = json!({"service": {"name": name, "port": {"name": "gui"}}});
    let rule = json!({"host": "crownlabs.example.com",
        "http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}});
    make(lab, instance, environment, "networking.k8s.io/v1", "Ingress", &json!({"spec": {"rules": [rule]}}));
    let rule = json!({"matches": [{"path": {"type": "PathPrefix", "value": path}}],
        "backendRefs": [{"name": name, "port": 6080}]});
    let route = json!({"spec": {"parentRefs": [{"name": "labs", "namespace": "gateways"}], "rules": [rule]}});
    make(lab, instance, environment, "gateway.networking.k8s.io/v1", "HTTPRoute", &route);
}

/// Creates an Instance with the objects of a web application and of a virtual machine, both with a disk.
fn make_all(lab: &Lab) {
    lab.apply(&instance("newest", "lab", "pair"));
    let made = lab.get("instances", "tenant-newest", "lab").expect("the Instance");
    for environment in ["web", "machine"] {
        expose(lab, &made, environment);
    }
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    make(lab, &made, "web", "v1", "PersistentVolumeClaim", &json!({"spec": claim}));
    let labels = json!({"crownlabs.polito.it/environment": "web"});
    let pod =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "i"}]}});
    let deployment = json!({"spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}});
    make(lab, &made, "web", "apps/v1", "Deployment", &deployment);
    let disk =
        json!({"spec": {"source": {"registry": {"url": "docker://r.example.org/vm:1"}}, "pvc": claim}});
    make(lab, &made, "machine", "cdi.kubevirt.io/v1beta1", "DataVolume", &disk);
    let volumes = json!([{"name": "root", "dataVolume": {"name": "lab-machine"}}]);
    let machine = json!({"spec": {"running": true,
        "template": {"spec": {"domain": {"devices": {}}, "volumes": volumes}}}});
    make(lab, &made, "machine", "kubevirt.io/v1", "VirtualMachine", &machine);
}

#[test]
fn objects_of_the_newest_go_operator_are_taken_over_under_their_names() {
    let lab = Lab::shared();
    lab.create_fixtures("newest");
    let namespace = "tenant-newest";
    lab.apply(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: pair, namespace: workspace-newest}
spec:
  prettyName: pair
  description: two environments
  workspace.crownlabs.polito.it/WorkspaceRef: {name: newest}
  environmentList:
  - {name: web, environmentType: Standalone, image: \"r.example.org/web:1\", persistent: true, mountMyDriveVolume: false, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}
  - {name: machine, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: true, mountMyDriveVolume: false, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}
",
    );
    make_all(&lab);
    let status = r#"{"status": {"phase": "Ready", "environments": [
        {"name": "web", "phase": "Ready", "initialReadyTime": "45s"},
        {"name": "machine", "phase": "Ready", "initialReadyTime": "1m30s"}]}}"#;
    lab.patch_status("instances", namespace, "lab", status);
    let before = uids(&lab, namespace);
    assert_eq!(before.len(), 10, "{before:?}");

    let admin = lab.admin();
    let config = "controllers: {instance: {gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "newest", config });
    let status = wait_until(PATIENCE, || {
        let status = lab.get("instances", namespace, "lab").ok_or("the Instance")?["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let is_done = |condition: &Value| condition["type"] == "Reconciled" && condition["status"] == "True";
        conditions.iter().any(is_done).then(|| status.clone()).ok_or_else(|| status.to_string())
    });
    let times: Vec<_> =
        (0..2).map(|index| status["environments"][index]["initialReadyTime"].clone()).collect();
    assert_eq!(times, ["45s", "1m30s"]);
    assert_eq!(status["initialReadyTime"], "45s");
    assert!(status["ip"].is_null() && status["environments"][0]["ip"].is_null(), "headless: {status}");
    assert_eq!(uids(&lab, namespace), before);
    // They are the daemon's: a stop removes what makes the environments reachable.
    lab.patch("instances", namespace, "lab", r#"{"spec": {"running": false}}"#);
    for kind in ["services", "ingresses", "httproutes"] {
        for name in ["lab-web", "lab-machine"] {
            lab.await_gone(kind, namespace, name);
        }
    }
    lab.delete_fixtures("newest");
}

#[test]
fn the_initial_ready_time_of_the_older_go_operator_is_kept() {
    let lab = Lab::shared();
    lab.create_fixtures("older");
    lab.apply(&instance("older", "box", "container"));
    let status = r#"{"status": {"phase": "Ready", "ip": "10.0.0.9", "initialReadyTime": "45s"}}"#;
    lab.patch_status("instances", "tenant-older", "box", status);
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "older", config: "" });
    lab.await_value("instances", "tenant-older", "box", "/status/environments/0/phase", "Ready");
    let status = lab.await_phase("tenant-older", "box", "Ready")["status"].clone();
    assert_eq!(status["initialReadyTime"], "45s");
    assert_eq!(status["environments"][0]["initialReadyTime"], "45s");
    lab.delete_fixtures("older");
}
