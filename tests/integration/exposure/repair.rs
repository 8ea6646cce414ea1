//! Services that another writer has changed beyond recognition, that share a name, or that a load balancer does not
//! release.

use serde_json::{Value, json};

use super::recorder::{Recorder, assert_never_shared, places};
use super::{await_exposure, config, exposed, lab_that_allows, set_ports};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::config::only;

/// The configuration with only this loop, with more keys.
fn alone(pool: &str, more: &str) -> String {
    only(&[("publicExposure", &format!("ipPool: [{pool}]{more}"))])
}

/// The exposure of a Service: its address and its ports, which identify it.
fn exposure_of(lab: &Lab, namespace: &str, service: &str) -> Option<Vec<String>> {
    let service = lab.get("services", namespace, service)?;
    let is_ours = service["metadata"]["labels"]["crownlabs.polito.it/component"] == "pe";
    (is_ours && service["spec"]["type"] == "LoadBalancer").then(|| places(&service))
}

#[test]
fn a_service_that_lost_label_annotation_or_type_gets_its_address_and_ports_back() {
    let (lab, namespace) = (lab_that_allows("pelost"), "tenant-pelost");
    let kubeconfig = lab.service_account();
    let config = config("172.18.4.1");
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "pelost", config: &config });
    // By the time of the change, the first free port is another one.
    lab.apply(&exposed("pelost", "first", "{name: any, targetPort: 80}"));
    await_exposure(&lab, namespace, "first", "Ready", "");
    lab.apply(&exposed(
        "pelost",
        "second",
        "{name: any, targetPort: 80}, {name: web, port: 80, targetPort: 81}",
    ));
    await_exposure(&lab, namespace, "second", "Ready", "");
    set_ports(&lab, namespace, "first", &json!([]));
    lab.await_gone("services", namespace, "first-pe");
    lab.apply(&exposed("pelost", "rival", "{name: web, port: 80, targetPort: 80}"));
    await_exposure(&lab, namespace, "rival", "Error", "No public address");
    let recorder = Recorder::start(&lab, namespace);
    let before = exposure_of(&lab, namespace, "second-pe").expect("exposed");
    assert!(before.contains(&"\"172.18.4.1\" 49153 \"TCP\"".to_owned()), "{before:?}");
    let key = "metallb.io/loadBalancerIPs";
    for lost in [
        json!({"metadata": {"labels": null}}),
        json!({"metadata": {"annotations": {key: null}}}),
        json!({"spec": {"type": "ClusterIP"}}),
        json!({"metadata": {"labels": null, "annotations": null}, "spec": {"type": "ClusterIP"}}),
    ] {
        lab.patch("services", namespace, "second-pe", &lost.to_string());
        wait_until(PATIENCE, || {
            let now = exposure_of(&lab, namespace, "second-pe");
            (now.as_ref() == Some(&before))
                .then_some(())
                .ok_or_else(|| format!("{lost}: {before:?}, is {now:?}"))
        });
    }
    lab.delete("service", namespace, &["second-pe"]);
    wait_until(PATIENCE, || {
        let now = exposure_of(&lab, namespace, "second-pe");
        (now.as_ref() == Some(&before)).then_some(()).ok_or_else(|| format!("again {before:?}, is {now:?}"))
    });
    await_exposure(&lab, namespace, "second", "Ready", "");
    let writes = recorder.writes(&lab);
    assert!(writes.iter().all(|write| write.name != "rival-pe"), "the rival got a port meanwhile");
    lab.delete_fixtures("pelost");
}

#[test]
fn two_instances_with_the_same_service_name_share_nothing() {
    let (lab, namespace) = (lab_that_allows("penames"), "tenant-penames");
    let kubeconfig = lab.service_account();
    let config = alone("172.18.5.1", "");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "penames", config: &config });
    let recorder = Recorder::start(&lab, namespace);
    lab.apply(&exposed("penames", "a.b", "{name: web, port: 80, targetPort: 80}"));
    await_exposure(&lab, namespace, "a.b", "Ready", "");
    lab.apply(&exposed("penames", "a-b", "{name: ssh, port: 22, targetPort: 22}"));
    let status = await_exposure(&lab, namespace, "a-b", "Error", "belongs to Instance a.b");
    assert_eq!((&status["externalIP"], &status["ports"]), (&Value::Null, &Value::Null));
    // It has no claim: its port is free.
    lab.apply(&exposed("penames", "c", "{name: ssh, port: 22, targetPort: 22}"));
    await_exposure(&lab, namespace, "c", "Ready", "");
    set_ports(&lab, namespace, "a-b", &json!([]));
    lab.await_value("instances", namespace, "a-b", "/status/publicExposure", "");
    set_ports(&lab, namespace, "a-b", &json!([{"name": "ssh", "port": 23, "targetPort": 22}]));
    await_exposure(&lab, namespace, "a-b", "Error", "belongs to Instance a.b");
    let web = await_exposure(&lab, namespace, "a.b", "Ready", "");
    assert_eq!(web["ports"][0]["port"], 80);
    let errors = "controller_runtime_reconcile_errors_total{controller=\"publicExposure\"} ";
    let metrics = daemon.metrics();
    let errors = metrics.lines().find_map(|line| line.strip_prefix(errors));
    assert!(errors.is_none_or(|count| count == "0"), "{errors:?} retries");
    // When the older one is deleted, the younger gets the name.
    lab.delete("instance", namespace, &["a.b"]);
    let status = await_exposure(&lab, namespace, "a-b", "Ready", "");
    assert_eq!(status["ports"][0]["port"], 23);
    let writes = recorder.writes(&lab);
    assert_never_shared(&writes);
    let of_web = writes.iter().filter_map(|write| write.service.as_ref().filter(|_| write.name == "a-b-pe"));
    let uids: std::collections::BTreeSet<String> =
        of_web.map(|service| service["metadata"]["ownerReferences"][0]["name"].to_string()).collect();
    assert_eq!(uids.len(), 2, "first of a.b, then of a-b: {uids:?}");
    lab.delete_fixtures("penames");
}

