//! An exposure from its first ports to its end, and the effect of a change of the pool.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{allow, await_exposure, config, exposed, lab_that_allows, set_ports};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

const NAMESPACE: &str = "tenant-expose";

/// The name of the `NetworkPolicy` for an Instance.
fn policy_of(name: &str) -> String {
    format!("crownlabs-allow-publicexposure-ingress-traffic-{name}")
}

#[test]
fn ports_are_exposed_changed_repaired_and_removed() {
    let lab = lab_that_allows("expose");
    let kubeconfig = lab.service_account();
    let config = config("172.18.0.240/31");
    let options = Options { kubeconfig: &kubeconfig, selector: "expose", config: &config };
    let daemon = Daemon::start(&options);
    lab.apply(&exposed(
        "expose",
        "my.box",
        "{name: http, targetPort: 8080}, {name: ssh, port: 22, targetPort: 22}, {name: dns, targetPort: 53, protocol: UDP}",
    ));
    let status = await_exposure(&lab, NAMESPACE, "my.box", "Ready", "Public exposure assigned");
    assert_eq!(status["externalIP"], "172.18.0.240");
    assert_eq!(
        status["ports"],
        json!([
            {"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"},
            {"name": "http", "port": 49152, "targetPort": 8080, "protocol": "TCP"},
            {"name": "dns", "port": 49152, "targetPort": 53, "protocol": "UDP"},
        ])
    );
    check_objects(&lab);
    changes_by_others_are_repaired(&lab);
    another_order_of_ports_changes_nothing(&lab);
    other_ports(&lab);
    // The loop of Instances writes the status of this generation, too.
    lab.await_observed("instances", NAMESPACE, "my.box", "Reconciled");
    drop(daemon);
    let _daemon = restart(&lab, &options);
    exposure_is_removed(&lab);
    lab.delete_fixtures("expose");
}

/// The labels that the Service selects.
fn pods() -> Value {
    json!({
        "crownlabs.polito.it/instance": "my.box", "crownlabs.polito.it/template": "container",
        "crownlabs.polito.it/tenant": "expose",
    })
}

