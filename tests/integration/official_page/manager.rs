//! The requests of a manager of a course: Templates, users, shared volumes, and the machines of the course.

use serde_json::{Value, json};

use super::relay::{Relay, refused};
use crate::lab::{Lab, PATIENCE, wait_until};

const TEMPLATES: &str = "/v1alpha2/namespaces/workspace-tea/templates";
const VOLUMES: &str = "/v1alpha2/namespaces/workspace-tea/sharedvolumes";
/// The field manager of the form that edits a Template.
const EDIT: &str = "frontend-template-patch";

/// An environment as the form sends it: the fields that the page knows.
fn environment(name: &str) -> Value {
    json!({
        "name": name, "mountMyDriveVolume": false, "guiEnabled": true, "persistent": false,
        "environmentType": "Standalone", "image": "example.org/exam:1", "disableControls": false,
        "rewriteURL": false, "sharedVolumeMounts": [],
        "resources": {"reservedCPUPercentage": 50, "cpu": 1, "memory": "1Gi", "otherResources": {}},
    })
}

/// `applyTemplateJsonPatch`: the operations of the form.
fn edit(name: &str, environments: &[Value]) -> Value {
    let never = json!({
        "deleteAfterCreation": "never", "stopAfterInactivity": "never", "deleteAfterInactivity": "never",
    });
    json!([
        {"op": "replace", "path": "/spec/environmentList", "value": environments},
        {"op": "replace", "path": "/spec/prettyName", "value": name},
        {"op": "replace", "path": "/spec/cleanup", "value": never},
        {"op": "replace", "path": "/spec/allowPublicExposure", "value": true},
        {"op": "replace", "path": "/spec/description", "value": "changed by the page"},
    ])
}

/// Everything that a manager does with a course.
pub fn journey(lab: &Lab, eve: &Relay) {
    let created = create_template(eve);
    let listed = eve.get(TEMPLATES).expect("workspaceTemplates");
    assert_eq!(listed["items"][0]["metadata"]["name"], created.as_str());
    exam_template(lab, eve);
    users(lab, eve);
    let volume = json!({
        "kind": "SharedVolume", "apiVersion": "crownlabs.polito.it/v1alpha2",
        "metadata": {"generateName": "shvol-", "namespace": "workspace-tea"}, "spec": {"prettyName": "Data", "size": "1Gi"},
    });
    let volume = eve.create(VOLUMES, &volume).expect("createSharedVolume");
    let path = format!("{VOLUMES}/{}", volume["metadata"]["name"].as_str().expect("a name"));
    let larger = json!({
        "kind": "SharedVolume", "apiVersion": "crownlabs.polito.it/v1alpha2", "spec": {"prettyName": "Data", "size": "2Gi"},
    });
    let larger = eve.apply(&path, "frontend-shvol-editor", &larger).expect("applySharedVolume");
    assert_eq!(larger["spec"]["size"], "2Gi");
    eve.get(VOLUMES).expect("workspaceSharedVolumes");
    eve.delete(&path).expect("deleteSharedVolume");
    let of_course = "/v1alpha2/instances?labelSelector=crownlabs.polito.it%2Fworkspace%20in%20%28tea%29";
    eve.get(of_course).expect("instancesLabelSelector");
}

/// `createTemplate`. Returns the name.
fn create_template(eve: &Relay) -> String {
    let template = json!({
        "kind": "Template", "apiVersion": "crownlabs.polito.it/v1alpha2",
        "metadata": {"generateName": "tea-", "namespace": "workspace-tea"},
        "spec": {
            "prettyName": "Desktop", "description": "d", "environmentList": [environment("desktop")],
            "cleanup": {"deleteAfterCreation": "never", "stopAfterInactivity": "15d", "deleteAfterInactivity": "never"},
            "allowPublicExposure": true, "nodeSelector": null,
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"},
        },
    });
    let created = eve.create(TEMPLATES, &template).expect("createTemplate");
    created["metadata"]["name"].as_str().expect("a name").to_owned()
}

