//! The requests of an administrator: "Manage workspaces", "Manage users", and the settings of a Tenant.

use serde_json::{Value, json};

use super::relay::{Relay, refused};
use crate::lab::{Lab, PATIENCE, wait_until};

const WORKSPACES: &str = "/v1alpha1/workspaces";
const TENANTS: &str = "/v1alpha2/tenants";

/// `createWorkspace`: the variables of the form.
fn workspace(name: &str, auto_enroll: &Value) -> Value {
    json!({
        "kind": "Workspace", "apiVersion": "crownlabs.polito.it/v1alpha1",
        "metadata": {"name": name, "labels": {"crownlabs.polito.it/operator-selector": "production"}},
        "spec": {
            "prettyName": name, "autoEnroll": auto_enroll,
            "quota": {"cpu": 8, "memory": "16Gi", "disk": "50Gi", "otherResources": {}, "instances": 5},
        },
    })
}

/// Creates two courses, a manager and a student. The student gets a personal workspace.
pub fn begin(lab: &Lab, root: &Relay) {
    for (name, auto_enroll) in
        [("tea", json!("withApproval")), ("closed", Value::Null), ("open", json!("immediate"))]
    {
        root.create(WORKSPACES, &workspace(name, &auto_enroll)).expect("createWorkspace");
        lab.await_ready("workspaces", name);
    }
    let edit = json!([
        {"op": "replace", "path": "/spec/prettyName", "value": "Tea"},
        {"op": "replace", "path": "/spec/autoEnroll", "value": "withApproval"},
        {"op": "replace", "path": "/spec/quota/cpu", "value": 10},
        {"op": "replace", "path": "/spec/quota/memory", "value": "20Gi"},
        {"op": "replace", "path": "/spec/quota/instances", "value": 6},
        {"op": "replace", "path": "/spec/quota/disk", "value": "60Gi"},
        {"op": "replace", "path": "/spec/quota/otherResources", "value": {"nvidia.com/gpu": "1"}},
    ]);
    let tea =
        root.patch(&format!("{WORKSPACES}/tea"), "frontend-workspace-edit", &edit).expect("applyWorkspace");
    let quota = json!({
        "cpu": 10, "memory": "20Gi", "instances": 6, "disk": "60Gi", "otherResources": {"nvidia.com/gpu": "1"},
    });
    assert_eq!((&tea["spec"]["prettyName"], &tea["spec"]["quota"]), (&json!("Tea"), &quota));
    let all = root.get(WORKSPACES).expect("workspaces");
    assert_eq!(all["items"].as_array().map(Vec::len), Some(3));
    root.get("/v1alpha2/templates").expect("allTemplates");
    for (name, role) in [("eve", "manager"), ("ada", "user"), ("kim", "candidate")] {
        let spec = json!({
            "email": format!("{name}@example.org"), "firstName": name, "lastName": "Rossi",
            "workspaces": [{"name": "tea", "role": role}],
        });
        root.apply_tenant(name, "tea-root", &spec).expect("applyTenant creates");
    }
    personal_workspace(lab, root);
    let listed =
        root.get(&format!("{TENANTS}?labelSelector=crownlabs.polito.it%2Fworkspace-tea")).expect("tenants");
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(3));
    let selector = json!([{
        "op": "replace", "path": "/metadata/labels/crownlabs.polito.it~1operator-selector", "value": "production",
    }]);
    root.patch(&format!("{TENANTS}/ada"), "crownlabs-frontend", &selector).expect("the settings of a Tenant");
}

/// The switch "personal workspace" of a Tenant, on.
fn personal_workspace(lab: &Lab, root: &Relay) {
    for (name, role) in [("ada", "user"), ("eve", "manager"), ("kim", "candidate")] {
        lab.await_value(
            "tenants",
            "default",
            name,
            "/metadata/labels/crownlabs.polito.it~1workspace-tea",
            role,
        );
    }
    let quota = json!({"cpu": 2, "memory": "4Gi", "instances": 2, "disk": "10Gi", "otherResources": {}});
    let on = json!([{"op": "add", "path": "/spec/personalWorkspace", "value": quota}]);
    let manager = "frontend-tenant-personal-workspace";
    let tenant = root.patch(&format!("{TENANTS}/ada"), manager, &on).expect("applyTenantJsonPatchJson");
    assert_eq!(tenant["spec"]["personalWorkspace"], quota);
}

/// Turns the personal workspace off, and deletes the student and a course.
pub fn end(lab: &Lab, root: &Relay) {
    let off = json!([{"op": "add", "path": "/spec/personalWorkspace", "value": null}]);
    let path = format!("{TENANTS}/ada");
    let manager = "frontend-tenant-personal-workspace";
    refused(root.patch(&path, manager, &off), 409, "the personal workspace is in use");
    root.delete("/v1alpha2/namespaces/tenant-ada/instances").expect("deleteLabelSelectorInstances");
    let tenant = wait_until(PATIENCE, || root.patch(&path, manager, &off).map_err(|(_, message)| message));
    assert!(tenant["spec"].get("personalWorkspace").is_none(), "{tenant}");
    wait_until(PATIENCE, || {
        let binding = lab.get("rolebindings", "tenant-ada", "crownlabs-manage-templates");
        binding.is_none().then_some(()).ok_or_else(|| "the role binding of the personal workspace".to_owned())
    });
    root.delete(&path).expect("deleteTenant");
    root.delete(&format!("{WORKSPACES}/open")).expect("deleteWorkspace");
    refused(root.get("/v1alpha2/namespaces/default/instances/none"), 404, "not found");
    // The rights of the page cover only CrownLabs: they include neither secrets nor roles.
    let rights = lab.cluster.may(
        cluster::direct::User { name: "root", groups: &[super::ADMINISTRATORS, "system:authenticated"] },
        "get",
        "secrets",
        "tenant-eve",
        "",
    );
    assert!(!rights.expect("a review"), "administrators of the page read no Secrets");
}
