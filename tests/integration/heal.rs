//! Objects of the daemon are repaired after changes by other writers; objects of other owners are not touched.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// Kinds and names of the children of the Instances `vmp` (persistent VM), `vm` and `box`
/// (persistent container).
const CHILDREN: [(&str, &str); 9] = [
    ("services", "vmp"),
    ("ingresses", "vmp-gui"),
    ("secrets", "vmp"),
    ("virtualmachines.kubevirt.io", "vmp"),
    ("virtualmachineinstances.kubevirt.io", "vm"),
    ("services", "box"),
    ("ingresses", "box-gui"),
    ("deployments", "box"),
    ("persistentvolumeclaims", "box"),
];
const NAMESPACE: &str = "tenant-heal";
/// The namespace of the second test.
const OTHER: &str = "tenant-other";

/// Waits until the object has the labels and owner references of `before`.
fn await_healed(lab: &Lab, kind: &str, name: &str, before: &Value) {
    wait_until(PATIENCE, || {
        let now = lab.get(kind, NAMESPACE, name).ok_or_else(|| format!("{kind} {name}"))?;
        for key in ["labels", "ownerReferences"] {
            if now["metadata"][key] != before["metadata"][key] {
                return Err(format!("{kind} {name}: {key} is {}", now["metadata"][key]));
            }
        }
        Ok(())
    });
}

/// Creates the Instances and waits until they are ready.
fn prepare(lab: &Lab) {
    for (name, template) in [("vmp", "vm-persistent"), ("vm", "vm"), ("box", "container-persistent")] {
        lab.apply(&instance("heal", name, template));
    }
    for name in ["vmp", "vm", "box"] {
        lab.await_phase(NAMESPACE, name, "Ready");
    }
}

