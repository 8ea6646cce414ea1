//! The requests of a student: the dashboard, the active machines, the account, and the personal workspace.

use crownlabs::testing::clock;
use serde_json::{Value, json};

use super::relay::{Relay, refused};
use crate::lab::{Lab, PATIENCE, wait_until};

const TENANT: &str = "/v1alpha2/tenants/ada";
const INSTANCES: &str = "/v1alpha2/namespaces/tenant-ada/instances";

/// `createInstance`: from a Template in a namespace.
fn instance(template: &str, namespace: &str) -> Value {
    json!({
        "kind": "Instance", "apiVersion": "crownlabs.polito.it/v1alpha2", "metadata": {"generateName": "instance-"},
        "spec": {
            "template.crownlabs.polito.it/TemplateRef": {"name": template, "namespace": namespace},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada", "namespace": "tenant-ada"},
            "nodeSelector": null,
        },
    })
}

/// The name of an object.
fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().expect("a name").to_owned()
}

/// Everything that a student does.
pub fn journey(lab: &Lab, ada: &Relay) {
    log_in(lab, ada);
    let templates = "/v1alpha2/namespaces/workspace-tea/templates";
    let listed = ada.get(templates).expect("workspaceTemplates");
    let template = name(&listed["items"][0]);
    ada.get("/v1alpha1/imagelists").expect("images");
    machines(lab, ada, &template);
    account(ada);
    own_templates(lab, ada);
    refusals(ada, templates, &template);
}

/// `tenant` with its wrappers, and the login of today.
fn log_in(lab: &Lab, ada: &Relay) {
    let login = json!({"lastLogin": clock::now().to_string()});
    ada.apply_tenant("ada", "frontend-tenant-lastlogin", &login).expect("applyTenant");
    wait_until(PATIENCE, || {
        let tenant = ada.get(TENANT).expect("tenant");
        let namespace = &tenant["status"]["personalNamespace"];
        let is_made = namespace == &json!({"created": true, "name": "tenant-ada"});
        is_made.then_some(()).ok_or_else(|| format!("the namespace: {namespace}"))
    });
    let workspace = ada.get("/v1alpha1/workspaces/tea").expect("the wrapper of a Workspace");
    assert_eq!(workspace["status"]["namespace"]["name"], "workspace-tea");
    lab.await_value("rolebindings", "tenant-ada", "crownlabs-manage-instances", "/subjects/0/name", "ada");
}

/// A machine from its start to its end.
fn machines(lab: &Lab, ada: &Relay, template: &str) {
    let created = ada.create(INSTANCES, &instance(template, "workspace-tea")).expect("createInstance");
    let name = name(&created);
    let path = format!("{INSTANCES}/{name}");
    ada.get(&format!("/v1alpha2/namespaces/workspace-tea/templates/{template}"))
        .expect("the wrapper of a Template");
    wait_until(PATIENCE, || {
        let listed = ada.get(INSTANCES).expect("ownedInstances");
        let status = &listed["items"][0]["status"];
        let is_shown = status["environments"][0]["name"] == "desktop" && status["url"].is_string();
        is_shown.then_some(()).ok_or_else(|| format!("its environment and its URL: {status}"))
    });
    let named = json!({"prettyName": "Mine"});
    ada.apply_instance(&path, "frontend-instance-pretty-name", &named).expect("applyInstance");
    let ports = json!({"publicExposure": {"ports": [
        {"name": "ssh", "port": 0, "targetPort": 22, "protocol": "TCP"},
    ]}});
    ada.apply_instance(&path, "frontend-public-exposure", &ports).expect("applyInstance");
    let stopped = ada.apply_instance(&path, "frontend-instance-running", &json!({"running": false}));
    let spec = stopped.expect("applyInstance")["spec"].clone();
    let exposed = json!([{"name": "ssh", "port": 0, "targetPort": 22, "protocol": "TCP"}]);
    assert_eq!(
        (&spec["running"], &spec["prettyName"], &spec["publicExposure"]["ports"]),
        (&json!(false), &json!("Mine"), &exposed),
        "a field manager changes its own fields"
    );
    ada.delete(&path).expect("deleteInstance");
    lab.await_gone("instances", "tenant-ada", &name);
    ada.create(INSTANCES, &instance(template, "workspace-tea")).expect("createInstance");
    let of_course = format!("{INSTANCES}?labelSelector=crownlabs.polito.it%2Fworkspace%3Dtea");
    wait_until(PATIENCE, || {
        let listed = ada.get(&of_course).expect("ownedInstances");
        listed["items"][0].is_object().then_some(()).ok_or_else(|| "the labels of the machine".to_owned())
    });
    ada.delete(&of_course).expect("deleteLabelSelectorInstances");
}

