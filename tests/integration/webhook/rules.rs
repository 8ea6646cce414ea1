//! The rules of the webhooks: for each one, a request that is admitted and one that is rejected.

use std::time::Duration;

use crownlabs::testing::clock;
use serde_json::{Value, json};

use super::ports::ports;
use super::quota::{personal, quota, tenants_of_namespaces};
use super::switched_off::switched_off;
use super::templates::{names, templates};
use super::{
    Editor, SELECTOR, act, await_metric, configurations, daemon, edit, install, lab, lab_with, reserved_port,
};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};
use cluster::Options as ClusterOptions;

/// The selector label.
const KEY: &str = "crownlabs.polito.it/operator-selector";
const LOOPS: &str = "controllers: {instance: {enabled: false}, tenant: {baseWorkspaces: [utilities], \
                     personalWorkspace: {enabled: true}}, \
                     publicExposure: {ipPool: [172.18.20.1], waitForAddress: false}}\n";

/// Creates the Workspaces and Tenants of the tests.
fn create_fixtures(lab: &Lab) {
    for (name, auto_enroll) in
        [("open", "immediate"), ("asked", "withApproval"), ("closed", ""), ("other", ""), ("utilities", "")]
    {
        lab.apply(&workspace(SELECTOR, name, auto_enroll));
    }
    let teacher = ", workspaces: [{name: closed, role: manager}]";
    lab.apply(&tenant(SELECTOR, "teacher", teacher));
    lab.apply(&tenant(SELECTOR, "ada", ", workspaces: [{name: closed, role: user}]"));
    for name in ["teacher", "ada"] {
        lab.await_ready("tenants", name);
    }
}

/// Asserts that a request was rejected with a message that contains `word`, or admitted if `word` is empty; `what`
/// names the request.
pub fn expect(what: &str, answer: Result<String, String>, word: &str) {
    match answer {
        Ok(_) => assert!(word.is_empty(), "{what}: admitted"),
        Err(refusal) => assert!(!word.is_empty() && refusal.contains(word), "{what}: {refusal}"),
    }
}

/// A patch of `spec.workspaces`: names and roles.
pub fn enrolled(list: &[(&str, &str)]) -> Value {
    let list: Vec<Value> = list.iter().map(|(name, role)| json!({"name": name, "role": role})).collect();
    json!({"spec": {"workspaces": list}})
}

fn spec_of(lab: &Lab, name: &str) -> Value {
    lab.get("tenants", "default", name).expect("the Tenant")["spec"].clone()
}

/// Owner references to an object that does not exist: the garbage collector deletes the objects that have them.
fn absent_owner() -> Value {
    json!([{"apiVersion": "v1", "kind": "Namespace", "name": "absent", "uid": "6ee8ee9e-94ed-4ad0-b9b1-ac9d1b2a0f7d"}])
}

