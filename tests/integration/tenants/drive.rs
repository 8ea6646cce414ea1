//! Personal volumes: their creation, and their fate when their Tenant is deleted.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use super::tenant;
use crate::daemon::{Daemon, Options};
use crate::lab::Lab;

/// The namespace of personal volumes.
const DRIVES: &str = "mydrive-pvcs";

#[test]
fn a_volume_is_prepared_once_and_outlives_its_tenant() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let options = Options { kubeconfig: &admin, selector: "drives", config: "" };
    let daemon = Daemon::start(&options);
    lab.apply(&tenant("drives", "dora", ""));
    let provisioning = "/metadata/labels/crownlabs.polito.it~1volume-provisioning";
    let claim = lab.await_value("persistentvolumeclaims", DRIVES, "dora-drive", provisioning, "completed");
    let uid = claim["metadata"]["uid"].as_str().expect("a uid").to_owned();
    assert!(claim["metadata"].get("ownerReferences").is_none());
    let secret = lab.await_value("secrets", "tenant-dora", "mydrive-info", "/type", "Opaque");
    leads_to_the_volume(&lab, &claim, &secret);
    // The Job that prepares the volume does not run again.
    lab.delete_in_foreground("job", DRIVES, &["dora-drive-provision"]);
    drop(daemon);
    let daemon = Daemon::start(&options);
    daemon.wait_for("a reconcile", |daemon| daemon.reconciles("tenant") > 0);
    assert!(lab.get("jobs", DRIVES, "dora-drive-provision").is_none());
    outlives_its_tenant(&lab);
    is_kept_from_another_person(&lab);
    is_given_back_to_the_same_person(&lab, &secret);
    drop(daemon);
    // The daemon is configured to delete volumes with their Tenant.
    let config = "controllers: {tenant: {myDrive: {onTenantDeletion: delete, size: 2Gi}}}\n";
    let _daemon = Daemon::start(&Options { config, ..options });
    is_deleted_with_its_tenant(&lab, &uid);
}

/// The Secret has the path of the claim's volume in the storage.
fn leads_to_the_volume(lab: &Lab, claim: &Value, secret: &Value) {
    let name = claim["spec"]["volumeName"].as_str().expect("bound");
    let volume = lab.get("persistentvolumes", "", name).expect("the volume");
    let attributes = &volume["spec"]["csi"]["volumeAttributes"];
    let text = |key: &str| attributes[key].as_str().expect("of NFS").to_owned();
    let data = |key: &str| {
        let value = secret["data"][key].as_str().expect("a value");
        String::from_utf8(BASE64_STANDARD.decode(value).expect("base64")).expect("text")
    };
    assert_eq!(data("server-name"), format!("{}.{}", text("server"), text("clusterID")));
    assert_eq!(data("path"), text("share"));
}

