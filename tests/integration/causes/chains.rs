//! An object that waits names the first cause: the Instance waits for a Secret, the Tenant creates it once its claim is
//! bound, and the claim waits for a storage class.

use std::process::Command;

use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::tenants::tenant;

const FIRST: &str = "storageclass \"chain-nfs\" not found";

#[test]
fn a_missing_storage_class_is_named_by_the_tenant_the_shared_volume_and_the_instances() {
    let lab = Lab::shared_unsimulated();
    let admin = lab.admin();
    let course = lab.course("chain");
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: chain-drives}}");
    lab.delete("secrets", "tenant-chain", &["mydrive-info"]);
    let config = "controllers:
  tenant: {myDrive: {namespace: chain-drives, storageClassName: chain-nfs}}
  sharedVolume: {storageClass: chain-nfs}
";
    let daemon = course.daemon(config);
    lab.apply(&tenant("chain", "chain", ", quota: {cpu: \"8\", memory: 16Gi, instances: 5}"));
    lab.apply(&crate::shared_volumes::shared_volume("chain", "data", "1Gi"));
    // Each object names the cause, from the claim upwards.
    let claim = "PersistentVolumeClaim chain-drives/chain-drive is not bound";
    let message = lab.await_condition("tenants", "chain", "MyDriveReady", "StorageClassNotFound");
    assert_eq!(message, format!("{claim}: {FIRST}"));
    let message = lab.await_condition("tenants", "chain", "Reconciled", "StorageClassNotFound");
    assert_eq!(message, format!("{claim}: {FIRST}"));
    lab.await_ready("tenants", "chain");
    let volume = crate::shared_volumes::await_condition(
        &lab,
        "workspace-chain",
        "data",
        "Reconciled",
        "StorageClassNotFound",
    );
    assert_eq!(volume, format!("PersistentVolumeClaim workspace-chain/shvol-data is not bound: {FIRST}"));
    let quota = "/spec/hard/count~1instances.crownlabs.polito.it";
    lab.await_value("resourcequotas", "tenant-chain", "crownlabs-resource-quota", quota, "5");
    lab.apply(&instance("chain", "lab", "standalone"));
    let said = wait_until(PATIENCE, || {
        let message = lab.await_fault("tenant-chain", "lab", "StorageClassNotFound");
        if message.contains(FIRST) { Ok(message) } else { Err(message) }
    });
    let first = "environment main: the storage class chain-nfs of MyDrive, which it mounts, does not exist";
    let chain = "; Secret tenant-chain/mydrive-info not found: PersistentVolumeClaim ";
    assert!(said.starts_with(first) && said.contains(chain), "{said}");
    let why = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(["why", "tenant-chain/lab"])
        .env("KUBECONFIG", &admin)
        .output();
    let why = String::from_utf8(why.expect("it starts").stdout).expect("text");
    assert!(why.contains(FIRST), "{why}");
    // An administrator follows these instructions, with a class that waits for a pod at first.
    let create_class = |mode: &str| {
        lab.apply(&format!(
            "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: chain-nfs}}, \
             provisioner: example.org/none, volumeBindingMode: {mode}}}"
        ));
    };
    create_class("WaitForFirstConsumer");
    let message = lab.await_condition("tenants", "chain", "MyDriveReady", "VolumeUnbound");
    let words = "storageclass \"chain-nfs\" has volumeBindingMode WaitForFirstConsumer";
    assert!(message.starts_with(&format!("{claim}: {words}")), "{message}");
    lab.delete("storageclasses", "", &["chain-nfs"]);
    create_class("Immediate");
    wait_until(PATIENCE, || {
        let tenant = lab.get("tenants", "", "chain").ok_or("the Tenant")?;
        let conditions = tenant["status"]["conditions"].to_string();
        if conditions.contains(FIRST) { Err(conditions) } else { Ok(()) }
    });
    drop(daemon);
    lab.delete("storageclasses", "", &["chain-nfs"]);
    lab.kubectl(&["patch", "tenant", "chain", "--type=merge", "-p", r#"{"metadata": {"finalizers": null}}"#]);
    lab.begin_delete("tenants", "", &["chain"]);
    lab.begin_delete("namespaces", "", &["chain-drives"]);
}
