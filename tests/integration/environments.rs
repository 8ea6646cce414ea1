//! Every type of environment, from its creation to its deletion.

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, TEMPLATES, instance, wait_until};

#[test]
fn every_type_starts_stops_starts_and_is_deleted() {
    let lab = Lab::shared();
    let _course = lab.course("life");
    let admin = lab.admin();
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "life", config: "" });
    for template in TEMPLATES {
        lab.apply(&instance("life", template, template));
    }
    let namespace = "tenant-life";
    for template in TEMPLATES {
        let object = lab.await_phase(namespace, template, "Ready");
        let status = &object["status"];
        assert!(status["ip"].is_string(), "{template}: {status}");
        assert!(status["initialReadyTime"].is_string(), "{template}: {status}");
        assert!(status["nodeName"].is_string(), "{template}: {status}");
        assert_eq!(status["environments"][0]["phase"], "Ready", "{template}");
        assert_eq!(status["environments"][0]["service"], template, "{status}");
        let gui = template != "cloudvm";
        assert_eq!(status["url"].is_string(), gui, "{template}: {status}");
        let pretty = object["spec"]["prettyName"].as_str().unwrap_or_default();
        assert_eq!(pretty.split(' ').count(), 2, "{template}: \"{pretty}\"");
        lab.patch("instances", namespace, template, r#"{"spec": {"running": false}}"#);
    }
    for template in TEMPLATES {
        let object = lab.await_phase(namespace, template, "Off");
        lab.await_gone("services", namespace, template);
        let status = &object["status"];
        assert!(status["url"].is_null() && status["ip"].is_null(), "{template}: {status}");
        assert_eq!(status["environments"][0]["service"], template, "it is kept: {status}");
        let stamp = &object["metadata"]["annotations"]["crownlabs.polito.it/last-powered-off-timestamp"];
        assert!(stamp.is_string(), "{template}: power-off stamp");
        lab.patch("instances", namespace, template, r#"{"spec": {"running": true}}"#);
    }
    for template in TEMPLATES {
        let object = lab.await_phase(namespace, template, "Ready");
        let stamp = &object["metadata"]["annotations"]["crownlabs.polito.it/last-powered-off-timestamp"];
        assert!(stamp.is_null(), "{template}: {stamp}");
    }
    // A virtual machine keeps the MAC address of its first start.
    let machine = lab.get("virtualmachines.kubevirt.io", namespace, "vm-persistent").expect("the machine");
    let pinned = machine.pointer("/spec/template/spec/domain/devices/interfaces/0/macAddress");
    assert!(pinned.is_some_and(serde_json::Value::is_string), "{machine}");
    let metrics = daemon.metrics();
    assert!(metrics.contains("instance_initial_ready_time_second_count"), "{metrics}");
    lab.delete_all("instances", namespace);
    for template in TEMPLATES {
        for kind in ["services", "ingresses", "deployments", "persistentvolumeclaims"] {
            lab.await_gone(kind, namespace, template);
        }
        lab.await_gone("virtualmachines.kubevirt.io", namespace, template);
        lab.await_gone("virtualmachineinstances.kubevirt.io", namespace, template);
    }
}

#[test]
fn an_instance_without_its_template_keeps_the_state_of_its_workload() {
    let lab = Lab::shared();
    let _course = lab.course("orphan");
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "orphan", config: "" });
    let (namespace, templates) = ("tenant-orphan", ["standalone", "vm-persistent"]);
    for template in templates {
        lab.apply(&instance("orphan", template, template));
        lab.await_phase(namespace, template, "Ready");
    }
    lab.delete("templates", "workspace-orphan", &templates);
    for template in templates {
        lab.await_fault(namespace, template, "TemplateNotFound");
        let status = &lab.get("instances", namespace, template).expect("the Instance")["status"];
        assert!(status["phase"] == "Ready" && status["url"].is_string(), "{template}: {status}");
    }
    lab.patch("deployments", namespace, "standalone", r#"{"spec": {"replicas": 0}}"#);
    lab.await_phase(namespace, "standalone", "Off");
}

