//! Mirrored volumes: claims in the namespaces of Instances that get the volumes of claims in other namespaces.

use std::process::Command;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::shared_volumes::{await_condition, mount, shared_volume};
use crate::tenants::tenant;
use cluster::Options as ClusterOptions;
use cluster::audit::{AuditEntry, Mark, writes};

const BINARY: &str = env!("CARGO_BIN_EXE_crownlabs");
const CLAIMS: &str = "persistentvolumeclaims";
const DRIVES: &str = "mydrive-pvcs";
const COURSE: &str = "workspace-mirrors";
const PERSONAL: &str = "tenant-mira";
const MIRROR: &str = "mira-drive-mirror";
const QUOTA: &str = "quota: {cpu: 16, memory: 64Gi, instances: 20}";
/// The mirror of a shared volume, as the newest Go operator names it.
const TAKEN: &str = "data-taken-mirror";
const CONFIG: &str = "storage: {mode: mirror}\ncontrollers: {pvcMirror: {enabled: true}}\n";

/// The storage class of mirrors, as the chart creates it.
pub const CLASS: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: pvc-mirror}
provisioner: pmp.crownlabs.polito.it
reclaimPolicy: Delete
volumeBindingMode: Immediate
";

/// A claim that mirrors another one.
pub fn mirror(namespace: &str, name: &str, (origin_namespace, origin): (&str, &str)) -> String {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "pvc-mirror",
            "resources": {"requests": {"storage": "1"}},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": origin, "namespace": origin_namespace},
        },
    })
    .to_string()
}

/// An Instance of the Tenant `mira`.
fn own_instance(name: &str, template: &str) -> String {
    let instance = instance("mirrors", name, template);
    instance
        .replace("tenant-mirrors", PERSONAL)
        .replace("TenantRef: {name: mirrors}", "TenantRef: {name: mira}")
}

/// The `PersistentVolume` of a claim that is bound.
fn volume_of(lab: &Lab, namespace: &str, claim: &str) -> Value {
    let claim = lab.await_value(CLAIMS, namespace, claim, "/status/phase", "Bound");
    lab.get("persistentvolumes", "", claim["spec"]["volumeName"].as_str().expect("a name"))
        .expect("the volume")
}

/// The names of the claims that the pods of a Deployment mount.
fn mounted(deployment: &Value) -> Vec<String> {
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().expect("volumes");
    let claims = volumes.iter().filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    claims.map(str::to_owned).collect()
}

#[test]
fn volumes_are_mirrored_where_they_permit_it_and_existing_machines_keep_their_mounts() {
    let lab = Lab::start(ClusterOptions { cross_namespace_volumes: true, ..ClusterOptions::default() });
    let kubeconfig = lab.service_account();
    lab.create_fixtures("mirrors");
    lab.apply(CLASS);
    let start =
        |config: &str| Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "mirrors", config });
    let daemon = start("");
    lab.apply(&shared_volume("mirrors", "data", "1Gi"));
    lab.apply(&tenant("mirrors", "mira", &format!(", createSandbox: true, {QUOTA}")));
    lab.apply(&tenant("mirrors", "eve", &format!(", {QUOTA}")));
    mount(&lab, "mirrors", "container", &["data"]);
    mount(&lab, "mirrors", "vm-persistent", &["data"]);
    lab.await_value("secrets", PERSONAL, "mydrive-info", "/type", "Opaque");
    for name in ["mira", "eve"] {
        lab.await_ready("tenants", name);
    }
    for template in ["container", "vm-persistent"] {
        lab.apply(&own_instance(template, template));
        lab.await_phase(PERSONAL, template, "Ready");
    }
    drop(daemon);

    // The mode changes: workloads that run keep their mounts, and new ones get mirrors.
    let before = workloads(&lab);
    mirror_of_the_go_operator(&lab);
    let daemon = start(CONFIG);
    let copy = volume_of(&lab, PERSONAL, MIRROR);
    let original = volume_of(&lab, DRIVES, "mira-drive");
    assert_eq!(copy["spec"]["csi"], original["spec"]["csi"]);
    assert_eq!(copy["metadata"]["labels"]["crownlabs.polito.it/mirrored-pvc-name"], "mira-drive");
    lab.apply(&own_instance("late", "container"));
    lab.await_phase(PERSONAL, "late", "Ready");
    let deployment = lab.get("deployments", PERSONAL, "late").expect("the Deployment");
    let claims = mounted(&deployment);
    assert!(claims.contains(&MIRROR.to_owned()) && claims.len() == 2, "{claims:?}");
    let data = claims.into_iter().find(|claim| claim != MIRROR).expect("the mirror of the shared volume");
    assert_eq!(
        volume_of(&lab, PERSONAL, &data)["spec"]["csi"],
        volume_of(&lab, COURSE, "shvol-data")["spec"]["csi"]
    );
    assert_eq!(workloads(&lab), before);
    lab.await_phase(PERSONAL, "taken", "Ready");
    let taken = lab.get("deployments", PERSONAL, "taken").expect("the Deployment");
    assert!(mounted(&taken).contains(&TAKEN.to_owned()), "{taken}");
    let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
    let is_ours = |entry: &&AuditEntry| entry.name == TAKEN && entry.user_agent.starts_with("crownlabs/");
    let written: Vec<_> = writes(&entries).filter(is_ours).collect();
    assert!(written.is_empty(), "{written:#?}");
    assert!(lab.get("secrets", PERSONAL, "mydrive-info").is_some(), "machines on NFS need it");
    await_no_secret_of_new_tenants(&lab);

    others_are_refused(&lab);
    released_with_its_mirrors(&lab, &data);

    // And back.
    drop(daemon);
    let _daemon = start("");
    lab.apply(&own_instance("latest", "standalone"));
    lab.await_phase(PERSONAL, "latest", "Ready");
    assert_eq!(mounted(&lab.get("deployments", PERSONAL, "latest").expect("it")), Vec::<String>::new());
    assert_eq!(lab.get(CLAIMS, PERSONAL, MIRROR).expect("kept")["status"]["phase"], "Bound");
}

