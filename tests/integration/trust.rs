//! User input gives no user rights that they do not have.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::submission::request;
use crate::termination::{await_condition, exam};

/// The condition of an Instance of that type, as its status and message.
fn condition(lab: &Lab, namespace: &str, name: &str, type_: &str) -> Option<(String, String)> {
    let object = lab.get("instances", namespace, name).expect("the Instance");
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == type_)?;
    let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("message")))
}

fn await_mismatch(lab: &Lab, namespace: &str, name: &str) {
    wait_until(PATIENCE, || match condition(lab, namespace, name, "TenantMismatch") {
        Some((status, message)) if status == "True" => {
            let expected = "must be trust, not \"trust-teacher\": no objects are created for this Instance";
            assert!(message.contains(expected), "{message}");
            Ok(())
        }
        other => Err(format!("TenantMismatch, is {other:?}")),
    });
}

/// The objects of an Instance in the namespace, without the fields that controllers write.
fn objects(lab: &Lab, namespace: &str) -> Vec<Value> {
    let mut all =
        lab.list("deployments,services,ingresses,virtualmachines,persistentvolumeclaims,jobs", namespace);
    for object in &mut all {
        object["status"] = Value::Null;
        object["metadata"]["resourceVersion"] = Value::Null;
        object["metadata"]["managedFields"] = Value::Null;
        object["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = Value::Null;
    }
    all
}

#[test]
fn a_student_naming_a_manager_as_tenant_gets_no_objects() {
    let (lab, name, namespace) = (Lab::shared(), "trust", "tenant-trust");
    let _course = lab.course(name);
    let label = json!({"metadata": {"labels": {"crownlabs.polito.it/name": name}}});
    lab.patch("namespaces", "", namespace, &label.to_string());
    lab.apply(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Tenant
metadata: {name: trust-teacher}
spec: {firstName: Grace, lastName: Rossi, email: grace@example.org, workspaces: [{name: trust, role: manager}]}
",
    );
    let admin = lab.admin();
    let config = "controllers: {submission: {enabled: true}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: name, config });
    lab.apply(&instance(name, "honest", "container"));
    lab.await_phase(namespace, "honest", "Ready");
    let before = objects(&lab, namespace);
    let tenant =
        |name: &str| json!({"spec": {"tenant.crownlabs.polito.it/TenantRef": {"name": name}}}).to_string();
    // For a new Instance, nothing is created. For an existing one, everything stays as it is, even objects
    // that would be deleted.
    let sly = instance(name, "sly", "container")
        .replace("TenantRef: {name: trust}", "TenantRef: {name: trust-teacher}");
    assert!(sly.contains("trust-teacher"), "{sly}");
    lab.apply(&sly);
    await_mismatch(&lab, namespace, "sly");
    // Nothing is uploaded in another user's name either.
    let upload = "  running: false\n  customizationUrls: {contentDestination: \"https://x.example/up\"}\n";
    let upload = exam(name, "upload", "container-persistent", upload);
    lab.apply(&upload.replace("TenantRef: {name: trust}", "TenantRef: {name: trust-teacher}"));
    request(&lab, namespace, "upload");
    let refused = await_condition(&lab, namespace, "upload", "Submitted", "TenantMismatch");
    assert_eq!(refused["status"], "Unknown");
    lab.patch("instances", namespace, "honest", &tenant("trust-teacher"));
    await_mismatch(&lab, namespace, "honest");
    lab.patch("instances", namespace, "honest", r#"{"spec": {"running": false}}"#);
    lab.patch("instances", namespace, "sly", r#"{"spec": {"prettyName": "seen"}}"#);
    let generation = |name: &str| {
        let object = lab.get("instances", namespace, name).expect("the Instance");
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let mismatch = conditions.into_iter().find(|condition| condition["type"] == "TenantMismatch");
        let seen = mismatch.map(|condition| condition["observedGeneration"].clone()).unwrap_or_default();
        if seen == object["metadata"]["generation"] { Ok(()) } else { Err(format!("{name}: the last pass")) }
    };
    for name in ["honest", "sly"] {
        wait_until(PATIENCE, || generation(name));
    }
    assert_eq!(objects(&lab, namespace), before);
    // After a correction, they are like any others.
    lab.patch("instances", namespace, "upload", &tenant(name));
    await_condition(&lab, namespace, "upload", "Submitted", "SubmissionCompleted");
    assert!(lab.get("jobs", namespace, "upload-submitter").is_some());
    lab.patch("instances", namespace, "sly", &tenant(name));
    lab.await_phase(namespace, "sly", "Ready");
    assert_eq!(condition(&lab, namespace, "sly", "TenantMismatch"), None);
    lab.delete("tenant", "", &["trust-teacher"]);
}
