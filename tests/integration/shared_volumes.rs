//! Shared volumes of courses. The stand-in simulates the storage.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, instance, wait_until};

const KIND: &str = "sharedvolumes";
/// The workspace namespace of the test with faults.
const BAD_COURSE: &str = "workspace-shvolbad";

/// A shared volume in the workspace namespace of these fixtures.
pub fn shared_volume(fixtures: &str, name: &str, size: &str) -> String {
    format!(
        "---
apiVersion: crownlabs.polito.it/v1alpha2
kind: SharedVolume
metadata: {{name: {name}, namespace: workspace-{fixtures}}}
spec: {{prettyName: Data, size: {size}}}
"
    )
}

/// The environments of a Template of these fixtures, with other shared volumes.
fn environments(lab: &Lab, fixtures: &str, template: &str, volumes: &[&str]) -> Value {
    let namespace = format!("workspace-{fixtures}");
    let template = lab.get("templates", &namespace, template).expect("the Template");
    let mut environments = template["spec"]["environmentList"].clone();
    let mounts: Vec<Value> = volumes
        .iter()
        .map(|volume| json!({"sharedVolume": {"name": volume, "namespace": namespace}, "mountPath": "/data", "readOnly": true}))
        .collect();
    environments[0]["sharedVolumeMounts"] = json!(mounts);
    environments
}

/// Sets the shared volumes that a Template of these fixtures mounts.
pub fn mount(lab: &Lab, fixtures: &str, template: &str, volumes: &[&str]) {
    let spec = json!({"spec": {"environmentList": environments(lab, fixtures, template, volumes)}});
    lab.patch("templates", &format!("workspace-{fixtures}"), template, &spec.to_string());
}

/// Creates the Template `name`, a copy of the Template `container` of these fixtures with shared volumes.
pub fn create_mounting_template(lab: &Lab, fixtures: &str, name: &str, volumes: &[&str]) {
    lab.create_template(fixtures, name, "container", &environments(lab, fixtures, "container", volumes));
}

/// Waits until a condition of a shared volume has this reason. Returns its message.
pub fn await_condition(lab: &Lab, namespace: &str, name: &str, kind: &str, reason: &str) -> String {
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

/// Waits until a shared volume has this phase. Returns the shared volume.
fn await_phase(lab: &Lab, namespace: &str, name: &str, phase: &str) -> Value {
    lab.await_value(KIND, namespace, name, "/status/phase", phase)
}

#[test]
fn a_volume_is_created_mounted_and_kept_while_it_is_mounted() {
    let lab = Lab::shared();
    let fixtures = lab.course("shvol");
    let (course, namespace) = ("workspace-shvol", "tenant-shvol");
    mount(&lab, "shvol", "container", &["data.one"]);
    mount(&lab, "shvol", "vm-persistent", &["data.one"]);
    let daemon = fixtures.daemon("");
    lab.apply(&instance("shvol", "early", "container"));
    lab.await_fault(namespace, "early", "SharedVolumeNotFound");
    lab.apply(&shared_volume("shvol", "data.one", "1Gi"));
    let volume = await_phase(&lab, course, "data.one", "Ready");
    check_objects(&lab, &volume);
    lab.await_phase(namespace, "early", "Ready");
    lab.apply(&instance("shvol", "machine", "vm-persistent"));
    lab.await_phase(namespace, "machine", "Ready");

    // It is not deleted while Templates and Instances mount it.
    lab.begin_delete("sharedvolume", course, &["data.one"]);
    let message = await_condition(&lab, course, "data.one", "DeletionBlocked", "InUse");
    assert_eq!(
        message,
        "Cannot delete shvol since it is mounted on [container early machine vm-persistent] (Templates \
         workspace-shvol/container, workspace-shvol/vm-persistent; Instances tenant-shvol/early, \
         tenant-shvol/machine): it is deleted as soon as none of them mounts it"
    );
    await_phase(&lab, course, "data.one", "Deleting");
    // The Templates do not mount it any more; the Instances made from them still do.
    mount(&lab, "shvol", "container", &[]);
    mount(&lab, "shvol", "vm-persistent", &[]);
    let only = |users: &str| {
        wait_until(PATIENCE, || {
            let message = await_condition(&lab, course, "data.one", "DeletionBlocked", "InUse");
            message.contains(&format!("({users}):")).then_some(()).ok_or(message)
        });
    };
    only("Instances tenant-shvol/early, tenant-shvol/machine");
    // A virtual machine mounts it until it is off.
    lab.patch("instances", namespace, "machine", r#"{"spec": {"running": false}}"#);
    only("Instances tenant-shvol/early");
    // The users are still known after a restart.
    drop(daemon);
    let daemon = fixtures.daemon("");
    daemon.wait_for("a reconcile", |daemon| daemon.reconciles("sharedVolume") > 0);
    assert!(lab.get(KIND, course, "data.one").is_some());
    lab.delete("instance", namespace, &["early"]);
    lab.await_gone(KIND, course, "data.one");
    lab.await_gone("persistentvolumeclaims", course, "shvol-data.one");
    wait_until(PATIENCE, || {
        let events = lab.events(course, "data.one");
        let blocked = events.iter().filter(|event| event.starts_with("DeletionBlocked: ")).count();
        if blocked >= 3 { Ok(()) } else { Err(format!("one for each change of its users: {events:?}")) }
    });
}

/// Checks the claim, the Job and the status of the shared volume `data.one`.
fn check_objects(lab: &Lab, volume: &Value) {
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
fn errors_of_a_volume_are_reported_until_they_are_corrected() {
    let lab = Lab::shared();
    let fixtures = lab.course("shvolbad");
    let course = BAD_COURSE;
    lab.apply(
        "apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: grows}
provisioner: stand-in.csi.crownlabs.polito.it
allowVolumeExpansion: true
",
    );
    let config = "controllers: {sharedVolume: {storageClass: grows}}\n";
    let _daemon = fixtures.daemon(config);
    lab.apply(&shared_volume("shvolbad", "nothing", "0"));
    let message = await_condition(&lab, course, "nothing", "Reconciled", "InvalidSize");
    assert_eq!(
        message,
        "spec.size \"0\" is not a positive amount: set it to an amount above 0, such as 10Gi"
    );
    await_phase(&lab, course, "nothing", "Error");
    lab.patch(KIND, course, "nothing", r#"{"spec": {"size": "1Gi"}}"#);
    await_phase(&lab, course, "nothing", "Ready");
    // A volume can grow, but not shrink.
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
    let message = await_condition(&lab, course, "nothing", "Reconciled", "InvalidSize");
    assert!(
        message.starts_with("Size cannot be less than previous value: the volume has 2Gi and"),
        "{message}"
    );
    await_phase(&lab, course, "nothing", "Error");
    lab.patch(KIND, course, "nothing", r#"{"spec": {"size": "2048Mi"}}"#);
    await_phase(&lab, course, "nothing", "Ready");
    claim_of_another(&lab);
    exceeded_quota(&lab);
}

/// A claim of another owner under the name that the daemon would use is reported and not touched.
fn claim_of_another(lab: &Lab) {
    lab.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: keeper, namespace: {BAD_COURSE}}}}}"
    ));
    let keeper = lab.get("configmaps", BAD_COURSE, "keeper").expect("made")["metadata"]["uid"].clone();
    lab.apply(&format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: shvol-taken
  namespace: {BAD_COURSE}
  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: keeper, uid: {keeper}, controller: true}}]