/// The volume is kept when its Tenant is deleted.
fn outlives_its_tenant(lab: &Lab) {
    lab.delete("tenant", "", &["dora"]);
    let kept = lab.get("persistentvolumeclaims", DRIVES, "dora-drive").expect("kept");
    assert!(kept["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(kept["metadata"]["labels"]["crownlabs.polito.it/tenant"], "dora");
}

/// A new Tenant with the same name and another e-mail address does not get the volume.
fn is_kept_from_another_person(lab: &Lab) {
    lab.apply(&tenant("drives", "dora", "").replace("dora@", "another@"));
    let message = lab.await_condition("tenants", "dora", "NameConflict", "NameConflict");
    assert!(
        message.contains("was kept for a former Tenant of this name with another e-mail address"),
        "{message}"
    );
    assert!(lab.get("secrets", "tenant-dora", "mydrive-info").is_none());
}

/// A new Tenant with the same name and e-mail address gets the volume; after that its address may change.
fn is_given_back_to_the_same_person(lab: &Lab, secret: &Value) {
    lab.kubectl(&[
        "patch",
        "tenant",
        "dora",
        "--type=merge",
        "-p",
        r#"{"spec": {"email": "dora@example.org"}}"#,
    ]);
    lab.await_ready("tenants", "dora");
    lab.await_value(
        "secrets",
        "tenant-dora",
        "mydrive-info",
        "/data/path",
        secret["data"]["path"].as_str().expect("text"),
    );
    lab.kubectl(&[
        "patch",
        "tenant",
        "dora",
        "--type=merge",
        "-p",
        r#"{"spec": {"email": "d@example.org"}}"#,
    ]);
    lab.await_value(
        "persistentvolumeclaims",
        DRIVES,
        "dora-drive",
        "/metadata/annotations/crownlabs.polito.it~1mydrive-email",
        "d@example.org",
    );
}

/// The volume belongs to its Tenant now. Its storage class cannot expand it, which is reported; everything else is
/// done.
fn is_deleted_with_its_tenant(lab: &Lab, uid: &str) {
    let claim = lab.await_value(
        "persistentvolumeclaims",
        DRIVES,
        "dora-drive",
        "/metadata/ownerReferences/0/name",
        "dora",
    );
    assert_eq!(claim["metadata"]["uid"], json!(uid));
    let message = lab.await_condition("tenants", "dora", "Reconciled", "EnforcementFailed");
    assert!(message.contains("PersistentVolumeClaim dora-drive") && message.contains("resize"), "{message}");
    lab.delete("tenant", "", &["dora"]);
    lab.await_gone("persistentvolumeclaims", DRIVES, "dora-drive");
}

#[test]
fn a_missing_namespace_of_volumes_is_reported_until_it_exists() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let config = "controllers: {tenant: {myDrive: {namespace: later-drives}}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "nodrives", config });
    lab.apply(&tenant("nodrives", "nodrive", ""));
    let message = lab.await_condition("tenants", "nodrive", "Reconciled", "NamespaceMissing");
    assert!(message.contains("waits for namespace later-drives"), "{message}");
    // Everything else is created.
    lab.await_value(
        "rolebindings",
        "tenant-nodrive",
        "crownlabs-manage-instances",
        "/subjects/0/name",
        "nodrive",
    );
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: later-drives}}");
    lab.await_ready("tenants", "nodrive");
    lab.delete("tenant", "", &["nodrive"]);
    lab.begin_delete("namespace", "", &["later-drives"]);
}

#[test]
fn a_tenant_keeps_its_volume_when_the_namespace_of_volumes_changes() {
    let lab = Lab::shared();
    let admin = lab.admin();
    let options = Options { kubeconfig: &admin, selector: "movedrives", config: "" };
    let daemon = Daemon::start(&options);
    lab.apply(&tenant("movedrives", "settled", ""));
    let before = lab.await_value("secrets", "tenant-settled", "mydrive-info", "/type", "Opaque");
    drop(daemon);
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: other-drives}}");
    let config = "controllers: {tenant: {myDrive: {namespace: other-drives}}}\n";
    let daemon = Daemon::start(&Options { config, ..options });
    lab.apply(&tenant("movedrives", "newcomer", ""));
    let name = "/metadata/name";
    lab.await_value("persistentvolumeclaims", "other-drives", "newcomer-drive", name, "newcomer-drive");
    let said = "[!] myDrive: 1 personal volumes are outside of namespace other-drives";
    daemon.wait_for("the line about the volume", |daemon| daemon.ready().1.contains(said));
    // The claim is still up to date.
    lab.patch("tenant", "", "settled", r#"{"spec": {"email": "s@example.org"}}"#);
    let email = "/metadata/annotations/crownlabs.polito.it~1mydrive-email";
    lab.await_value("persistentvolumeclaims", DRIVES, "settled-drive", email, "s@example.org");
    assert!(lab.get("persistentvolumeclaims", "other-drives", "settled-drive").is_none());
    let after = lab.get("secrets", "tenant-settled", "mydrive-info").expect("the Secret");
    assert_eq!(after["data"], before["data"]);
    lab.delete("tenant", "", &["settled", "newcomer"]);
    lab.begin_delete("namespace", "", &["other-drives"]);
}
