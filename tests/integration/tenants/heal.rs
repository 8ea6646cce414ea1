//! What somebody changes of what we made is as it was a moment later.

use serde_json::Value;

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

/// What is enforced of an object.
fn enforced(object: &Value) -> Value {
    let mut kept = object.clone();
    let members = kept.as_object_mut().expect("an object");
    members.remove("status");
    let metadata = members["metadata"].as_object_mut().expect("metadata");
    for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
        metadata.remove(key);
    }
    // The references say the same with new uids of objects that were made anew.
    kept
}

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

#[test]
fn children_of_tenants_and_workspaces_are_repaired() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "healt", config: "" });
    lab.apply(&workspace("healt", "heal-w", ""));
    lab.apply(&tenant("healt", "heal.t", ", createSandbox: true, workspaces: [{name: heal-w, role: user}]"));
    lab.await_ready("workspaces", "heal-w");
    let get = |(kind, namespace, name): (&str, &str, &str)| lab.get(kind, namespace, name);
    let before: Vec<Value> = CHILDREN
        .iter()
        .map(|child| wait_until(PATIENCE, || get(*child).ok_or_else(|| format!("{child:?}"))))
        .collect();
    lab.await_value(
        "resourcequotas",
        "tenant-heal-t",
        "crownlabs-resource-quota",
        "/spec/hard/limits.cpu",
        "2",
    );
    let before: Vec<Value> =
        CHILDREN.iter().zip(before).map(|(child, _)| enforced(&get(*child).expect("there"))).collect();
    let healed = |what: &str| {
        for (child, before) in CHILDREN.iter().zip(&before) {
            wait_until(PATIENCE, || {
                let now = get(*child).map(|object| enforced(&object)).unwrap_or_default();
                (now == *before)
                    .then_some(())
                    .ok_or_else(|| format!("{what}: {child:?} {now} instead of {before}"))
            });
        }
    };
    let patch_all = |patch: &str| {
        for (kind, namespace, name) in CHILDREN {
            lab.patch(kind, namespace, name, patch);
        }
    };
    patch_all(r#"{"metadata": {"labels": null, "ownerReferences": null}}"#);
    // Without labels and owner they are nobody's: given back, not taken. Labels make them ours again.
    let conflict = lab.await_condition("tenants", "heal.t", "NameConflict", "NameConflict");
    assert!(conflict.contains("was not made by this daemon"), "{conflict}");
    for (kind, namespace, name) in CHILDREN {
        lab.kubectl(&["delete", kind, "-n", namespace, name]);
    }
    // Nobody sees the end of what is not ours: a change of the Tenant, or the next try, does.
    for (kind, name) in [("tenant", "heal.t"), ("workspace", "heal-w")] {
        lab.kubectl(&["annotate", kind, name, "look=again"]);
    }
    healed("deleted");
    patch_all(r#"{"metadata": {"labels": null}}"#);
    healed("labels");
    patch_all(r#"{"metadata": {"ownerReferences": null}}"#);
    healed("owner");
    let edits = [
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
    for ((kind, namespace, name), edit) in CHILDREN.iter().zip(edits) {
        lab.patch(kind, namespace, name, edit);
    }
    healed("edited");
    // The namespaces themselves.
    for namespace in ["tenant-heal-t", "sandbox-heal-t", "workspace-heal-w"] {
        let labels =
            lab.get("namespaces", "default", namespace).expect("there")["metadata"]["labels"].clone();
        lab.kubectl(&["label", "namespace", namespace, "crownlabs.polito.it/type=other", "--overwrite"]);
        wait_until(PATIENCE, || {
            let now =
                lab.get("namespaces", "default", namespace).expect("there")["metadata"]["labels"].clone();
            (now == labels).then_some(()).ok_or_else(|| format!("{namespace}: {now}"))
        });
        lab.kubectl(&["delete", "namespace", namespace, "--wait=false"]);
    }
    healed("their namespaces deleted");
    lab.kubectl(&["delete", "tenant/heal.t", "workspace/heal-w"]);
}
