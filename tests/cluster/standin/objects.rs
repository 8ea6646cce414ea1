//! The objects that the stand-in writes.

use std::collections::BTreeMap;

use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::cache::Kind;

/// The current time as Kubernetes writes it, to the second.
pub fn now() -> String {
    #[allow(clippy::disallowed_methods, reason = "the simulated machines write the real time")]
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now).to_string()
}

/// A condition.
pub fn condition(kind: &str, holds: bool, reason: &str, message: &str) -> Value {
    let status = if holds { "True" } else { "False" };
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now()})
}

/// An object of `kind` owned by `owner`, in its namespace.
fn owned(kind: Kind, name: &str, owner: (Kind, &DynamicObject), data: Value) -> DynamicObject {
    let (owner_resource, owner) = (owner.0.resource(), owner.1);
    let mut object = DynamicObject::new(name, &kind.resource()).data(data);
    object.metadata.namespace = owner.namespace();
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: owner_resource.api_version,
        kind: owner_resource.kind,
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
    object
}

fn text_map(value: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

/// The `DataVolume` for an entry in the `dataVolumeTemplates` of a `VirtualMachine`.
pub fn data_volume(vm: &DynamicObject, template: &Value, name: &str) -> DynamicObject {
    let data = json!({"spec": template["spec"]});
    let mut volume = owned(Kind::DataVolume, name, (Kind::Machine, vm), data);
    let mut labels = text_map(&template["metadata"]["labels"]);
    labels.insert("kubevirt.io/created-by".to_owned(), vm.uid().unwrap_or_default());
    volume.metadata.labels = Some(labels);
    volume.metadata.annotations = Some(text_map(&template["metadata"]["annotations"]));
    volume
}

/// The `VirtualMachineInstance` of a `VirtualMachine`: of the same name, with the content of `spec.template`.
pub fn instance(vm: &DynamicObject) -> DynamicObject {
    let template = &vm.data["spec"]["template"];
    let data = json!({"spec": template["spec"]});
    let mut vmi = owned(Kind::Instance, &vm.name_any(), (Kind::Machine, vm), data);
    vmi.metadata.labels = Some(text_map(&template["metadata"]["labels"]));
    vmi.metadata.annotations = Some(text_map(&template["metadata"]["annotations"]));
    vmi
}

/// The claim that CDI creates for a `DataVolume`.
pub fn claim(volume: &DynamicObject) -> DynamicObject {
    let spec = &volume.data["spec"];
    let mut claim = if spec["pvc"].is_object() { spec["pvc"].clone() } else { spec["storage"].clone() };
    if claim["accessModes"].is_null() {
        claim["accessModes"] = json!(["ReadWriteOnce"]);
    }
    owned(Kind::Claim, &volume.name_any(), (Kind::DataVolume, volume), json!({"spec": claim}))
}

/// The name of the pod that an instance runs in.
pub fn launcher_name(instance: &str) -> String {
    format!("virt-launcher-{instance}")
}

/// The pod that an instance runs in, with the instance's labels, resources and node selector.
pub fn launcher(vmi: &DynamicObject) -> DynamicObject {
    let spec = &vmi.data["spec"];
    let mut resources = spec["domain"]["resources"].clone();
    if let Some(resources) = resources.as_object_mut() {
        resources.retain(|key, _| key == "requests" || key == "limits");
    }
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "compute", "image": "virt-launcher", "resources": resources}],
    });
    for field in ["nodeSelector", "tolerations", "affinity"] {
        if !spec[field].is_null() {
            pod[field] = spec[field].clone();
        }
    }
    let name = launcher_name(&vmi.name_any());
    let mut launcher = owned(Kind::Launcher, &name, (Kind::Instance, vmi), json!({"spec": pod}));
    let mut labels = vmi.labels().clone();
    labels.insert("kubevirt.io".to_owned(), "virt-launcher".to_owned());
    labels.insert("kubevirt.io/created-by".to_owned(), vmi.uid().unwrap_or_default());
    launcher.metadata.labels = Some(labels);
    launcher
}

/// The status of an instance whose pod runs.
pub fn running_instance(vmi: &DynamicObject, pod: &DynamicObject) -> Value {
    let network = vmi.data["spec"]["networks"][0]["name"].as_str().unwrap_or("default");
    let address = &pod.data["status"]["podIP"];
    let interface = json!({
        "name": network,
        "interfaceName": "eth0",
        "mac": mac(&vmi.uid().unwrap_or_default()),
        "ipAddress": address,
        "ipAddresses": [address],
    });
    json!({
        "phase": "Running",
        "nodeName": pod.data["spec"]["nodeName"],
        "interfaces": [interface],
        "conditions": [condition("Ready", true, "", "")],
    })
}

/// A locally administered MAC address that is derived from the uid.
fn mac(uid: &str) -> String {
    let digits: Vec<char> = uid.chars().filter(char::is_ascii_hexdigit).take(10).collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    [String::from("02")].into_iter().chain(pairs).collect::<Vec<_>>().join(":")
}

/// The volume that a provisioner creates for a claim, with the attributes of a CSI volume that is served over NFS.
pub fn volume(claim: &DynamicObject, name: &str) -> DynamicObject {
    let spec = &claim.data["spec"];
    let namespace = claim.namespace().unwrap_or_default();
    let csi = json!({
        "driver": super::storage::PROVISIONER,
        "volumeHandle": name,
        "volumeAttributes": {"server": "nfs-server", "clusterID": "rook-ceph", "share": format!("/export/{name}")},
    });
    let mut data = json!({
        "accessModes": spec["accessModes"],
        "capacity": spec["resources"]["requests"],
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": claim.name_any(),
            "uid": claim.uid(),
        },
        "persistentVolumeReclaimPolicy": "Delete",
        "csi": csi,
    });
    for field in ["storageClassName", "volumeMode"] {
        if !spec[field].is_null() {
            data[field] = spec[field].clone();
        }
    }
    let mut volume = DynamicObject::new(name, &Kind::Volume.resource()).data(json!({"spec": data}));
    let provisioner = ("pv.kubernetes.io/provisioned-by".to_owned(), super::storage::PROVISIONER.to_owned());
    volume.metadata = ObjectMeta { annotations: Some([provisioner].into()), ..volume.metadata };
    volume
}
