//! Services of exposures and of environments that would have the same name.

use serde_json::{Value, json};

use super::{allow, await_exposure, exposed, lab_that_allows, set_ports};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The daemon's configuration with this pool, and with the layout that names objects after environments.
fn config(pool: &str) -> String {
    format!(
        "controllers: {{publicExposure: {{ipPool: [{pool}]}}, instance: {{layout: perEnvironment, access: {{mode: none}}}}}}\n"
    )
}

/// Creates the Template `name`, which has one container with the name of this environment, and may be exposed.
fn template(lab: &Lab, fixtures: &str, name: &str, environment: &str) {
    let namespace = format!("workspace-{fixtures}");
    let like = lab.get("templates", &namespace, "container").expect("the Template");
    let mut only = like["spec"]["environmentList"][0].clone();
    only["name"] = environment.into();
    lab.create_template(fixtures, name, "container", &json!([only]));
}

fn with_template(instance: &str, template: &str) -> String {
    instance.replace("TemplateRef: {name: container,", &format!("TemplateRef: {{name: {template},"))
}

/// The failed reconciles of the loop, in the words of the log. Conflicts with another writer do not count.
fn failures(daemon: &Daemon) -> Vec<String> {
    let is_failure = |line: &&str| {
        line.contains("controller=\"publicExposure\"")
            && line.contains("the reconcile failed")
            && !line.contains("the object has changed meanwhile")
    };
    daemon.log().lines().filter(is_failure).map(str::to_owned).collect()
}

fn type_of(service: &Value) -> (Value, Value) {
    (service["spec"]["type"].clone(), service["spec"]["ports"][0]["name"].clone())
}

#[test]
fn an_environment_named_pe_keeps_its_service_and_only_its_exposure_has_a_name_conflict() {
    let (lab, namespace) = (lab_that_allows("peown"), "tenant-peown");
    template(&lab, "peown", "reserved", "pe");
    let (kubeconfig, config) = (lab.service_account(), config("172.18.11.1"));
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "peown", config: &config });
    lab.apply(&with_template(&exposed("peown", "box", "{name: web, port: 80, targetPort: 80}"), "reserved"));
    lab.await_phase(namespace, "box", "Ready");
    await_exposure(&lab, namespace, "box", "Error", "Service box-pe belongs to environment pe");
    let service = lab.get("services", namespace, "box-pe").expect("the Service of the environment");
    assert_eq!(type_of(&service), (json!("ClusterIP"), json!("gui")));
    assert!(service["metadata"]["labels"]["crownlabs.polito.it/component"].is_null(), "{service}");
    assert_eq!(failures(&daemon), [""; 0], "a name conflict is no failed write");
    // An older version has turned the Service into a load balancer.
    let spoilt = json!({
        "metadata": {"labels": {"crownlabs.polito.it/component": "pe"}, "annotations": {"metallb.io/loadBalancerIPs": "172.18.11.1"}},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "web", "port": 80, "targetPort": 80}]},
    });
    lab.patch("services", namespace, "box-pe", &spoilt.to_string());
    wait_until(PATIENCE, || {
        let service = lab.get("services", namespace, "box-pe").ok_or("no Service")?;
        let is_right = type_of(&service) == (json!("ClusterIP"), json!("gui"));
        is_right.then_some(()).ok_or_else(|| service.to_string())
    });
    lab.await_phase(namespace, "box", "Ready");
    await_exposure(&lab, namespace, "box", "Error", "Service box-pe belongs to environment pe");
    // Without a request, there is no error.
    set_ports(&lab, namespace, "box", &json!([]));
    lab.await_value("instances", namespace, "box", "/status/publicExposure", "");
    lab.delete_fixtures("peown");
}

#[test]
fn an_exposure_does_not_change_the_service_of_another_instance() {
    let (lab, namespace) = (lab_that_allows("peother"), "tenant-peother");
    template(&lab, "peother", "suffixed", "b-pe");
    let (kubeconfig, config) = (lab.service_account(), config("172.18.12.1"));
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "peother", config: &config });
    lab.apply(&instance("peother", "a", "suffixed"));
    lab.await_phase(namespace, "a", "Ready");
    lab.apply(&exposed("peother", "a-b", "{name: web, port: 80, targetPort: 80}"));
    await_exposure(&lab, namespace, "a-b", "Error", "Service a-b-pe belongs to Instance a");
    lab.await_phase(namespace, "a-b", "Ready");
    let service = lab.get("services", namespace, "a-b-pe").expect("the Service of the environment");
    assert_eq!(type_of(&service), (json!("ClusterIP"), json!("gui")));
    assert_eq!(failures(&daemon), [""; 0], "a name conflict is no failed write");
    lab.delete("instance", namespace, &["a"]);
    await_exposure(&lab, namespace, "a-b", "Ready", "");
    // Now the machine is the younger one, and no objects are created for it.
    lab.apply(&instance("peother", "a", "suffixed"));
    let message = lab.await_fault(namespace, "a", "NameConflict");
    assert!(message.contains("Service a-b-pe"), "{message}");
    assert!(lab.get("deployments", namespace, "a-b-pe").is_none(), "{message}");
    await_exposure(&lab, namespace, "a-b", "Ready", "");
    lab.delete_fixtures("peother");
}

#[test]
fn the_younger_of_two_instances_with_one_name_is_not_exposed() {
    let lab = Lab::shared();
    let course = lab.course("penew");
    allow(&lab, "penew");
    let namespace = "tenant-penew";
    template(&lab, "penew", "long", "b-main");
    let created = |name: &str| {
        let object = lab.get("instances", namespace, name).expect("the Instance");
        object["metadata"]["creationTimestamp"].as_str().expect("a time").to_owned()
    };
    // The elder comes later in the order of the names, which is the order of the reconciles.
    lab.apply(&instance("penew", "a-b", "container"));
    let elder = created("a-b");
    wait_until(PATIENCE, || {
        lab.apply(&instance("penew", "a", "long"));
        if created("a") > elder {
            return Ok(());
        }
        lab.delete("instances", namespace, &["a"]);
        Err("both were made in one second".to_owned())
    });
    let _daemon = course.daemon(&config("172.18.13.1"));
    lab.await_phase(namespace, "a-b", "Ready");
    let message = lab.await_fault(namespace, "a", "NameConflict");
    assert!(message.contains("a-b-main") && message.contains("Instance a-b"), "{message}");
    let kinds = "services,ingresses,deployments";
    let of_younger = lab
        .list(kinds, namespace)
        .into_iter()
        .filter(|object| object["metadata"]["ownerReferences"][0]["name"] == "a");
    assert_eq!(of_younger.count(), 0);
    // It gets the name when the elder is deleted.
    lab.delete("instance", namespace, &["a-b"]);
    lab.await_phase(namespace, "a", "Ready");
}