#[test]
fn a_template_may_have_several_environments() {
    let lab = Lab::shared();
    let _course = lab.course("pair");
    lab.apply(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {name: pair, namespace: workspace-pair}
spec:
  prettyName: pair
  description: two environments
  workspace.crownlabs.polito.it/WorkspaceRef: {name: pair}
  environmentList:
  - {name: web, environmentType: Standalone, image: \"r.example.org/web:1\", mountMyDriveVolume: false, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi}}
  - {name: machine, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: true, resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}}
",
    );
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "pair", config: "" });
    lab.apply(&instance("pair", "two.of-them", "pair"));
    let object = lab.await_phase("tenant-pair", "two.of-them", "Ready");
    let environments = object["status"]["environments"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = environments.iter().map(|environment| environment["name"].clone()).collect();
    assert_eq!(names, ["web", "machine"]);
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    assert_eq!(object["status"]["url"], format!("https://crownlabs.example.com/instance/{uid}/"));
    assert_eq!(environments[0]["url"], format!("https://crownlabs.example.com/instance/{uid}/web/"));
    assert!(lab.get("deployments", "tenant-pair", "two-of-them-web").is_some());
    assert!(lab.get("virtualmachines.kubevirt.io", "tenant-pair", "two-of-them-machine").is_some());
    let service = lab.get("services", "tenant-pair", "two-of-them-web").expect("a Service");
    assert_eq!(service["spec"]["selector"]["crownlabs.polito.it/environment"], "web");

    // An environment that is added later applies to new Instances only; the objects of a removed one stay.
    lab.kubectl(&[
        "patch",
        "templates",
        "-n",
        "workspace-pair",
        "pair",
        "--type=json",
        "-p",
        r#"[{"op": "replace", "path": "/spec/environmentList/0/name", "value": "other"}]"#,
    ]);
    let message = lab.await_fault("tenant-pair", "two.of-them", "EnvironmentRemoved");
    assert!(message.contains("web"), "{message}");
    assert!(lab.get("deployments", "tenant-pair", "two-of-them-web").is_some());
    assert!(lab.get("deployments", "tenant-pair", "two-of-them-other").is_none());
}

#[test]
fn routes_replace_ingresses_where_the_gateway_api_is_enabled() {
    let lab = Lab::shared();
    let _course = lab.course("route");
    let admin = lab.admin();
    let config = "controllers: {instance: {gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}}}\n";
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "route", config });
    lab.apply(&instance("route", "web", "standalone"));
    let route = lab.await_value("httproutes", "tenant-route", "web", "/kind", "HTTPRoute");
    assert_eq!(route["spec"]["parentRefs"][0]["name"], "labs");
    assert_eq!(route["spec"]["rules"][0]["backendRefs"][0]["port"], 6080);
    lab.await_value("ingresses", "tenant-route", "web-app", "/kind", "Ingress");
    let accepted = r#"{"status": {"parents": [{"controllerName": "example.org/test", "parentRef": {"name": "labs", "namespace": "gateways"},
        "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}]}}"#;
    lab.patch_status("httproutes", "tenant-route", "web", accepted);
    lab.await_gone("ingresses", "tenant-route", "web-app");
    wait_until(PATIENCE, || {
        let status = lab.get("instances", "tenant-route", "web").ok_or("the Instance")?["status"].clone();
        let accepted = status["environments"][0]["expositionAccepted"] == true && status["url"].is_string();
        accepted.then_some(()).ok_or_else(|| status.to_string())
    });
    drop(daemon);
    // Without the option, the Ingress is created again, and the route is removed once the Ingress has an address.
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "route", config: "" });
    lab.await_value("ingresses", "tenant-route", "web-app", "/kind", "Ingress");
    let route = lab.get("httproutes", "tenant-route", "web").expect("the Ingress has no address");
    assert!(route["metadata"]["deletionTimestamp"].is_null(), "{route}");
    // Ingresses of other tests have the default class, and none of them has an address.
    lab.patch("ingresses", "tenant-route", "web-app", r#"{"spec": {"ingressClassName": "only-route"}}"#);
    let published = r#"{"status": {"loadBalancer": {"ingress": [{"ip": "172.18.14.2"}]}}}"#;
    lab.patch_status("ingresses", "tenant-route", "web-app", published);
    lab.await_gone("httproutes", "tenant-route", "web");
    wait_until(PATIENCE, || {
        let status = lab.get("instances", "tenant-route", "web").ok_or("the Instance")?["status"].clone();
        let accepted = status["environments"][0]["expositionAccepted"] == true;
        (!accepted && status["url"].is_string()).then_some(()).ok_or_else(|| status.to_string())
    });
}