#[test]
fn a_port_is_not_given_away_while_a_load_balancer_holds_its_service() {
    let (lab, namespace) = (lab_that_allows("peheld"), "tenant-peheld");
    let kubeconfig = lab.service_account();
    let config = alone("172.18.6.1", "");
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "peheld", config: &config });
    let recorder = Recorder::start(&lab, namespace);
    // The garbage collector deletes the Service of a deleted Instance; the daemon deletes the Service of an Instance
    // without ports.
    let gone = |name: &str| lab.delete("instance", namespace, &[name]);
    let asks_for_none = |name: &str| set_ports(&lab, namespace, name, &json!([]));
    let ways: [&dyn Fn(&str); 2] = [&gone, &asks_for_none];
    for (end, (way, port)) in ways.into_iter().zip([("gone", 80), ("none", 90)]) {
        let [first, next, later] = ["first", "next", "later"].map(|role| format!("{role}-{way}"));
        let service = format!("{first}-pe");
        lab.apply(&exposed("peheld", &first, &format!("{{name: web, port: {port}, targetPort: 80}}")));
        await_exposure(&lab, namespace, &first, "Ready", "");
        let hold = r#"{"metadata": {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]}}"#;
        lab.patch("services", namespace, &service, hold);
        lab.apply(&exposed("peheld", &next, &format!("{{name: web, port: {port}, targetPort: 80}}")));
        await_exposure(&lab, namespace, &next, "Error", "No public address");
        end(&first);
        wait_until(PATIENCE, || {
            let service = lab.get("services", namespace, &service).ok_or("the Service is gone")?;
            let is_leaving = !service["metadata"]["deletionTimestamp"].is_null();
            is_leaving.then_some(()).ok_or_else(|| "its deletion".to_owned())
        });
        // The daemon has seen the deletion once it has reconciled a later object.
        lab.apply(&exposed("peheld", &later, &format!("{{name: any, port: {}, targetPort: 80}}", port + 1)));
        await_exposure(&lab, namespace, &later, "Ready", "");
        await_exposure(&lab, namespace, &next, "Error", "No public address");
        lab.patch("services", namespace, &service, r#"{"metadata": {"finalizers": null}}"#);
        await_exposure(&lab, namespace, &next, "Ready", "");
    }
    assert_never_shared(&recorder.writes(&lab));
    lab.delete_fixtures("peheld");
}

#[test]
fn a_changed_address_annotation_keeps_all_addresses() {
    let (lab, namespace) = (lab_that_allows("pekey"), "tenant-pekey");
    let kubeconfig = lab.service_account();
    let start = |more: &str| {
        let config = alone("172.18.7.1-172.18.7.2", more);
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "pekey", config: &config })
    };
    let daemon = start("");
    for name in ["one", "two", "three"] {
        lab.apply(&exposed(
            "pekey",
            name,
            "{name: any, targetPort: 80}, {name: web, port: 80, targetPort: 81}",
        ));
    }
    let phase = |name: &str, phase: &str| await_exposure(&lab, namespace, name, phase, "");
    wait_until(PATIENCE, || {
        let assigned = ["one", "two", "three"].map(|name| {
            let instance = lab.get("instances", namespace, name).expect("there");
            instance["status"]["publicExposure"]["ports"].as_array().map_or(0, Vec::len)
        });
        let complete = assigned.iter().filter(|ports| **ports == 2).count();
        let is_settled = complete == 2 && assigned.contains(&1);
        is_settled
            .then_some(())
            .ok_or_else(|| format!("two have port 80, and all have the other: {assigned:?}"))
    });
    let places = |name: &str| {
        let status =
            lab.get("instances", namespace, name).expect("there")["status"]["publicExposure"].clone();
        (status["externalIP"].clone(), status["ports"].clone())
    };
    let before = ["one", "two", "three"].map(places);
    drop(daemon);
    let _daemon = start(", loadBalancerIpsKey: metallb.universe.tf/loadBalancerIPs");
    for service in lab.list("services", namespace) {
        let name = service["metadata"]["name"].as_str().expect("a name");
        let healed = wait_until(PATIENCE, || {
            let service = lab.get("services", namespace, name).ok_or("the Service")?;
            let annotations = service["metadata"]["annotations"].clone();
            let is_new = !annotations["metallb.universe.tf/loadBalancerIPs"].is_null();
            is_new.then_some(annotations.clone()).ok_or_else(|| annotations.to_string())
        });
        assert_eq!(healed["metallb.io/loadBalancerIPs"], Value::Null, "{name}");
        phase(name.trim_end_matches("-pe"), "Ready");
    }
    assert_eq!(["one", "two", "three"].map(places), before);
    lab.delete_fixtures("pekey");
}

