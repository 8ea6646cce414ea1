//! The life of Tenants and Workspaces: logins, sandboxes, enrolment, quota.

use serde_json::json;

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

/// Merge-patches a cluster-scoped object.
fn patch(lab: &Lab, kind: &str, name: &str, patch: &str) {
    lab.patch(kind, "", name, patch);
}

/// The time in `seconds` from now.
pub fn time(seconds: i64) -> String {
    let output = std::process::Command::new("date")
        .args(["-u", "-d", &format!("{seconds} seconds"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .expect("date");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Sets the last login of a Tenant to `seconds` from now.
pub fn login(lab: &Lab, name: &str, seconds: i64) {
    patch(lab, "tenant", name, &json!({"spec": {"lastLogin": time(seconds)}}).to_string());
}

#[test]
fn a_personal_namespace_exists_while_it_is_used() {
    let lab = Lab::shared();
    let _course = lab.course("keepalive");
    let admin = lab.admin();
    let config = "controllers: {tenant: {keepAlive: 10s}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "keepalive", config });
    // The namespace of the Tenant below, not of the fixtures.
    let namespace = "tenant-keep-alive";
    lab.apply(&workspace("keepalive", "keepalive-course", ""));
    lab.apply(&tenant("keepalive", "keep.alive", ", workspaces: [{name: keepalive-course, role: user}]"));
    // The Tenant may be seen before its Workspace.
    lab.await_value("tenants", "default", "keep.alive", "/status/quota/cpu", "2");
    lab.await_ready("tenants", "keep.alive");
    // The API server uses the values that the controller manager has published.
    let counted = "/status/hard/count~1instances.crownlabs.polito.it";
    lab.await_value("resourcequotas", namespace, "crownlabs-resource-quota", counted, "2");
    let busy = instance("keepalive", "busy", "standalone").replace("tenant-keepalive", namespace);
    lab.apply(&busy.replace("TenantRef: {name: keepalive}", "TenantRef: {name: keep.alive}"));
    lab.await_phase(namespace, "busy", "Ready");
    // An hour after the login, the Instance keeps the namespace.
    login(&lab, "keep.alive", -3600);
    lab.await_observed("tenants", "default", "keep.alive", "Ready");
    lab.await_condition("tenants", "keep.alive", "Ready", "Ready");
    assert!(
        lab.get("namespaces", "default", namespace)
            .is_some_and(|n| n["metadata"]["deletionTimestamp"].is_null())
    );
    lab.delete("instance", namespace, &["busy"]);
    lab.await_gone("namespaces", "default", namespace);
    lab.await_condition("tenants", "keep.alive", "Ready", "Inactive");
    let status = lab.await_ready("tenants", "keep.alive")["status"].clone();
    assert_eq!(status["personalNamespace"], json!({"created": false}));
    assert_eq!(status["quota"], json!({"cpu": "2", "memory": "4Gi", "instances": 2}));
    // After a login the namespace is created again; after the time of `keepAlive` it is deleted, without an event.
    login(&lab, "keep.alive", 0);
    lab.await_value("tenants", "default", "keep.alive", "/status/personalNamespace/name", namespace);
    lab.await_gone("namespaces", "default", namespace);
    lab.begin_delete("tenant", "", &["keep.alive"]);
    lab.begin_delete("workspace", "", &["keepalive-course"]);
    lab.await_gone("tenants", "default", "keep.alive");
}

#[test]
fn a_sandbox_is_created_and_deleted() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let options = Options { kubeconfig: &admin, selector: "sandbox", config: "" };
    let daemon = Daemon::start(&options);
    lab.apply(&tenant("sandbox", "sandy", ", createSandbox: true"));
    lab.await_value("tenants", "default", "sandy", "/status/sandboxNamespace/name", "sandbox-sandy");
    lab.await_ready("tenants", "sandy");
    lab.await_value("rolebindings", "sandbox-sandy", "sandbox-editor", "/roleRef/name", "crownlabs-sandbox");
    let label = "/metadata/labels/pod-security.kubernetes.io~1enforce";
    lab.await_value("namespaces", "default", "sandbox-sandy", label, "baseline");
    drop(daemon);
    // Another role in the configuration, which does not exist yet: the binding stays. The role of a binding cannot be
    // changed, so a new binding is created later.
    let config = "controllers: {tenant: {sandboxClusterRole: sandbox-later}}\n";
    let daemon = Daemon::start(&Options { config, ..options });
    let said = "[!] sandboxClusterRole: ClusterRole sandbox-later (controllers.tenant.sandboxClusterRole) does not exist, \
                so 1 Tenants keep their former role";
    daemon.wait_for("the line about the role", |daemon| daemon.ready().1.contains(said));
    daemon.wait_for("a reconcile", |daemon| daemon.reconciles("tenant") > 0);
    let binding = lab.get("rolebindings", "sandbox-sandy", "sandbox-editor").expect("it stays");
    assert_eq!(binding["roleRef"]["name"], "crownlabs-sandbox");
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: sandbox-later}, rules: []}";
    lab.apply(role);
    lab.await_value("rolebindings", "sandbox-sandy", "sandbox-editor", "/roleRef/name", "sandbox-later");
    daemon.wait_for("no line about the role", |daemon| !daemon.ready().1.contains("sandboxClusterRole"));
    patch(&lab, "tenant", "sandy", r#"{"spec": {"createSandbox": false}}"#);
    lab.await_gone("namespaces", "default", "sandbox-sandy");
    wait_until(PATIENCE, || {
        let status =
            lab.get("tenants", "default", "sandy").expect("there")["status"]["sandboxNamespace"].clone();
        (status == json!({"created": false})).then_some(()).ok_or_else(|| status.to_string())
    });
    lab.delete("tenant", "", &["sandy"]);
    lab.delete("clusterrole", "", &["sandbox-later"]);
}

#[test]
fn a_tenant_keeps_its_role_until_the_configured_one_exists() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let options = Options { kubeconfig: &admin, selector: "own-role", config: "" };
    let daemon = Daemon::start(&options);
    lab.apply(&tenant("own-role", "roland", ""));
    let (namespace, binding) = ("tenant-roland", "crownlabs-manage-instances");
    lab.await_value("rolebindings", namespace, binding, "/roleRef/name", "crownlabs-manage-instances");
    lab.await_ready("tenants", "roland");
    drop(daemon);
    let config = "controllers: {tenant: {instancesClusterRole: own-later}}\n";
    let daemon = Daemon::start(&Options { config, ..options });
    let said = "[!] instancesClusterRole: ClusterRole own-later (controllers.tenant.instancesClusterRole) does not exist, so \
                1 Tenants keep their former role";
    daemon.wait_for("the line about the role", |daemon| daemon.ready().1.contains(said));
    daemon.wait_for("a reconcile", |daemon| daemon.reconciles("tenant") > 0);
    let kept = lab.get("rolebindings", namespace, binding).expect("it stays");
    assert_eq!(kept["roleRef"]["name"], "crownlabs-manage-instances");
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: own-later}, rules: []}";
    lab.apply(role);
    lab.await_value("rolebindings", namespace, binding, "/roleRef/name", "own-later");
    daemon.wait_for("no line about the role", |daemon| !daemon.ready().1.contains("instancesClusterRole"));
    lab.delete("tenant", "", &["roland"]);
    lab.delete("clusterrole", "", &["own-later"]);
}