/// The fields of a Tenant that its user may change, and the fields that others may change.
fn edits(lab: &Lab) {
    let now = clock::rfc3339(clock::now());
    let closed = ("closed", "user");
    let everybody = ("utilities", "user");
    for (user, patch, word) in [
        ("ada", json!({"spec": {"publicKeys": ["ssh-ed25519 AAAA ada"]}}), ""),
        ("teacher", json!({"spec": {"publicKeys": ["ssh-ed25519 BBBB eve"]}}), "spec.publicKeys"),
        (
            "ada",
            json!({"spec": {"publicKeys": ["ssh-ed25519 AAAA ada\nssh-ed25519 BBBB eve"]}}),
            "spec.publicKeys[0] has a line break",
        ),
        ("ada", json!({"spec": {"lastLogin": now}}), ""),
        ("ada", json!({"spec": {"lastLogin": "2126-01-01T00:00:00Z"}}), "within 24 h of now"),
        ("ada", json!({"spec": {"lastLogin": null}}), "may not be removed"),
        ("ada", json!({"spec": {"quota": {"cpu": "64", "memory": "1Ti", "instances": 99}}}), "spec.quota"),
        ("ada", json!({"spec": {"createSandbox": true}}), "spec.createSandbox"),
        ("ada", json!({"spec": {"email": "eve@example.org"}}), "spec.email"),
        (
            "ada",
            json!({"spec": {"personalWorkspace": {"cpu": 9, "memory": "9Gi", "instances": 9}}}),
            "spec.personalWorkspace",
        ),
        ("ada", enrolled(&[closed, ("open", "user")]), ""),
        ("ada", enrolled(&[closed, ("open", "manager")]), "as user, not as manager"),
        ("ada", enrolled(&[closed]), ""),
        ("ada", enrolled(&[closed, ("asked", "user")]), "as candidate, not as user"),
        ("ada", enrolled(&[closed, ("asked", "candidate")]), ""),
        ("ada", enrolled(&[closed, ("asked", "user")]), "as candidate, not as user"),
        ("ada", enrolled(&[closed]), ""),
        ("ada", enrolled(&[closed, ("other", "user")]), "may change this enrolment"),
        ("ada", enrolled(&[closed, ("nowhere", "user")]), "\"nowhere\" not found"),
        ("ada", enrolled(&[("closed", "manager")]), "may change this enrolment"),
        ("ada", enrolled(&[]), "may change this enrolment"),
        ("ada", enrolled(&[closed, ("utilities", "manager")]), "may change this enrolment"),
        ("ada", enrolled(&[closed, everybody]), ""),
        ("Ada", enrolled(&[closed, ("open", "user")]), "\"Ada\" not found"),
        ("stranger", enrolled(&[closed, ("open", "user")]), "\"stranger\" not found"),
        ("teacher", enrolled(&[("closed", "manager")]), ""),
        ("teacher", enrolled(&[closed]), ""),
        ("teacher", enrolled(&[closed, ("other", "user")]), "not a manager of the Workspace other"),
        ("teacher", enrolled(&[closed, ("open", "user")]), "not a manager of the Workspace open"),
        ("teacher", json!({"spec": {"createSandbox": true}}), "spec.createSandbox"),
        ("teacher", json!({"metadata": {"ownerReferences": absent_owner()}}), "not metadata.ownerReferences"),
        ("ada", json!({"metadata": {"annotations": {"note": "mine"}}}), ""),
        ("ada", json!({"metadata": {"finalizers": null}}), "only administrators may remove the finalizer"),
        (
            "teacher",
            json!({"metadata": {"finalizers": ["a.b/c"]}}),
            "only administrators may remove the finalizer",
        ),
    ] {
        expect(&format!("{user}: {patch}"), edit(lab, user, "ada", &patch), word);
    }
    let workspaces = spec_of(lab, "ada")["workspaces"].clone();
    assert_eq!(
        workspaces,
        json!([{"name": "closed", "role": "user"}, {"name": "utilities", "role": "user"}])
    );
}

/// The users who may create a Tenant, and the defaults that are added to it.
fn creations(lab: &Lab) {
    let written = |name: &str, workspaces: &str| {
        tenant("elsewhere", name, &format!(", workspaces: [{workspaces}]"))
            .replace(", lastLogin: \"2099-01-01T00:00:00Z\"", "")
    };
    let create = |user: &str, text: &str| act(lab, user, &["create", "-f", "-"], text);
    let closed = "{name: closed, role: user}";
    for (user, workspaces, word) in [
        ("eve", "", "\"eve\" not found"),
        ("teacher", "], createSandbox: true, workspaces: [", "not with spec.createSandbox"),
        ("teacher", &format!("{closed}], publicKeys: [ssh-rsa A"), "not with spec.publicKeys"),
        ("teacher", closed, ""),
        ("teacher", "{name: other, role: manager}", "not a manager of the Workspace other"),
        ("teacher", "{name: utilities, role: manager}", "not a manager of the Workspace utilities"),
        ("ada", closed, "not a manager of the Workspace closed"),
        ("stranger", closed, "\"stranger\" not found"),
    ] {
        expect(&format!("{user} {workspaces}"), create(user, &written("eve", workspaces)), word);
    }
    // The defaulter sets the selector label, whatever the user wrote, and adds only the base Workspace.
    let eve = lab.get("tenants", "default", "eve").expect("there");
    assert_eq!(eve["metadata"]["labels"][KEY], SELECTOR);
    assert_eq!(
        eve["spec"],
        json!({
            "firstName": "Ada", "lastName": "Rossi", "email": "eve@example.org", "createSandbox": false,
            "workspaces": [{"name": "closed", "role": "user"}, {"name": "utilities", "role": "user"}],
        })
    );
    // A Tenant without the optional members is stored without them.
    let least = "{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: least},
        spec: {firstName: A, lastName: B, email: a@b, quota: {cpu: 8, memory: 1024Mi, instances: 1}}}";
    lab.apply(least);
    let spec = spec_of(lab, "least");
    assert!(spec.get("lastLogin").is_none(), "{spec}");
    assert_eq!(spec["quota"], json!({"cpu": 8, "memory": "1024Mi", "instances": 1}));
    // The service tenant has an empty label, whatever an administrator wrote.
    lab.apply(&tenant("elsewhere", "service-tenant", ""));
    let service = lab.get("tenants", "default", "service-tenant").expect("there");
    assert_eq!(service["metadata"]["labels"][KEY], "");
}