/// A Template that an administrator has made an exam stays one when a manager edits it on the page; `kubectl` changes that.
fn exam_template(lab: &Lab, eve: &Relay) {
    let mut unknown = environment("exam");
    unknown["mode"] = "Exam".into();
    unknown["nodeSelector"] = json!({"room": "exam"});
    unknown["storageClassName"] = "fast".into();
    let exam = json!({
        "kind": "Template", "apiVersion": "crownlabs.polito.it/v1alpha2",
        "metadata": {"name": "exam", "namespace": "workspace-tea"},
        "spec": {
            "prettyName": "Exam", "description": "d", "environmentList": [unknown], "deleteAfter": "30d",
            "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"},
        },
    });
    lab.apply(&exam.to_string());
    let path = format!("{TEMPLATES}/exam");
    let mut changed = environment("exam");
    changed["image"] = "example.org/exam:2".into();
    let edited =
        eve.patch(&path, EDIT, &edit("Exam of June", &[changed.clone()])).expect("applyTemplateJsonPatch");
    let of = |template: &Value| template["spec"]["environmentList"][0].clone();
    let kept = ["mode", "nodeSelector", "storageClassName"].map(|field| of(&edited)[field].clone());
    assert_eq!(kept, [json!("Exam"), json!({"room": "exam"}), json!("fast")]);
    assert_eq!(
        (&edited["spec"]["prettyName"], &of(&edited)["image"]),
        (&json!("Exam of June"), &changed["image"])
    );
    assert_eq!(edited["spec"]["deleteAfter"], "30d");
    let newer = &edited["spec"]["cleanup"]["deleteAfterCreation"];
    assert!(newer.is_null(), "it would take the place of deleteAfter: {newer}");
    // A rename on the page keeps the mode, too.
    let renamed =
        eve.patch(&path, EDIT, &edit("Exam", &[environment("final")])).expect("a renamed environment");
    assert_eq!(of(&renamed)["mode"], "Exam");
    // With kubectl, an administrator sets the default value and removes a field.
    let standard =
        json!([{"op": "replace", "path": "/spec/environmentList/0/mode", "value": "Standard"}]).to_string();
    let with_kubectl = |operations: &str| {
        lab.kubectl(&["patch", "template", "exam", "-n", "workspace-tea", "--type=json", "-p", operations]);
        of(&lab.get("templates", "workspace-tea", "exam").expect("the Template"))
    };
    assert_eq!(with_kubectl(&standard)["mode"], "Standard");
    let removed = with_kubectl(r#"[{"op": "remove", "path": "/spec/environmentList/0/nodeSelector"}]"#);
    assert!(removed.get("nodeSelector").is_none(), "{removed}");
    let edited =
        eve.patch(&path, EDIT, &edit("Exam", &[environment("final")])).expect("applyTemplateJsonPatch");
    assert_eq!((&of(&edited)["mode"], of(&edited).get("nodeSelector")), (&json!("Standard"), None));
    let exam =
        with_kubectl(r#"[{"op": "replace", "path": "/spec/environmentList/0/mode", "value": "Exam"}]"#);
    assert_eq!(exam["mode"], "Exam");
    eve.delete(&path).expect("deleteTemplate");
}

/// The label of a Tenant about the course.
const LABEL: &str = "/metadata/labels/crownlabs.polito.it~1workspace-tea";

/// A manager adds a user; approves a candidate, and removes them.
fn users(lab: &Lab, eve: &Relay) {
    let lea = json!({
        "email": "lea@example.org", "firstName": "Lea", "lastName": "Verdi",
        "workspaces": [{"name": "tea", "role": "user"}],
    });
    eve.apply_tenant("lea", "tea-eve", &lea).expect("applyTenant creates");
    lab.await_value("tenants", "default", "lea", LABEL, "user");
    lab.await_value("tenants", "default", "kim", LABEL, "candidate");
    let candidates = "/v1alpha2/tenants?labelSelector=crownlabs.polito.it%2Fworkspace-tea%3Dcandidate";
    let waiting = eve.get(candidates).expect("tenants");
    assert_eq!(waiting["items"][0]["metadata"]["name"], "kim");
    let approved = json!({"workspaces": [{"name": "tea", "role": "user"}]});
    eve.apply_tenant("kim", "tea-eve", &approved).expect("applyTenant approves");
    lab.await_value("tenants", "default", "kim", LABEL, "user");
    let removal = json!([
        {"op": "test", "path": "/spec/workspaces/0", "value": {"role": "user", "name": "tea"}},
        {"op": "remove", "path": "/spec/workspaces/0"},
    ]);
    let kim = eve.patch("/v1alpha2/tenants/kim", "tea-eve", &removal).expect("applyTenantJsonPatchJson");
    assert!(kim["spec"]["workspaces"].as_array().is_none_or(Vec::is_empty), "{kim}");
    wait_until(PATIENCE, || {
        let kim = lab.get("tenants", "default", "kim").unwrap_or_default();
        let label = &kim["metadata"]["labels"]["crownlabs.polito.it/workspace-tea"];
        label.is_null().then_some(()).ok_or_else(|| format!("kim without the course: {label}"))
    });
}

/// A manager rules their course, and nothing else.
pub fn refusals(eve: &Relay) {
    let in_another =
        json!({"workspaces": [{"name": "tea", "role": "user"}, {"name": "closed", "role": "user"}]});
    refused(eve.apply_tenant("ada", "tea-eve", &in_another), 403, "closed");
    let quota = json!({"cpu": 64, "memory": "4Gi", "instances": 2, "disk": "10Gi", "otherResources": {}});
    let own = json!([{"op": "add", "path": "/spec/personalWorkspace", "value": quota}]);
    refused(
        eve.patch("/v1alpha2/tenants/eve", "frontend-tenant-personal-workspace", &own),
        403,
        "personalWorkspace",
    );
    refused(eve.delete("/v1alpha2/tenants/ada"), 403, "forbidden");
    let workspace = json!({"kind": "Workspace", "apiVersion": "crownlabs.polito.it/v1alpha1", "metadata": {"name": "mine"}});
    refused(eve.create("/v1alpha1/workspaces", &workspace), 403, "forbidden");
    refused(eve.get("/v1alpha2/namespaces/workspace-closed/templates"), 403, "forbidden");
    refused(eve.get("/v1alpha2/templates"), 403, "forbidden");
}
