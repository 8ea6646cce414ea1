//! A daemon in a cluster whose CRDs have another version.

use serde_json::json;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, crd_files, wait_until};
use crate::pod_config;
use crate::takeover::check::store_older_version;
use crate::tenants::tenant;
use cluster::Options as ClusterOptions;

const POD_CONFIGS: &str = "podconfigs.podconfig.opdev.io";
const TENANTS: &str = "tenants.crownlabs.polito.it";
const VOLUMES: &str = "sharedvolumes.crownlabs.polito.it";

/// Waits until the metric reports whether a CRD has a mismatch.
fn await_mismatch(daemon: &Daemon, crd: &str, is_wrong: bool) {
    let line = format!("crownlabs_crd_mismatch{{crd=\"{crd}\"}} {}", u8::from(is_wrong));
    wait_until(PATIENCE, || {
        let metrics = daemon.metrics();
        metrics
            .lines()
            .any(|shown| shown == line)
            .then_some(())
            .ok_or_else(|| format!("{line} in\n{metrics}"))
    });
}

/// Replaces the CRD of Tenants with an older version, without two fields of the status.
fn age(lab: &Lab) {
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let patch = format!(
        r#"[{{"op": "remove", "path": "{status}/conditions"}}, {{"op": "remove", "path": "{status}/keycloak/properties/actionMail"}}]"#
    );
    lab.kubectl(&["patch", "crd", TENANTS, "--type=json", "-p", &patch]);
    // The new schema takes effect with a short delay.
    let none = json!({"created": false});
    let time = "2026-01-01T00:00:00Z";
    let status = json!({"status": {
        "personalNamespace": none, "sandboxNamespace": none, "ready": false,
        "keycloak": {"userCreated": none, "userConfirmed": false, "userSynchronized": false},
        "conditions": [{"type": "A", "status": "True", "reason": "A", "message": "", "lastTransitionTime": time}],
    }});
    wait_until(PATIENCE, || {
        lab.apply(&tenant("crds", "probe", ""));
        lab.patch_status("tenants", "", "probe", &status.to_string());
        let stored = lab.get("tenants", "", "probe").ok_or("the Tenant")?;
        lab.delete("tenant", "", &["probe"]);
        stored["status"]["conditions"].is_null().then_some(()).ok_or_else(|| stored.to_string())
    });
}

#[test]
fn crds_of_another_version_are_named_until_they_are_replaced() {
    let lab = Lab::start(ClusterOptions { simulate: false, ..ClusterOptions::default() });
    let kubeconfig = lab.service_account();
    let options = Options { kubeconfig: &kubeconfig, selector: "crds", config: "" };
    let mut daemon = Daemon::start(&options);
    for crd in crd_files() {
        let name = crd.file_stem().expect("a name").to_string_lossy().into_owned();
        if name.ends_with(".crownlabs.polito.it") {
            await_mismatch(&daemon, &name, false);
        }
    }
    assert!(!daemon.ready().1.contains("CRD"), "{}", daemon.ready().1);
    daemon.signal("TERM");
    daemon.wait(PATIENCE).expect("it ends");
    drop(daemon);

    age(&lab);
    store_older_version(&lab);
    let daemon = Daemon::start(&options);
    await_mismatch(&daemon, TENANTS, true);
    await_mismatch(&daemon, VOLUMES, true);
    await_mismatch(&daemon, "instances.crownlabs.polito.it", false);
    let dropped = "drops the fields status.conditions, status.keycloak.actionMail; apply the CRDs";
    let stored = format!("Objects of the CRD {VOLUMES} may be stored as v1alpha1. The CRDs");
    daemon.wait_for("the log", |daemon| daemon.log().contains(dropped) && daemon.log().contains(&stored));
    daemon.wait_for("the readiness", |daemon| daemon.ready().1.contains("[!] CRDs: The CRD tenants."));
    let (code, text) = daemon.ready();
    assert!(code == 200 && text.contains(dropped) && text.contains(&stored), "{code}: {text}");
    // The daemon still works; the API server drops the fields from the Tenant's status.
    lab.apply(&tenant("crds", "ada", ""));
    let ready = lab.await_ready("tenants", "ada");
    assert!(ready["status"]["conditions"].is_null(), "{ready}");

    lab.patch_status(
        "customresourcedefinitions",
        "",
        VOLUMES,
        r#"{"status": {"storedVersions": ["v1alpha2"]}}"#,
    );
    for file in crd_files() {
        lab.kubectl(&["replace", "-f", &file.to_string_lossy()]);
    }
    await_mismatch(&daemon, TENANTS, false);
    await_mismatch(&daemon, VOLUMES, false);
    daemon.wait_for("the readiness", |daemon| !daemon.ready().1.contains("CRDs"));
}

/// A daemon with a CRD of `PodConfig`s that has no conditions reports it, and writes nothing while nothing changes.
#[test]
fn pod_configs_under_an_older_crd_are_written_once() {
    let lab = Lab::start(ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() });
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let patch = format!(
        r#"[{{"op": "remove", "path": "{status}/conditions"}}, {{"op": "remove", "path": "{status}/observedGeneration"}}]"#
    );
    lab.kubectl(&["patch", "crd", POD_CONFIGS, "--type=json", "-p", &patch]);
    let kubeconfig = lab.service_account();
    let daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "crds", config: &pod_config::config() });
    await_mismatch(&daemon, POD_CONFIGS, true);
    await_mismatch(&daemon, TENANTS, false);
    let dropped = format!(
        "The CRD {POD_CONFIGS} is older than this daemon: the API server drops the fields status.conditions, \
         status.observedGeneration; apply the CRDs"
    );
    daemon.wait_for("the readiness", |daemon| daemon.ready().1.contains(&dropped));
    lab.apply(&pod_config::namespace("old"));
    lab.apply(&pod_config::pod_config("old", "net", &["x br0 10.1.0.0/33"], &json!({})));
    let stored = lab.await_value("podconfigs", "old", "net", "/status/phase", "unset");
    assert!(stored["status"]["conditions"].is_null(), "{stored}");
    // The error is still reported, by an event.
    lab.await_event("old", "net", "InvalidCIDR: ");
    let asked = pod_config::quiet(&lab, &daemon);
    assert!(asked.is_empty(), "{asked:#?}");
    let now = lab.get("podconfigs", "old", "net").expect("the PodConfig");
    assert_eq!(now["status"], json!({"phase": "unset", "podConfigurations": []}));
}
