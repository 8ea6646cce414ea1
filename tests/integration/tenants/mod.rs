//! Tenants and Workspaces on a real control plane.

mod bad_input;
mod drive;
mod heal;
mod leaving;
pub mod life;
mod many_keys;
mod names;
mod personal_workspace;
mod quota_use;
mod rights;
mod selection;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::golden;
use crate::lab::{Lab, PATIENCE, wait_until};
use cluster::Options as ClusterOptions;
use cluster::audit::writes;

/// The kinds of Tenants, Workspaces and the objects that the daemon creates for them.
pub const KINDS: &str = "clusterroles,clusterrolebindings,limitranges,namespaces,networkpolicies,persistentvolumeclaims,\
                     resourcequotas,rolebindings,tenants,workspaces";

/// A Tenant whose last login is in the future; `more` are further members of the spec, after a comma.
pub fn tenant(selector: &str, name: &str, more: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {{name: \"{name}\", labels: {{crownlabs.polito.it/operator-selector: {selector}}}}}
spec: {{firstName: Ada, lastName: Rossi, email: {name}@example.org, lastLogin: \"2099-01-01T00:00:00Z\"{more}}}
"
    )
}

/// A Template in a personal workspace.
pub fn own_template(namespace: &str, name: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  prettyName: Own
  description: for the tests
  workspace.crownlabs.polito.it/WorkspaceRef: {{name: personal}}
  environmentList:
  - name: main
    environmentType: Standalone
    image: r.example.org/app:1
    mountMyDriveVolume: false
    resources: {{cpu: 1, reservedCPUPercentage: 10, memory: 64Mi}}
"
    )
}

/// A Workspace with a quota of 2 cores, 4 GiB and 2 Instances.
pub fn workspace(selector: &str, name: &str, auto_enroll: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha1
kind: Workspace
metadata: {{name: {name}, labels: {{crownlabs.polito.it/operator-selector: {selector}}}}}
spec: {{prettyName: {name}, autoEnroll: \"{auto_enroll}\", quota: {{cpu: 2, memory: 4Gi, instances: 2}}}}
"
    )
}

impl Lab {
    /// Waits until a Tenant or Workspace is ready. Returns the object.
    pub fn await_ready(&self, kind: &str, name: &str) -> Value {
        wait_until(PATIENCE, || {
            let object = self.get(kind, "default", name).ok_or_else(|| format!("{kind} {name}"))?;
            let ready = object["status"]["ready"] == true;
            ready.then(|| object.clone()).ok_or_else(|| format!("{kind} {name} ready: {}", object["status"]))
        })
    }

    /// Waits until a condition of a Tenant or Workspace has this reason. Returns its message.
    pub fn await_condition(&self, kind: &str, name: &str, type_: &str, reason: &str) -> String {
        wait_until(PATIENCE, || {
            let object = self.get(kind, "default", name).ok_or_else(|| format!("{kind} {name}"))?;
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions
                .iter()
                .find(|condition| condition["type"] == type_ && condition["reason"] == reason);
            let message = found.map(|found| found["message"].as_str().unwrap_or_default().to_owned());
            message.ok_or_else(|| format!("{kind} {name}: {type_} {reason}, is {conditions:?}"))
        })
    }
}

#[test]
fn objects_of_tenants_equal_the_recorded_ones() {
    // The recording contains whole namespaces, so the test needs its own cluster.
    let lab = Lab::start(ClusterOptions { simulate: false, furnished: false, ..ClusterOptions::default() });
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "local", config: "" });
    lab.apply(&golden::tenant_inputs());
    for workspace in ["kube", "netlab", "oslab"] {
        lab.await_ready("workspaces", workspace);
    }
    for tenant in ["ada.rossi", "carl.verdi"] {
        lab.await_ready("tenants", tenant);
    }
    // One of the courses of the third Tenant does not exist.
    lab.await_condition("tenants", "bob.bianchi", "Ready", "WorkspaceNotFound");
    // Enrolment may become visible only after the first reconcile; the quota changes last.
    lab.await_value("tenants", "default", "bob.bianchi", "/status/quota/memory", "50G");
    lab.await_value("tenants", "default", "ada.rossi", "/status/quota/memory", "24Gi");
    let all = lab.list(KINDS, "");
    let ours = |object: &&Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let owned = owners.iter().any(|owner| owner["kind"] == "Tenant" || owner["kind"] == "Workspace");
        let kind = object["kind"].as_str().unwrap_or_default();
        owned || ["Tenant", "Workspace", "PersistentVolumeClaim"].contains(&kind)
    };
    let objects: Vec<Value> = all.iter().filter(ours).cloned().collect();
    let uids: BTreeMap<String, String> = objects
        .iter()
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &object["metadata"];
            (text(&metadata["uid"]), format!("<uid {}/{}>", text(&object["kind"]), text(&metadata["name"])))
        })
        .collect();
    let objects = objects.into_iter().filter_map(|object| golden::normalised_tenant(object, &uids));
    golden::assert_equal(&golden::expected_tenants(), &golden::by_place(objects.collect()));

    // The claims are young at first.
    for tenant in ["ada.rossi", "bob.bianchi", "carl.verdi"] {
        lab.await_condition("tenants", tenant, "MyDriveReady", "StorageClassNotFound");
    }
    // After a restart nothing has changed, and nothing is written.
    let audit = lab.cluster.audit();
    drop(daemon);
    let mark = audit.mark().expect("the audit log");
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "local", config: "" });
    daemon.wait_for("a reconcile of every Tenant and Workspace", |daemon| {
        let metrics = daemon.metrics();
        let reconciles = |controller: &str| {
            let line = format!(
                "controller_runtime_reconcile_total{{controller=\"{controller}\",result=\"requeue_after\"}}"
            );
            let found = metrics.lines().find_map(|text| text.strip_prefix(&line)?.trim().parse::<f64>().ok());
            found.unwrap_or_default()
        };
        reconciles("tenant") >= 3.0 && reconciles("workspace") >= 3.0
    });
    let entries = audit.since(mark).expect("the audit log");
    let ours = writes(&entries).filter(|entry| entry.user_agent.starts_with("crownlabs/"));
    let written: Vec<_> = ours.filter(|entry| entry.resource != "leases").collect();
    assert!(written.is_empty(), "{written:#?}");
}
