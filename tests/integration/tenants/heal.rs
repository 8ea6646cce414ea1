//! Objects of the tenant and workspace loops are repaired after changes and deletions by other clients.

use serde_json::Value;

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

/// An object without its status and without the metadata that the API server writes.
fn enforced(object: &Value) -> Value {
    let mut kept = object.clone();
    let members = kept.as_object_mut().expect("an object");
    members.remove("status");
    let metadata = members["metadata"].as_object_mut().expect("metadata");
    for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
        metadata.remove(key);
    }
    kept
}

/// Kind, namespace and name of the objects of the Tenant `heal.t` and the Workspace `heal-w`.
const CHILDREN: [(&str, &str, &str); 14] = [
    ("clusterroles", "default", "crownlabs-manage-tenant-heal-t"),
    ("clusterrolebindings", "default", "crownlabs-manage-tenant-heal-t"),
    ("resourcequotas", "tenant-heal-t", "crownlabs-resource-quota"),
    ("rolebindings", "tenant-heal-t", "crownlabs-manage-instances"),
    ("networkpolicies", "tenant-heal-t", "crownlabs-deny-ingress-traffic"),
    ("networkpolicies", "tenant-heal-t", "crownlabs-allow-trusted-ingress-traffic"),
    ("resourcequotas", "sandbox-heal-t", "sandbox-resource-quota"),
    ("rolebindings", "sandbox-heal-t", "sandbox-editor"),
    ("limitranges", "sandbox-heal-t", "sandbox-limit-range"),
    ("secrets", "tenant-heal-t", "mydrive-info"),
    ("clusterrolebindings", "default", "crownlabs-manage-instances-heal-w"),
    ("clusterrolebindings", "default", "crownlabs-manage-tenants-heal-w"),
    ("rolebindings", "workspace-heal-w", "crownlabs-manage-templates"),
    ("rolebindings", "workspace-heal-w", "crownlabs-view-templates"),
];

/// A change of each of [`CHILDREN`], in their order.
const EDITS: [&str; 14] = [
    r#"{"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}"#,
    r#"{"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]}"#,
    r#"{"spec": {"hard": {"limits.cpu": "99", "pods": "1"}}}"#,
    r#"{"subjects": null}"#,
    r#"{"spec": {"podSelector": {"matchLabels": {"nobody": "here"}}}}"#,
    r#"{"spec": {"ingress": [{}]}}"#,
    r#"{"spec": {"hard": {"requests.cpu": null}}}"#,
    r#"{"subjects": []}"#,
    r#"{"spec": {"limits": []}}"#,
    r#"{"data": {"server-name": "ZXZpbA==", "more": "ZXZpbA=="}}"#,
    r#"{"subjects": []}"#,
    r#"{"subjects": null}"#,
    r#"{"subjects": null}"#,
    r#"{"subjects": []}"#,
];

/// An object of the list, if it exists.
fn child(lab: &Lab, (kind, namespace, name): (&str, &str, &str)) -> Option<Value> {
    lab.get(kind, namespace, name)
}

/// Waits until each of [`CHILDREN`] is as before; `change` describes the change.
fn await_repaired(lab: &Lab, before: &[Value], change: &str) {
    for (key, before) in CHILDREN.iter().zip(before) {
        wait_until(PATIENCE, || {
            let now = child(lab, *key).map(|object| enforced(&object)).unwrap_or_default();
            (now == *before)
                .then_some(())
                .ok_or_else(|| format!("{change}: {key:?} {now} instead of {before}"))
        });
    }
}

fn patch_all(lab: &Lab, patch: &str) {
    for (kind, namespace, name) in CHILDREN {
        lab.patch(kind, namespace, name, patch);
    }
}