/// Creates an Instance, and the mirror of its shared volume as the newest Go operator names it.
fn mirror_of_the_go_operator(lab: &Lab) {
    lab.apply(&own_instance("taken", "container"));
    let instance = lab.get("instances", PERSONAL, "taken").expect("the Instance");
    let mut claim: Value =
        serde_json::from_str(&mirror(PERSONAL, TAKEN, (COURSE, "shvol-data"))).expect("JSON");
    claim["metadata"]["labels"] = json!({
        "crownlabs.polito.it/managed-by": "instance", "crownlabs.polito.it/volume-type": "mirror",
    });
    claim["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": "taken",
        "uid": instance["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    lab.apply(&claim.to_string());
}

/// The workloads that were created over NFS, with the documents that virtual machines read.
fn workloads(lab: &Lab) -> Vec<Value> {
    let kinds = [
        ("deployments", "container"),
        ("virtualmachines.kubevirt.io", "vm-persistent"),
        ("secrets", "vm-persistent"),
    ];
    let found = kinds.iter().map(|(kind, name)| lab.get(kind, PERSONAL, name).expect("it exists"));
    let parts = |object: Value| {
        let volumes = &object["spec"]["template"]["spec"]["volumes"];
        json!([object["metadata"]["uid"], volumes, object["data"]])
    };
    found.map(parts).collect()
}

/// A Tenant that is created with mirrors has no Secret.
fn await_no_secret_of_new_tenants(lab: &Lab) {
    lab.apply(&tenant("mirrors", "nina", &format!(", {QUOTA}")));
    lab.await_value(CLAIMS, "tenant-nina", "nina-drive-mirror", "/status/phase", "Bound");
    assert!(lab.get("secrets", "tenant-nina", "mydrive-info").is_none());
}

/// A claim in the namespace of another user gets no volume, and neither does one in the sandbox of its owner.
fn others_are_refused(lab: &Lab) {
    let origin = (DRIVES, "mira-drive");
    lab.apply(&mirror("sandbox-mira", "stolen", origin));
    lab.apply(&mirror("tenant-eve", "stolen", origin));
    wait_until(PATIENCE, || {
        let events = lab.events("tenant-eve", "stolen");
        let refused = events.iter().any(|event| event.starts_with("MirrorRefused: Unauthorized: "));
        refused.then_some(()).ok_or_else(|| format!("a refusal: {events:?}"))
    });
    for namespace in ["tenant-eve", "sandbox-mira"] {
        let claim = lab.get(CLAIMS, namespace, "stolen").expect("the claim");
        assert_eq!(claim["status"]["phase"], "Pending", "{namespace}");
        lab.delete(CLAIMS, namespace, &["stolen"]);
    }
}

/// A shared volume is kept while it has a mirror. The end of a mirror removes only the mirror's volume.
fn released_with_its_mirrors(lab: &Lab, data: &str) {
    lab.apply(&mirror(PERSONAL, "by-hand", (COURSE, "shvol-data")));
    let copy = volume_of(lab, PERSONAL, "by-hand")["metadata"]["name"].as_str().expect("a name").to_owned();
    lab.begin_delete("sharedvolume", COURSE, &["data"]);
    for template in ["container", "vm-persistent"] {
        mount(lab, "mirrors", template, &[]);
    }
    lab.delete("instance", PERSONAL, &["container", "vm-persistent", "late", "taken"]);
    for claim in [data, TAKEN] {
        lab.await_gone(CLAIMS, PERSONAL, claim);
    }
    wait_until(PATIENCE, || {
        let message = await_condition(lab, COURSE, "data", "DeletionBlocked", "InUse");
        let only = format!("[{copy}] (PersistentVolumes of mirrors {copy})");
        message.contains(&only).then_some(()).ok_or(message)
    });
    lab.delete(CLAIMS, PERSONAL, &["by-hand"]);
    lab.await_gone("persistentvolumes", "", &copy);
    lab.await_gone("sharedvolumes", COURSE, "data");
    volume_of(lab, DRIVES, "mira-drive");
}

#[test]
fn an_api_server_that_drops_the_origins_is_reported() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "ungated", config: CONFIG });
    daemon.wait_for("the readiness", |daemon| {
        daemon.ready().1.contains("[!] mirrors: The API server drops the origins of mirrors")
    });
    lab.apply(&tenant("ungated", "una", ""));
    let message = lab.await_condition("tenants", "una", "MyDriveReady", "MirrorUnusable");
    assert!(message.contains("CrossNamespaceVolumeDataSource: enable the gate"), "{message}");
    let output = Command::new(BINARY)
        .args(["config", "check"])
        .arg(daemon.config_file())
        .args(["--connect", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .expect("it starts");
    let text = String::from_utf8(output.stdout).expect("a text");
    let fault =
        "failed  mirrors: CrossNamespaceVolumeDataSource: The API server drops the origins of mirrors";
    assert!(text.lines().any(|line| line.starts_with(fault)), "{text}");
    lab.delete("tenant", "", &["una"]);
}
