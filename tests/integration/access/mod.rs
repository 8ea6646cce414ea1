//! An OAuth2 proxy for each Instance.

mod browser;
mod login;
mod program;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// The kinds of the objects of a proxy.
const KINDS: [&str; 4] = ["deployments", "services", "ingresses", "secrets"];

/// A configuration that gives each Instance a proxy with login at this URL. The file has the client's secret.
pub fn config(issuer: &str, secret: &Path) -> String {
    format!(
        "controllers: {{instance: {{access: {{mode: perInstance, oauth2Proxy: {{issuerUrl: \"{issuer}\", \
         clientId: instances, clientSecretFile: \"{}\"}}}}}}}}\n",
        secret.display()
    )
}

/// A file with this text in a new folder.
pub fn secret_file(text: &str) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("client-secret");
    std::fs::write(&file, text).expect("written");
    (folder, file)
}

/// The versions of all objects of Instances in a namespace.
fn versions(lab: &Lab, namespace: &str) -> BTreeMap<String, Value> {
    let kinds = "instances.crownlabs.polito.it,services,ingresses,secrets,deployments";
    let name = |object: &Value| format!("{}/{}", object["kind"], object["metadata"]["name"]);
    let objects = lab.list(kinds, namespace);
    objects.iter().map(|object| (name(object), object["metadata"]["resourceVersion"].clone())).collect()
}

/// Waits until nothing has changed for two seconds. Returns the versions.
fn settled(lab: &Lab, namespace: &str) -> BTreeMap<String, Value> {
    let mut before = versions(lab, namespace);
    wait_until(PATIENCE, || {
        std::thread::sleep(std::time::Duration::from_secs(2));
        let now = versions(lab, namespace);
        let same = now == before;
        before = now.clone();
        same.then_some(now).ok_or_else(|| "resource versions that do not change".to_owned())
    })
}

const NAMESPACE: &str = "tenant-guard";
/// The name of the proxy of the Instance `web`.
const PROXY: &str = "web-oauth2-proxy";
/// The annotation of the Ingress with the login URL.
const SIGNIN: &str = "/metadata/annotations/nginx.ingress.kubernetes.io~1auth-signin";

/// The cookie key of a proxy.
fn key(lab: &Lab, proxy: &str) -> Value {
    lab.get("secrets", NAMESPACE, proxy).expect("the Secret")["data"]["cookie-secret"].clone()
}

/// Waits until the Deployment of the proxy has this number in a member.
fn await_number(lab: &Lab, pointer: &str, wanted: u64) {
    wait_until(PATIENCE, || {
        let found = lab.get("deployments", NAMESPACE, PROXY).ok_or("the Deployment")?;
        let is_so = found.pointer(pointer).and_then(Value::as_u64) == Some(wanted);
        is_so.then_some(()).ok_or_else(|| found.to_string())
    });
}

/// A proxy is created, repaired, left alone, and removed.
#[test]
fn an_instance_has_a_proxy_while_it_runs_and_proxies_are_on() {
    let lab = Lab::shared();
    let course = lab.course("guard");
    let (_folder, secret) = secret_file("s3cret\n");
    let on = config("https://auth.example.com/realms/labs", &secret);
    // An Instance that existed before.
    let shared = course.daemon("");
    lab.apply(&instance("guard", "web", "standalone"));
    lab.await_phase(NAMESPACE, "web", "Ready");
    let ingress = lab.get("ingresses", NAMESPACE, "web-app").expect("the Ingress");
    drop(shared);

    let daemon = course.daemon(&on);
    let uid = ingress["metadata"]["ownerReferences"][0]["uid"].as_str().expect("a uid").to_owned();
    let url = format!("https://crownlabs.example.com/instance/{uid}/_oauth2");
    let wanted = format!("{url}/start?rd=$escaped_request_uri");
    let now = lab.await_value("ingresses", NAMESPACE, "web-app", SIGNIN, &wanted);
    assert_eq!(now["metadata"]["uid"], ingress["metadata"]["uid"], "it is the same Ingress");
    // The pod that the simulator runs is ready.
    await_number(&lab, "/status/readyReplicas", 1);
    let node = &lab.await_phase(NAMESPACE, "web", "Ready")["status"]["nodeName"];
    assert!(node.is_string(), "the node of the environment's pod");
    a_proxy_is_repaired(&lab);
    let before = settled(&lab, NAMESPACE);
    drop(daemon);
    let daemon = course.daemon(&on);
    correct_objects_are_not_written(&lab, &before);
    a_stop_keeps_the_key(&lab);
    drop(daemon);

    // Without the option, all objects of the proxy are removed, and the Ingress is not protected.
    let _daemon = course.daemon("controllers: {instance: {access: {mode: none}}}\n");
    for kind in KINDS {
        lab.await_gone(kind, NAMESPACE, PROXY);
    }
    let ingress = lab.await_value("ingresses", NAMESPACE, "web-app", SIGNIN, "");
    assert!(!ingress["metadata"]["annotations"].to_string().contains("/auth-"), "{ingress}");
}