/// Checks the Service and the `NetworkPolicy`, field by field.
fn check_objects(lab: &Lab) {
    let instance = lab.get("instances", NAMESPACE, "my.box").expect("there");
    let owner = json!([{
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": "my.box",
        "uid": instance["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    let service = lab.get("services", NAMESPACE, "my-box-pe").expect("the Service");
    assert_eq!(service["metadata"]["labels"], json!({"crownlabs.polito.it/component": "pe"}));
    assert_eq!(
        service["metadata"]["annotations"],
        json!({"metallb.io/loadBalancerIPs": "172.18.0.240", "metallb.io/allow-shared-ip": "pe"})
    );
    assert_eq!(service["metadata"]["ownerReferences"], owner);
    assert_eq!(service["spec"]["type"], "LoadBalancer");
    let pods = pods();
    assert_eq!(service["spec"]["selector"], pods);
    let ports: Vec<Value> = service["spec"]["ports"]
        .as_array()
        .expect("ports")
        .iter()
        .map(|port| json!([port["name"], port["port"], port["targetPort"], port["protocol"]]))
        .collect();
    assert_eq!(
        json!(ports),
        json!([["ssh", 22, 22, "TCP"], ["http", 49152, 8080, "TCP"], ["dns", 49152, 53, "UDP"]])
    );
    let policy = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).expect("the NetworkPolicy");
    let mut labels = pods.clone();
    labels["crownlabs.polito.it/managed-by"] = "instance".into();
    assert_eq!(policy["metadata"]["labels"], labels);
    assert_eq!(policy["metadata"]["ownerReferences"], owner);
    assert_eq!(
        policy["spec"],
        json!({
            "podSelector": {"matchLabels": {"crownlabs.polito.it/instance": "my.box"}},
            "ingress": [{"ports": [
                {"port": 22, "protocol": "TCP"}, {"port": 8080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"},
            ]}],
            "policyTypes": ["Ingress"],
        })
    );
    // The status does not wait for a slow event.
    lab.await_event(NAMESPACE, "my.box", "PublicExposureAssigned: Public exposure assigned: 172.18.0.240");
}

/// Changes of the Service and the `NetworkPolicy` by another writer are repaired; further annotations are kept.
fn changes_by_others_are_repaired(lab: &Lab) {
    let policy = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).expect("the NetworkPolicy");
    lab.patch(
        "services",
        NAMESPACE,
        "my-box-pe",
        r#"{"metadata": {"annotations": {"metallb.io/loadBalancerIPs": "172.18.0.77", "theirs": "x"}},
            "spec": {"selector": {"evil": "yes"}}}"#,
    );
    let open = r#"{"spec": {"ingress": [{}], "policyTypes": ["Egress"]}}"#;
    lab.patch("networkpolicies", NAMESPACE, &policy_of("my.box"), open);
    let healed = lab.await_value(
        "services",
        NAMESPACE,
        "my-box-pe",
        "/metadata/annotations/metallb.io~1loadBalancerIPs",
        "172.18.0.240",
    );
    assert_eq!(healed["metadata"]["annotations"]["theirs"], "x");
    assert_eq!(healed["spec"]["selector"], pods());
    wait_until(PATIENCE, || {
        let now = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).ok_or("the policy")?;
        (now["spec"] == policy["spec"]).then_some(()).ok_or_else(|| now["spec"].to_string())
    });
    lab.delete("service", NAMESPACE, &["my-box-pe"]);
    wait_until(PATIENCE, || {
        let service = lab.get("services", NAMESPACE, "my-box-pe").ok_or("the Service")?;
        // The load balancer writes it once more; until then the status shows the previous Service.
        let address = &service["status"]["loadBalancer"]["ingress"][0]["ip"];
        (*address == "172.18.0.240").then_some(()).ok_or_else(|| format!("its address, is {address}"))
    });
    await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
}

/// The same ports in another order: no object is written, and the status keeps its order.
fn another_order_of_ports_changes_nothing(lab: &Lab) {
    let versions = || {
        let service = lab.get("services", NAMESPACE, "my-box-pe").expect("there");
        let policy = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).expect("there");
        [service, policy].map(|object| object["metadata"]["resourceVersion"].clone())
    };
    let status = await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
    let before = versions();
    let instance = lab.get("instances", NAMESPACE, "my.box").expect("there");
    let mut ports = instance["spec"]["publicExposure"]["ports"].as_array().expect("ports").clone();
    ports.reverse();
    set_ports(lab, NAMESPACE, "my.box", &json!(ports));
    wait_until(PATIENCE, || {
        let now = lab.get("instances", NAMESPACE, "my.box").ok_or("the Instance")?;
        let conditions = now["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let exposed = conditions.iter().find(|condition| condition["type"] == "PublicExposureReady");
        let seen =
            exposed.is_some_and(|exposed| exposed["observedGeneration"] == now["metadata"]["generation"]);
        seen.then_some(()).ok_or_else(|| format!("the generation, is {conditions:?}"))
    });
    assert_eq!(versions(), before);
    assert_eq!(await_exposure(lab, NAMESPACE, "my.box", "Ready", "")["ports"], status["ports"]);
}

/// The Instance requests other ports; a port that it keeps has the same number as before.
fn other_ports(lab: &Lab) {
    set_ports(
        lab,
        NAMESPACE,
        "my.box",
        &json!([{"name": "new", "targetPort": 9000}, {"name": "http", "targetPort": 8080}]),
    );
    wait_until(PATIENCE, || {
        let status = await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
        let ports = json!([
            {"name": "new", "port": 49153, "targetPort": 9000, "protocol": "TCP"},
            {"name": "http", "port": 49152, "targetPort": 8080, "protocol": "TCP"},
        ]);
        (status["ports"] == ports).then_some(()).ok_or_else(|| status.to_string())
    });
}

/// Restarts the daemon, which writes nothing.
fn restart(lab: &Lab, options: &Options<'_>) -> Daemon {
    let versions = || {
        let service = lab.get("services", NAMESPACE, "my-box-pe").expect("there");
        let policy = lab.get("networkpolicies", NAMESPACE, &policy_of("my.box")).expect("there");
        let instance = lab.get("instances", NAMESPACE, "my.box").expect("there");
        [service, policy, instance].map(|object| object["metadata"]["resourceVersion"].clone())
    };
    lab.await_phase(NAMESPACE, "my.box", "Ready");
    let before = versions();
    let daemon = Daemon::start(options);
    let reconciles =
        "controller_runtime_reconcile_total{controller=\"publicExposure\",result=\"requeue_after\"} ";
    daemon.wait_for("a reconcile", |daemon| {
        let metrics = daemon.metrics();
        let count = metrics.lines().find_map(|line| line.strip_prefix(reconciles));
        count.is_some_and(|count| count.parse::<f64>().is_ok_and(|count| count >= 1.0))
    });
    assert_eq!(versions(), before);
    daemon
}

/// Service and `NetworkPolicy` are removed when the Instance is stopped, exposure is forbidden or no port is requested.
fn exposure_is_removed(lab: &Lab) {
    let await_removal = || {
        lab.await_gone("services", NAMESPACE, "my-box-pe");
        lab.await_gone("networkpolicies", NAMESPACE, &policy_of("my.box"));
    };
    lab.patch("instances", NAMESPACE, "my.box", r#"{"spec": {"running": false}}"#);
    await_removal();
    lab.await_value("instances", NAMESPACE, "my.box", "/status/publicExposure", "");
    lab.patch("instances", NAMESPACE, "my.box", r#"{"spec": {"running": true}}"#);
    await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
    let forbid = r#"{"spec": {"allowPublicExposure": false}}"#;
    lab.patch("templates", "workspace-expose", "container", forbid);
    await_removal();
    await_exposure(lab, NAMESPACE, "my.box", "Error", "does not allow public exposure");
    allow(lab, "expose");
    await_exposure(lab, NAMESPACE, "my.box", "Ready", "");
    set_ports(lab, NAMESPACE, "my.box", &json!([]));
    await_removal();
    lab.await_value("instances", NAMESPACE, "my.box", "/status/publicExposure", "");
}

#[test]
fn services_keep_addresses_that_leave_the_pool_until_they_are_deleted() {
    let lab = lab_that_allows("shrink");
    let namespace = "tenant-shrink";
    let kubeconfig = lab.service_account();
    let start = |pool: &str| {
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "shrink", config: &config(pool) })
    };
    let daemon = start("172.18.2.1-172.18.2.2");
    let names = ["a", "b", "c"];
    for name in names {
        lab.apply(&exposed("shrink", name, "{name: any, targetPort: 80}"));
        let status = await_exposure(&lab, namespace, name, "Ready", "");
        assert_eq!(status["externalIP"], "172.18.2.1");
    }
    drop(daemon);
    let services = || {
        lab.list("services", namespace).into_iter().map(|service| service["spec"].clone()).collect::<Vec<_>>()
    };
    let before = services();
    let daemon = start("172.18.2.2-172.18.2.3");
    let said = "[!] ipPool: 3 Services have addresses outside of controllers.publicExposure.ipPool, such as 172.18.2.1";
    daemon.wait_for("the line about the pool", |daemon| daemon.ready().1.contains(said));
    for name in names {
        assert_eq!(await_exposure(&lab, namespace, name, "Ready", "")["externalIP"], "172.18.2.1");
    }
    assert_eq!(services(), before, "a change of the pool changes no Service");
    lab.delete("services", namespace, &["a-pe", "b-pe", "c-pe"]);
    let mut ports = BTreeSet::new();
    for name in names {
        lab.await_value("instances", namespace, name, "/status/publicExposure/externalIP", "172.18.2.2");
        let status = await_exposure(&lab, namespace, name, "Ready", "");
        assert!(ports.insert(status["ports"][0]["port"].to_string()), "{status}");
    }
    lab.delete_fixtures("shrink");
}