#[test]
fn children_are_repaired() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "heal", config: "" });
    let _course = lab.course("heal");
    prepare(&lab);
    for (kind, name) in CHILDREN {
        let before = lab.get(kind, NAMESPACE, name).expect("the child");
        // A changed label, a removed label, no labels, no owner.
        let edited = r#"{"metadata": {"labels": {"crownlabs.polito.it/tenant": "somebody"}}}"#;
        lab.patch(kind, NAMESPACE, name, edited);
        await_healed(&lab, kind, name, &before);
        lab.patch(
            kind,
            NAMESPACE,
            name,
            r#"{"metadata": {"labels": {"crownlabs.polito.it/template": null}}}"#,
        );
        await_healed(&lab, kind, name, &before);
        lab.patch(kind, NAMESPACE, name, r#"{"metadata": {"labels": null}}"#);
        await_healed(&lab, kind, name, &before);
        lab.patch(kind, NAMESPACE, name, r#"{"metadata": {"ownerReferences": null}}"#);
        await_healed(&lab, kind, name, &before);
        // As restored from a backup.
        lab.patch(kind, NAMESPACE, name, r#"{"metadata": {"labels": null, "ownerReferences": null}}"#);
        await_healed(&lab, kind, name, &before);
        // Deleted. A claim is left out because its pod keeps it; a virtual machine is kept for a while by its finalizer.
        if kind != "persistentvolumeclaims" {
            lab.begin_delete(kind, NAMESPACE, &[name]);
            let uid = before["metadata"]["uid"].clone();
            wait_until(PATIENCE, || match lab.get(kind, NAMESPACE, name) {
                Some(now) if now["metadata"]["uid"] != uid => Ok(()),
                other => Err(format!(
                    "{kind} {name} recreated, is {}",
                    other.map_or(json!("gone"), |o| o["metadata"].clone())
                )),
            });
        }
    }
    enforced_fields_are_repaired(&lab);
    other_fields_are_kept(&lab);
}

/// In addition to labels and owner, some fields of each kind are enforced.
fn enforced_fields_are_repaired(lab: &Lab) {
    lab.patch("deployments", NAMESPACE, "box", r#"{"spec": {"replicas": 0}}"#);
    wait_until(PATIENCE, || {
        match lab.get("deployments", NAMESPACE, "box").map(|d| d["spec"]["replicas"].clone()) {
            Some(replicas) if replicas == 1 => Ok(()),
            other => Err(format!("1 replica, is {other:?}")),
        }
    });
    lab.patch("virtualmachines.kubevirt.io", NAMESPACE, "vmp", r#"{"spec": {"runStrategy": "Halted"}}"#);
    lab.await_value("virtualmachines.kubevirt.io", NAMESPACE, "vmp", "/spec/runStrategy", "Always");
    let secret = lab.get("secrets", NAMESPACE, "vmp").expect("the Secret");
    lab.patch("secrets", NAMESPACE, "vmp", r#"{"data": {"userdata": "Zm9v"}}"#);
    let userdata = secret["data"]["userdata"].as_str().unwrap_or_default();
    lab.await_value("secrets", NAMESPACE, "vmp", "/data/userdata", userdata);
    // Keys that other writers add to the Secret are removed.
    lab.patch("secrets", NAMESPACE, "vmp", r#"{"data": {"networkdata": "Zm9v"}}"#);
    lab.await_value("secrets", NAMESPACE, "vmp", "/data/networkdata", "");
    let annotation = r#"{"metadata": {"annotations": {"nginx.ingress.kubernetes.io/auth-url": "https://evil.example.org", "mine": "kept"}}}"#;
    lab.patch("ingresses", NAMESPACE, "vmp-gui", annotation);
    let healed = lab.await_value(
        "ingresses",
        NAMESPACE,
        "vmp-gui",
        "/metadata/annotations/nginx.ingress.kubernetes.io~1auth-url",
        "https://crownlabs.example.com/auth/auth",
    );
    assert_eq!(healed["metadata"]["annotations"]["mine"], "kept");
}

/// Other writers may change fields that the daemon writes only at the creation.
fn other_fields_are_kept(lab: &Lab) {
    lab.patch("services", NAMESPACE, "vmp", r#"{"spec": {"sessionAffinity": "ClientIP"}}"#);
    lab.patch(
        "services",
        NAMESPACE,
        "vmp",
        r#"{"metadata": {"labels": {"crownlabs.polito.it/tenant": "x"}}}"#,
    );
    let service =
        lab.await_value("services", NAMESPACE, "vmp", "/metadata/labels/crownlabs.polito.it~1tenant", "heal");
    assert_eq!(service["spec"]["sessionAffinity"], "ClientIP");
}

#[test]
fn foreign_objects_are_never_touched() {
    let lab = Lab::shared();
    let _course = lab.course("other");
    let namespace = OTHER;
    create_objects_of_others(&lab);
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "other", config: "" });
    lab.apply(&instance("other", "a.b", "container"));
    lab.await_phase(namespace, "a.b", "Ready");
    let before = |kind: &str, name: &str| {
        lab.get(kind, namespace, name).expect("there")["metadata"]["resourceVersion"].clone()
    };
    let (taken, kept) = (before("services", "taken"), before("deployments", "kept"));
    let service = lab.get("services", namespace, "a-b").expect("of a.b")["metadata"]["uid"].clone();
    for (name, template) in [("taken", "container"), ("kept", "standalone"), ("a-b", "container")] {
        lab.apply(&instance("other", name, template));
        let message = lab.await_fault(namespace, name, "NameConflict");
        assert!(!message.is_empty());
        let object = lab.await_phase(namespace, name, "CreationLoopBackoff");
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        assert!(
            conditions.iter().any(|c| c["type"] == "NameConflict" && c["status"] == "True"),
            "{conditions:?}"
        );
        lab.await_event(namespace, name, "NameConflict: ");
    }
    // An Instance that waits for a name gets it when the object with that name is deleted, whoever owns it.
    lab.apply(&instance("other", "freed", "standalone"));
    lab.await_fault(namespace, "freed", "NameConflict");
    lab.delete("deployments", namespace, &["freed"]);
    lab.await_phase(namespace, "freed", "Ready");
    // They are not touched either when the younger Instances are stopped and deleted.
    for name in ["taken", "kept", "a-b"] {
        lab.patch("instances", namespace, name, r#"{"spec": {"running": false}}"#);
    }
    lab.delete("instances", namespace, &["taken", "kept"]);
    lab.await_observed("instances", namespace, "a-b", "Reconciled");
    // The older Instance is reconciled again, too.
    lab.patch("instances", namespace, "a.b", r#"{"spec": {"prettyName": "The older one"}}"#);
    lab.await_observed("instances", namespace, "a.b", "Reconciled");
    assert_eq!(before("services", "taken"), taken);
    assert_eq!(before("deployments", "kept"), kept);
    assert_eq!(lab.get("services", namespace, "a-b").expect("kept")["metadata"]["uid"], service);
    lab.await_phase(namespace, "a.b", "Ready");
    // When the older Instance is deleted, the younger one gets the name.
    lab.delete("instances", namespace, &["a.b"]);
    lab.patch("instances", namespace, "a-b", r#"{"spec": {"running": true}}"#);
    lab.await_phase(namespace, "a-b", "Ready");
}

/// Creates objects under the names that Instances would use: a Service without an owner that has the labels of another
/// Instance, and two Deployments of another controller with the daemon's label.
fn create_objects_of_others(lab: &Lab) {
    lab.apply(&format!(
        "apiVersion: v1
kind: Service
metadata: {{name: taken, namespace: {OTHER}, labels: {{crownlabs.polito.it/instance: elder}}}}
spec: {{ports: [{{port: 80}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: keeper, namespace: {OTHER}}}
"
    ));
    let keeper = lab.get("configmaps", OTHER, "keeper").expect("made");
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": keeper["metadata"]["uid"], "controller": true});
    let deployment = |name: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": OTHER, "ownerReferences": [owner],
                "labels": {"crownlabs.polito.it/managed-by": "instance"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
        .to_string()
    };
    for name in ["kept", "freed"] {
        lab.apply(&deployment(name));
    }
}
