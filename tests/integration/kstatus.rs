//! Who waits for an object by the rules of kstatus, as Flux and Argo CD do, waits neither too long nor in vain.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::pod_config::{pod, pod_config};
use crate::shared_volumes::shared_volume;
use crate::snapshots::snapshot;
use crate::tenants::{tenant, workspace};

const NAMESPACE: &str = "tenant-kstatus";

/// What kstatus says of a custom resource: its generic rules.
fn kstatus(object: &Value) -> &'static str {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let condition = |type_: &str| {
        let found = conditions.iter().find(|condition| condition["type"] == type_);
        found.map(|found| found["status"].as_str().unwrap_or_default())
    };
    if !metadata["deletionTimestamp"].is_null() {
        "Terminating"
    } else if !status["observedGeneration"].is_null()
        && status["observedGeneration"] != metadata["generation"]
    {
        "InProgress"
    } else if condition("Stalled") == Some("True") {
        "Failed"
    } else {
        match condition("Ready") {
            None | Some("True") => "Current",
            Some(_) => "InProgress",
        }
    }
}

/// Waits until the daemon has seen an object as it is now and kstatus says this of it. Returns all that kstatus said
/// meanwhile.
fn await_kstatus(lab: &Lab, kind: &str, namespace: &str, name: &str, wanted: &str) -> Vec<&'static str> {
    let mut said = Vec::new();
    wait_until(PATIENCE, || {
        let object = lab.get(kind, namespace, name).ok_or_else(|| format!("{kind} {name}"))?;
        let is_seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let now = kstatus(&object);
        if is_seen {
            said.push(now);
        }
        let reached = is_seen && now == wanted;
        reached
            .then_some(())
            .ok_or_else(|| format!("{kind} {name}: {wanted}, is {now}: {}", object["status"]))
    });
    said
}

/// A `PodConfig` is as asked while it has no pods, under way while the link of one is to come, and will never be as asked where
/// its range is none.
fn pod_configs(lab: &Lab) {
    let config = |range: &str| pod_config(NAMESPACE, "net", &[&format!("x br0 {range}")], &json!({}));
    lab.apply(&config("10.1.0.0/24"));
    let said = await_kstatus(lab, "podconfigs", NAMESPACE, "net", "Current");
    assert!(!said.contains(&"Failed"), "{said:?}");
    lab.apply(&pod(NAMESPACE, "waits", "net", "nowhere"));
    await_kstatus(lab, "podconfigs", NAMESPACE, "net", "InProgress");
    lab.apply(&config("10.1.0.0/33"));
    await_kstatus(lab, "podconfigs", NAMESPACE, "net", "Failed");
    // It is over when its reason is.
    lab.apply(&config("10.2.0.0/24"));
    let said = await_kstatus(lab, "podconfigs", NAMESPACE, "net", "InProgress");
    assert!(!said.contains(&"Current"), "{said:?}");
    lab.delete("pod", NAMESPACE, &["waits"]);
    await_kstatus(lab, "podconfigs", NAMESPACE, "net", "Current");
    lab.delete("podconfigs", NAMESPACE, &["net"]);
}

#[test]
fn who_waits_for_an_object_is_told_when_it_is_as_asked_or_never_will_be() {
    let lab = Lab::shared();
    lab.create_fixtures("kstatus");
    let admin = lab.admin();
    let config = "controllers: {snapshot: {vmRegistry: r.example.org, vmRegistrySecret: login}, podConfig: {enabled: true}}\n";
    let daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "kstatus", config });
    lab.apply(&workspace("kstatus", "kstatus-course", ""));
    lab.apply(&tenant("kstatus", "kstatus.t", ""));
    lab.apply(&shared_volume("kstatus", "data", "1Gi"));
    lab.apply(&instance("kstatus", "box", "container"));
    lab.apply(&instance("kstatus", "early", "absent"));
    lab.apply(&instance("kstatus", "one.name", "standalone"));
    let ready = [
        ("workspaces", "", "kstatus-course"),
        ("tenants", "", "kstatus.t"),
        ("sharedvolumes", "workspace-kstatus", "data"),
        ("instances", NAMESPACE, "box"),
        ("instances", NAMESPACE, "one.name"),
    ];
    for (kind, namespace, name) in ready {
        let said = await_kstatus(&lab, kind, namespace, name, "Current");
        assert!(!said.contains(&"Failed"), "{name}: {said:?}");
    }

    pod_configs(&lab);

    // Stopped as its spec asks is as good as running.
    lab.patch("instances", NAMESPACE, "box", r#"{"spec": {"running": false}}"#);
    let said = await_kstatus(&lab, "instances", NAMESPACE, "box", "Current");
    assert!(!said.contains(&"Failed"), "{said:?}");
    lab.await_phase(NAMESPACE, "box", "Off");

    // What is missing may come; what the object itself says does not change by waiting.
    lab.await_fault(NAMESPACE, "early", "TemplateNotFound");
    await_kstatus(&lab, "instances", NAMESPACE, "early", "InProgress");
    lab.apply(&instance("kstatus", "one-name", "standalone"));
    await_kstatus(&lab, "instances", NAMESPACE, "one-name", "Failed");
    lab.apply(&snapshot("kstatus", "refused", "box", "image"));
    await_kstatus(&lab, "instancesnapshots", NAMESPACE, "refused", "Failed");
    // It is over when its reason is.
    lab.delete("instances", NAMESPACE, &["one.name"]);
    await_kstatus(&lab, "instances", NAMESPACE, "one-name", "Current");

    lab.delete("tenants", "", &["kstatus.t"]);
    lab.delete("workspaces", "", &["kstatus-course"]);
    drop(daemon);
    lab.delete_fixtures("kstatus");
}