/// Objects that a user removes or adds are repaired; the key stays.
fn a_proxy_is_repaired(lab: &Lab) {
    let made = key(lab, PROXY);
    lab.patch("secrets", NAMESPACE, PROXY, r#"{"data": {"users": null, "more": "YQ=="}}"#);
    lab.await_value("secrets", NAMESPACE, PROXY, "/data/users", "Z3VhcmQK");
    lab.await_value("secrets", NAMESPACE, PROXY, "/data/more", "");
    lab.patch("secrets", NAMESPACE, PROXY, r#"{"metadata": {"labels": null}}"#);
    let component = "/metadata/labels/crownlabs.polito.it~1component";
    lab.await_value("secrets", NAMESPACE, PROXY, component, "oauth2-proxy");
    lab.patch("deployments", NAMESPACE, PROXY, r#"{"spec": {"replicas": 0}}"#);
    await_number(lab, "/spec/replicas", 1);
    // The controllers of the cluster are finished with it, too.
    wait_until(PATIENCE, || {
        let found = lab.get("deployments", NAMESPACE, PROXY).ok_or("the Deployment")?;
        let is_done = found["status"]["observedGeneration"] == found["metadata"]["generation"]
            && found["status"]["readyReplicas"] == 1
            && found["status"]["replicas"] == 1;
        is_done.then_some(()).ok_or_else(|| found["status"].to_string())
    });
    assert_eq!(key(lab, PROXY), made);
}

/// After a restart of the daemon another Instance is created, with its own key, and deleted: there are no other writes.
fn correct_objects_are_not_written(lab: &Lab, before: &BTreeMap<String, Value>) {
    let other = "other-oauth2-proxy";
    lab.apply(&instance("guard", "other", "standalone"));
    lab.await_value("deployments", NAMESPACE, other, "/kind", "Deployment");
    assert_ne!(key(lab, other), key(lab, PROXY));
    lab.delete("instance", NAMESPACE, &["other"]);
    for kind in KINDS {
        lab.await_gone(kind, NAMESPACE, other);
    }
    for (kind, name) in [("deployments", "other"), ("services", "other"), ("ingresses", "other-app")] {
        lab.await_gone(kind, NAMESPACE, name);
    }
    assert_eq!(versions(lab, NAMESPACE), *before);
}

/// A stop removes all but the Secret, whose key the next start uses.
fn a_stop_keeps_the_key(lab: &Lab) {
    let made = key(lab, PROXY);
    lab.patch("instances", NAMESPACE, "web", r#"{"spec": {"running": false}}"#);
    for kind in &KINDS[..3] {
        lab.await_gone(kind, NAMESPACE, PROXY);
    }
    lab.await_phase(NAMESPACE, "web", "Off");
    lab.patch("instances", NAMESPACE, "web", r#"{"spec": {"running": true}}"#);
    lab.await_value("deployments", NAMESPACE, PROXY, "/kind", "Deployment");
    assert_eq!(key(lab, PROXY), made);
}
