//! Host names of machines: the Secret with their key, and Instances while the key is invalid.

use serde_json::Value;

use crate::lab::{Lab, PATIENCE, instance, wait_until};

const NAMESPACE: &str = "tenant-hosts";
/// The namespace of the daemon's Secret in this test, because the tests of one control plane share its usual one.
const OF_DAEMON: &str = "workspace-hosts";
const SECRET: &str = "crownlabs-machine-hosts";
const CONFIG: &str = "leaderElection: {enabled: false, namespace: workspace-hosts}
controllers: {instance: {urls: host}}
";

/// The host of the Ingress of an Instance, and its version.
fn ingress(lab: &Lab, instance: &str) -> (String, Value) {
    let found = wait_until(PATIENCE, || {
        lab.get("ingresses", NAMESPACE, &format!("{instance}-app")).ok_or_else(|| "the Ingress".to_owned())
    });
    let host = found["spec"]["rules"][0]["host"].as_str().expect("a host").to_owned();
    assert_eq!(found["spec"]["tls"][0]["hosts"][0], *host, "{found}");
    assert_eq!(found["spec"]["tls"][0].get("secretName"), None, "{found}");
    (host, found["metadata"]["resourceVersion"].clone())
}

fn url(lab: &Lab, instance: &str) -> String {
    let status = lab.get("instances", NAMESPACE, instance).expect("the Instance")["status"].clone();
    status["environments"][0]["url"].as_str().unwrap_or_default().to_owned()
}

/// Sets the key to this base64 text, or removes it.
fn set_key(lab: &Lab, key: &Value) {
    lab.patch("secrets", OF_DAEMON, SECRET, &format!(r#"{{"data": {{"key": {key}}}}}"#));
}

#[test]
fn the_key_of_host_names_is_created_once_and_addresses_stay_without_it() {
    let lab = Lab::shared();
    let course = lab.course("hosts");
    let daemon = course.daemon(CONFIG);
    lab.apply(&instance("hosts", "one", "standalone"));
    lab.apply(&instance("hosts", "two", "standalone"));
    for name in ["one", "two"] {
        lab.await_phase(NAMESPACE, name, "Ready");
    }
    let (host, version) = ingress(&lab, "one");
    assert_ne!(host, ingress(&lab, "two").0, "each machine has its own host");
    let label = host.strip_suffix(".crownlabs.example.com").expect("below the base");
    assert!(label.len() == 26 && label.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{label}");
    assert!(url(&lab, "one").starts_with(&format!("https://{host}/instance/")), "{}", url(&lab, "one"));
    let secret = lab.get("secrets", OF_DAEMON, SECRET).expect("the Secret");
    assert_eq!(secret["metadata"].get("ownerReferences"), None, "no Instance takes the key with it");

    // Another process finds the key, and writes nothing.
    drop(daemon);
    let _daemon = course.daemon(CONFIG);
    lab.apply(&instance("hosts", "three", "standalone"));
    lab.await_phase(NAMESPACE, "three", "Ready");
    assert_eq!(lab.get("secrets", OF_DAEMON, SECRET), Some(secret.clone()));
    assert_eq!(ingress(&lab, "one"), (host.clone(), version.clone()));

    // With an invalid key, new addresses wait and existing ones stay.
    set_key(&lab, &"AAAA".into());
    lab.apply(&instance("hosts", "four", "standalone"));
    for name in ["four", "one"] {
        let message = lab.await_fault(NAMESPACE, name, "HostKeyWaits");
        assert!(message.contains("Secret workspace-hosts/crownlabs-machine-hosts is invalid"), "{message}");
    }
    assert_eq!(lab.get("ingresses", NAMESPACE, "four-app"), None);
    assert_eq!(ingress(&lab, "one"), (host.clone(), version));
    assert!(url(&lab, "one").starts_with(&format!("https://{host}/instance/")));

    // The restored key continues.
    set_key(&lab, &secret["data"]["key"]);
    let (fourth, _) = ingress(&lab, "four");
    lab.await_phase(NAMESPACE, "four", "Ready");
    assert!(url(&lab, "four").starts_with(&format!("https://{fourth}/instance/")));
    assert_eq!(ingress(&lab, "one").0, host);
}