#[test]
fn enrolment_follows_the_workspaces() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "enrol", config: "" });
    lab.apply(&workspace("enrol", "enrol-a", ""));
    let list = "[{name: enrol-a, role: user}, {name: enrol-late, role: manager}, {name: enrol-wait, role: candidate}]";
    lab.apply(&tenant("enrol", "erin", &format!(", workspaces: {list}")));
    let message = lab.await_condition("tenants", "erin", "Enrolled", "WorkspaceNotFound");
    assert!(message.contains("enrol-late") && message.contains("enrol-wait"), "{message}");
    // A Workspace that is created later: the Tenants that name it are reconciled.
    lab.apply(&workspace("enrol", "enrol-late", ""));
    lab.await_value("tenants", "default", "erin", "/status/quota/cpu", "4");
    lab.await_value(
        "resourcequotas",
        "tenant-erin",
        "crownlabs-resource-quota",
        "/spec/hard/limits.memory",
        "8Gi",
    );
    // When the quota of a Workspace changes, the quota of its Tenants changes, too.
    patch(&lab, "workspace", "enrol-late", r#"{"spec": {"quota": {"cpu": "500m"}}}"#);
    lab.await_value("tenants", "default", "erin", "/status/quota/cpu", "2500m");
    candidates(&lab);
    end_of_a_workspace(&lab);
    lab.delete("tenant", "", &["erin"]);
    lab.delete("workspace", "", &["enrol-late", "enrol-wait"]);
}