/// Texts of kinds without other rules: a new text is limited for users, but not for administrators.
fn texts(lab: &Lab) {
    let template = |name: &str, length: usize| {
        let resources = json!({"cpu": 1, "reservedCPUPercentage": 10, "memory": "512Mi"});
        let environment =
            json!({"name": "main", "image": "web", "environmentType": "Standalone", "resources": resources});
        json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Template",
            "metadata": {"name": name, "namespace": "workspace-closed"},
            "spec": {"prettyName": "a".repeat(length), "description": "", "deleteAfter": "7d",
                "workspace.crownlabs.polito.it/WorkspaceRef": {"name": "closed"}, "environmentList": [environment]}
        })
        .to_string()
    };
    let create = |user: &str, text: &str| act(lab, user, &["create", "-f", "-"], text);
    expect("a name", create("teacher", &template("short", 200)), "");
    let refused = "spec.prettyName has 201 characters: at most 200 are allowed";
    expect("a long name", create("teacher", &template("long", 201)), refused);
    lab.apply(&template("long", 201));
    let edit = |patch: Value| {
        let patch = patch.to_string();
        let patch = ["-n", "workspace-closed", "patch", "template", "long", "--type=merge", "-p", &patch];
        act(lab, "teacher", &patch, "")
    };
    expect("a stored value", edit(json!({"spec": {"deleteAfter": "8d"}})), "");
    expect("a longer one", edit(json!({"spec": {"prettyName": "b".repeat(300)}})), "has 300 characters");
    let volume = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "SharedVolume",
        "metadata": {"name": "data", "namespace": "workspace-closed"},
        "spec": {"prettyName": "a".repeat(201), "size": "1Gi"}
    });
    expect("a volume", create("teacher", &volume.to_string()), refused);
    let snapshot = json!({
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "InstanceSnapshot",
        "metadata": {"name": "now", "namespace": "workspace-closed"},
        "spec": {"imageName": "a".repeat(2_049), "instanceRef": {"name": "box"}}
    });
    let refused = "spec.imageName has 2049 characters: at most 2048 are allowed";
    expect("a snapshot", create("teacher", &snapshot.to_string()), refused);
}

/// The selector label: the defaulter restores it, and without the defaulter the validator rejects a change.
fn labels(lab: &Lab, port: u16) {
    let label = |value: Value| json!({"metadata": {"labels": {KEY: value}}});
    for value in [Value::Null, "".into(), "elsewhere".into()] {
        expect("the defaulter restores it", edit(lab, "ada", "ada", &label(value)), "");
        let ada = lab.get("tenants", "default", "ada").expect("there");
        assert_eq!(ada["metadata"]["labels"][KEY], SELECTOR);
    }
    lab.delete("mutatingwebhookconfiguration", "", &["crownlabs-webhook"]);
    wait_until(PATIENCE, || match edit(lab, "ada", "ada", &label(Value::Null)) {
        Err(refusal) if refusal.contains("only administrators may change the label") => Ok(()),
        other => Err(format!("a refusal by the validator: {other:?}")),
    });
    // When the defaulter is installed again, the daemon writes its CA bundle again.
    lab.apply(&configurations(SELECTOR, port, None));
    wait_until(PATIENCE, || match edit(lab, "ada", "ada", &label(Value::Null)) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(format!("the defaulter: {refusal}")),
    });
}

