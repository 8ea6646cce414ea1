//! Names that collide, long names, and names that are not ASCII.

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

#[test]
fn tenants_with_colliding_object_names_never_change_each_other() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "twins", config: "" });
    lab.apply(&tenant("twins", "twin.a", ", createSandbox: true"));
    lab.await_ready("tenants", "twin.a");
    let uid = |kind: &str, namespace: &str, name: &str| {
        lab.get(kind, namespace, name).map(|object| object["metadata"]["uid"].clone()).unwrap_or_default()
    };
    let all = || {
        [
            uid("namespaces", "default", "tenant-twin-a"),
            uid("namespaces", "default", "sandbox-twin-a"),
            uid("clusterroles", "default", "crownlabs-manage-tenant-twin-a"),
            uid("clusterrolebindings", "default", "crownlabs-manage-tenant-twin-a"),
            uid("persistentvolumeclaims", "mydrive-pvcs", "twin-a-drive"),
            uid("rolebindings", "tenant-twin-a", "crownlabs-manage-instances"),
        ]
    };
    let before = all();
    assert!(before.iter().all(serde_json::Value::is_string), "{before:?}");
    lab.apply(&tenant("twins", "twin-a", ", createSandbox: true"));
    let message = lab.await_condition("tenants", "twin-a", "NameConflict", "NameConflict");
    assert!(message.contains("Tenant twin.a, which is older"), "{message}");
    let subject = lab.get("rolebindings", "tenant-twin-a", "crownlabs-manage-instances").expect("there");
    assert_eq!(subject["subjects"][0]["name"], "twin.a");
    lab.await_event("default", "twin-a", "NameConflict: ");
    // When the younger Tenant is deleted, the older one's objects are not touched.
    lab.delete("tenant", "", &["twin-a"]);
    assert_eq!(all(), before);
    // When the older Tenant is deleted, the younger one gets the names, but neither the objects nor the volume.
    lab.apply(&tenant("twins", "twin-a", ""));
    lab.await_condition("tenants", "twin-a", "NameConflict", "NameConflict");
    lab.delete("tenant", "", &["twin.a"]);
    lab.await_value(
        "rolebindings",
        "tenant-twin-a",
        "crownlabs-manage-instances",
        "/subjects/0/name",
        "twin-a",
    );
    let message = lab.await_condition("tenants", "twin-a", "Reconciled", "NameConflict");
    assert!(message.contains("mydrive-pvcs/twin-a-drive belongs to Tenant twin.a"), "{message}");
    assert_eq!(uid("persistentvolumeclaims", "mydrive-pvcs", "twin-a-drive"), before[4]);
    lab.delete("tenant", "", &["twin-a"]);
    lab.begin_delete("persistentvolumeclaims", "mydrive-pvcs", &["twin-a-drive"]);
}

#[test]
fn foreign_objects_under_our_names_are_not_touched() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let keeper = lab.get("namespaces", "", "default").expect("there")["metadata"]["uid"].clone();
    lab.apply(&format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: tenant-namesake, ownerReferences: [{{apiVersion: v1, \
         kind: Namespace, name: default, uid: {keeper}, controller: true}}]}}}}"
    ));
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "namesake", config: "" });
    lab.apply(&tenant("namesake", "namesake", ""));
    let message = lab.await_condition("tenants", "namesake", "NameConflict", "NameConflict");
    assert!(
        message.contains("Namespace tenant-namesake exists and belongs to Namespace default"),
        "{message}"
    );
    let namespace = lab.get("namespaces", "default", "tenant-namesake").expect("there");
    assert_eq!(namespace["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    assert!(lab.list("resourcequotas", "tenant-namesake").is_empty());
    lab.delete("tenant", "", &["namesake"]);
    let after = lab.get("namespaces", "default", "tenant-namesake").expect("it is not ours to delete");
    assert_eq!(after["metadata"]["resourceVersion"], namespace["metadata"]["resourceVersion"]);
    lab.begin_delete("namespace", "", &["tenant-namesake"]);
}

#[test]
fn a_failed_binding_of_managers_does_not_block_the_binding_of_users() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let binding = "crownlabs-manage-templates";
    // The binding of the managers exists, and another controller owns it.
    lab.apply(
        "apiVersion: v1
kind: Namespace
metadata: {name: workspace-bound, labels: {crownlabs.polito.it/operator-selector: bound}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: keeper, namespace: workspace-bound}
",
    );
    let keeper = lab.get("configmaps", "workspace-bound", "keeper").expect("made")["metadata"]["uid"].clone();
    lab.apply(&format!(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {binding}
  namespace: workspace-bound
  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: keeper, uid: {keeper}, controller: true}}]
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crownlabs-view-templates}}
"
    ));
    let foreign = lab.get("rolebindings", "workspace-bound", binding).expect("there");
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "bound", config: "" });
    lab.apply(&workspace("bound", "bound", ""));
    let message = lab.await_condition("workspaces", "bound", "NameConflict", "NameConflict");
    assert!(message.contains(&format!("RoleBinding {binding}")), "{message}");
    let group = "kubernetes:workspace-bound:user";
    lab.await_value("rolebindings", "workspace-bound", "crownlabs-view-templates", "/subjects/0/name", group);
    let after = lab.get("rolebindings", "workspace-bound", binding).expect("it is left alone");
    assert_eq!(after["metadata"]["resourceVersion"], foreign["metadata"]["resourceVersion"]);
    lab.delete("workspace", "", &["bound"]);
}