#[test]
fn a_namespace_created_by_hand_is_adopted_unless_its_labels_name_another_owner() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "byhand", config: "" });
    for (name, labels) in [
        ("byhand-a", "{}"),
        ("byhand-b", "{crownlabs.polito.it/name: byhand-a}"),
        ("byhand-c", "{crownlabs.polito.it/operator-selector: elsewhere}"),
    ] {
        lab.apply(&format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: tenant-{name}, labels: {labels}}}}}"
        ));
        lab.apply(&tenant("byhand", name, ""));
    }
    lab.await_ready("tenants", "byhand-a");
    let namespace = lab.get("namespaces", "", "tenant-byhand-a").expect("there");
    assert_eq!(namespace["metadata"]["ownerReferences"][0]["name"], "byhand-a");
    assert_eq!(namespace["metadata"]["labels"]["crownlabs.polito.it/name"], "byhand-a");
    for (name, label) in
        [("byhand-b", "name assigns it to byhand-a"), ("byhand-c", "operator-selector assigns it")]
    {
        let message = lab.await_condition("tenants", name, "NameConflict", "NameConflict");
        assert!(message.contains(label), "{message}");
        let namespace = lab.get("namespaces", "", &format!("tenant-{name}")).expect("there");
        assert!(namespace["metadata"].get("ownerReferences").is_none(), "{namespace}");
    }
    lab.delete("tenant", "", &["byhand-a", "byhand-b", "byhand-c"]);
    lab.begin_delete("namespace", "", &["tenant-byhand-b", "tenant-byhand-c"]);
}

#[test]
fn children_of_tenants_and_workspaces_are_repaired() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "healt", config: "" });
    lab.apply(&workspace("healt", "heal-w", ""));
    lab.apply(&tenant("healt", "heal.t", ", createSandbox: true, workspaces: [{name: heal-w, role: user}]"));
    lab.await_ready("workspaces", "heal-w");
    for key in CHILDREN {
        wait_until(PATIENCE, || child(&lab, key).map(drop).ok_or_else(|| format!("{key:?}")));
    }
    lab.await_value(
        "resourcequotas",
        "tenant-heal-t",
        "crownlabs-resource-quota",
        "/spec/hard/limits.cpu",
        "2",
    );
    let before: Vec<Value> =
        CHILDREN.iter().map(|key| enforced(&child(&lab, *key).expect("there"))).collect();
    for (kind, namespace, name) in CHILDREN {
        lab.delete(kind, namespace, &[name]);
    }
    await_repaired(&lab, &before, "deleted");
    // As restored from a backup, and with other fields, too.
    for ((kind, namespace, name), edit) in CHILDREN.iter().zip(EDITS) {
        lab.patch(kind, namespace, name, edit);
        lab.patch(kind, namespace, name, r#"{"metadata": {"labels": null, "ownerReferences": null}}"#);
    }
    await_repaired(&lab, &before, "edited, labels and owner");
    patch_all(&lab, r#"{"metadata": {"labels": null}}"#);
    await_repaired(&lab, &before, "labels");
    patch_all(&lab, r#"{"metadata": {"ownerReferences": null}}"#);
    await_repaired(&lab, &before, "owner");
    for ((kind, namespace, name), edit) in CHILDREN.iter().zip(EDITS) {
        lab.patch(kind, namespace, name, edit);
    }
    await_repaired(&lab, &before, "edited");
    namespaces_are_repaired(&lab);
    await_repaired(&lab, &before, "their namespaces deleted");
    lab.delete("tenant", "", &["heal.t"]);
    lab.delete("workspace", "", &["heal-w"]);
}

/// The labels of the namespaces are repaired; then the namespaces are deleted.
fn namespaces_are_repaired(lab: &Lab) {
    for namespace in ["tenant-heal-t", "sandbox-heal-t", "workspace-heal-w"] {
        let labels =
            lab.get("namespaces", "default", namespace).expect("there")["metadata"]["labels"].clone();
        lab.kubectl(&["label", "namespace", namespace, "crownlabs.polito.it/type=other", "--overwrite"]);
        let await_labels = || {
            wait_until(PATIENCE, || {
                let now = lab.get("namespaces", "default", namespace).expect("there")["metadata"].clone();
                let is_healed = now["labels"] == labels && now["ownerReferences"][0]["controller"] == true;
                is_healed.then_some(()).ok_or_else(|| format!("{namespace}: {now}"))
            });
        };
        await_labels();
        lab.patch("namespaces", "", namespace, r#"{"metadata": {"labels": {"crownlabs.polito.it/operator-selector": null, "crownlabs.polito.it/name": null}, "ownerReferences": null}}"#);
        await_labels();
        lab.begin_delete("namespace", "", &[namespace]);
    }
}