/// Requests that the rules do not apply to: from administrators, from the daemon, and to the status.
fn exceptions(lab: &Lab) {
    let patch = json!({"spec": {"firstName": "Grace", "createSandbox": false}}).to_string();
    let mut kubectl = lab.cluster.kubectl();
    kubectl.args(["patch", "tenant", "ada", "--type=merge", "-p", patch.as_str()]);
    let output = kubectl.output().expect("kubectl runs");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("webhook check overridden"), "{output:?}");
    // The tenant loop updates the label; its service account is in no group of administrators.
    lab.await_value("tenants", "default", "ada", "/metadata/labels/crownlabs.polito.it~1first-name", "Grace");
    let status = ["patch", "tenant", "ada", "--subresource=status", "--type=merge", "-p"];
    let answer =
        act(lab, "stranger", &[&status[..], &[r#"{"status": {"failingWorkspaces": ["x"]}}"#]].concat(), "");
    expect("a status", answer, "");
    let group = ["--as-group=system:masters", "patch", "tenant", "ada", "--type=merge", "-p"];
    let answer = act(lab, "root", &[&group[..], &[r#"{"spec": {"firstName": "Ada"}}"#]].concat(), "");
    expect("a member of the group", answer, "");
}

#[test]
fn a_manager_cannot_let_the_garbage_collector_delete_a_user() {
    let lab = lab_with(ClusterOptions { owner_references_guarded: false, ..ClusterOptions::default() });
    let port = reserved_port();
    let _daemon = daemon(&lab, port, "", LOOPS);
    create_fixtures(&lab);
    install(&lab, SELECTOR, port);
    edits(&lab);
    creations(&lab);
    // The reason for the rule: the API server accepts such a reference from an administrator, and the user is deleted.
    lab.patch("tenants", "", "eve", &json!({"metadata": {"ownerReferences": absent_owner()}}).to_string());
    lab.await_gone("tenants", "", "eve");
    assert!(lab.get("tenants", "", "ada").is_some_and(|ada| ada["metadata"]["deletionTimestamp"].is_null()));
}

#[test]
fn the_rules_hold_behind_a_real_api_server() {
    let lab = lab();
    let port = reserved_port();
    let mut daemon = daemon(&lab, port, "", LOOPS);
    create_fixtures(&lab);
    install(&lab, SELECTOR, port);
    edits(&lab);
    creations(&lab);
    texts(&lab);
    labels(&lab, port);
    exceptions(&lab);
    tenants_of_namespaces(&lab);
    ports(&lab);
    names(&lab);
    quota(&lab);
    personal(&lab);
    templates(&lab);
    switched_off(&lab);
    for path in [
        "/defaulter-v1alpha2-tenant",
        "/validator-v1alpha2-tenant",
        "/validator-v1alpha2-instance",
        "/validator-v1alpha2-template",
        "/validator-texts",
    ] {
        await_metric(
            &daemon,
            &format!("controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"200\"}}"),
        );
        await_metric(
            &daemon,
            &format!("controller_runtime_webhook_latency_seconds_count{{webhook=\"{path}\"}}"),
        );
    }
    // While the daemon stops, it still answers for a moment; after its end, every change of a user is rejected.
    let ada = Editor::new(&lab, "ada");
    daemon.signal("TERM");
    let patch = json!({"metadata": {"annotations": {"note": "late"}}});
    ada.edit("ada", &patch).expect("it still answers");
    let status = daemon.wait(Duration::from_secs(30)).expect("it ends");
    assert!(status.success(), "{status}");
    expect("without it", edit(&lab, "ada", "ada", &patch), "failed calling webhook");
    // An administrator can still make changes, except on the official page, where fields would be lost.
    lab.patch("tenants", "", "ada", r#"{"metadata": {"annotations": {"note": "later"}}}"#);
    let rename = json!({"spec": {"prettyName": "Renamed"}}).to_string();
    let patch = ["patch", "template", "small", "-n", "workspace-closed", "--type=merge", "-p", &rename];
    let as_client = |manager: &str| {
        let manager = format!("--field-manager={manager}");
        lab.try_kubectl(&[&patch[..], &[manager.as_str()]].concat(), "")
    };
    expect("the page", as_client("frontend-template-patch"), "failed calling webhook");
    expect("another client", as_client("kubectl-patch"), "");
}
