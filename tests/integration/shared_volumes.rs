//! Shared volumes of courses. A stand-in plays the storage.

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};

const KIND: &str = "sharedvolumes";

/// A shared volume of the course of a test.
pub fn shared_volume(lab: &str, name: &str, size: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: SharedVolume
metadata: {{name: {name}, namespace: workspace-{lab}}}
spec: {{prettyName: Data, size: {size}}}
"
    )
}

/// Lets a Template of a test mount shared volumes of its course, or none.
pub fn mount(lab: &Lab, name: &str, template: &str, volumes: &[&str]) {
    let namespace = format!("workspace-{name}");
    let mut environments =
        lab.get("templates", &namespace, template).expect("furnished")["spec"]["environmentList"].clone();
    let mounts: Vec<Value> = volumes
        .iter()
        .map(|volume| json!({"sharedVolume": {"name": volume, "namespace": namespace}, "mountPath": "/data", "readOnly": true}))
        .collect();
    environments[0]["sharedVolumeMounts"] = json!(mounts);
    lab.patch(
        "templates",
        &namespace,
        template,
        &json!({"spec": {"environmentList": environments}}).to_string(),
    );
}

/// Waits for a condition to have a reason; its message.
fn await_condition(lab: &Lab, namespace: &str, name: &str, kind: &str, reason: &str) -> String {
    wait_until(PATIENCE, || {
        let object = lab.get(KIND, namespace, name).ok_or_else(|| format!("SharedVolume {name}"))?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        match conditions.iter().find(|condition| condition["type"] == kind) {
            Some(found) if found["reason"] == reason => {
                Ok(found["message"].as_str().unwrap_or_default().to_owned())
            }
            _ => Err(format!("{name}: {kind} {reason}, is {}", object["status"])),
        }
    })
}

fn await_phase(lab: &Lab, namespace: &str, name: &str, phase: &str) -> Value {
    lab.await_value(KIND, namespace, name, "/status/phase", phase)
}

#[test]
fn a_volume_is_made_used_and_kept_while_it_is_used() {
    let lab = Lab::shared();
    lab.furnish("shvol");
    let (course, namespace) = ("workspace-shvol", "tenant-shvol");
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "shvol", config: "" });
    mount(&lab, "shvol", "container", &["data.one"]);
    mount(&lab, "shvol", "vm-persistent", &["data.one"]);
    lab.apply(&instance("shvol", "early", "container"));
    lab.await_fault(namespace, "early", "SharedVolumeNotFound");
    lab.apply(&shared_volume("shvol", "data.one", "1Gi"));
    let volume = await_phase(&lab, course, "data.one", "Ready");
    is_as_described(&lab, &volume);
    lab.await_phase(namespace, "early", "Ready");
    lab.apply(&instance("shvol", "machine", "vm-persistent"));
    lab.await_phase(namespace, "machine", "Ready");

    // Nobody may take it from under those who use it.
    lab.kubectl(&["delete", "sharedvolume", "-n", course, "data.one", "--wait=false"]);
    let said = await_condition(&lab, course, "data.one", "DeletionBlocked", "InUse");
    assert_eq!(
        said,
        "Cannot delete shvol since it is mounted on [container early machine vm-persistent] (Templates \
         workspace-shvol/container, workspace-shvol/vm-persistent; Instances tenant-shvol/early, \
         tenant-shvol/machine): it is deleted as soon as none of them mounts it"
    );
    await_phase(&lab, course, "data.one", "Deleting");
    // The Templates let it go; what they were used for has not.
    mount(&lab, "shvol", "container", &[]);
    mount(&lab, "shvol", "vm-persistent", &[]);
    let only = |users: &str| {
        wait_until(PATIENCE, || {
            let said = await_condition(&lab, course, "data.one", "DeletionBlocked", "InUse");
            said.contains(&format!("({users}):")).then_some(()).ok_or(said)
        });
    };
    only("Instances tenant-shvol/early, tenant-shvol/machine");
    // A machine mounts it until it is off.
    lab.patch("instances", namespace, "machine", r#"{"spec": {"running": false}}"#);
    only("Instances tenant-shvol/early");
    // A restart forgets nothing.
    drop(daemon);
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "shvol", config: "" });
    assert!(lab.get(KIND, course, "data.one").is_some());
    lab.kubectl(&["delete", "instance", "-n", namespace, "early"]);
    lab.await_gone(KIND, course, "data.one");
    lab.await_gone("persistentvolumeclaims", course, "shvol-data.one");
    let blocked =
        lab.events(course, "data.one").into_iter().filter(|event| event.starts_with("DeletionBlocked: "));
    assert!(blocked.count() >= 3, "one for each change of its users");
    lab.clear("shvol");
}