#[test]
fn an_ipv6_address_makes_an_ipv6_service_which_keeps_it_until_it_is_deleted() {
    let (lab, namespace) = (lab_that_allows("pesix"), "tenant-pesix");
    let kubeconfig = lab.service_account();
    let start = |pool: &str| {
        let config = alone(pool, "");
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "pesix", config: &config })
    };
    let daemon = start("\"2001:db8::1\", \"2001:db8::2\"");
    for name in ["one", "two"] {
        lab.apply(&exposed("pesix", name, "{name: web, port: 80, targetPort: 80}"));
        await_exposure(&lab, namespace, name, "Ready", "");
    }
    let families =
        |service: &str| lab.get("services", namespace, service).expect("there")["spec"]["ipFamilies"].clone();
    assert_eq!((families("one-pe"), families("two-pe")), (json!(["IPv6"]), json!(["IPv6"])));
    drop(daemon);
    // One address is left, which `two` has; `one` keeps its address until its Service is deleted.
    let daemon = start("\"2001:db8::2\"");
    daemon.wait_for("the line about the pool", |daemon| daemon.ready().1.contains("[!] ipPool: 1 Services"));
    assert_eq!(await_exposure(&lab, namespace, "one", "Ready", "")["externalIP"], "2001:db8::1");
    lab.delete("services", namespace, &["one-pe"]);
    let status = await_exposure(&lab, namespace, "one", "Error", "No public address");
    assert_eq!((&status["externalIP"], &status["ports"]), (&Value::Null, &Value::Null));
    drop(daemon);
    // Another family.
    let _daemon = start("172.18.8.1-172.18.8.2");
    lab.delete("services", namespace, &["two-pe"]);
    for name in ["one", "two"] {
        wait_until(PATIENCE, || {
            let status = await_exposure(&lab, namespace, name, "Ready", "");
            let address = status["externalIP"].as_str().unwrap_or_default().to_owned();
            address.starts_with("172.18.8.").then_some(()).ok_or(address)
        });
        assert_eq!(families(&format!("{name}-pe")), json!(["IPv4"]));
    }
    lab.delete_fixtures("pesix");
}

/// Two ports with one number share a node port, which the API server keeps for each name: it rejects both as TCP.
#[test]
fn ports_that_shared_a_number_may_become_ports_of_one_protocol() {
    let (lab, namespace) = (lab_that_allows("peshared"), "tenant-peshared");
    let kubeconfig = lab.service_account();
    let config = config("172.18.4.9");
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "peshared", config: &config });
    lab.apply(&exposed(
        "peshared",
        "dns",
        "{name: udp, port: 53, targetPort: 53, protocol: UDP}, {name: tcp, port: 53, targetPort: 54, protocol: TCP}",
    ));
    await_exposure(&lab, namespace, "dns", "Ready", "");
    let before = exposure_of(&lab, namespace, "dns-pe").expect("exposed");
    assert_eq!(before, ["\"172.18.4.9\" 53 \"UDP\"", "\"172.18.4.9\" 53 \"TCP\""]);
    let both = json!([
        {"name": "udp", "port": 80, "targetPort": 53, "protocol": "TCP"},
        {"name": "tcp", "port": 81, "targetPort": 54, "protocol": "TCP"},
    ]);
    set_ports(&lab, namespace, "dns", &both);
    wait_until(PATIENCE, || {
        let now = exposure_of(&lab, namespace, "dns-pe").unwrap_or_default();
        let wanted = ["\"172.18.4.9\" 80 \"TCP\"", "\"172.18.4.9\" 81 \"TCP\""];
        (now == wanted).then_some(()).ok_or_else(|| format!("{wanted:?}, is {now:?}"))
    });
    await_exposure(&lab, namespace, "dns", "Ready", "");
    lab.delete_fixtures("peshared");
}
