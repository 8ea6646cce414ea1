//! Personal workspaces and the key that turns them off.

use serde_json::{Value, json};

use super::life::login;
use super::{own_template, tenant};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

const SELECTOR: &str = "own-templates";
const NAMESPACE: &str = "tenant-own-ada";
const BINDING: &str = "crownlabs-manage-templates";
const OFF: &str =
    "spec.personalWorkspace has no effect: controllers.tenant.personalWorkspace.enabled is false";

/// The configuration with personal workspaces on or off.
fn keys(is_on: bool) -> String {
    json!({"controllers": {"tenant": {"personalWorkspace": {"enabled": is_on}}}}).to_string()
}

fn condition(lab: &Lab) -> Option<Value> {
    let tenant = lab.get("tenants", "default", "own.ada").expect("the Tenant");
    let conditions = tenant["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == "SwitchedOff")
}

/// Sets the last login to two days ago, and waits for the next reconcile.
fn leave(lab: &Lab) {
    login(lab, "own.ada", -2 * 24 * 3600);
    lab.await_observed("tenants", "default", "own.ada", "Ready");
}

/// Whether the personal namespace exists and is not being deleted.
fn has_namespace(lab: &Lab) -> bool {
    let namespace = lab.get("namespaces", "", NAMESPACE);
    namespace.is_some_and(|namespace| namespace["metadata"]["deletionTimestamp"].is_null())
}

/// Waits until the role binding exists, or does not exist.
fn await_binding(lab: &Lab, is_there: bool) {
    wait_until(PATIENCE, || {
        let found = lab.get("rolebindings", NAMESPACE, BINDING).is_some();
        (found == is_there).then_some(()).ok_or_else(|| format!("the role binding: {found}"))
    });
}

#[test]
fn a_personal_workspace_outlives_a_configuration_that_turns_it_off() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let daemon =
        |is_on| Daemon::start(&Options { kubeconfig: &kubeconfig, selector: SELECTOR, config: &keys(is_on) });
    let first = daemon(true);
    lab.apply(&tenant(SELECTOR, "own.ada", ", personalWorkspace: {cpu: 1, memory: 1Gi, instances: 1}"));
    await_binding(&lab, true);
    drop(first);
    let _second = daemon(false);
    let message = wait_until(PATIENCE, || {
        let found = condition(&lab).ok_or("the condition")?["message"].clone();
        Ok::<_, String>(found.as_str().unwrap_or_default().to_owned())
    });
    assert!(message.starts_with(OFF), "{message}");
    await_binding(&lab, true);
    // Templates keep the namespace, although no login does.
    lab.apply(&own_template(NAMESPACE, "mine"));
    leave(&lab);
    assert!(has_namespace(&lab));
    // The binding ends with the field of the Tenant, and the Templates stay.
    let patch = r#"{"spec": {"personalWorkspace": null}}"#;
    lab.kubectl(&["patch", "tenant", "own.ada", "--type=merge", "-p", patch]);
    await_binding(&lab, false);
    lab.await_observed("tenants", "default", "own.ada", "Ready");
    assert!(has_namespace(&lab));
    lab.delete("templates", NAMESPACE, &["mine"]);
    lab.await_gone("namespaces", "", NAMESPACE);
}