/// A candidate waits for approval, is enrolled if no approval is needed, and is removed if enrolment is closed.
fn candidates(lab: &Lab) {
    lab.apply(&workspace("enrol", "enrol-wait", "withApproval"));
    lab.await_value(
        "tenants",
        "default",
        "erin",
        "/metadata/labels/crownlabs.polito.it~1workspace-enrol-wait",
        "candidate",
    );
    lab.await_condition("tenants", "erin", "Enrolled", "Enrolled");
    patch(lab, "workspace", "enrol-wait", r#"{"spec": {"autoEnroll": "immediate"}}"#);
    lab.await_value(
        "tenants",
        "default",
        "erin",
        "/metadata/labels/crownlabs.polito.it~1workspace-enrol-wait",
        "user",
    );
    lab.await_value("tenants", "default", "erin", "/spec/workspaces/2/role", "user");
    patch(
        lab,
        "tenant",
        "erin",
        &json!({"spec": {"workspaces": [
            {"name": "enrol-a", "role": "user"}, {"name": "enrol-late", "role": "candidate"},
        ]}})
        .to_string(),
    );
    lab.await_value("tenants", "default", "erin", "/spec/workspaces/1", "");
}

/// When a Workspace is deleted, its Tenants are not enrolled in it any more, and its objects are deleted.
fn end_of_a_workspace(lab: &Lab) {
    lab.delete("workspace", "", &["enrol-a"]);
    lab.await_value("tenants", "default", "erin", "/spec/workspaces/0", "");
    lab.await_value(
        "tenants",
        "default",
        "erin",
        "/metadata/labels/crownlabs.polito.it~1no-workspaces",
        "true",
    );
    lab.await_value("tenants", "default", "erin", "/status/quota/cpu", "0");
    lab.await_gone("namespaces", "default", "workspace-enrol-a");
    assert!(lab.get("clusterrolebindings", "default", "crownlabs-manage-tenants-enrol-a").is_none());
}

#[test]
fn the_api_server_rejects_instances_over_the_quota() {
    let lab = Lab::shared();
    let _course = lab.course("share");
    let admin = lab.admin();
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "share", config: "" });
    lab.apply(&workspace("share", "share-course", ""));
    lab.apply(&tenant("share", "sharon", ", workspaces: [{name: share-course, role: user}]"));
    let namespace = "tenant-sharon";
    lab.await_value("resourcequotas", namespace, "crownlabs-resource-quota", "/status/hard/limits.cpu", "2");
    let create = |name: &str| {
        let object = instance("share", name, "standalone").replace("tenant-share", namespace);
        lab.try_kubectl(&["create", "-f", "-"], &object)
    };
    create("one").expect("within the quota");
    create("two").expect("within the quota");
    let refusal = create("three").expect_err("two are allowed");
    assert!(refusal.contains("exceeded quota: crownlabs-resource-quota"), "{refusal}");
    let pod = |cpu: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: big, namespace: {namespace}}}, spec: {{containers: [{{name: c, \
             image: x, resources: {{limits: {{cpu: \"{cpu}\", memory: 1Gi}}}}}}]}}}}"
        )
    };
    let refusal = lab.try_kubectl(&["create", "-f", "-"], &pod("3")).expect_err("2 cores are allowed");
    assert!(refusal.contains("limits.cpu=3"), "{refusal}");
    lab.delete("tenant", "", &["sharon"]);
    lab.delete("workspace", "", &["share-course"]);
    lab.await_gone("namespaces", "default", namespace);
}

#[test]
fn a_personal_workspace_is_added_and_removed() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let config = "controllers: {tenant: {personalWorkspace: {enabled: true}}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "own", config });
    lab.apply(&tenant("own", "owen", ", personalWorkspace: {cpu: 3, memory: 6Gi, instances: 3, disk: 20Gi}"));
    lab.await_value("rolebindings", "tenant-owen", "crownlabs-manage-templates", "/subjects/0/name", "owen");
    wait_until(PATIENCE, || {
        let status = lab.get("tenants", "default", "owen").expect("there")["status"].clone();
        (status["personalWorkspaceCreated"] == true && status["quota"]["cpu"] == "3")
            .then_some(())
            .ok_or_else(|| status.to_string())
    });
    lab.await_value(
        "resourcequotas",
        "tenant-owen",
        "crownlabs-resource-quota",
        "/spec/hard/requests.storage",
        "20Gi",
    );
    patch(&lab, "tenant", "owen", r#"{"spec": {"personalWorkspace": null}}"#);
    lab.await_gone("rolebindings", "tenant-owen", "crownlabs-manage-templates");
    wait_until(PATIENCE, || {
        let status = lab.get("tenants", "default", "owen").expect("there")["status"].clone();
        (status["personalWorkspaceCreated"] == false).then_some(()).ok_or_else(|| status.to_string())
    });
    let hard =
        lab.get("resourcequotas", "tenant-owen", "crownlabs-resource-quota").expect("there")["spec"]["hard"]
            .clone();
    assert!(hard.get("requests.storage").is_none(), "{hard}");
    lab.delete("tenant", "", &["owen"]);
}