#[test]
fn long_dotted_and_non_ascii_names_work() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "names", config: "" });
    let longest = "n".repeat(56);
    let too_long = "m".repeat(57);
    let huge = format!("{}.{}", "h".repeat(126), "h".repeat(126));
    for name in ["n", longest.as_str(), "d.o-t.s"] {
        let person = tenant("names", name, "")
            .replace("Ada", "Zoë 'Ò")
            .replace("Rossi", "李")
            .replace(&format!("{name}@"), "x@");
        lab.apply(&person);
    }
    for name in ["n", longest.as_str(), "d.o-t.s"] {
        let object = lab.await_ready("tenants", name);
        assert_eq!(object["metadata"]["labels"]["crownlabs.polito.it/first-name"], "Zo");
        assert_eq!(object["metadata"]["labels"]["crownlabs.polito.it/last-name"], "");
        lab.await_value(
            "tenants",
            "default",
            name,
            "/status/personalNamespace/name",
            &format!("tenant-{}", name.replace('.', "-")),
        );
    }
    for name in [&too_long, &huge] {
        lab.apply(&tenant("names", name, "").replace(&format!("{name}@"), "x@"));
        let message = lab.await_condition("tenants", name, "Reconciled", "InvalidName");
        assert!(message.contains("no namespace can be created for this Tenant"), "{message}");
    }
    // Workspaces whose name is not valid for a namespace or a label.
    for name in ["names.v2".to_owned(), "w".repeat(54)] {
        lab.apply(&workspace("names", &name, ""));
        lab.await_condition("workspaces", &name, "Reconciled", "InvalidName");
        lab.kubectl(&[
            "patch",
            "tenant",
            "n",
            "--type=merge",
            "-p",
            &format!(r#"{{"spec": {{"workspaces": [{{"name": "{name}", "role": "user"}}]}}}}"#),
        ]);
        let fits = name.len() < 54;
        let wanted = if fits { "Enrolled" } else { "WorkspaceNotFound" };
        wait_until(PATIENCE, || {
            let object = lab.get("tenants", "default", "n").expect("there");
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let enrolled = conditions.iter().find(|condition| condition["type"] == "Enrolled");
            let seen = enrolled.map(|c| c["reason"].clone()).unwrap_or_default();
            (seen == wanted).then_some(()).ok_or_else(|| format!("{name}: {seen}"))
        });
        lab.delete("workspace", "", &[&name]);
    }
    lab.delete("tenant", "", &["n", &longest, "d.o-t.s", &too_long, &huge]);
}

#[test]
fn the_finalizer_is_removed_from_deselected_objects() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "moved", config: "" });
    lab.apply(&tenant("moved", "moved", ""));
    lab.apply(&workspace("moved", "moved", ""));
    lab.await_ready("tenants", "moved");
    lab.await_ready("workspaces", "moved");
    // With another selector label, the objects belong to another daemon or to none.
    for kind in ["tenant", "workspace"] {
        lab.kubectl(&[
            "label",
            kind,
            "moved",
            "--overwrite",
            "crownlabs.polito.it/operator-selector=elsewhere",
        ]);
        lab.delete(kind, "", &["moved"]);
    }
    lab.await_gone("namespaces", "default", "tenant-moved");
    lab.await_gone("namespaces", "default", "workspace-moved");
}
