//! Errors of a Tenant or a Workspace are reported in a rejection or a condition, and everything else is still created.

use serde_json::json;

use super::{tenant, workspace};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};

/// The error message of `kubectl apply`.
fn refusal(lab: &Lab, yaml: &str) -> String {
    lab.try_kubectl(&["apply", "--server-side", "-f", "-"], yaml).expect_err("refused")
}

#[test]
fn the_schema_rejects_invalid_values() {
    let lab = Lab::shared();
    let ada = |more: &str| tenant("badtenants", "bad.ada", more);
    for (yaml, words) in [
        (ada("").replace("bad.ada@example.org", "ada at example"), &["spec.email", "should match"][..]),
        (
            ada(", workspaces: [{name: a, role: user}, {name: a, role: manager}]"),
            &["spec.workspaces", "duplicate"],
        ),
        (ada(", workspaces: [{name: a, role: owner}]"), &["spec.workspaces[0].role", "Unsupported value"]),
        (
            ada(", quota: {cpu: 1, memory: 1Gi, instances: -1}"),
            &["spec.quota.instances", "greater than or equal"],
        ),
    ] {
        let message = refusal(&lab, &yaml);
        for word in words {
            assert!(message.contains(word), "{word}: {message}");
        }
    }
    assert!(lab.get("tenants", "", "bad.ada").is_none());
}

#[test]
fn a_condition_reports_errors_that_the_schema_accepts() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "badin", config: "" });
    lab.apply(&workspace("badin", "bad-course", "withApproval"));
    // A Workspace that does not exist, one that needs approval, and a key with a line break in it.
    lab.apply(&tenant(
        "badin",
        "bad.bob",
        ", workspaces: [{name: absent, role: user}, {name: bad-course, role: candidate}]",
    ));
    let patch = json!({"spec": {"publicKeys": ["ssh-ed25519 AAAA one\nssh-ed25519 BBBB two"]}});
    lab.patch("tenants", "", "bad.bob", &patch.to_string());
    let message = lab.await_condition("tenants", "bad.bob", "InvalidPublicKeys", "InvalidPublicKey");
    assert!(message.contains("spec.publicKeys[0] has a line break"), "{message}");
    // Only the missing course keeps the Tenant from being ready, not the invalid key.
    let message = lab.await_condition("tenants", "bad.bob", "Ready", "WorkspaceNotFound");
    assert!(message.contains("Workspace absent does not exist"), "{message}");
    // The Tenant may be seen before its Workspace.
    wait_until(PATIENCE, || {
        let status = lab.get("tenants", "", "bad.bob").expect("there")["status"].clone();
        (status["failingWorkspaces"] == json!(["absent"])).then_some(()).ok_or_else(|| status.to_string())
    });
    // The rest is created. Without approval, a candidate gets neither quota nor rights.
    lab.await_value("namespaces", "", "tenant-bad-bob", "/status/phase", "Active");
    lab.await_value("tenants", "", "bad.bob", "/status/quota/cpu", "0");
    let label = "/metadata/labels/crownlabs.polito.it~1workspace-bad-course";
    lab.await_value("tenants", "", "bad.bob", label, "candidate");
    // The Workspace is created and the key removed.
    lab.apply(&workspace("badin", "absent", ""));
    lab.patch("tenants", "", "bad.bob", r#"{"spec": {"publicKeys": []}}"#);
    lab.await_ready("tenants", "bad.bob");
    // A negative quota counts as zero and is reported.
    lab.patch("workspaces", "", "absent", r#"{"spec": {"quota": {"cpu": "-1"}}}"#);
    let message = lab.await_condition("tenants", "bad.bob", "Reconciled", "InvalidQuantity");
    assert!(message.contains("Workspace absent: spec.quota.cpu"), "{message}");
    lab.delete("tenant", "", &["bad.bob"]);
    lab.delete("workspace", "", &["absent", "bad-course"]);
}