/// Claim, Job and status (03 §4-5).
fn is_as_described(lab: &Lab, volume: &Value) {
    let (course, metadata) = ("workspace-shvol", &volume["metadata"]);
    assert_eq!(metadata["labels"], json!({"crownlabs.polito.it/managed-by": "instance"}));
    assert_eq!(metadata["finalizers"], json!(["crownlabs.polito.it/shvolctrl-volume-protection"]));
    let owner = json!([{
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "SharedVolume", "name": "data.one",
        "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    let claim = lab.get("persistentvolumeclaims", course, "shvol-data.one").expect("the claim");
    assert_eq!(claim["metadata"]["ownerReferences"], owner);
    assert_eq!(
        claim["metadata"]["labels"],
        json!({
            "crownlabs.polito.it/managed-by": "instance", "crownlabs.polito.it/volume-type": "sharedvolume",
            "crownlabs.polito.it/volume-provisioning": "completed",
        })
    );
    assert_eq!(claim["spec"]["accessModes"], json!(["ReadWriteMany"]));
    assert_eq!(claim["spec"]["storageClassName"], "rook-nfs");
    let job = lab.get("jobs", course, "shvol-data-one-provision").expect("the Job");
    assert_eq!(job["metadata"]["ownerReferences"], owner);
    let storage = lab
        .get("persistentvolumes", "", claim["spec"]["volumeName"].as_str().expect("bound"))
        .expect("the storage");
    let attributes = &storage["spec"]["csi"]["volumeAttributes"];
    let text = |key: &str| attributes[key].as_str().expect("NFS").to_owned();
    let status = &volume["status"];
    assert_eq!(status["serverAddress"], format!("{}.{}", text("server"), text("clusterID")));
    assert_eq!(status["exportPath"], text("share"));
    assert_eq!(status["pvName"], storage["metadata"]["name"]);
}

#[test]
fn what_is_wrong_with_a_volume_is_told_and_heals() {
    let lab = Lab::shared();
    lab.furnish("shvolbad");
    let course = "workspace-shvolbad";
    lab.apply(
        "apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: grows}
provisioner: stand-in.csi.crownlabs.polito.it
allowVolumeExpansion: true
",
    );
    let kubeconfig = lab.service_account();
    let config = "controllers: {sharedVolume: {storageClass: grows}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "shvolbad", config });
    lab.apply(&shared_volume("shvolbad", "nothing", "0"));
    let said = await_condition(&lab, course, "nothing", "Reconciled", "InvalidSize");
    assert_eq!(said, "spec.size \"0\" leaves nothing to store in: set it to an amount above 0, such as 10Gi");
    await_phase(&lab, course, "nothing", "Error");
    lab.patch(KIND, course, "nothing", r#"{"spec": {"size": "1Gi"}}"#);
    await_phase(&lab, course, "nothing", "Ready");
    // It grows, and does not shrink.
    lab.patch(KIND, course, "nothing", r#"{"spec": {"size": "2Gi"}}"#);
    lab.await_value(
        "persistentvolumeclaims",
        course,
        "shvol-nothing",
        "/spec/resources/requests/storage",
        "2Gi",
    );
    await_phase(&lab, course, "nothing", "Ready");
    lab.patch(KIND, course, "nothing", r#"{"spec": {"size": "1Gi"}}"#);
    let said = await_condition(&lab, course, "nothing", "Reconciled", "InvalidSize");
    assert!(said.starts_with("Size cannot be less than previous value: the volume has 2Gi and"), "{said}");
    await_phase(&lab, course, "nothing", "Error");
    lab.patch(KIND, course, "nothing", r#"{"spec": {"size": "2048Mi"}}"#);
    await_phase(&lab, course, "nothing", "Ready");
    // Somebody else's claim is left alone.
    lab.apply(&format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: shvol-taken, namespace: {course}}}
spec: {{accessModes: [ReadWriteMany], storageClassName: \"\", resources: {{requests: {{storage: 1Gi}}}}}}
"
    ));
    lab.apply(&shared_volume("shvolbad", "taken", "1Gi"));
    await_condition(&lab, course, "taken", "Reconciled", "NameConflict");
    await_phase(&lab, course, "taken", "Error");
    // A quota refuses one, and lets it through when there is room: no watch tells of that.
    lab.apply(&format!(
        "apiVersion: v1
kind: ResourceQuota
metadata: {{name: small, namespace: {course}}}
spec: {{hard: {{requests.storage: 4Gi}}}}
"
    ));
    lab.await_value("resourcequotas", course, "small", "/status/hard/requests.storage", "4Gi");
    lab.apply(&shared_volume("shvolbad", "large", "8Gi"));
    let said = await_condition(&lab, course, "large", "Reconciled", "ResourceQuotaExceeded");
    assert!(said.starts_with("PVC exceeded the resource quota: "), "{said}");
    await_phase(&lab, course, "large", "ResourceQuotaExceeded");
    lab.patch("resourcequotas", course, "small", r#"{"spec": {"hard": {"requests.storage": "100Gi"}}}"#);
    await_phase(&lab, course, "large", "Ready");
    lab.clear("shvolbad");
}