#[test]
fn an_instance_with_a_rejected_route_is_not_ready_and_shows_the_message_of_the_gateway() {
    let (lab, namespace) = (Lab::shared(), "tenant-refusal");
    let _course = lab.course("refusal");
    let admin = lab.admin();
    let config = "controllers: {instance: {stalledAfter: 5s, gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "refusal", config });
    lab.apply(&instance("refusal", "web", "standalone"));
    let ready = |status: &str, reason: &str, message: &str| {
        wait_until(PATIENCE, || {
            let object = lab.get("instances", namespace, "web").ok_or("the Instance")?;
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|found| found["type"] == "Ready").ok_or("Ready")?;
            let is_it = found["status"] == status && found["reason"] == reason;
            let said = found["message"].as_str().unwrap_or_default();
            (is_it && said.contains(message)).then_some(()).ok_or_else(|| object["status"].to_string())
        });
    };
    // No component reports a status for it.
    ready("False", "RouteIgnored", "HTTPRoute web: Gateway gateways/labs has not reported a status for 5s");
    let say = |type_: &str, status: &str, reason: &str, message: &str| {
        let status = serde_json::json!({"status": {"parents": [{
            "controllerName": "example.org/test", "parentRef": {"name": "labs", "namespace": "gateways"},
            "conditions": [{"type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }]}});
        lab.patch_status("httproutes", namespace, "web", &status.to_string());
    };
    say("Accepted", "False", "NotAllowedByListeners", "no listener admits this namespace");
    let words =
        "Gateway gateways/labs: Accepted is false: NotAllowedByListeners: no listener admits this namespace";
    ready("False", "RouteRefused", words);
    lab.await_phase(namespace, "web", "Running");
    wait_until(PATIENCE, || {
        let object = lab.get("instances", namespace, "web").ok_or("the Instance")?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_stalled =
            conditions.iter().any(|found| found["type"] == "Stalled" && found["status"] == "True");
        is_stalled.then_some(()).ok_or_else(|| object["status"].to_string())
    });
    say("Accepted", "Unknown", "Pending", "the controller restarts");
    let words = "has not decided for 5s: Accepted is unknown: Pending: the controller restarts";
    ready("False", "RouteIgnored", words);
    say("Accepted", "True", "Accepted", "");
    ready("True", "Ready", "");
}

#[test]
fn an_ingress_that_its_controller_ignores_makes_the_instance_not_ready() {
    let (lab, namespace) = (Lab::shared(), "tenant-ignored");
    let _course = lab.course("ignored");
    let admin = lab.admin();
    let config = "controllers: {instance: {stalledAfter: 3s}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "ignored", config });
    for name in ["served", "left"] {
        lab.apply(&instance("ignored", name, "standalone"));
    }
    for name in ["served", "left"] {
        lab.await_phase(namespace, name, "Ready");
    }
    let class = r#"{"spec": {"ingressClassName": "only-here"}}"#;
    let published = r#"{"status": {"loadBalancer": {"ingress": [{"ip": "172.18.14.1"}]}}}"#;
    lab.patch("ingresses", namespace, "served-app", class);
    lab.patch_status("ingresses", namespace, "served-app", published);
    // It is reconciled when its class changes, or three seconds after its creation.
    lab.patch("ingresses", namespace, "left-app", class);
    lab.await_phase(namespace, "left", "Running");
    let object = lab.await_phase(namespace, "served", "Ready");
    assert!(object["status"]["url"].is_string(), "{object}");
    let object = lab.get("instances", namespace, "left").expect("the Instance");
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|found| found["type"] == "Ready").expect("Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&"False".into(), &"RouteIgnored".into()));
    lab.patch_status("ingresses", namespace, "left-app", published);
    lab.await_phase(namespace, "left", "Ready");
}