spec: {{accessModes: [ReadWriteMany], storageClassName: \"\", resources: {{requests: {{storage: 1Gi}}}}}}
"
    ));
    lab.apply(&shared_volume("shvolbad", "taken", "1Gi"));
    await_condition(lab, BAD_COURSE, "taken", "Reconciled", "NameConflict");
    await_phase(lab, BAD_COURSE, "taken", "Error");
}

/// How long a volume that a quota has rejected may take once there is room: less than the minute after which the
/// daemon retries in any case.
const WOKEN_WITHIN: Duration = Duration::from_secs(45);

/// The time between two raises of the quota: the API server admits with a copy of the quota, which may be older than
/// the daemon's copy, so the first raise may wake the volume too soon.
const RAISED_EVERY: Duration = Duration::from_secs(5);

/// A quota rejects a claim. When the quota is raised, the volume is created at once.
fn exceeded_quota(lab: &Lab) {
    lab.apply(&format!(
        "apiVersion: v1
kind: ResourceQuota
metadata: {{name: small, namespace: {BAD_COURSE}}}
spec: {{hard: {{requests.storage: 4Gi}}}}
"
    ));
    lab.await_value("resourcequotas", BAD_COURSE, "small", "/status/hard/requests.storage", "4Gi");
    lab.apply(&shared_volume("shvolbad", "large", "8Gi"));
    let message = await_condition(lab, BAD_COURSE, "large", "Reconciled", "ResourceQuotaExceeded");
    assert!(message.starts_with("PVC exceeded the resource quota: "), "{message}");
    await_phase(lab, BAD_COURSE, "large", "ResourceQuotaExceeded");
    let (begin, mut raises) = (Instant::now(), 0);
    wait_until(WOKEN_WITHIN, || {
        if begin.elapsed() >= RAISED_EVERY * raises {
            raises += 1;
            let room = json!({"spec": {"hard": {"requests.storage": format!("{}Gi", 100 * raises)}}});
            lab.patch("resourcequotas", BAD_COURSE, "small", &room.to_string());
        }
        let phase = lab.get(KIND, BAD_COURSE, "large").expect("there")["status"]["phase"].clone();
        (phase == "Ready").then_some(()).ok_or_else(|| format!("large: Ready, is {phase}"))
    });
}

#[test]
fn a_container_that_never_mounted_a_volume_does_not_block_its_deletion() {
    let lab = Lab::shared();
    let fixtures = lab.course("shvolnever");
    let (course, namespace) = ("workspace-shvolnever", "tenant-shvolnever");
    let _daemon = fixtures.daemon("");
    lab.apply(&instance("shvolnever", "before", "standalone"));
    lab.await_phase(namespace, "before", "Ready");
    lab.apply(&shared_volume("shvolnever", "data", "1Gi"));
    await_phase(&lab, course, "data", "Ready");
    mount(&lab, "shvolnever", "standalone", &["data"]);
    create_mounting_template(&lab, "shvolnever", "mounting", &["data"]);
    lab.apply(&instance("shvolnever", "after", "mounting"));
    lab.await_phase(namespace, "after", "Ready");
    lab.begin_delete("sharedvolume", course, &["data"]);
    let message = await_condition(&lab, course, "data", "DeletionBlocked", "InUse");
    assert!(message.contains("; Instances tenant-shvolnever/after)"), "{message}");
    mount(&lab, "shvolnever", "standalone", &[]);
    mount(&lab, "shvolnever", "mounting", &[]);
    lab.delete("instance", namespace, &["after"]);
    lab.await_gone(KIND, course, "data");
    lab.await_phase(namespace, "before", "Ready");
}
