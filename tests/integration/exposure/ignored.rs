//! A load balancer that ignores a Service: the Instance is not ready, with the event about the Service.

use serde_json::{Value, json};

use super::{allow, exposed};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;

const NAMESPACE: &str = "tenant-peignored";

/// Waits until the Instance is ready or not, with this reason and message. Its phase is always `Ready`.
fn await_ready(lab: &Lab, status: &str, reason: &str, message: &str) {
    wait_until(PATIENCE, || {
        let object = lab.get("instances", NAMESPACE, "web").ok_or("the Instance")?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").ok_or("Ready")?;
        let says = ready["message"].as_str().is_some_and(|said| said.contains(message));
        let is_it = ready["status"] == status && ready["reason"] == reason && says;
        if is_it && object["status"]["phase"] == "Ready" { Ok(()) } else { Err(object["status"].to_string()) }
    });
}

/// The event with which `MetalLB` says why it assigns no address.
fn event(service: &Value) -> Value {
    let metadata = &service["metadata"];
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web-pe.refused", "namespace": NAMESPACE},
        "involvedObject": {"kind": "Service", "apiVersion": "v1", "name": metadata["name"],
            "namespace": metadata["namespace"], "uid": metadata["uid"]},
        "type": "Warning", "reason": "AllocationFailed", "message": "no available IPs", "count": 1,
        "source": {"component": "metallb-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn an_instance_whose_service_is_ignored_is_not_ready_until_it_has_an_address() {
    let lab = Lab::start(ClusterOptions { load_balancer: false, ..ClusterOptions::default() });
    lab.create_fixtures("peignored");
    allow(&lab, "peignored");
    let kubeconfig = lab.service_account();
    let config = "controllers: {instance: {stalledAfter: 10s}, publicExposure: {ipPool: [172.18.15.1]}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "peignored", config });
    lab.apply(&exposed("peignored", "web", "{name: ssh, port: 22, targetPort: 22}"));
    let service = wait_until(PATIENCE, || {
        lab.get("services", NAMESPACE, "web-pe").ok_or_else(|| "the Service".to_owned())
    });
    lab.apply(&event(&service).to_string());
    let words = "No load balancer has assigned 172.18.15.1 in 10s: Service web-pe: AllocationFailed: no available IPs";
    await_ready(&lab, "False", "LoadBalancerIgnored", words);
    let assigned = json!({"status": {"loadBalancer": {"ingress": [{"ip": "172.18.15.1"}]}}});
    lab.patch_status("services", NAMESPACE, "web-pe", &assigned.to_string());
    await_ready(&lab, "True", "Ready", "");
}