/// Keys, and the courses that a student can enter without a manager.
fn account(ada: &Relay) {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtUzYVJc3V9a0Ht4b1Jr1b8JkB8h0hXb3p6Yw5m2C1q ada";
    let keys = ada.apply_tenant("ada", "frontend-tenant-new-keys", &json!({"publicKeys": [key]}));
    assert_eq!(keys.expect("applyTenant")["spec"]["publicKeys"], json!([key]));
    let enrol = |workspace: &str| {
        let entries = [json!({"name": "tea", "role": "user"}), json!({"name": workspace, "role": "user"})];
        ada.apply_tenant("ada", ada.user, &json!({"workspaces": entries}))
    };
    let entered = enrol("open").expect("a course that takes everybody");
    assert_eq!(entered["spec"]["workspaces"].as_array().map(Vec::len), Some(2));
    refused(enrol("closed"), 403, "closed");
}

/// A Template in the personal workspace, and a machine from it.
fn own_templates(lab: &Lab, ada: &Relay) {
    lab.await_value("rolebindings", "tenant-ada", "crownlabs-manage-templates", "/subjects/0/name", "ada");
    let template = json!({
        "kind": "Template", "apiVersion": "crownlabs.polito.it/v1alpha2",
        "metadata": {"generateName": "personal-", "namespace": "tenant-ada"},
        "spec": {
            "prettyName": "Own", "description": "d",
            "cleanup": {"deleteAfterCreation": "never", "stopAfterInactivity": "15d", "deleteAfterInactivity": "never"},
            "environmentList": [{
                "name": "desktop", "environmentType": "Standalone", "image": "example.org/own:1",
                "mountMyDriveVolume": true, "guiEnabled": true, "rewriteURL": false,
                "resources": {"cpu": 1, "reservedCPUPercentage": 50, "memory": "1Gi", "otherResources": {}},
            }],
            "allowPublicExposure": false, "nodeSelector": null,
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "personal"},
        },
    });
    let own = "/v1alpha2/namespaces/tenant-ada/templates";
    let template = name(&ada.create(own, &template).expect("createTemplate"));
    wait_until(PATIENCE, || {
        let created = ada.create(INSTANCES, &instance(&template, "tenant-ada"));
        created.map(drop).map_err(|(_, message)| message)
    });
}

/// A student can change neither courses nor other users.
fn refusals(ada: &Relay, templates: &str, template: &str) {
    let rename = json!([{"op": "replace", "path": "/spec/prettyName", "value": "x"}]);
    refused(
        ada.patch(&format!("{templates}/{template}"), "frontend-template-patch", &rename),
        403,
        "forbidden",
    );
    let manager = json!({"workspaces": [{"name": "tea", "role": "manager"}]});
    refused(ada.apply_tenant("ada", ada.user, &manager), 403, "tea");
    let more = json!([{"op": "add", "path": "/spec/personalWorkspace/cpu", "value": 64}]);
    refused(ada.patch(TENANT, "frontend-tenant-personal-workspace", &more), 403, "personalWorkspace");
    refused(ada.get("/v1alpha2/tenants/eve"), 403, "forbidden");
    refused(ada.get("/v1alpha2/tenants?labelSelector=crownlabs.polito.it%2Fworkspace-tea"), 403, "forbidden");
    refused(ada.get("/v1alpha2/instances"), 403, "forbidden");
    refused(ada.get("/v1alpha2/namespaces/workspace-tea/sharedvolumes"), 403, "forbidden");
    let workspace = json!({"kind": "Workspace", "apiVersion": "crownlabs.polito.it/v1alpha1", "metadata": {"name": "mine"}});
    refused(ada.create("/v1alpha1/workspaces", &workspace), 403, "forbidden");
    let foreign = instance(template, "workspace-closed");
    refused(ada.create(INSTANCES, &foreign), 403, "");
}
